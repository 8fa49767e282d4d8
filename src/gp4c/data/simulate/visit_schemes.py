"""When simulated subjects are visited, and until when they are followed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.data.simulate.intensities import Window
from gp4c.data.subjects import FloatArray, IndexArray
from gp4c.exceptions import PanelDataError

#: a name, a common or per-subject array of visit times, or a callable (rng, n_subjects) -> those
Visits: TypeAlias = "str | Sequence[Any] | NDArray[Any] | Callable[[np.random.Generator, int], Any]"


class Schedule(NamedTuple):
    """Intervals between visits, sorted by subject and time."""

    subject_index: IndexArray
    start: FloatArray
    stop: FloatArray


def plan_visits(
    visits: Visits,
    *,
    window: Window,
    n_subjects: int,
    n_intervals: int,
    rng: np.random.Generator,
) -> Schedule:
    """Intervals of every subject over the whole window, before any drop-out.

    Parameters
    ----------
    visits : str, array, sequence of arrays or callable
        "dirichlet": the window split at random, every split equally likely (the paper's scheme);
        "fixed": even intervals; an array (m,): the same visit times for all; an array
        (n_subjects, m) with NaN where there is no visit, or a sequence of n_subjects arrays: each
        subject's own; a callable (rng, n_subjects) that gives one of these arrays.
    window : (float, float)
        Start and stop of the time axis; the first interval of every subject begins at its start.
    n_subjects, n_intervals : int
        Size of the plan; user-given visit times bring their own number of intervals.
    rng : Generator
        Source of randomness.
    """
    planned = visits(rng, n_subjects) if callable(visits) else visits
    if isinstance(planned, str):
        stop = _named_stops(planned, window, n_subjects, n_intervals, rng)
        subject_index = np.repeat(np.arange(n_subjects), stop.shape[1])
        return _between(subject_index, stop.ravel(), window)
    subject_index, stop = _given_stops(planned, window, n_subjects)
    return _between(subject_index, stop, window)


def end_of_follow_up(
    dropout: float, window: Window, n_subjects: int, rng: np.random.Generator
) -> FloatArray:
    """Draw exponential ends of follow-up (n_subjects,), at most the window's stop."""
    if not (np.isfinite(dropout) and dropout >= 0):
        raise PanelDataError(
            f"dropout must be a rate per unit of time, at least 0; it is {dropout!r}"
        )
    if dropout == 0:
        return np.full(n_subjects, window[1])
    followed = np.maximum(rng.exponential(1 / dropout, n_subjects), np.finfo(np.float64).tiny)
    end = np.minimum(window[0] + followed, window[1])
    return np.maximum(end, np.nextafter(window[0], np.inf))


def cut_at(schedule: Schedule, end: FloatArray) -> Schedule:
    """Leave out what lies after each subject's end of follow-up; the last interval ends there."""
    own_end = end[schedule.subject_index]
    kept = schedule.start < own_end
    return Schedule(
        schedule.subject_index[kept],
        schedule.start[kept],
        np.minimum(schedule.stop, own_end)[kept],
    )


def _named_stops(
    name: str, window: Window, n_subjects: int, n_intervals: int, rng: np.random.Generator
) -> FloatArray:
    """Draw ends of intervals (n_subjects, n_intervals); the last is the window's stop."""
    if n_intervals < 1:
        raise PanelDataError(f"n_intervals must be at least 1; it is {n_intervals!r}")
    if name == "dirichlet":
        # Dirichlet(1, ..., 1) shares are exponentials divided by their sum
        share = np.cumsum(rng.standard_exponential((n_subjects, n_intervals)), axis=1)
        share /= share[:, -1:]
    elif name == "fixed":
        even = np.arange(1, n_intervals + 1) / n_intervals
        share = np.broadcast_to(even, (n_subjects, n_intervals))
    else:
        raise PanelDataError(
            f"visits must be 'dirichlet', 'fixed', arrays of times or a callable; it is {name!r}"
        )
    stop = window[0] + (window[1] - window[0]) * share
    stop[:, -1] = window[1]
    return stop


def _given_stops(
    visits: Sequence[Any] | NDArray[Any], window: Window, n_subjects: int
) -> tuple[IndexArray, FloatArray]:
    """Subject and time of user-given visits, checked, without a visit at the window's start."""
    per_subject = [np.ravel(np.asarray(own, dtype=np.float64)) for own in visits]
    if all(np.ndim(own) == 0 for own in visits):
        per_subject = [np.concatenate([np.empty(0), *per_subject])] * n_subjects
    if len(per_subject) != n_subjects:
        raise PanelDataError(
            "visits must be one array of times for all, or one for each of "
            f"{n_subjects} subjects; there are {len(per_subject)}"
        )
    subject_index = np.repeat(np.arange(n_subjects), [len(own) for own in per_subject])
    stop = np.concatenate(per_subject)
    present = ~np.isnan(stop)
    _check_given(subject_index[present], stop[present], window)
    after_start = present & (stop > window[0])
    subject_index, stop = subject_index[after_start], stop[after_start]
    without = np.setdiff1d(np.arange(n_subjects), subject_index)
    if len(without):
        raise PanelDataError(
            "every subject needs a visit after the window's start; "
            f"subject {without[0] + 1} has none"
        )
    return subject_index, stop


def _check_given(subject_index: IndexArray, stop: FloatArray, window: Window) -> None:
    """Visit times lie in the window and increase within a subject."""
    outside = (stop < window[0]) | (stop > window[1])
    if outside.any():
        row = int(np.argmax(outside))
        raise PanelDataError(
            f"visit times must lie in the window [{window[0]:g}, {window[1]:g}]; "
            f"subject {subject_index[row] + 1} has {stop[row]:g}"
        )
    back = (np.diff(stop) <= 0) & (np.diff(subject_index) == 0)
    if back.any():
        row = int(np.argmax(back))
        raise PanelDataError(
            "visit times must increase within a subject; "
            f"subject {subject_index[row] + 1} goes {stop[row]:g} → {stop[row + 1]:g}"
        )


def _between(subject_index: IndexArray, stop: FloatArray, window: Window) -> Schedule:
    """Intervals from each visit to the next, the first from the window's start."""
    start = np.concatenate([[window[0]], stop[:-1]])
    start[np.diff(subject_index, prepend=-1) > 0] = window[0]
    # two random visits may coincide in floating point: no time passes between them
    kept = stop > start
    return Schedule(subject_index[kept], start[kept], stop[kept])
