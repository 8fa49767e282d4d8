r"""Gaussian smoothing of cell densities, divided by smoothed exposure: the S-step of local EM.

For cells :math:`J_l` with densities :math:`E_l / |J_l|` and numbers at risk :math:`Y_l`,

.. math::
    \lambda(x) = \frac{\sum_l (E_l / |J_l|)\, k_l(x)}{\sum_l Y_l\, k_l(x)}, \qquad
    k_l(x) = \Phi\Bigl(\frac{s_{l+1} - x}{h}\Bigr) - \Phi\Bigl(\frac{s_l - x}{h}\Bigr) .

λ varies on the scale of the bandwidth h, not of the cells. So it is evaluated at Gauss points of
panels of half a bandwidth and integrated as a polynomial on each: accurate to about 1e-9
however wide or narrow the cells are, and cheap for wide bandwidths.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import legendre
from scipy import sparse
from scipy.special import ndtr

from gp4c.classical.visit_cells import Floats, Indices
from gp4c.model.quadrature import gauss_legendre

_NODES = 12
_PANEL_WIDTH = 0.5
#: beyond this many bandwidths a kernel weight (1e-23) counts as 0
_REACH = 10.0
#: cells narrower than this many bandwidths are integrated by a series
_NARROW = 1e-3
#: denser than this, a plain matrix is faster
_DENSE = 0.2

#: pieces of a panel narrower than this, in half panels, are integrated by their middle
_NARROW_PIECE = 1e-6

_GAUSS_POINTS, _GAUSS_WEIGHTS = gauss_legendre(_NODES)
#: P_k(x_q) w_q, (12, 12), and k + ½
_COEFFICIENTS = legendre.legvander(_GAUSS_POINTS, _NODES - 1).T * _GAUSS_WEIGHTS
_HALF_ODD = np.arange(_NODES) + 0.5


@dataclass(frozen=True, eq=False)
class Smoother:
    """Everything about the S-step that does not depend on the data's counts.

    One serves all folds and bootstrap samples of a bandwidth: they differ in counts and exposure
    only, which are columns of matrices here.

    Attributes
    ----------
    points : (L + 1,)
        End points of the cells.
    bandwidth : float
    edges : (P + 1,)
        Ends of the panels.
    nodes : (P * 12,)
        Gauss points of the panels.
    weights : (P * 12, L), sparse or dense
        k_l at the nodes.
    """

    points: Floats
    bandwidth: float
    edges: Floats
    nodes: Floats
    weights: Floats | sparse.csr_array

    @classmethod
    def of(cls, points: Floats, bandwidth: float, window: tuple[float, float]) -> Smoother:
        """Prepare a bandwidth; `window` must contain the points."""
        edges = panel_edges(points, bandwidth, window)
        half = np.diff(edges) / 2.0
        nodes = (edges[:-1, None] + half[:, None] * (1.0 + _GAUSS_POINTS)).ravel()
        weights = kernel_weights(nodes, points, bandwidth)
        if weights.nnz > _DENSE * weights.shape[0] * weights.shape[1]:
            weights = weights.toarray()
        return cls(points, bandwidth, edges, nodes, weights)

    def exposure(self, at_risk: Floats) -> SmoothedExposure:
        """Smooth the numbers at risk, (L, F)."""
        return SmoothedExposure.at(self.nodes, self.points, self.weights, at_risk)

    def cumulative(self, rates: Floats, times: Floats) -> Floats:
        """∫λ from the first edge to each time, (T, F), from rates at the nodes, (P * 12, F)."""
        return self._integrals(rates, *self._located(times))

    def masses(self, rates: Floats) -> Floats:
        """∫λ over each cell, (L, F); negative rounding is set to 0."""
        return np.maximum(np.asarray(self._cell_weights @ rates, dtype=np.float64), 0.0)

    @cached_property
    def _cell_weights(self) -> sparse.csr_array:
        """Weights of the nodes in ∫λ over each cell, (L, P * 12).

        Piece by piece, each within one panel: differences of ∫λ from the first edge would lose
        the mass of a narrow cell beside a far larger one.
        """
        inside = (self.edges > self.points[0]) & (self.edges < self.points[-1])
        ends = np.union1d(self.points, self.edges[inside])
        middle = (ends[:-1] + ends[1:]) / 2.0
        panel = np.searchsorted(self.edges, middle, side="right") - 1
        half = np.diff(self.edges)[panel] / 2.0
        low, high = ((t - self.edges[panel]) / half - 1.0 for t in (ends[:-1], ends[1:]))
        weights = half[:, None] * _piece_weights(low, high, np.diff(ends) / half)
        pieces = np.searchsorted(ends, self.points)  # first piece of each cell, and their number
        column = panel[:, None] * _NODES + np.arange(_NODES)
        entries = (weights.ravel(), column.ravel(), pieces * _NODES)
        return sparse.csr_array(entries, shape=(len(self.points) - 1, len(self.nodes)))

    def _located(self, times: Floats) -> tuple[Indices, Floats]:
        """Panel of each time, (T,), and weights of its nodes up to the time, (T, 12)."""
        half = np.diff(self.edges) / 2.0
        panel = np.clip(np.searchsorted(self.edges, times, side="right") - 1, 0, len(half) - 1)
        local = np.clip((times - self.edges[panel]) / half[panel] - 1.0, -1.0, 1.0)
        return panel, half[panel, None] * _partial_weights(local)

    def _integrals(self, rates: Floats, panel: Indices, weights: Floats) -> Floats:
        panels = rates.reshape(len(self.edges) - 1, _NODES, -1)
        half = np.diff(self.edges) / 2.0
        whole = half[:, None] * np.einsum("q,pqf->pf", _GAUSS_WEIGHTS, panels)
        before = np.concatenate([np.zeros((1, whole.shape[1])), np.cumsum(whole, axis=0)])
        part = np.einsum("tq,tqf->tf", weights, panels[panel])
        return np.asarray(before[panel] + part, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SmoothedExposure:
    """The denominator of λ at some times, for each column of numbers at risk.

    Where no observed cell is within reach of a time, λ is that of the nearest observed cell:
    the limit of the formula.
    """

    weights: Floats | sparse.csr_array
    at_risk: Floats
    denominator: Floats
    lost: tuple[Indices, Indices]
    nearest: Indices

    @classmethod
    def at(
        cls, times: Floats, points: Floats, weights: Floats | sparse.csr_array, at_risk: Floats
    ) -> SmoothedExposure:
        """Evaluate at times with these kernel weights, (T, L)."""
        denominator = np.asarray(weights @ at_risk, dtype=np.float64)
        time, column = np.nonzero(denominator <= 0.0)
        nearest = _nearest_cells(times[time], column, points, at_risk)
        denominator[time, column] = 1.0
        return cls(weights, at_risk, denominator, (time, column), nearest)

    def rates(self, density: Floats) -> Floats:
        """λ at the times, (T, F), from cell densities E/|J|, (L, F)."""
        rates = np.asarray(self.weights @ density, dtype=np.float64) / self.denominator
        column = self.lost[1]
        if len(column):
            near = (self.nearest, column)
            rates[self.lost] = _ratio(density[near], self.at_risk[near])
        return rates


def intensity_at(
    times: Floats, points: Floats, bandwidth: float, density: Floats, at_risk: Floats
) -> Floats:
    """λ at any times, (T, F), by the formula above, for columns (L, F)."""
    weights = kernel_weights(times, points, bandwidth)
    return SmoothedExposure.at(times, points, weights, at_risk).rates(density)


def kernel_weights(x: Floats, points: Floats, bandwidth: float) -> sparse.csr_array:
    """k_l(x), (len(x), L), with all its digits in both tails."""
    n_cells = len(points) - 1
    reach = _REACH * bandwidth
    first = np.clip(np.searchsorted(points, x - reach, side="right") - 1, 0, n_cells)
    last = np.clip(np.searchsorted(points, x + reach, side="left"), first, n_cells)
    n_points = last - first + 1
    end = np.cumsum(n_points)
    point = np.arange(end[-1] if len(x) else 0) - np.repeat(end - n_points - first, n_points)
    z = (points[point] - np.repeat(x, n_points)) / bandwidth
    # Φ(b) − Φ(a) from the tails Φ(−|z|), each small where its neighbour is: nothing cancels.
    tail = ndtr(-np.abs(z))
    weights = np.diff(np.where(z > 0.0, -tail, tail)) + ((z[1:] > 0.0) & (z[:-1] <= 0.0))
    inner = np.ones(len(weights), dtype=np.bool_)
    inner[end[:-1] - 1] = False  # from the last point of one x to the first of the next
    width = np.diff(points[point]) / bandwidth  # not from z, which has lost digits far away
    narrow = inner & (np.abs(width) < _NARROW)
    middle = (z[1:][narrow] + z[:-1][narrow]) / 2.0
    weights[narrow] = _narrow_weight(middle, width[narrow])
    pointer = np.concatenate([[0], np.cumsum(n_points - 1)])
    entries = (weights[inner], point[:-1][inner], pointer)
    return sparse.csr_array(entries, shape=(len(x), n_cells))


def _narrow_weight(middle: Floats, width: Floats) -> Floats:
    """∫φ over a narrow interval by its Taylor series, where a difference of Φ would cancel."""
    density = np.exp(-0.5 * middle**2) / np.sqrt(2.0 * np.pi)
    return np.asarray(density * width * (1.0 + (middle**2 - 1.0) * width**2 / 24.0))


def panel_edges(points: Floats, bandwidth: float, window: tuple[float, float]) -> Floats:
    """Ends of panels over the window: half a bandwidth wide within reach of any point.

    Further away λ is constant, or constant on either side of the middle; two panels do.
    """
    low, high = window
    reach = _REACH * bandwidth
    apart = np.flatnonzero(np.diff(points) > 2.0 * reach)
    begin = np.maximum(np.concatenate([[points[0]], points[apart + 1]]) - reach, low)
    end = np.minimum(np.concatenate([points[apart], [points[-1]]]) + reach, high)
    number = np.maximum(np.ceil((end - begin) / (_PANEL_WIDTH * bandwidth)), 1).astype(np.intp)
    segment = np.repeat(np.arange(len(begin)), number)
    step = np.arange(number.sum()) - np.repeat(np.cumsum(number) - number, number)
    inner = begin[segment] + (end - begin)[segment] * (step / number[segment])
    middle = (end[:-1] + begin[1:]) / 2.0
    return np.unique(np.concatenate([[low, high], inner, end, middle]))


def _partial_weights(u: Floats) -> Floats:
    """Weights of the nodes in ∫_{-1}^u of the interpolating polynomial, (T, 12).

    The polynomial is Σ_k c_k P_k with c_k = (k + ½) Σ_q w_q P_k(x_q) f(x_q), and
    ∫_{-1}^u P_k = (P_{k+1}(u) − P_{k−1}(u)) / (2k + 1).
    """
    value = legendre.legvander(u, _NODES)
    integral = np.empty((len(u), _NODES))
    integral[:, 0] = 1.0 + u
    integral[:, 1:] = value[:, 2:] - value[:, :-2]
    return np.asarray(0.5 * integral @ _COEFFICIENTS, dtype=np.float64)


def _piece_weights(low: Floats, high: Floats, width: Floats) -> Floats:
    """Weights of the nodes in ∫ of the interpolating polynomial from low to high, (T, 12)."""
    weights = _partial_weights(high) - _partial_weights(low)
    narrow = width < _NARROW_PIECE  # the polynomial in the middle, by the same coefficients
    values = legendre.legvander((low + high)[narrow] / 2.0, _NODES - 1)
    weights[narrow] = width[narrow, None] * ((values * _HALF_ODD) @ _COEFFICIENTS)
    return weights


def _nearest_cells(x: Floats, column: Indices, points: Floats, at_risk: Floats) -> Indices:
    """Nearest cell with somebody at risk, for each x in its column of `at_risk`, (len(x),)."""
    nearest = np.zeros(len(x), dtype=np.intp)
    for f in np.unique(column):
        mine = column == f
        seen = np.flatnonzero(at_risk[:, f] > 0.0)
        if len(seen) == 0:
            continue
        after = np.searchsorted(points[seen], x[mine])
        left, right = np.maximum(after - 1, 0), np.minimum(after, len(seen) - 1)
        closer_left = np.abs(x[mine] - points[seen[left] + 1]) <= points[seen[right]] - x[mine]
        nearest[mine] = seen[np.where(closer_left | (after == len(seen)), left, right)]
    return nearest


def _ratio(density: Floats, at_risk: Floats) -> Floats:
    """density / at_risk, 0 where nobody is at risk at all."""
    return np.where(at_risk > 0.0, density / np.where(at_risk > 0.0, at_risk, 1.0), 0.0)
