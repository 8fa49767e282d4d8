"""One pass over a source of rows, here or on a cluster, to the sums that a fit needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, zip_longest
from operator import add
from typing import Any

import numpy as np

from gp4c.data.tables.batches import RowBatch
from gp4c.data.tables.sources import PanelSource, check_inside
from gp4c.exceptions import PanelDataError
from gp4c.large.interval_sums import IntervalStream, IntervalSums, Rows
from gp4c.large.subject_sums import (
    Spans,
    SubjectSums,
    check_overlaps,
    subject_totals,
    sum_subjects,
)

Say = Callable[[str], None]

#: subjects up to which their labels and spans are kept for per-subject results
MOST_SUBJECTS = 5_000_000
#: threads that take batches in turn; the same on every machine, so that sums are added in the same
#: order everywhere
THREADS = 2
#: characters of the bar that shows how much has been read
_BAR = 20


@dataclass(frozen=True)
class PanelSums:
    """What a fit needs of a panel of any size.

    Attributes
    ----------
    intervals : IntervalSums
    subjects : SubjectSums or None
        None if no subject effects are asked for.
    n_subjects : int
    spans : Spans or None
        Of every subject, by key; None if there are too many, or if they are on a cluster.
    labels : dict
        Labels of the keys that are hashes.
    """

    intervals: IntervalSums
    subjects: SubjectSums | None
    n_subjects: int
    spans: Spans | None = None
    labels: dict[int, Any] = field(default_factory=dict)

    @property
    def largest_count(self) -> int:
        """The largest count, or as large as one may be where sums know all events only."""
        classes = self.intervals.classes
        return int(self.intervals.n_events if classes is None else classes.count.max(initial=0.0))


@dataclass
class Pass:
    """Accumulates sums and spans from batches; `window` is in the user's time."""

    window: tuple[float, float]
    stream: IntervalStream = field(default_factory=IntervalStream)
    parts: list[Spans] = field(default_factory=list)
    labels: dict[int, Any] = field(default_factory=dict)

    def add(self, batch: RowBatch) -> None:
        """Add a batch of rows."""
        check_inside(batch, self.window)
        origin, scale = self.window[0], 1.0 / (self.window[1] - self.window[0])
        start = np.clip((batch.start - origin) * scale, 0.0, 1.0)
        stop = np.clip((batch.stop - origin) * scale, 0.0, 1.0)
        self.stream.add(Rows(start, stop, batch.count, batch.exposure))
        row = np.arange(batch.first_row, batch.first_row + len(batch), dtype=np.int64)
        spans = Spans(batch.key, start, stop, batch.exposure, batch.count, row)
        self.parts.append(spans.telescoped())
        if len(self.labels) <= MOST_SUBJECTS:
            self.labels.update(batch.labels)

    def finish(self, effect: str | None, locate: Callable[[list[int]], str]) -> PanelSums:
        """Check what concerns rows of different batches, and sum up the subjects."""
        return finish([self], effect, locate)

    def user_time(self, unit: float) -> float:
        """A unit time in the data's unit."""
        return self.window[0] + unit * (self.window[1] - self.window[0])


def finish(
    passes: Sequence[Pass], effect: str | None, locate: Callable[[list[int]], str]
) -> PanelSums:
    """Join passes that took batches in turn; check and sum up what concerns several batches."""
    used = [one for one in passes if one.parts]
    if not used:
        raise PanelDataError("the source is empty; it needs at least one row")
    in_turn = chain.from_iterable(zip_longest(*(one.parts for one in used)))
    spans = Spans.joined([part for part in in_turn if part is not None]).ordered()
    for one in used:
        one.parts = []
    check_overlaps(spans, locate, used[0].user_time)
    first, _ = subject_totals(spans)
    few = len(first) <= MOST_SUBJECTS
    return PanelSums(
        reduce(add, (one.stream.finish() for one in used)),
        None if effect is None else sum_subjects(spans),
        len(first),
        spans if few else None,
        reduce(dict.__or__, (one.labels for one in used)) if few else {},
    )


def sum_source(source: PanelSource, *, effect: str | None, say: Say | None = None) -> PanelSums:
    """Pass over a source once, in this process."""
    passes = [Pass(source.window) for _ in range(THREADS)]
    meter = None if say is None else Meter(say, source.n_rows)
    with ThreadPoolExecutor(THREADS) as pool:
        running: list[Future[None] | None] = [None] * THREADS
        for number, batch in enumerate(source.batches()):
            turn = number % THREADS
            _wait(running[turn])
            running[turn] = pool.submit(passes[turn].add, batch)
            if meter is not None:
                meter.add(len(batch))
        for one in running:
            _wait(one)
    return finish(passes, effect, source.locate)


def _wait(running: Future[None] | None) -> None:
    """Wait for a batch to be summed up, and raise what it raised."""
    if running is not None:
        running.result()


class Meter:
    """Tells how many rows have been read, and how fast."""

    def __init__(self, say: Say, total: int | None = None) -> None:
        self._say, self._total = say, total
        self._began, self._rows = time.perf_counter(), 0

    def add(self, n_rows: int) -> None:
        """Tell that more rows have been read."""
        self._rows += n_rows
        speed = self._rows / (time.perf_counter() - self._began)
        self._say(f"reading{self._bar()}: {self._rows:,} rows, {speed:,.0f} per second")

    def _bar(self) -> str:
        if not self._total:
            return ""
        share = min(self._rows / self._total, 1.0)
        full = int(share * _BAR)
        return f" {'━' * full}{'┄' * (_BAR - full)} {share:.0%}"


def add_sums(one: PanelSums, two: PanelSums) -> PanelSums:
    """Sums of two parts of the data that have no subject in common."""
    subjects = None
    if one.subjects is not None and two.subjects is not None:
        subjects = one.subjects + two.subjects
    return replace(
        one,
        intervals=one.intervals + two.intervals,
        subjects=subjects,
        n_subjects=one.n_subjects + two.n_subjects,
        spans=None,
        labels={},
    )
