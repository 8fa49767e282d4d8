"""Forecasts in words: the window, what of it is past, and how the curve goes on beyond the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.checks import few_digits
from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.continuation import Continuation, own_way
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.interfaces.fitted_state import average_exposure
from gp4c.plain import odds, per
from gp4c.posterior.draws import HOLD, PRIOR, TREND

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]


#: share of a unit of time by which rounding may move a date
_ROUNDED = 1e-6
#: what the ways are called
_NAMES = {PRIOR: "a return to the level", HOLD: "a held rate", TREND: "the trend"}


def window_text(start: float, stop: float, axis: TimeAxis) -> str:
    """Write a window: ``(24, 27] months``; dates come first where times were dates."""
    first, last = axis.date(start), axis.date(stop)
    if first is not None and last is not None:
        return f"{first} to {last} ({axis.unit} {few_digits(start)} to {few_digits(stop)})"
    return f"({few_digits(start)}, {few_digits(stop)}]" + (f" {axis.unit}" if axis.unit else "")


def exposure_words(
    model: PanelEstimator, asked: ArrayLike | str | None, units: Floats, is_new: bool
) -> str:
    """Say what exposure a forecast is for, where subjects had exposures and nobody chose one."""
    average = average_exposure(model)
    if average == 1.0:
        return ""
    if isinstance(asked, str) or (asked is None and not is_new):
        low, high = f"{units.min():.3g}", f"{units.max():.3g}"
        return f"Exposure is as last observed, {low if low == high else f'{low} to {high}'}."
    if asked is None or (np.ndim(asked) == 0 and np.asarray(asked) == 1.0):
        return f"Exposure is 1; in the data it was {average:.3g} on average."
    return ""


def note_of(
    model: PanelEstimator, past: str, start: Floats, stop: Floats, beyond: Continuation,
    exposure: str = "",
) -> str:  # fmt: skip
    """Say what a forecast leaves out, what of it is past, and how the curve goes on.

    Parameters
    ----------
    model : fitted estimator
    past : str
        What :func:`past_words` says.
    start, stop : (W,) arrays
        On the clock of the curve.
    beyond : Continuation
    exposure : str
        What :func:`exposure_words` says.

    Returns
    -------
    str
        Empty if there is nothing to say.
    """
    said = _sentences(model, past, start, stop, beyond)
    return " ".join([exposure, *said] if exposure else said)


def _sentences(
    model: PanelEstimator,
    past: str,
    start: Floats,
    stop: Floats,
    beyond: Continuation,
) -> Iterator[str]:
    axis, (low, high) = TimeAxis.of(model), model.window_
    if past:
        yield past
    plugged_in = not isinstance(model, GaussianProcessModel)
    if plugged_in:
        yield model.curve_words()
    if np.all(start >= low) and np.all(stop <= high):
        return
    observed = window_text(low, high, axis)
    if not isinstance(model, GaussianProcessModel):
        yield f"Beyond {observed} it goes on as there."
    else:
        way = _going_on(model, stop, beyond.way)
        yield f"Beyond the observation window {observed} the rate {way}"
        if beyond.scores:
            yield _why(beyond)


def past_words(
    known: SubjectHistories | None,
    begin: float,
    end: float,
    axis: TimeAxis,
    since: Floats | float = 0.0,
) -> str:
    """Say that a window begins before the end of what was observed.

    `end` is that of the observation window; subjects' own times begin at `since` on the axis.
    """
    if known is not None and len(known.span_stop):
        own = np.broadcast_to(since, (len(known.subjects),))
        end = float((known.span_stop + own[known.span_subject]).max())
    # time since entry begins anew with a new subject; the calendar does not
    if (known is None and axis.origin is None) or begin >= end - _ROUNDED:
        return ""
    return (
        f"The window begins before the end of what was observed, {_moment(end, axis)}: up to "
        "there it is a repetition of the past, not a forecast of the future."
    )


def how_it_goes_on(model: PanelEstimator, start: Floats, stop: Floats, beyond: str) -> Continuation:
    """The way asked for; "auto" asks the data, if a window lies beyond them."""
    if beyond != "auto":
        return Continuation(beyond, beyond, {})
    if not isinstance(model, GaussianProcessModel):
        return Continuation(PRIOR, PRIOR, {})
    low, high = model.window_
    if np.all(start >= low) and np.all(stop <= high):
        return Continuation(own_way(model), own_way(model), {})
    return model.continuation()


def _why(found: Continuation) -> str:
    """Which way would have forecast the last part of the data best, in a sentence."""
    scores = found.scores
    best, *rest = sorted(scores, key=lambda way: -scores[way])
    ahead = scores[best] - max(scores[way] for way in rest)
    tried = "When the last quarter of the window was forecast from the rest, "
    if ahead < np.log(3.0):
        return tried + "no way of going on was clearly the best: the past does not decide."
    verdict = f"{_NAMES[best]} did best ({odds(ahead)} over the next way)"
    if best == found.way:
        return tried + verdict + "."
    small = f'not by enough to leave the model\'s own way; beyond="{best}" takes it.'
    return f"{tried}{verdict}, but {small}"


def _going_on(model: GaussianProcessModel, stop: Floats, beyond: str) -> str:
    """How the rate of a Gaussian process goes on beyond the window."""
    low, high = model.window_
    rate, unit = float(model.intensity(high if np.any(stop > high) else low)), model.time_unit_
    each = per(unit, model.usage_)
    if beyond == HOLD:
        return f"is held at its value at the end, {rate:.3g} {each}."
    if beyond == TREND:
        words = model.trend_words(0.95)
        return f"goes on from its value at the end, {rate:.3g} {each}, with its trend: {words}."
    within = f"{model.length_scale_:.3g}" + (f" {unit}" if unit else "")
    return (
        f"returns from its value at the end, {rate:.3g}, to its long-run level, "
        f'{_long_run(model):.3g} {each}, within about {within}; beyond="hold" keeps it at '
        "its last value."
    )


def _moment(time: float, axis: TimeAxis) -> str:
    """Write a time: as a date, else as ``53 months`` or ``time 53``."""
    plain = f"{few_digits(time)} {axis.unit}" if axis.unit else f"time {few_digits(time)}"
    return axis.date(time) or plain


def _long_run(model: GaussianProcessModel) -> float:
    """E λ far from the data: scale · (g² + γ), averaged over the posterior."""
    return float(model.posterior_.long_run_rate)
