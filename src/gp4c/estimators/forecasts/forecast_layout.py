"""Which windows of which subjects a forecast is of: pairs, every window for each, or sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import plural
from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import MICROSECONDS, TimeAxis, as_moment
from gp4c.estimators.forecasts.joint_counts import Asked
from gp4c.exceptions import PanelDataError

Floats = NDArray[np.float64]
Step: TypeAlias = float | int | str

#: most windows that one step may ask for
_MOST = 10_000
_PERIODS = ("day", "week", "month", "quarter", "year")


def consecutive(axis: TimeAxis, start: float, stop: float, every: Step) -> tuple[Floats, Floats]:
    """Windows one after the other from start to stop, the last one shorter if need be.

    Parameters
    ----------
    axis : TimeAxis
    start, stop : float
    every : number or str
        A length of time in the unit of the data; or "day", "week", "month", "quarter" or "year",
        by the calendar where the data had dates.
    """
    edges = _calendar(axis, start, stop, every) if isinstance(every, str) else None
    ends = np.append(_even(axis, start, stop, every) if edges is None else edges, stop)
    return ends[:-1], ends[1:]


def _even(axis: TimeAxis, start: float, stop: float, every: Step) -> Floats:
    """First times of windows of one length."""
    step = _length(axis, every)
    if (stop - start) / step > _MOST:
        raise PanelDataError(
            f"every={every!r} gives more than {_MOST:,} windows from {start:g} to {stop:g}"
        )
    return np.asarray(start + step * np.arange(int(np.ceil((stop - start) / step - 1e-9))))


def _length(axis: TimeAxis, every: Step) -> float:
    """The step in the unit of the data."""
    if not isinstance(every, str):
        if not (np.isfinite(every) and every > 0):
            raise PanelDataError(f"every must be a positive length of time; found {every!r}")
        return float(every)
    name = every.rstrip("s")
    if name not in _PERIODS or axis.unit not in MICROSECONDS:
        raise PanelDataError(
            f"every must be a number, or one of {', '.join(_PERIODS)} where the data have a known "
            f"unit of time; found {every!r}"
        )
    per_month = MICROSECONDS["months"]
    sizes = {"quarter": 3 * per_month, "month": per_month}
    return sizes.get(name, MICROSECONDS.get(f"{name}s", 0.0)) / MICROSECONDS[axis.unit]


def _calendar(axis: TimeAxis, start: float, stop: float, every: str) -> Floats | None:
    """First times of the windows by the calendar; None without dates, or where lengths agree."""
    import pandas as pd

    name = every.rstrip("s")
    months = {"month": 1, "quarter": 3, "year": 12}.get(name)
    if axis.origin is None or months is None or axis.unit is None:
        return None
    begin = pd.Timestamp(as_moment(axis.origin)) + pd.Timedelta(
        round(start * MICROSECONDS[axis.unit]), unit="us"
    )
    found, number = [start], start
    while number < stop and len(found) <= _MOST:
        number = axis.number(begin + pd.DateOffset(months=months * len(found)))
        found.append(number)
    return np.array(found[:-1])


@dataclass(frozen=True)
class Layout:
    """The pairs of a forecast and the shape of its answer.

    Attributes
    ----------
    asked : Asked
    shape : tuple of int
        Of the answer: by subject if several were named, then by window if several were given.
    pairs : bool
        Whether windows and subjects are pairs rather than a product.
    """

    asked: Asked
    shape: tuple[int, ...]
    pairs: bool = False


def layout(
    windows: tuple[Floats, Floats],
    several: bool,
    n_subjects: int,
    units: Floats,
    *,
    one: bool,
    total: bool,
    each: bool,
) -> Layout:
    """Pair subjects with windows.

    Parameters
    ----------
    windows : (start, stop), (W,) each
    several : bool
        Whether an array of windows was given.
    n_subjects : int
    units : (K,)
        Units at risk of each subject.
    one : bool
        One subject rather than a list.
    total : bool
        The sum over the subjects is wanted.
    each : bool
        Every window for every subject.
    """
    start, stop = windows
    n = len(start)
    if not (one or total or each) and several:
        if n != n_subjects:
            raise ValueError(
                f"{plural(n, 'window')} and {plural(n_subjects, 'subject')} are no pairs; "
                "each=True asks for every window for every subject"
            )
        who = np.arange(n)
        return Layout(Asked(who, start, stop, units, who, n), (n,), pairs=True)
    who, which = np.repeat(np.arange(n_subjects), n), np.tile(np.arange(n), n_subjects)
    cell, n_cells = (which, n) if total else (np.arange(n_subjects * n), n_subjects * n)
    asked = Asked(who, start[which], stop[which], units[who], cell, n_cells)
    by_window = (n,) if several else ()
    return Layout(asked, by_window if one or total else (n_subjects, *by_window))


def while_in_service(asked: Asked, known: SubjectHistories) -> Asked:
    """Windows of known subjects from when these were first seen until they go out of service."""
    start = np.clip(known.first_seen[asked.subject], asked.start, asked.stop)
    end = known.end[asked.subject]
    stop = np.where(np.isnan(end), asked.stop, np.clip(end, start, asked.stop))
    return replace(asked, start=start, stop=stop)


def with_new_units(
    asked: Asked,
    n_known: int,
    windows: tuple[Floats, Floats],
    new: tuple[Floats, Floats],
    units: float,
) -> Asked:
    """The same sums with new units, each in every window from its entry on.

    Parameters
    ----------
    new : (number, at)
        How many enter, and when.
    units : float
        Units at risk of each.
    """
    start, stop = windows
    at = np.repeat(new[1], new[0].astype(np.intp))
    n_new, n = len(at), len(start)
    who, which = np.repeat(np.arange(n_new), n), np.tile(np.arange(n), n_new)
    begin = np.clip(at[who], start[which], stop[which])
    return Asked(
        np.concatenate([asked.subject, n_known + who]),
        np.concatenate([asked.start, begin]),
        np.concatenate([asked.stop, stop[which]]),
        np.concatenate([asked.units, np.full(len(who), units)]),
        np.concatenate([asked.cell, which]),
        asked.n_cells,
        n_new,
    )
