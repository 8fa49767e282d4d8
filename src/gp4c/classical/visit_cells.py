"""Cells between consecutive visit times, and sums of intervals over them.

The classical estimators live on the pooled visit times s_0 < s_1 < ... < s_L of all subjects.
Cell l is (s_l, s_{l+1}]; every observed interval is a run of consecutive cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Flags = NDArray[np.bool_]

#: entries up to which sums go through a sparse matrix, which does not cancel (about 250 MB)
_MATRIX_ENTRIES = 20_000_000
#: what a fit that needs too much memory for its cells is told
FEWER_CELLS = (
    "it grows with the square of the number of different visit times: round them, take a "
    "sample of the subjects (panel[::2]), or use GP4C, which needs far less"
)


def group_sums(group: Indices, values: Floats, n_groups: int) -> Floats:
    """Sum of the values of each group, (n_groups,)."""
    return np.bincount(group, values, minlength=n_groups).astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs ``first <= l < last`` of `size` cells, one per interval.

    Sums go through a sparse zero-one matrix A, so that an interval with one event keeps all its
    digits beside one with a million; through differences of cumulative sums where A would not
    fit in memory.
    """

    first: Indices
    last: Indices
    size: int

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """A: (N, size), ones where interval i covers cell l."""
        length = np.maximum(self.last - self.first, 0)
        pointer = np.concatenate([[0], np.cumsum(length)])
        offset = np.arange(pointer[-1]) - np.repeat(pointer[:-1], length)
        columns = offset + np.repeat(self.first, length)
        entries = (np.ones(len(columns)), columns, pointer)
        return sparse.csr_array(entries, shape=(len(self), self.size))

    @cached_property
    def _transposed(self) -> sparse.csr_array:
        return sparse.csr_array(self.matrix.T)

    @cached_property
    def n_entries(self) -> int:
        """Ones in A."""
        return int(np.maximum(self.last - self.first, 0).sum())

    @property
    def n_kept(self) -> int:
        """Ones in A that a fit may keep in memory at once."""
        return min(self.n_entries, _MATRIX_ENTRIES)

    @property
    def _small(self) -> bool:
        return self.n_entries <= _MATRIX_ENTRIES

    def sums(self, cells: Floats) -> Floats:
        """Sum of the cells inside each interval, Aλ: (size,) or (size, F) -> (N,) or (N, F)."""
        if self._small:
            return np.asarray(self.matrix @ cells, dtype=np.float64)
        held = np.flatnonzero(cells) if cells.ndim == 1 else np.arange(self.size)
        if len(held) < self.size // 4:
            return self.on(held).sums(cells[held])
        zero = np.zeros((1, *cells.shape[1:]))
        total = np.concatenate([zero, np.cumsum(cells, axis=0)])
        return np.asarray(total[self.last] - total[self.first], dtype=np.float64)

    def cover(self, values: Floats) -> Floats:
        """Sum over the intervals that cover each cell, Aᵀv: (N,) or (N, F) -> (size,) alike."""
        if self._small:
            return np.asarray(self._transposed @ values, dtype=np.float64)
        total = np.zeros((self.size + 1, *values.shape[1:]))
        np.add.at(total, self.first, values)
        np.subtract.at(total, self.last, values)
        covered = self.covered.reshape(-1, *(1,) * (values.ndim - 1))
        return np.where(covered, np.cumsum(total, axis=0)[:-1], 0.0)

    @cached_property
    def covered(self) -> Flags:
        """Cells inside at least one interval, (size,)."""
        opened = np.bincount(self.first, minlength=self.size + 1)
        closed = np.bincount(self.last, minlength=self.size + 1)
        return np.cumsum(opened - closed)[:-1] > 0

    def gram(self, weights: Floats) -> Floats:
        """AᵀWA, (size, size), in O(N + size²).

        Cells a ≤ b lie in the same interval i if first_i ≤ a and b < last_i: two running sums.
        """
        corner = np.zeros((self.size, self.size))
        some = self.last > self.first
        np.add.at(corner, (self.first[some], self.last[some] - 1), weights[some])
        upper = np.cumsum(np.cumsum(corner, axis=0)[:, ::-1], axis=1)[:, ::-1]
        return np.triu(upper) + np.triu(upper, 1).T

    def take(self, rows: Indices | Flags) -> Runs:
        """Return some of the intervals."""
        return Runs(self.first[rows], self.last[rows], self.size)

    def on(self, sites: Indices) -> Runs:
        """Return the same intervals on fewer cells, given in increasing order."""
        first, last = np.searchsorted(sites, self.first), np.searchsorted(sites, self.last)
        return Runs(first, last, len(sites))


@dataclass(frozen=True, eq=False)
class Grid:
    """Pooled end points and the intervals on them.

    Attributes
    ----------
    points : (L + 1,)
        Distinct end points of all intervals, increasing.
    runs : Runs
        Each interval as a run of the L cells between them.
    """

    points: Floats
    runs: Runs

    @classmethod
    def of(cls, start: Floats, stop: Floats) -> Grid:
        """Lay intervals on the grid of their own end points."""
        points = np.unique(np.concatenate([start, stop]))
        first, last = np.searchsorted(points, start), np.searchsorted(points, stop)
        return cls(points, Runs(first, last, len(points) - 1))

    @property
    def width(self) -> Floats:
        """Lengths of the cells, (L,)."""
        return np.diff(self.points)
