"""A panel of any size as a few thousand weighted intervals between fixed nodes.

ln(∫ over (s, e] of a smooth positive function / (e − s)) is smooth and symmetric in s and e, so
that it is known everywhere from its values at pairs of nodes of a grid. Summed over rows it is a
sum over pairs of nodes with weights that one pass over the rows collects; the expected number of
events is a sum over nodes likewise (docs/maths_scale.md). The weights are real numbers, some of
them negative, but everything that is computed from intervals stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.large.moments import CELLS, DEGREE, DEGREES, PairMoments, PointMoments
from gp4c.model.quadrature import Grid, gauss_legendre

Floats = NDArray[np.float64]

#: the finest grid: panels, and nodes in each of them
FINEST_PANELS, ORDER = 32, 16
#: fewest nodes in a panel, for which a panel is somewhat shorter
LEAST_ORDER = 13
#: panel length, in length-scales, on which ORDER nodes give the sums to about 1e-8 per event
PANEL_LENGTH = 2.5
#: length, in panels, of the interval that stands for a node paired with itself
POINT = 1e-4
#: weights below this share of their sum are rounding
NEGLIGIBLE = 1e-15


def node_grid(resolution: float) -> Grid:
    """Nodes for functions of length-scale `resolution` (in windows) and longer."""
    nodes = ORDER / (PANEL_LENGTH * resolution)
    panels = min(int(np.ceil(nodes / ORDER)), FINEST_PANELS)
    order = int(np.clip(np.ceil(nodes / panels), LEAST_ORDER, ORDER))
    return Grid.on(np.linspace(0.0, 1.0, panels + 1), order)


@lru_cache(maxsize=1)
def finest_grid() -> Grid:
    """The grid on which sums are kept and sent."""
    return Grid.on(np.linspace(0.0, 1.0, FINEST_PANELS + 1), ORDER)


#: the shortest length-scale, in windows, that the finest grid carries
SHORTEST = 1.0 / (PANEL_LENGTH * FINEST_PANELS)


@lru_cache(maxsize=1)
def _projections() -> tuple[sparse.csr_array, ...]:
    """For each degree a the matrix (CELLS, N) of Legendre coefficients of L_n in each cell."""
    x, w = gauss_legendre(ORDER // 2 + DEGREE // 2 + 1)
    centre, half = (np.arange(CELLS) + 0.5) / CELLS, 0.5 / CELLS
    inside = finest_grid().interpolation((centre[:, None] + half * x).ravel())
    found = []
    for a, legendre in enumerate(np.polynomial.legendre.legvander(x, DEGREE).T):
        rule = sparse.kron(sparse.eye_array(CELLS), (a + 0.5) * (w * legendre)[None])
        found.append(sparse.csr_array(rule @ inside))
    return tuple(found)


def pairs_to_nodes(moments: PairMoments) -> Floats:
    """Weights (N, N) of pairs of nodes of the finest grid: Σ_ab A_aᵀ M_ab A_b."""
    A = _projections()
    total = np.zeros((A[0].shape[1],) * 2)
    by_last = [np.zeros((A[0].shape[1], CELLS)) for _ in A]
    for row, (a, b) in zip(moments.table, DEGREES, strict=True):
        by_last[b] += A[a].T @ row.reshape(CELLS, CELLS)
    for b, matrix in enumerate(by_last):
        total += matrix @ A[b]
    return total


def points_to_nodes(moments: PointMoments) -> Floats:
    """Weights (N,) of nodes of the finest grid."""
    return np.asarray(sum(A.T @ row for A, row in zip(_projections(), moments.table, strict=True)))


@dataclass(frozen=True)
class WeightedPairs:
    """Intervals (start, stop] between nodes, with one or more weights each."""

    start: Floats
    stop: Floats
    weight: tuple[Floats, ...]

    @classmethod
    def on(cls, grid: Grid, *pairs: Floats) -> Self:
        """From weights (N, N) on the finest grid to intervals between the nodes of `grid`.

        The functions are symmetric in their two ends, so (i, j) and (j, i) are one interval; a
        node paired with itself becomes a very short one around it.
        """
        change = grid.interpolation(finest_grid().nodes)
        coarse = [np.asarray((change.T @ matrix) @ change) for matrix in pairs]
        size = len(grid.nodes)
        i, j = np.triu_indices(size)
        weights = [(matrix + np.triu(matrix.T, 1))[i, j] for matrix in coarse]
        used = _any_used(weights)
        i, j = i[used], j[used]
        short = np.where(i == j, POINT * (grid.edges[1] - grid.edges[0]) / 2, 0.0)
        start, stop = grid.nodes[i] - short, grid.nodes[j] + short
        return cls(start, stop, tuple(weight[used] for weight in weights))

    @classmethod
    def of_spans(cls, grid: Grid, *pairs: Floats) -> Self:
        """From weights (N, N) of (s, ρ) on the finest grid to spans (s, s + ρ (1 − s)]."""
        change = grid.interpolation(finest_grid().nodes)
        weights = [np.asarray((change.T @ matrix) @ change).ravel() for matrix in pairs]
        used = _any_used(weights)
        s, share = (x.ravel()[used] for x in np.meshgrid(grid.nodes, grid.nodes, indexing="ij"))
        return cls(s, s + share * (1.0 - s), tuple(weight[used] for weight in weights))


def _any_used(weights: list[Floats]) -> NDArray[np.bool_]:
    """Where at least one of several weights is more than rounding."""
    used = np.zeros(len(weights[0]), dtype=bool)
    for weight in weights:
        used |= np.abs(weight) > NEGLIGIBLE * np.abs(weight).sum()
    return used


def weighted_points(grid: Grid, points: Floats) -> tuple[Floats, Floats]:
    """From weights (N,) on the finest grid to the nodes of `grid` and their weights."""
    change = grid.interpolation(finest_grid().nodes)
    return grid.nodes, np.asarray(change.T @ points)
