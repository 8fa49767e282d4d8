"""Who was seen when, and with how many events: what a forecast needs to know of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import some_labels
from gp4c.data.events import RecurrentEvents
from gp4c.data.tables.service import ServiceRecord

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subjects import LabelArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class SubjectHistories:
    """What a forecast needs to know of subjects: events so far, and when they were watched.

    Neighbouring intervals of equal exposure are one span, so that most subjects have one.

    Attributes
    ----------
    subjects : (K,)
        Labels.
    totals : (K,)
        Events of each.
    span_subject : (P,)
        Position of each span's subject.
    span_start, span_stop, span_exposure : (P,)
    row_subject, row_start, row_stop, row_exposure, row_count : (J,)
        Rows with events: with bursts it matters where the events of a subject were. An exact
        event time has start = stop.
    mean_expected : (K,), optional
        Expected counts so far, where the spans were not kept: R is then its posterior mean and
        the effects are drawn independently of the curve.
    service : ServiceRecord, optional
        Who is out of service, and how much each subject was used of late.
    span_inputs, row_inputs : (P, r), (J, r), optional
        What spans and rows bring to a rate with factors that change within intervals.
    """

    subjects: LabelArray
    totals: Floats
    span_subject: Indices
    span_start: Floats
    span_stop: Floats
    span_exposure: Floats
    row_subject: Indices
    row_start: Floats
    row_stop: Floats
    row_exposure: Floats
    row_count: Floats
    mean_expected: Floats | None = None
    service: ServiceRecord | None = None
    span_inputs: Floats | None = None
    row_inputs: Floats | None = None

    @classmethod
    def without_spans(
        cls, subjects: LabelArray, totals: Floats, expected: Floats
    ) -> SubjectHistories:
        """Histories of which only the totals and expected counts are left."""
        none = np.zeros(0)
        owner = np.zeros(0, dtype=np.intp)
        return cls(
            subjects, totals, owner, none, none, none, owner, none, none, none, none, expected
        )

    @classmethod
    def of(
        cls, data: PanelCounts | RecurrentEvents, inputs: Floats | None = None
    ) -> SubjectHistories:
        """Histories of all subjects of a panel, or of subjects with exact event times.

        `inputs` (n_intervals, r) are what the rows of a panel bring to a modulated rate.
        """
        n_subjects = data.n_subjects
        if isinstance(data, RecurrentEvents):
            totals = np.bincount(data.subject_index, minlength=n_subjects).astype(np.float64)
            every, ones = np.arange(n_subjects), np.ones(n_subjects)
            both = np.stack([data.subject_index.astype(float), data.time], axis=1)
            distinct, times = np.unique(both, axis=0, return_counts=True)
            at = distinct[:, 1]
            return cls(
                data.subjects, totals, every, data.start, data.stop, ones,
                distinct[:, 0].astype(np.intp), at, at, np.ones(len(at)), times.astype(float),
            )  # fmt: skip
        owner = data.subject_index
        totals = np.bincount(owner, data.count, n_subjects).astype(np.float64)
        goes_on = np.zeros(len(owner), dtype=bool)
        goes_on[1:] = (
            (owner[1:] == owner[:-1])
            & (data.start[1:] == data.stop[:-1])
            & (data.exposure[1:] == data.exposure[:-1])
        )
        if inputs is not None:
            goes_on[1:] &= (inputs[1:] == inputs[:-1]).all(axis=1)
        first = np.flatnonzero(~goes_on)
        last = np.append(first[1:], len(owner)) - 1
        known = cls(
            data.subjects, totals, owner[first], data.start[first], data.stop[last],
            data.exposure[first], *cls._counted(data),
        )  # fmt: skip
        known = replace(known, service=data.service)
        if inputs is None:
            return known
        return replace(known, span_inputs=inputs[first], row_inputs=inputs[data.count > 0])

    @staticmethod
    def _counted(data: PanelCounts) -> tuple[Any, ...]:
        """Rows with events."""
        seen = data.count > 0
        return (
            data.subject_index[seen], data.start[seen], data.stop[seen], data.exposure[seen],
            data.count[seen].astype(np.float64),
        )  # fmt: skip

    @classmethod
    def of_all(cls, *sources: PanelCounts | RecurrentEvents | None) -> SubjectHistories:
        """Histories of the subjects of several containers, one after the other."""
        parts = [cls.of(source) for source in sources if source is not None]
        sizes = np.cumsum([0, *(len(part.subjects) for part in parts)])
        labels = [np.asarray(part.subjects, dtype=object) for part in parts]
        return cls(
            labels[0] if len(parts) == 1 else np.concatenate(labels),
            np.concatenate([part.totals for part in parts]),
            np.concatenate([part.span_subject + n for part, n in zip(parts, sizes, strict=False)]),
            np.concatenate([part.span_start for part in parts]),
            np.concatenate([part.span_stop for part in parts]),
            np.concatenate([part.span_exposure for part in parts]),
            np.concatenate([part.row_subject + n for part, n in zip(parts, sizes, strict=False)]),
            np.concatenate([part.row_start for part in parts]),
            np.concatenate([part.row_stop for part in parts]),
            np.concatenate([part.row_exposure for part in parts]),
            np.concatenate([part.row_count for part in parts]),
            service=ServiceRecord.joined(
                [part.service for part in parts], [len(part.subjects) for part in parts]
            ),
        )

    def take(self, positions: Indices) -> SubjectHistories:
        """Those at the given positions, in the given order; a position may occur twice."""
        owner, order = _rows_of(self.span_subject, positions)
        row_owner, rows = _rows_of(self.row_subject, positions)
        return SubjectHistories(
            self.subjects[positions], self.totals[positions], owner,
            self.span_start[order], self.span_stop[order], self.span_exposure[order], row_owner,
            self.row_start[rows], self.row_stop[rows], self.row_exposure[rows],
            self.row_count[rows],
            None if self.mean_expected is None else self.mean_expected[positions],
            None if self.service is None else self.service.take(positions),
            None if self.span_inputs is None else self.span_inputs[order],
            None if self.row_inputs is None else self.row_inputs[rows],
        )  # fmt: skip

    @property
    def last_inputs(self) -> Floats | None:
        """What each subject brought to a modulated rate when it was last seen, (K, r)."""
        if self.span_inputs is None:
            return None
        order = np.lexsort((self.span_stop, self.span_subject))
        last = np.zeros((len(self.subjects), self.span_inputs.shape[1]))
        last[self.span_subject[order]] = self.span_inputs[order]
        return last

    @property
    def first_seen(self) -> Floats:
        """When each subject was first observed, (K,); −∞ where its spans were not kept."""
        first = np.full(len(self.subjects), np.inf)
        np.minimum.at(first, self.span_subject, self.span_start)
        return np.where(np.isfinite(first), first, -np.inf)

    @property
    def end(self) -> Floats:
        """When each subject went out of service; NaN while it is in service."""
        return np.full(len(self.subjects), np.nan) if self.service is None else self.service.end

    def without_rows(self) -> SubjectHistories:
        """The same without the rows that have events: only totals, and when subjects were seen."""
        none = np.zeros(0)
        return replace(
            self, row_subject=np.zeros(0, dtype=np.intp), row_start=none, row_stop=none,
            row_exposure=none, row_count=none,
            row_inputs=None if self.row_inputs is None else self.row_inputs[:0],
        )  # fmt: skip

    def positions(self, labels: Sequence[object]) -> Indices:
        """Positions of labels; an unknown label is a KeyError that names it."""
        where = {label: k for k, label in enumerate(self.subjects.tolist())}
        missing = [label for label in labels if label not in where]
        if missing:
            raise KeyError(f"no subject {missing[0]!r}; there are {some_labels(list(where))}")
        return np.array([where[label] for label in labels], dtype=np.intp)

    def expected(self, integrals: Floats) -> Floats:
        """R_k for each draw: integrals over the spans (S, P) → (S, K)."""
        if self.mean_expected is not None:
            return np.broadcast_to(self.mean_expected, (len(integrals), len(self.subjects)))
        starts = np.flatnonzero(np.diff(self.span_subject, prepend=-1))
        weighted = integrals * self.span_exposure
        result = np.zeros((len(integrals), len(self.subjects)))
        if len(starts):
            result[:, self.span_subject[starts]] = np.add.reduceat(weighted, starts, axis=1)
        return result


def _rows_of(subject: Indices, positions: Indices) -> tuple[Indices, Indices]:
    """Rows of the subjects at positions, one subject after the other: its place, and the row."""
    order = np.argsort(subject, kind="stable")
    first, last = (np.searchsorted(subject[order], positions, side) for side in ("left", "right"))
    lengths = last - first
    owner = np.repeat(np.arange(len(positions)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return owner, order[np.repeat(first, lengths) + within]
