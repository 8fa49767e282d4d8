"""Integrals over millions of intervals: the running integral on a table, and cubics between.

The running integral F of a smooth function is known with its derivative, the function itself, at
TABLE + 1 even times. Between them the cubic with these values and slopes is within
|F⁗|/(384 · TABLE⁴) of it: about 1e-9 of a length-scale's worth at length-scales of 1/90 window.
It takes 32 bytes per interval, where weights on grid nodes take 400.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.model.quadrature import Grid, IntervalIntegrals

Floats = NDArray[np.float64]
Table = tuple[Floats, Floats]

TABLE = 4096
#: intervals from which the table is used
MANY = 200_000
_CHUNK = 1 << 18


class TableIntegrals:
    """The same map as :class:`gp4c.model.quadrature.IntervalIntegrals`, by way of a table."""

    def __init__(self, grid: Grid, start: Floats, stop: Floats):
        self.grid = grid
        times = np.linspace(0.0, 1.0, TABLE + 1)
        self._running = IntervalIntegrals(grid, np.zeros(TABLE), times[1:])
        self._slope = grid.interpolation(times)
        self._slope_t = self._slope.T.tocsr()
        self._start, self._stop = start, stop

    @property
    def size(self) -> int:
        """Number of intervals."""
        return len(self._start)

    def table(self, values: Floats) -> Table:
        """The running integral and its slope, in steps of the table, of functions at the nodes."""
        zero = np.zeros((1, *values.shape[1:]))
        level = np.concatenate([zero, self._running.apply(values)])
        return level, (self._slope @ values) / TABLE

    def apply(self, values: Floats) -> Floats:
        """Integrals over the intervals of functions given at the nodes, (Q,) or (Q, S)."""
        table = self.table(values)
        result = np.empty((self.size, *values.shape[1:]))
        for part in self._chunks():
            result[part] = between(table, self._start[part], self._stop[part])
        return result

    def transpose(self, coefficients: Floats) -> Floats:
        """Weights at the nodes of Σ_j coefficients[j] · (integral j): the adjoint of `apply`."""
        level, slope = np.zeros(TABLE + 1), np.zeros(TABLE + 1)
        for part in self._chunks():
            for times, sign in ((self._stop, 1.0), (self._start, -1.0)):
                cell, basis = _basis(times[part])
                for k, weight in enumerate(basis):
                    target, at = (slope if k % 2 else level), cell + (k >= 2)
                    target += np.bincount(at, sign * weight * coefficients[part], TABLE + 1)
        back = self._running.transpose(level[1:])
        return np.asarray(back + self._slope_t @ slope / TABLE)

    def _chunks(self) -> list[slice]:
        return [slice(i, i + _CHUNK) for i in range(0, self.size, _CHUNK)]


def _basis(times: Floats) -> tuple[NDArray[np.intp], tuple[Floats, ...]]:
    """Cell of each time; Hermite weights of (level, slope) at its left and at its right end."""
    scaled = times * TABLE
    cell = np.clip(scaled.astype(np.intp), 0, TABLE - 1)
    t = scaled - cell
    rest = 1.0 - t
    return cell, (
        (1.0 + 2.0 * t) * rest**2, t * rest**2, t**2 * (3.0 - 2.0 * t), -(t**2) * rest,
    )  # fmt: skip


def between(table: Table, start: Floats, stop: Floats) -> Floats:
    """Integrals over intervals from a table: (n,), or (n, S) for S functions."""
    return _cubic(stop, *table) - _cubic(start, *table)


def summed_between(
    table: Table, start: Floats, stop: Floats, weight: Floats, first: NDArray[np.intp]
) -> Floats:
    """Weighted sums of integrals of S functions over runs of intervals, (len(first), S).

    A run begins at each of the positions `first`, the first of which is 0. Eight weights per
    interval, as a sparse matrix: many functions cost little more than one.
    """
    columns, values = [], []
    for times, sign in ((stop, weight), (start, -weight)):
        cell, basis = _basis(times)
        columns += [cell, cell + (TABLE + 1), cell + 1, cell + (TABLE + 2)]
        values += [sign * part for part in basis]
    ends = 8 * np.append(first, len(start))
    shape = (len(first), 2 * (TABLE + 1))
    rows = sparse.csr_array(
        (np.stack(values, axis=1).ravel(), np.stack(columns, axis=1).ravel(), ends), shape
    )
    return np.asarray(rows @ np.concatenate(table))


def _cubic(times: Floats, level: Floats, slope: Floats) -> Floats:
    cell, basis = _basis(times)
    a, b, c, d = (w.reshape(-1, *(1,) * (level.ndim - 1)) for w in basis)
    return np.asarray(a * level[cell] + b * slope[cell] + c * level[cell + 1] + d * slope[cell + 1])


def integrals_over(grid: Grid, start: Floats, stop: Floats) -> IntervalIntegrals | TableIntegrals:
    """Integrals over intervals, in the form that suits their number."""
    many = len(start) > MANY
    return TableIntegrals(grid, start, stop) if many else IntervalIntegrals(grid, start, stop)
