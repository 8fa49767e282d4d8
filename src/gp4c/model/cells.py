"""Counted cells, and the one place where they become rows of a matrix over quadrature nodes.

A cell is an interval between two visits, or a point: an exact event time. What a fit needs of it
is a linear function of f² at the nodes of a grid: the integral of f² over the cell, or its value
at the point. Everything after this module sees nodes, rows, counts and subjects; only here does
time have one dimension.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.model.modulation.modulator import Modulation
from gp4c.model.modulation.sheets import sheet_matrix
from gp4c.model.quadrature import Grid, IntervalIntegrals

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most numbers of a dense matrix that stands for the sparse one
_DENSE = 400_000


@dataclass(frozen=True)
class CountedRows:
    """Rows of data in unit time: one count of one subject on one interval or point each.

    Attributes
    ----------
    start, stop : (n,)
        A point has start = stop.
    count, factor : (n,)
        Events, and exposure · rate: what multiplies ∫ f² (the density, for a point).
    subject : (n,)
    z : (n, p)
        Covariates.
    inputs : (n, r), optional
        What the rows bring to the features of a modulated rate.
    """

    start: Floats
    stop: Floats
    count: Floats
    factor: Floats
    subject: Indices
    z: Floats
    inputs: Floats | None = None

    @property
    def brought(self) -> Floats:
        """The inputs, without columns if there are none."""
        return np.zeros((len(self.start), 0)) if self.inputs is None else self.inputs

    def take(self, rows: Indices | NDArray[np.bool_]) -> CountedRows:
        """Some of the rows."""
        return CountedRows(
            self.start[rows], self.stop[rows], self.count[rows], self.factor[rows],
            self.subject[rows], self.z[rows], None if self.inputs is None else self.inputs[rows],
        )  # fmt: skip

    def joined(self, other: CountedRows) -> CountedRows:
        """These rows and others."""
        if not len(self.start):
            return other
        names = ("start", "stop", "count", "factor", "subject", "z")
        both = CountedRows(
            *(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names)
        )
        if self.inputs is None:
            return both
        return replace(both, inputs=np.concatenate([self.inputs, other.brought]))


@dataclass(frozen=True)
class Expansion:
    r"""The log-likelihood of very many subjects around a point, to second order.

    Its coordinates are cube roots of f² at some points of time, in which the logarithm of a gamma
    density has no third derivative at its mode, and a function e^{nθ} of each parameter θ. Where
    subjects differ, the cube roots are those of the shape f²/W, W = Σ w f², and ln W / 3 is one
    more coordinate: how well shapes are known then does not depend on the height.

    Attributes
    ----------
    at : (K,)
        The point: cube roots, the height if there is one, functions of the parameters.
    value : float
    gradient, hessian : (K,), (K, K)
    height : (Q,)
        w; empty where the height is no coordinate.
    natural : (P,)
        n; 0 for θ itself.
    """

    at: Floats
    value: float
    gradient: Floats
    hessian: Floats
    height: Floats
    natural: Floats

    @property
    def point(self) -> tuple[Floats, Floats]:
        """f² and parameters at the point; the height is 1 there."""
        q = len(self.at) - len(self.natural) - bool(len(self.height))
        params, known = self.at[len(self.at) - len(self.natural) :], self.natural != 0.0
        natural = np.where(known, self.natural, 1.0)
        return self.at[:q] ** 3, np.where(
            known, np.log(np.where(known, params, 1.0)) / natural, params
        )

    def change(self, square: Floats, params: Floats) -> Floats:
        """Where f² (Q, S) at the points and parameters (P, S) are from the point, (K, S)."""
        square, parts = np.maximum(square, 0.0), []
        if len(self.height):
            total = np.maximum(self.height @ square, 1e-300)
            square, parts = square / total, [np.log(total)[None] / 3]
        natural = self.natural[:, None]
        functions = np.where(natural == 0.0, params, np.exp(natural * params))
        here = np.concatenate([np.cbrt(square), *parts, functions])
        return np.asarray(here - self.at[:, None])

    def __call__(self, square: Floats, params: Floats) -> Floats:
        """ln p, (S,)."""
        change = self.change(square, params)
        bent = np.einsum("is,is->s", change, self.hessian @ change)
        return np.asarray(self.value + self.gradient @ change + 0.5 * bent)

    def derivatives(self, square: Floats, params: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian in f² at the points and the parameters at one point (Q,), (P,)."""
        q, size = len(square), len(square) + len(params)
        change = self.change(square[:, None], params[:, None])[:, 0]
        slope = self.hessian @ change + self.gradient
        jacobian, bend = np.zeros((len(change), size)), np.zeros((size, size))
        root, share = self._shape(square)
        by_root, cells = root / (3 * square), np.arange(q)
        jacobian[cells, cells] = by_root
        bend[cells, cells] = -2 / 3 * slope[:q] * by_root / square
        if len(share):
            jacobian[:q, :q] -= np.outer(root / 3, share)
            jacobian[q, :q] = share / 3
            crossed = np.outer(slope[:q] * by_root, share) / 3
            bend[:q, :q] -= crossed + crossed.T
            again = 4 / 9 * float(slope[:q] @ root) - slope[q] / 3
            bend[:q, :q] += again * np.outer(share, share)
        first = np.where(self.natural == 0.0, 1.0, self.natural * np.exp(self.natural * params))
        p = np.arange(len(params))
        jacobian[len(change) - len(params) + p, q + p] = first
        bend[q + p, q + p] = slope[len(change) - len(params) :] * self.natural * first
        return slope @ jacobian, jacobian.T @ self.hessian @ jacobian + bend

    def _shape(self, square: Floats) -> tuple[Floats, Floats]:
        """Cube roots at one point, and w/W."""
        if not len(self.height):
            return np.cbrt(square), self.height
        total = float(self.height @ square)
        return np.cbrt(square / total), self.height / total


@dataclass(frozen=True)
class Cells:
    """Counts and times at risk, reduced to what a likelihood with these laws needs.

    Attributes
    ----------
    start, stop : (J,)
        Distinct intervals and points in which anything was seen.
    power : (J,)
        Σ n over the rows there, n the power of the law.
    power_z : (p,)
        Σ n z over all rows.
    rows : CountedRows
        Those with a remainder, by falling count; `weight` of each.
    row_cell : (J2,)
        The cell of each of these rows.
    row_owner : (J2,)
        Its owner: the subject, as a row of the times at risk.
    counts, times : (n,)
        Different positive counts, and how many rows have them.
    span_start, span_stop, span_factor, span_owner, span_z
        Times at risk, and whose they are.
    number, owner_power : (O,)
        Subjects that an owner stands for, and their powers, summed.
    powers, power_times : (n,)
        Different powers of subjects without a remainder, and how many subjects have them.
    hard : (H,)
        Owners whose effect is integrated numerically, because some row of theirs has a remainder.
    constant : float
        What the scaling of time and rate adds to the log-likelihood.
    resolution : float
        Shortest length-scale, in windows, that the cells can carry.
    expansion : Expansion, optional
        Stands for very many subjects; the cells are then its points, and nothing else is seen.
    modulation : Modulation, optional
        Factors of the rate that change within intervals.
    sheets : (P, r)
        Different inputs of the rows; `cell_sheet` (J,) and `span_sheet` are those of each cell
        and span.
    """

    start: Floats
    stop: Floats
    power: Floats
    power_z: Floats
    rows: CountedRows
    weight: Floats
    row_cell: Indices
    row_owner: Indices
    counts: Floats
    times: Floats
    span_start: Floats
    span_stop: Floats
    span_factor: Floats
    span_owner: Indices
    span_z: Floats
    number: Floats
    owner_power: Floats
    powers: Floats
    power_times: Floats
    hard: Indices
    constant: float
    window: tuple[float, float]
    rate: float
    n_events: float
    n_subjects: float
    resolution: float = 0.0
    expansion: Expansion | None = None
    modulation: Modulation | None = None
    sheets: Floats = field(default_factory=lambda: np.zeros((1, 0)))
    cell_sheet: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    span_sheet: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    _maps: dict[int, NodeMap] = field(default_factory=dict, repr=False)

    @property
    def n_covariates(self) -> int:
        """p."""
        return len(self.power_z)

    @property
    def n_modulating(self) -> int:
        """Coefficients of the modulation."""
        return 0 if self.modulation is None else self.modulation.size

    @property
    def n_owners(self) -> int:
        """Rows of the times at risk."""
        return len(self.number)

    def on_nodes(self, panels: int, order: int) -> NodeMap:
        """The matrix for a grid of so many panels; kept for the next time."""
        key = panels * 100 + order
        if key not in self._maps:
            edges = np.linspace(0.0, 1.0, panels + 1)
            if self.modulation is not None:
                edges = self.modulation.refined(edges)
            several = len(self.sheets) > 1
            self._maps[key] = (SheetMap if several else NodeMap)(self, Grid.on(edges, order))
        return self._maps[key]


class NodeMap:
    """f² at nodes ↦ its integrals over the counted cells and over the times at risk.

    The nodes are those of a grid and, behind them, the points. Both maps have their adjoints.
    """

    #: copies of the nodes, one for each set of inputs of the rows
    n_sheets = 1

    def __init__(self, cells: Cells, grid: Grid):
        self.grid = grid
        point = cells.start == cells.stop
        self._points = np.flatnonzero(point)
        self._intervals = np.flatnonzero(~point)
        self.nodes = np.concatenate([grid.nodes, cells.start[self._points]])
        self.n_cells, self.n_owners = len(cells.start), cells.n_owners
        self._counted = IntervalIntegrals(
            grid, cells.start[self._intervals], cells.stop[self._intervals]
        )
        self.by_span = cells.n_covariates > 0 and len(cells.span_start) > cells.n_owners
        self._at_risk = IntervalIntegrals(grid, cells.span_start, cells.span_stop)
        n_spans = len(cells.span_start)
        self.owners = sparse.csr_array(
            (np.ones(n_spans), (cells.span_owner, np.arange(n_spans))),
            shape=(cells.n_owners, n_spans),
        )
        self._factor = cells.span_factor
        # spans with covariates of their own stay apart; the others are summed by owner
        self.n_parts = n_spans if self.by_span else cells.n_owners
        self._matrix: Floats | None = None
        if cells.n_owners == 1 and not self.by_span:
            total = np.zeros(len(self.nodes))
            total[: len(grid.nodes)] = self._at_risk.transpose(self._factor)
            self._total: Floats | None = total
        else:
            self._total = None
        if (self.n_cells + self.n_parts) * len(self.nodes) <= _DENSE:
            self._matrix = self._apply(np.eye(len(self.nodes)))

    def apply(self, values: Floats) -> Floats:
        """Integrals over the cells, then over the times at risk: (Q, S) → (J + parts, S)."""
        if self._matrix is not None:
            return np.asarray(self._matrix @ values)
        return self._apply(values)

    def _apply(self, values: Floats) -> Floats:
        on_grid, at_points = np.split(values, [len(self.grid.nodes)])
        counted = np.empty((self.n_cells, values.shape[1]))
        counted[self._intervals] = self._counted.apply(on_grid)
        counted[self._points] = at_points
        if self._total is not None:
            return np.concatenate([counted, (self._total @ values)[None]])
        spans = self._factor[:, None] * self._at_risk.apply(on_grid)
        return np.concatenate([counted, spans if self.by_span else self.owners @ spans])

    def apply_product(self, factor: Floats, values: Floats) -> Floats:
        """Integrals of a factor (Q,) times functions (Q, D): (J + parts, D)."""
        return self.apply(factor[:, None] * values)

    def adjoint(self, weights: Floats) -> Floats:
        """Σ weights · (row of the map): (C, J + parts) → (C, Q)."""
        if self._matrix is not None:
            return np.asarray(weights @ self._matrix)
        result = np.empty((len(weights), len(self.nodes)))
        n_grid = len(self.grid.nodes)
        for out, one in zip(result, weights, strict=True):
            counted, at_risk = one[: self.n_cells], one[self.n_cells :]
            if self._total is not None:
                out[:] = at_risk[0] * self._total
            else:
                spans = at_risk if self.by_span else self.owners.T @ at_risk
                out[:n_grid] = self._at_risk.transpose(self._factor * spans)
                out[n_grid:] = 0.0
            out[:n_grid] += self._counted.transpose(counted[self._intervals])
            out[n_grid:] += counted[self._points]
        return result


class SheetMap(NodeMap):
    """The same where rows bring inputs: f² times its factors on several sheets of nodes.

    Values have the nodes of the first sheet first, then those of the second, and so on.
    """

    def __init__(self, cells: Cells, grid: Grid):
        super().__init__(cells, grid)
        self.n_sheets = len(cells.sheets)
        n, sheets = self.n_sheets, (cells.cell_sheet, cells.span_sheet)
        counted = sheet_matrix(grid, cells.start, cells.stop, sheets[0], n)
        spans = sheet_matrix(grid, cells.span_start, cells.span_stop, sheets[1], n)
        spans = sparse.diags_array(self._factor) @ spans
        at_risk = spans if self.by_span else self.owners @ spans
        self._sparse = sparse.vstack([counted, at_risk], format="csr")
        self._adjoint = self._sparse.T.tocsr()

    def apply(self, values: Floats) -> Floats:
        """Integrals over the cells, then over the times at risk: (P · Q, S) → (J + parts, S)."""
        return np.asarray(self._sparse @ values)

    def apply_product(self, factor: Floats, values: Floats) -> Floats:
        """Integrals of a factor on the sheets (P · Q,) times functions (Q, D): (J + parts, D)."""
        matrix, size = self._sparse, len(self.nodes)
        folded = sparse.csr_array(
            (matrix.data * factor[matrix.indices], matrix.indices % size, matrix.indptr),
            shape=(matrix.shape[0], size),
        )
        return np.asarray(folded @ values)

    def adjoint(self, weights: Floats) -> Floats:
        """Σ weights · (row of the map): (C, J + parts) → (C, P · Q)."""
        return np.asarray((self._adjoint @ weights.T).T)
