"""One pass over a source of rows, here or on a cluster, to the sums that a fit needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gp4c.data.batches import RowBatch
from gp4c.data.sources import PanelSource, check_inside
from gp4c.design.interval_sums import IntervalStream, IntervalSums, Rows
from gp4c.design.subject_sums import (
    Spans,
    SubjectSums,
    check_overlaps,
    subject_totals,
    sum_subjects,
)
from gp4c.exceptions import PanelDataError

Say = Callable[[str], None]

#: subjects up to which their labels and spans are kept for per-subject results
MOST_SUBJECTS = 5_000_000


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
        if not self.parts:
            raise PanelDataError("the source is empty; it needs at least one row")
        spans = Spans.joined(self.parts).ordered()
        self.parts = []
        check_overlaps(spans, locate, self._user_time)
        first, _ = subject_totals(spans)
        return PanelSums(
            self.stream.finish(),
            None if effect is None else sum_subjects(spans, effect != "weight"),
            len(first),
            spans if len(first) <= MOST_SUBJECTS else None,
            self.labels if len(first) <= MOST_SUBJECTS else {},
        )

    def _user_time(self, unit: float) -> float:
        return self.window[0] + unit * (self.window[1] - self.window[0])


def sum_rows(
    batches: Iterable[RowBatch],
    window: tuple[float, float],
    *,
    effect: str | None,
    locate: Callable[[list[int]], str],
    say: Say | None = None,
) -> PanelSums:
    """Pass over batches once."""
    one_pass, began, n_rows = Pass(window), time.perf_counter(), 0
    for batch in batches:
        one_pass.add(batch)
        n_rows += len(batch)
        if say is not None:
            speed = n_rows / (time.perf_counter() - began)
            say(f"reading: {n_rows:,} rows, {speed:,.0f} per second")
    return one_pass.finish(effect, locate)


def sum_source(source: PanelSource, *, effect: str | None, say: Say | None = None) -> PanelSums:
    """Pass over a source once, in this process."""
    return sum_rows(source.batches(), source.window, effect=effect, locate=source.locate, say=say)


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
