"""Rows with events, counted by what they say: interval, exposure and count.

Without subject effects a law of counts sees rows one by one, so that rows that say the same are one
row with a weight. Where visits are by the calendar a few thousand classes stand for any number of
rows, exactly and under every law. Times are in unit time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.data.distinct import distinct_intervals

Floats = NDArray[np.float64]

#: classes up to which they are kept: a fit to so many takes some seconds
MOST_CLASSES = 30_000
#: codes of classes up to which they are counted in a table, without sorting
_TABLE = 4_000_000


@dataclass(frozen=True)
class CountClasses:
    """Classes of rows with events: start, stop, exposure, count, and how many rows, each (n,)."""

    start: Floats
    stop: Floats
    exposure: Floats
    count: Floats
    number: Floats

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def of(cls, start: Floats, stop: Floats, exposure: Floats, count: Floats) -> CountClasses:
        """From rows; those without events are left out."""
        seen = count > 0
        one = cls(start[seen], stop[seen], exposure[seen], count[seen], np.ones(int(seen.sum())))
        return one.grouped()

    @classmethod
    def empty(cls) -> CountClasses:
        """No class."""
        return cls(*(np.zeros(0) for _ in range(5)))

    def joined(self, other: CountClasses) -> CountClasses:
        """These classes and others, each once."""
        names = ("start", "stop", "exposure", "count", "number")
        both = (np.concatenate([getattr(self, n), getattr(other, n)]) for n in names)
        return CountClasses(*both).grouped()

    def grouped(self) -> CountClasses:
        """Each class once, by interval, exposure and count."""
        if not len(self):
            return self
        count = self.count.astype(np.int64)
        intervals = distinct_intervals(self.start, self.stop, count, self.number)
        exposures, which = np.array([1.0]), np.zeros(len(self), dtype=np.intp)
        if not (self.exposure == 1.0).all():
            exposures, which = np.unique(self.exposure, return_inverse=True)
        n_counts = int(count.max()) + 1
        code = (intervals.inverse * len(exposures) + which) * n_counts + count
        if len(intervals) * len(exposures) * n_counts <= _TABLE:
            table = np.bincount(code, self.number)
            codes = np.flatnonzero(table)
            number = table[codes]
        else:
            codes, back = np.unique(code, return_inverse=True)
            number = np.bincount(back, self.number)
        at, count = np.divmod(codes, n_counts)
        interval, which = np.divmod(at, len(exposures))
        return CountClasses(
            intervals.start[interval], intervals.stop[interval], exposures[which],
            count.astype(float), number.astype(float),
        )  # fmt: skip
