"""One pass over rows: what subject effects need of the subjects.

The bound sees a subject through its total m_k and its expected count R_k over all that was seen
of it. Neighbouring intervals of equal exposure telescope to one span, so most subjects have one
span (s, e]; sums of functions of R = ∫ over (s, e] that are linear in m are then sums over pairs
of nodes, as for intervals, but of s and ρ = (e − s)/(1 − s), since these functions are not
symmetric in s and e (docs/maths_scale.md, section 4). Subjects with gaps or with exposures are
kept one by one. Times are in unit time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import shown_interval
from gp4c.exceptions import PanelDataError
from gp4c.large.compression import pairs_to_nodes
from gp4c.large.interval_sums import Rows
from gp4c.large.moments import PairMoments

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

#: spans as close as this, in windows, are one: times of the same visit written in two ways
TOUCHING = 1e-12


@dataclass(frozen=True)
class Spans:
    """Stretches over which subjects were seen without a gap, each (n,).

    Attributes
    ----------
    key : uint64
        Of the subject.
    start, stop, exposure, count : float
    row : int64
        Number of its first row, to name it.
    """

    key: Keys
    start: Floats
    stop: Floats
    exposure: Floats
    count: Floats
    row: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def joined(cls, parts: Sequence[Spans]) -> Spans:
        """Spans one after the other."""
        names = ("key", "start", "stop", "exposure", "count", "row")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Spans:
        """Some of the spans."""
        return Spans(
            self.key[rows], self.start[rows], self.stop[rows], self.exposure[rows],
            self.count[rows], self.row[rows],
        )  # fmt: skip

    def telescoped(self) -> Spans:
        """Join spans that follow each other in the arrays and touch."""
        if len(self) < 2:
            return self
        goes_on = (self.key[1:] == self.key[:-1]) & (self.exposure[1:] == self.exposure[:-1])
        goes_on &= np.abs(self.start[1:] - self.stop[:-1]) <= TOUCHING
        first = np.flatnonzero(np.concatenate([[True], ~goes_on]))
        if len(first) == len(self):
            return self
        last = np.append(first[1:], len(self)) - 1
        return Spans(
            self.key[first], self.start[first], self.stop[last], self.exposure[first],
            np.add.reduceat(self.count, first), self.row[first],
        )  # fmt: skip

    def ordered(self) -> Spans:
        """By subject and start, touching ones joined."""
        step = self.key[1:] > self.key[:-1]
        step |= (self.key[1:] == self.key[:-1]) & (self.start[1:] >= self.start[:-1])
        if step.all():
            return self.telescoped()
        return self.take(np.lexsort((self.start, self.key))).telescoped()


def check_overlaps(
    spans: Spans, locate: Callable[[list[int]], str], user: Callable[[float], float]
) -> None:
    """Spans of one subject, in order, must not overlap; `user` gives a time in the data's unit."""
    same = spans.key[1:] == spans.key[:-1]
    clash = same & (spans.start[1:] < spans.stop[:-1] - TOUCHING)
    if not clash.any():
        return
    at = int(np.flatnonzero(clash)[0])
    one, two = (shown_interval(user(spans.start[k]), user(spans.stop[k])) for k in (at, at + 1))
    rows = sorted(int(row) for row in spans.row[at : at + 2])
    raise PanelDataError(
        "intervals of one subject must not overlap or occur twice; a subject was seen over "
        f"{one} and again over {two} ({locate(rows)})"
    )


@dataclass(frozen=True)
class SubjectSums:
    """What subject effects need of any number of subjects; sums of parts add up.

    Attributes
    ----------
    number, events : (N, N)
        Subjects with one span and unit exposure, and their events, on pairs of nodes (s, ρ) of
        the finest grid.
    totals, times : (n,)
        Different totals m, and the number of subjects, of any kind, that have them.
    others : Spans
        Of all other subjects, in order.
    sample : Rows
        Spans of some subjects with one span, their events in place of exposures: they measure the
        error of the nodes.
    """

    number: Floats
    events: Floats
    totals: Floats
    times: Floats
    others: Spans
    sample: Rows

    @property
    def n_subjects(self) -> float:
        """Subjects of any kind."""
        return float(self.times.sum())

    def __add__(self, other: SubjectSums) -> SubjectSums:
        totals, where = np.unique(np.concatenate([self.totals, other.totals]), return_inverse=True)
        times = np.bincount(where, np.concatenate([self.times, other.times]), len(totals))
        return SubjectSums(
            self.number + other.number,
            self.events + other.events,
            totals,
            times.astype(np.float64),
            Spans.joined([self.others, other.others]),
            self.sample.joined(other.sample).sample(),
        )


def subject_totals(spans: Spans) -> tuple[NDArray[np.intp], Floats]:
    """First span of each subject, and its total count; spans in order."""
    first = np.flatnonzero(np.concatenate([[True], spans.key[1:] != spans.key[:-1]]))
    return first, np.asarray(np.add.reduceat(spans.count, first))


def sum_subjects(spans: Spans) -> SubjectSums:
    """Reduce ordered spans."""
    first, counts = subject_totals(spans)
    size = np.diff(np.append(first, len(spans)))
    plain = (size == 1) & (spans.exposure[first] == 1.0)
    alone = Rows(
        spans.start[first[plain]], spans.stop[first[plain]], np.ones(int(plain.sum())),
        counts[plain],
    )  # fmt: skip
    totals, times = np.unique(counts, return_counts=True)
    number, events = spans_to_nodes(alone)
    return SubjectSums(
        number=number,
        events=events,
        totals=totals,
        times=times.astype(np.float64),
        others=spans.take(~np.repeat(plain, size)),
        sample=alone.sample(),
    )


def spans_to_nodes(spans: Rows) -> tuple[Floats, Floats]:
    """Subjects (the counts) and events (the exposures) of single spans, on pairs of nodes."""
    share = (spans.stop - spans.start) / (1.0 - spans.start)

    def on_nodes(weight: Floats) -> Floats:
        moments, used = PairMoments(), weight != 0
        moments.add_times(spans.start[used], share[used], weight[used])
        return pairs_to_nodes(moments)

    return on_nodes(spans.count), on_nodes(spans.exposure)
