"""Distinct intervals of a panel, with the counts and exposures of all subjects summed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp4c.data.subjects import FloatArray, IndexArray, IntArray


@dataclass(frozen=True, eq=False)
class DistinctIntervals:
    """Each different interval once, sorted by (start, stop).

    Attributes
    ----------
    start, stop : (n_distinct,) float arrays
    count : (n_distinct,) int array
        Events of all subjects in the interval.
    exposure : (n_distinct,) float array
        Summed exposure: with the default of 1, the number of subjects seen on the interval.
    inverse : (n_intervals,) int array
        The distinct interval of each row of the panel.
    """

    start: FloatArray
    stop: FloatArray
    count: IntArray
    exposure: FloatArray
    inverse: IndexArray

    def __len__(self) -> int:
        return len(self.start)


def distinct_intervals(
    start: FloatArray, stop: FloatArray, count: IntArray, exposure: FloatArray
) -> DistinctIntervals:
    """Group rows by (start, stop), exactly, and sum counts and exposures."""
    start, stop = start + 0.0, stop + 0.0
    order = np.lexsort((stop, start))
    start, stop = start[order], stop[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (start[1:] != start[:-1]) | (stop[1:] != stop[:-1])
    first = np.flatnonzero(new)
    inverse = np.empty(len(order), dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return DistinctIntervals(
        start[first],
        stop[first],
        np.add.reduceat(count[order], first),
        np.add.reduceat(exposure[order], first),
        inverse,
    )
