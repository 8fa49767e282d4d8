"""One pass over rows: what the bound needs of their intervals, exactly or on nodes.

While there are few different intervals they are kept as they are; once there are too many, all
go to the moments of :mod:`gp4c.large.moments`. Sums of parts of the data add up, in any split
and order, to rounding. Times are in unit time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from gp4c.data.distinct import MOST_DISTINCT, distinct_intervals, interval_keys
from gp4c.large.compression import pairs_to_nodes, points_to_nodes
from gp4c.large.count_classes import MOST_CLASSES, CountClasses
from gp4c.large.moments import CHUNK, PairMoments, Places, PointMoments

Floats = NDArray[np.float64]

#: rows with events that are kept to measure the error of the compression
SAMPLE = 2_000


@dataclass(frozen=True)
class Rows:
    """Intervals with real weights: start, stop, count, exposure, each (n,)."""

    start: Floats
    stop: Floats
    count: Floats
    exposure: Floats

    def __len__(self) -> int:
        return len(self.start)

    @classmethod
    def empty(cls) -> Rows:
        """No row."""
        return cls(*(np.zeros(0) for _ in range(4)))

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        return Rows(self.start[rows], self.stop[rows], self.count[rows], self.exposure[rows])

    def joined(self, other: Rows) -> Rows:
        """These rows and others."""
        return Rows(
            np.concatenate([self.start, other.start]),
            np.concatenate([self.stop, other.stop]),
            np.concatenate([self.count, other.count]),
            np.concatenate([self.exposure, other.exposure]),
        )

    def distinct(self) -> Rows:
        """Each different interval once."""
        d = distinct_intervals(self.start, self.stop, self.count.astype(np.int64), self.exposure)
        return Rows(d.start, d.stop, d.count.astype(float), d.exposure)

    def sample(self) -> Rows:
        """The rows with events whose hashes are smallest: the same in any split of the rows."""
        key = interval_keys(self.start + 0.0, self.stop + 0.0)
        near = np.flatnonzero((key <= _enough(key)) & (self.count > 0))
        if len(near) < SAMPLE:  # few rows, or few of them with events
            near = np.flatnonzero(self.count > 0)
        if len(near) > SAMPLE:
            near = near[np.argpartition(key[near], SAMPLE)[:SAMPLE]]
        return self.take(near)


def _enough(key: NDArray[np.uint64]) -> np.uint64:
    """A limit below which about 20 · SAMPLE of these evenly spread keys lie."""
    return np.uint64(min(20 * SAMPLE / max(len(key), 1), 1.0) * (2.0**64 - 2.0**12))


@dataclass(frozen=True)
class NodeSums:
    """Weights on the finest grid: counts of pairs of nodes (N, N), exposure of nodes (N,)."""

    pairs: Floats
    points: Floats

    def __add__(self, other: NodeSums) -> NodeSums:
        return NodeSums(self.pairs + other.pairs, self.points + other.points)


def rows_to_nodes(rows: Rows) -> NodeSums:
    """Compress rows in memory."""
    moments = _Moments()
    moments.add(rows)
    return moments.finish()


class _Moments:
    """Moment tables of both kinds."""

    def __init__(self) -> None:
        self._pairs, self._points = PairMoments(), PointMoments()

    def add(self, rows: Rows) -> None:
        for i in range(0, len(rows), CHUNK):
            part = slice(i, i + CHUNK)
            first, last = Places.of(rows.start[part]), Places.of(rows.stop[part])
            self._points.add(last, rows.exposure[part])
            self._points.add(first, -rows.exposure[part])
            count = rows.count[part]
            seen = np.flatnonzero(count)
            if len(seen) < len(count):
                first, last, count = first.take(seen), last.take(seen), count[seen]
            self._pairs.add(first, last, count)

    def finish(self) -> NodeSums:
        return NodeSums(pairs_to_nodes(self._pairs), points_to_nodes(self._points))


@dataclass(frozen=True)
class IntervalSums:
    """Everything the bound without subject effects needs of any number of rows.

    Attributes
    ----------
    n_rows, n_events, exposure_time : float
        Rows, Σ c, Σ n (e − s).
    log_lengths : float
        Σ c ln(e − s).
    log_exposures : float
        Σ c ln n over rows with events.
    exact : Rows or None
        All different intervals, while there are few.
    nodes : NodeSums or None
        The compressed form otherwise.
    sample : Rows
        Some rows with events.
    classes : CountClasses or None
        All different rows with events, while there are few.
    """

    n_rows: float
    n_events: float
    exposure_time: float
    log_lengths: float
    log_exposures: float
    exact: Rows | None
    nodes: NodeSums | None
    sample: Rows
    classes: CountClasses | None = None

    def __add__(self, other: IntervalSums) -> IntervalSums:
        exact = nodes = None
        if self.exact is not None and other.exact is not None:
            together = self.exact.joined(other.exact).distinct()
            few = len(together) <= MOST_DISTINCT
            exact, nodes = (together, None) if few else (None, rows_to_nodes(together))
        else:
            nodes = self._on_nodes() + other._on_nodes()
        return IntervalSums(
            self.n_rows + other.n_rows,
            self.n_events + other.n_events,
            self.exposure_time + other.exposure_time,
            self.log_lengths + other.log_lengths,
            self.log_exposures + other.log_exposures,
            exact,
            nodes,
            self.sample.joined(other.sample).sample(),
            _together(self.classes, other.classes),
        )

    def _on_nodes(self) -> NodeSums:
        if self.nodes is not None:
            return self.nodes
        assert self.exact is not None
        return rows_to_nodes(self.exact)


def _together(one: CountClasses | None, two: CountClasses | None) -> CountClasses | None:
    """Classes of both; None where they are too many."""
    if one is None or two is None:
        return None
    both = one.joined(two)
    return both if len(both) <= MOST_CLASSES else None


class IntervalStream:
    """Accumulates :class:`IntervalSums` from batches of rows."""

    def __init__(self) -> None:
        self._exact: Rows | None = Rows.empty()
        self._moments: _Moments | None = None
        self._classes: CountClasses | None = CountClasses.empty()
        self._sample: list[Rows] = []
        self._scalars = np.zeros(5)

    def add(self, rows: Rows) -> None:
        """Add a batch."""
        length, seen = rows.stop - rows.start, rows.count > 0
        count, exposure = rows.count[seen], rows.exposure[seen]
        logs = 0.0 if (exposure == 1.0).all() else float(count @ np.log(exposure))
        lengths = float(count @ np.log(length[seen]))
        time = float(rows.exposure @ length)
        self._scalars += np.array([len(rows), count.sum(), time, lengths, logs])
        self._sample.append(rows.sample())
        if self._exact is not None:
            rows, every = self._keep(rows), rows
            self._classes = None if self._exact is None else self._classified(every)
        if self._moments is not None:
            self._moments.add(rows)

    def _keep(self, rows: Rows) -> Rows:
        """Keep different intervals one by one; give them all up when they are too many."""
        assert self._exact is not None
        few = rows.take(np.arange(min(len(rows), 2 * MOST_DISTINCT)))
        many = len(few.distinct()) > MOST_DISTINCT
        joined = rows if many else self._exact.joined(rows.distinct()).distinct()
        if not many and len(joined) <= MOST_DISTINCT:
            self._exact = joined
            return rows
        before, self._exact, self._moments = self._exact, None, _Moments()
        return before.joined(rows) if many else joined

    def _classified(self, rows: Rows) -> CountClasses | None:
        """The classes, with those of a batch."""
        if self._classes is None:
            return None
        new = CountClasses.of(rows.start, rows.stop, rows.exposure, rows.count)
        return _together(self._classes, new)

    def finish(self) -> IntervalSums:
        """The sums of all batches."""
        sample = reduce(Rows.joined, self._sample, Rows.empty()).sample()
        nodes = None if self._moments is None else self._moments.finish()
        n_rows, n_events, time, lengths, exposures = map(float, self._scalars)
        return IntervalSums(
            n_rows, n_events, time, lengths, exposures, self._exact, nodes, sample, self._classes
        )
