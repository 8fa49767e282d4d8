"""Who of a fleet is asked about: those in service, at which usage, with which additions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.checks import few_digits, plural
from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError
from gp4c.plain import per

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]


def default_subjects(model: PanelEstimator, history: PanelCounts | None) -> str | None:
    """Whom a forecast is about if nobody said: those in service, if the data know who is not."""
    histories = known_histories(model) if history is None else history
    known = histories is not None and bool(np.isfinite(histories.end).any())
    return "active" if known else None


def known_histories(model: PanelEstimator) -> SubjectHistories | None:
    """What a fit knows of its subjects; of a fit to types of events those of the first type."""
    from gp4c.estimators.types.typed_answers import TypedCurves

    if isinstance(model, TypedCurves) and model.event_types_:
        first: PanelEstimator = model.of_type(model.event_types_[0])
        return first.histories_
    return model.histories_


def in_service(
    known: SubjectHistories, start: float, since: Floats | float = 0.0
) -> SubjectHistories:
    """Subjects that are in service after a time; their own times begin at `since`."""
    gone = known.end + since <= start
    if gone.all():
        raise PanelDataError(
            f"all {len(gone)} subjects are out of service by {few_digits(start)}; "
            'subjects="all" counts them all the same'
        )
    return known.take(np.flatnonzero(~gone))


def given_usage(
    model: PanelEstimator, exposure: ArrayLike | str | None, usage: ArrayLike | str | None
) -> ArrayLike | str | None:
    """Exposure as asked for, under the name that the data have for it."""
    if usage is None:
        return exposure
    if model.usage_ is None:
        raise PanelDataError(
            "usage= is for fits to data with a column of usage; exposure= says how many units are "
            "at risk"
        )
    if exposure is not None:
        raise PanelDataError("usage= and exposure= say the same where data have usage; give one")
    return usage


def recent_rates(model: PanelEstimator, known: SubjectHistories | None) -> Floats | None:
    """Usage per unit of time of each known subject of late; for a new one the mean of those.

    None where the data have no usage.
    """
    everybody = known if known is not None else model.histories_
    if model.usage_ is None or everybody is None or everybody.service is None:
        return None
    rates = everybody.service.usage_rate
    if rates is None or known is not None:
        return rates
    working = np.isnan(everybody.end)
    return np.array([rates[working].mean() if working.any() else rates.mean()])


@dataclass(frozen=True)
class NewUnits:
    """Planned additions: so many subjects at these times."""

    number: Floats
    at: Floats

    @property
    def total(self) -> int:
        """How many in all."""
        return int(self.number.sum())


def planned_units(
    axis: TimeAxis, number: ArrayLike, at: ArrayLike | None, start: float
) -> NewUnits:
    """Read planned additions; without a time they are there from the start."""
    many = np.atleast_1d(np.asarray(number, dtype=np.float64))
    when = np.atleast_1d(axis.numbers(start if at is None else at))
    if many.ndim > 1 or when.ndim > 1 or len(many) != len(when) or not np.isfinite(when).all():
        raise PanelDataError(
            f"new_units= and at= are one number and one time, or as many of each; found {number!r} "
            f"and {at!r}"
        )
    if at is not None and not many.any():
        raise PanelDataError(
            f"at= says when new units enter, and new_units= says how many; found at={at!r} alone"
        )
    if np.any(many < 0) or np.any(many != np.floor(many)):
        raise PanelDataError(f"new_units must be whole numbers of units; found {number!r}")
    return NewUnits(many, when)


def usage_words(
    model: PanelEstimator, asked: ArrayLike | str | None, units: Floats, is_new: bool
) -> str:
    """At which usage a forecast is, where the data have usage."""
    if model.usage_ is None:
        return ""
    low, high = (f"{value:.3g}" for value in (units.min(), units.max()))
    size = low if low == high else f"{low} to {high}"
    said = f"{size} {model.usage_} {per(model.time_unit_)}"
    if asked is not None and not isinstance(asked, str):
        return f"Usage is as given, {said}."
    if is_new:
        return f"Usage is that of an average subject in service of late, {said}."
    return f"Usage is that of each subject's last three intervals, {said}."


def service_words(
    everybody: SubjectHistories | None,
    start: float,
    stop: float,
    active: bool,
    since: Floats | float = 0.0,
) -> str:
    """How many subjects are out of service, and whether they count."""
    if everybody is None:
        return ""
    late = int((everybody.first_seen + since > start).sum()) if active else 0
    entering = (
        f"{plural(late, 'subject')} {_was(late)} first seen after the window begins, and "
        f"{'counts' if late == 1 else 'count'} from then on." if late else ""
    )  # fmt: skip
    end = everybody.end + since
    if not np.isfinite(end).any():
        return entering
    gone, n = int((end <= start).sum()), len(everybody.subjects)
    leaving = int(((end > start) & (end < stop)).sum())
    if not active:
        return (
            f"{gone} of {plural(n, 'subject')} {_are(gone)} out of service and counted all the "
            'same; subjects="active" leaves them out.' if gone else ""
        )  # fmt: skip
    text = f"{n - gone} of {plural(n, 'subject')} {_are(n - gone)} in service; {gone} {_are(gone)} "
    text += 'out of service and not counted (subjects="all" counts them).'
    if not np.isfinite(end).all():
        text += " Subjects without an end are taken to stay in service throughout."
    if leaving:
        text += f" {leaving} {'goes' if leaving == 1 else 'go'} out of service on the way."
    return f"{text} {entering}".strip()


def covariate_words(covariates: Mapping[str, object] | None) -> str:
    """Which covariates of known subjects were changed."""
    if not covariates:
        return ""
    return f"Covariates are as given: {', '.join(f'{k}={v}' for k, v in covariates.items())}."


def addition_words(model: PanelEstimator, axis: TimeAxis, new: NewUnits, units: float) -> str:
    """Which units were added, and what they are like."""
    parts = [
        f"{int(n)} from {axis.date(t) or few_digits(t)} on"
        for n, t in zip(new.number, new.at, strict=True)
    ]
    text = f"New units are counted too: {', '.join(parts)}"
    if model.usage_ is not None:
        text += f", each used as the others are on average, {units:.3g} {model.usage_} "
        text += per(model.time_unit_)
    if model.coefficients_ is not None:
        text += f"{',' if model.usage_ is None else ' and'} at average covariates"
    return f"{text}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
