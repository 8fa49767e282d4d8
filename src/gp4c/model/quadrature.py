"""Composite Gauss–Legendre grids and exact integration of their interpolants.

Every integral of the model is over an interval between two visits. A smooth function known at
the nodes of a fixed grid is a polynomial on each panel to rounding error, so its integral over
*any* interval is a short weighted sum: no integral is ever recomputed per interval and kernel
(docs/maths.md, section 3). Cost: O(order) per interval, whatever the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
_CHUNK = 100_000  # intervals whose weights are formed at once: bounds the memory
#: most numbers of a dense matrix that stands for the sparse map
_DENSE = 200_000
#: intervals up to which integrals of products are made one by one
_FEW_INTERVALS = 4
#: numbers of products at once: half a megabyte
_CACHED = 65_536


@lru_cache(maxsize=64)
def gauss_legendre(order: int) -> tuple[Floats, Floats]:
    """Nodes and weights of the Gauss–Legendre rule on [-1, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    nodes.flags.writeable = weights.flags.writeable = False
    return nodes, weights


@lru_cache(maxsize=64)
def _lagrange_from_legendre(order: int) -> Floats:
    """Matrix C with ℓ_i(x) = Σ_k P_k(x) C[k, i], ℓ the Lagrange basis at the Gauss nodes."""
    nodes, weights = gauss_legendre(order)
    degrees = np.arange(order)
    values = np.polynomial.legendre.legvander(nodes, order - 1)
    return np.asarray((values * weights[:, None]).T * (degrees[:, None] + 0.5))


@dataclass(frozen=True)
class Grid:
    """Gauss–Legendre nodes on consecutive panels.

    Attributes
    ----------
    edges : (G + 1,)
        Ends of the panels, increasing.
    order : int
        Nodes per panel.
    nodes, weights : (G · order,)
        The composite rule.
    """

    edges: Floats
    order: int
    nodes: Floats
    weights: Floats

    @classmethod
    def on(cls, edges: Floats, order: int) -> Grid:
        """Lay `order` nodes on each panel between consecutive `edges`."""
        x, w = gauss_legendre(order)
        half = np.diff(edges)[:, None] / 2
        middle = (edges[1:, None] + edges[:-1, None]) / 2
        return cls(edges, order, (middle + half * x).ravel(), (half * w).ravel())

    def locate(self, times: Floats, side: str) -> NDArray[np.intp]:
        """Panel of each time; `side` says where a time on an edge belongs (left or right)."""
        after = np.searchsorted(self.edges, times, side="right" if side == "right" else "left")
        return np.clip(after - 1, 0, len(self.edges) - 2)

    def local(self, times: Floats, panel: NDArray[np.intp]) -> Floats:
        """Coordinates in [-1, 1] of times within their panels."""
        low, high = self.edges[panel], self.edges[panel + 1]
        return (2 * times - low - high) / (high - low)

    def interpolation(self, times: Floats) -> sparse.csr_array:
        """Sparse matrix that takes values at the nodes to values at `times`."""
        panel = self.locate(times, "left")
        legendre = np.polynomial.legendre.legvander(self.local(times, panel), self.order - 1)
        values = legendre @ _lagrange_from_legendre(self.order)
        return self._rows(panel[:, None], values[:, None, :])

    def _rows(self, panels: NDArray[np.intp], values: Floats) -> sparse.csr_array:
        """CSR matrix whose row j has `values[j, r]` on the nodes of panel `panels[j, r]`."""
        n_rows, per_row = panels.shape
        columns = panels[:, :, None] * self.order + np.arange(self.order)
        ends = np.arange(n_rows + 1) * (per_row * self.order)
        shape = (n_rows, len(self.nodes))
        return sparse.csr_array((values.ravel(), columns.ravel(), ends), shape=shape)


def _partial_weights(grid: Grid, panel: NDArray[np.intp], start: Floats, stop: Floats) -> Floats:
    """Weights (J, order) of ∫ over (start, stop], a part of one panel, without cancellation.

    ∫ ℓ_i over a sub-interval by Gauss–Legendre on the sub-interval itself: exact for the
    interpolant's degree with ⌈order / 2⌉ nodes, and relatively accurate however short it is.
    """
    x, w = gauss_legendre((grid.order + 1) // 2)
    low, high = grid.local(start, panel), grid.local(stop, panel)
    half = (stop - start) / 2
    inner = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * x
    legendre = np.polynomial.legendre.legvander(inner, grid.order - 1)
    integrated = np.einsum("jkp,k->jp", legendre, w) @ _lagrange_from_legendre(grid.order)
    return np.asarray(half[:, None] * integrated)


class IntervalIntegrals:
    """The linear map from values at grid nodes to integrals over given intervals.

    An interval that lies in one panel has weights on that panel; a longer one has weights on
    its first and last panel and takes the whole panels between from a running sum.

    Parameters
    ----------
    grid : Grid
    start, stop : (J,)
        Intervals (start, stop] inside the grid.
    often : bool
        Whether so many functions will be mapped that a dense matrix is worth its making.
    """

    def __init__(self, grid: Grid, start: Floats, stop: Floats, often: bool = False):
        self.grid = grid
        first, last = grid.locate(start, "right"), grid.locate(stop, "left")
        last = np.maximum(first, last)
        chunks = [
            self._chunk(first[i : i + _CHUNK], last[i : i + _CHUNK], start[i : i + _CHUNK],
                        stop[i : i + _CHUNK])
            for i in range(0, max(len(start), 1), _CHUNK)
        ]  # fmt: skip
        self._partial = chunks[0] if len(chunks) == 1 else sparse.vstack(chunks, format="csr")
        self._adjoint = self._partial.T
        self._whole_from = np.minimum(first + 1, last)
        self._whole_to = last
        n_nodes = len(grid.nodes)
        self._matrix: Floats | None = None
        if often and self.size * n_nodes <= _DENSE:
            self._matrix = self._apply(np.eye(n_nodes))

    def _chunk(
        self, first: NDArray[np.intp], last: NDArray[np.intp], start: Floats, stop: Floats
    ) -> sparse.csr_array:
        edges = self.grid.edges
        head = _partial_weights(self.grid, first, start, np.minimum(stop, edges[first + 1]))
        tail = _partial_weights(self.grid, last, np.maximum(start, edges[last]), stop)
        tail[first == last] = 0.0
        return self.grid._rows(np.stack([first, last], 1), np.stack([head, tail], 1))

    @property
    def size(self) -> int:
        """Number of intervals."""
        return int(self._partial.shape[0])

    def apply(self, values: Floats) -> Floats:
        """Integrals over the intervals of functions given at the nodes, (Q,) or (Q, S)."""
        if self._matrix is not None:
            return np.asarray(self._matrix @ values)
        return self._apply(values)

    def _apply(self, values: Floats) -> Floats:
        grid = self.grid
        weighted = (values.T * grid.weights).T
        sums = weighted.reshape(len(grid.edges) - 1, grid.order, *values.shape[1:]).sum(axis=1)
        running = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(sums, axis=0)])
        whole = running[self._whole_to] - running[self._whole_from]
        return np.asarray(self._partial @ values + whole)

    def products(self, values: Floats) -> Floats:
        """Integrals of all products of M functions given at the nodes: (Q, M) → (J, M, M).

        What :meth:`apply` would give for the Q × M² products, which are never formed: panel by
        panel they are matrix products.
        """
        none = np.empty((0, values.shape[1], values.shape[1]))
        return np.concatenate([none, *(product for _, product in self.product_parts(values))])

    def product_parts(self, values: Floats) -> Iterator[tuple[slice, Floats]]:
        """The same for some intervals at a time, as many as a processor's cache has room for."""
        grid, size = self.grid, values.shape[1]
        if self.size <= _FEW_INTERVALS:  # one product each is less than one per panel
            for k, one in enumerate(np.eye(self.size)):
                yield slice(k, k + 1), ((self.transpose(one)[:, None] * values).T @ values)[None]
            return
        panels = values.reshape(len(grid.edges) - 1, grid.order, size)
        weights = grid.weights.reshape(-1, grid.order, 1)
        running = np.zeros((len(panels) + 1, size, size))
        np.cumsum((panels * weights).transpose(0, 2, 1) @ panels, axis=0, out=running[1:])
        ends = self._partial.indices.reshape(-1, 2, grid.order)[:, :, 0] // grid.order
        weights = self._partial.data.reshape(-1, 2, grid.order, 1)
        step = max(_CACHED // size**2, 1)
        for i in range(0, self.size, step):
            part = slice(i, min(i + step, self.size))
            n = part.stop - i
            there = panels[ends[part]]  # first and last panel of each interval
            weighted = (there * weights[part]).reshape(n, -1, size)
            whole = running[self._whole_to[part]] - running[self._whole_from[part]]
            yield part, whole + weighted.transpose(0, 2, 1) @ there.reshape(n, -1, size)

    def transpose(self, coefficients: Floats) -> Floats:
        """Weights at the nodes of Σ_j coefficients[j] · (integral j): the adjoint of `apply`."""
        if self._matrix is not None:
            return np.asarray(coefficients @ self._matrix)
        panels = len(self.grid.edges) - 1
        change = np.bincount(self._whole_from, coefficients, panels + 1)
        change -= np.bincount(self._whole_to, coefficients, panels + 1)
        whole = np.repeat(np.cumsum(change)[:panels], self.grid.order) * self.grid.weights
        return np.asarray(self._adjoint @ coefficients + whole)
