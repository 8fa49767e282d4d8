"""The data in the form the bound needs: unit time, unit rate, distinct intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: with more, rounding of the bound (1e10 events: 5e-5 nats) hides what its optimiser looks for
MOST_EVENTS = 1e10


@dataclass(frozen=True)
class Observations:
    """Distinct intervals and exact events with the window at [0, 1] and the mean rate at 1.

    Attributes
    ----------
    start, stop : (J,)
        Distinct intervals; those over which subjects with exact event times were seen are
        among them, with no counts.
    count : (J,)
        Events c_j counted in them.
    exposure : (J,)
        n_j · rate: times ∫ f² it is the expected count.
    events : (N,)
        Exact event times.
    by_subject : (K, J) sparse
        Exposure · rate of each subject in each interval; its column sums are `exposure`.
    totals : (K,)
        Events of each subject.
    rate : float
        Events per window and unit of exposure that the unit rate stands for.
    window : (t0, t1)
        In the user's time.
    constant : float
        What scaling adds to the log-likelihood: Σ m ln(rate · exposure), events alike.
    """

    start: Floats
    stop: Floats
    count: Floats
    exposure: Floats
    events: Floats
    by_subject: sparse.csr_array
    totals: Floats
    rate: float
    window: tuple[float, float]
    constant: float

    @property
    def total(self) -> float:
        """All events, counted or timed."""
        return float(self.totals.sum())

    @property
    def n_subjects(self) -> float:
        """All subjects."""
        return float(len(self.totals))


@dataclass(frozen=True)
class _Rows:
    """One source of data: its intervals, and for each row the subject, interval and exposure."""

    start: Floats
    stop: Floats
    count: Floats
    subject: NDArray[np.intp]
    interval: NDArray[np.intp]
    exposure: Floats
    n_subjects: int


def observe(
    panel: PanelCounts | None,
    events: RecurrentEvents | None,
    window: tuple[float, float],
) -> Observations:
    """Scale a panel, exact events, or both, to the unit window and the unit rate.

    Without any event the unit rate stands for one event in the whole exposure.
    """
    sources = [_panel_rows(panel)] if panel is not None else []
    if events is not None:
        sources.append(_event_rows(events))
    rows = _join(sources)
    length = window[1] - window[0]
    start, stop = (rows.start - window[0]) / length, (rows.stop - window[0]) / length
    times = events.time if events is not None else np.zeros(0)
    totals = _totals(panel, events)
    if totals.sum() > MOST_EVENTS:
        raise PanelDataError(
            f"Gaussian-process estimators take at most {MOST_EVENTS:g} events; found "
            f"{totals.sum():g}: with so many, NPMLE and HomogeneousPoisson leave little open"
        )
    at_risk = float(rows.exposure @ (stop - start)[rows.interval])
    rate = max(float(totals.sum()), 1.0) / at_risk
    shape = (rows.n_subjects, len(start))
    by_subject = sparse.csr_array((rate * rows.exposure, (rows.subject, rows.interval)), shape)
    constant = float(totals.sum()) * np.log(rate) - len(times) * np.log(length)
    if panel is not None:
        constant += float(panel.count @ np.log(panel.exposure))
    return Observations(
        start=start,
        stop=stop,
        count=rows.count,
        exposure=rate * np.bincount(rows.interval, rows.exposure, len(start)).astype(float),
        events=(times - window[0]) / length,
        by_subject=by_subject,
        totals=totals,
        rate=rate,
        window=window,
        constant=float(constant),
    )


def _panel_rows(panel: PanelCounts) -> _Rows:
    d = panel.distinct()
    return _Rows(
        d.start, d.stop, d.count.astype(float), panel.subject_index, d.inverse, panel.exposure,
        panel.n_subjects,
    )  # fmt: skip


def _event_rows(events: RecurrentEvents) -> _Rows:
    ends = np.stack([events.start, events.stop], axis=1)
    distinct, inverse = np.unique(ends, axis=0, return_inverse=True)
    n = len(ends)
    return _Rows(
        distinct[:, 0], distinct[:, 1], np.zeros(len(distinct)), np.arange(n),
        inverse.reshape(-1), np.ones(n), n,
    )  # fmt: skip


def _join(sources: list[_Rows]) -> _Rows:
    if len(sources) == 1:
        return sources[0]
    first, second = sources
    return _Rows(
        np.concatenate([first.start, second.start]),
        np.concatenate([first.stop, second.stop]),
        np.concatenate([first.count, second.count]),
        np.concatenate([first.subject, second.subject + first.n_subjects]),
        np.concatenate([first.interval, second.interval + len(first.start)]),
        np.concatenate([first.exposure, second.exposure]),
        first.n_subjects + second.n_subjects,
    )


def _totals(panel: PanelCounts | None, events: RecurrentEvents | None) -> Floats:
    parts = []
    if panel is not None:
        parts.append(np.bincount(panel.subject_index, panel.count, panel.n_subjects))
    if events is not None:
        parts.append(np.bincount(events.subject_index, minlength=len(events.start)).astype(float))
    return np.concatenate(parts)
