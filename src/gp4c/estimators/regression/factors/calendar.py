"""The calendar of a panel: where a cycle stands at each subject's time 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import few_digits
from gp4c.data.timeaxis import MICROSECONDS, TimeAxis
from gp4c.exceptions import PanelDataError
from gp4c.model.modulation.seasons import Season, rounded

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: cycles with a name: their length, in microseconds, and when one begins, in days after 2000-01-01
_CYCLES = {"year": (MICROSECONDS["years"], 0.0), "week": (MICROSECONDS["weeks"], 2.0)}
#: a period is a year or a week if it differs by less than this share
_ABOUT = 0.004


def season_over(panel: PanelCounts, season: float | str) -> Season:
    """The season that ``season=`` asks for, on the calendar of a panel."""
    axis, entries = TimeAxis(panel.time_unit, panel.time_origin), _entries(panel)
    dated = axis.since_2000 is not None or (entries is not None and entries[1])
    period, cycle = _period(season, panel.time_unit, dated)
    _check_record(panel, period, entries)
    since = axis.since_2000
    phase = -1.0 if entries is not None else _phase(since or 0.0, period, cycle, axis.unit)
    return Season(panel.window, period, float(phase), cycle, dated)


def own_phases(panel: PanelCounts, season: Season) -> Floats:
    """Phase of the cycle at the time 0 of each row's subject, (n_intervals, 1)."""
    found = _entries(panel)
    if found is None:
        raise PanelDataError(
            "this fit has a season beside time since entry, and the panel does not say when its "
            "subjects entered: read it with since_entry=True (--since-entry)"
        )
    phase = rounded(_phase(found[0], season.period, season.cycle, panel.time_unit))
    return np.asarray(phase[panel.subject_index][:, None])


def phase_at(season: Season, axis: TimeAxis, times: object) -> Floats:
    """Phases of the cycle at times of the user: of the curve's axis, or calendar dates."""
    if not season.is_own:
        return np.asarray(season.phase + axis.numbers(times) / season.period)  # type: ignore[arg-type]
    clock = TimeAxis(axis.unit, "2000-01-01") if season.dated else TimeAxis(axis.unit)
    return np.asarray(
        _phase(clock.numbers(times), season.period, season.cycle, axis.unit)  # type: ignore[arg-type]
    )


def _entries(panel: PanelCounts) -> tuple[Floats, bool] | None:
    """When subjects entered, where time is counted from there, and whether that is a date."""
    record = panel.service
    if record is None or record.entry is None:
        return None
    return record.entry, record.dated


def _phase(since: Floats | float, period: float, cycle: str, unit: str | None) -> Floats:
    """Phase of times since 2000-01-01, or of plain numbers."""
    begin = 0.0
    if cycle in _CYCLES and unit in MICROSECONDS:
        begin = _CYCLES[cycle][1] * MICROSECONDS["days"] / MICROSECONDS[unit]
    return np.asarray((np.asarray(since) - begin) / period % 1.0)


def _period(season: float | str, unit: str | None, dated: bool) -> tuple[float, str]:
    """Length of the cycle in the unit of time, and its name, if it has one."""
    if isinstance(season, str):
        if season not in _CYCLES:
            raise PanelDataError(
                f"season must be a period in the unit of time, 'year' or 'week'; found {season!r}"
            )
        if not dated or unit not in MICROSECONDS:
            raise PanelDataError(
                f"season={season!r} needs dates, and the times of this panel are numbers: give the "
                "period in their unit, such as season=12 for months"
            )
        return _CYCLES[season][0] / MICROSECONDS[unit], season
    if isinstance(season, bool) or not np.isfinite(season) or season <= 0:
        raise PanelDataError(f"season must be a positive period; found {season!r}")
    if dated and unit in MICROSECONDS:
        for name, (length, _) in _CYCLES.items():
            if abs(season * MICROSECONDS[unit] / length - 1.0) < _ABOUT:
                return float(season), name
    return float(season), ""


def _check_record(panel: PanelCounts, period: float, entries: tuple[Floats, bool] | None) -> None:
    """A cycle must have been seen once."""
    begin = 0.0 if entries is None else entries[0][panel.subject_index]
    length = float((panel.stop + begin).max() - (panel.start + begin).min())
    if period > length:
        unit = f" {panel.time_unit}" if panel.time_unit else ""
        raise PanelDataError(
            f"a season of {few_digits(period)}{unit} is longer than the record, "
            f"{few_digits(length)}{unit}: it cannot be seen in it"
        )
