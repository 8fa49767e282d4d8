"""The rows of a model's summary: each reads fitted attributes and says them in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.reporting.effect_rows import effect_text, has_effects, references
from gp4c.reporting.figures.curves import N_POINTS, Curves, at_exposure, bands_of
from gp4c.reporting.fit_rows import check_rows, fit_rows, is_variational
from gp4c.reporting.page.classes.class_rows import class_rows
from gp4c.reporting.row import Row
from gp4c.reporting.rows.law_rows import law_rows, length_scale_range
from gp4c.reporting.words import duration, estimate, number, per, percent, when, window_span

#: times at which a band is looked at where no curve was evaluated
_FEW_POINTS = 51
#: difference of logarithms from which a crude rate is said not to be the average rate
_NOTICEABLE = math.log(1.1)


def title_of(model: PanelEstimator) -> str:
    """What the estimator is."""
    name = type(model).__name__
    return f"{name}: {model.title}" if model.title else name


def rows_of(model: PanelEstimator, level: float, curves: Curves | None = None) -> Iterator[Row]:
    """All rows, section by section; `curves`, if they are there already, save work."""
    yield from _data_rows(model)
    yield from _result_rows(model, level, curves)
    yield from class_rows(model, level)
    yield from _effect_rows(model, level)
    yield from _curve_rows(model, level, curves)
    yield from (Row(*fact) for fact in model.facts())
    yield from law_rows(model)
    yield from check_rows(model)
    yield from fit_rows(model)


def _data_rows(model: PanelEstimator) -> Iterator[Row]:
    section = "Fitted to"
    known = model.data_summary_
    for key in ("n_subjects", "n_intervals", "n_events"):
        if key in known:
            yield Row(section, key[2:], f"{known[key]:,}", int(known[key]))
    at_risk = known.get("exposure_time")
    unit = model.time_unit_
    if at_risk is not None and model.usage_ is not None:
        yield Row(section, "usage", duration(at_risk, model.usage_, 4), float(at_risk))
    elif at_risk is not None:
        yield Row(section, "time at risk", duration(at_risk, unit, 4), float(at_risk))
    low, high = model.window_
    text = window_span(low, high, TimeAxis.of(model))
    yield Row(section, "window", text, low=low, high=high)


def _result_rows(model: PanelEstimator, level: float, curves: Curves | None) -> Iterator[Row]:
    section, (_, end) = "Result", model.window_
    if curves is not None and curves.times[-1] != end:
        curves = None
    value = float(model.cumulative(end) if curves is None else curves.cumulative[-1])
    if curves is not None and level in curves.cumulative_bands:
        bands = curves.cumulative_bands
    else:
        bands = bands_of(model, "cumulative", np.array([end]), levels=(level,))
    band = bands.get(level)
    limits = {} if band is None else {"low": float(band[0][-1]), "high": float(band[1][-1])}
    yield Row(
        section, "mean number of events", _with_band(value, limits, level)
        + f" by {when(end, TimeAxis.of(model))}, {_for_whom(model)}", value,
        limits.get("low"), limits.get("high"),
    )  # fmt: skip
    if not model.is_step:
        yield from _rate_rows(model, section, value, curves)


def _for_whom(model: PanelEstimator) -> str:
    who = "at average covariates" if has_effects(model) else "per subject"
    return who + at_exposure(model)


def _effect_rows(model: PanelEstimator, level: float) -> Iterator[Row]:
    """Rate ratios of the covariates."""
    if model.coefficients_ is None:
        return
    section = "Rate ratios of covariates"
    for row in model.coefficients_.rows(level):
        words = effect_text(row, level)
        yield Row(section, row.covariate, words, row.rate_ratio, row.low, row.high)
    errors = model.coefficients_.rows(level)[0].errors
    yield Row(section, "standard errors", errors)
    if references(model):
        yield Row(section, "reference", references(model))


def _with_band(value: float, limits: dict[str, float], level: float) -> str:
    if not limits:
        return estimate(value)
    low, high = estimate(limits["low"]), estimate(limits["high"])
    return f"{estimate(value)} ({percent(level)} band {low} to {high})"


def _rate_rows(
    model: PanelEstimator, section: str, total: float, curves: Curves | None
) -> Iterator[Row]:
    """Average, lowest and highest rate of the window."""
    unit, (start, end) = model.time_unit_, model.window_
    average = total / (end - start)
    exposed = "" if model.usage_ is not None else at_exposure(model)
    said = f"{estimate(average)} {per(unit, model.usage_)}{exposed}"
    yield Row(section, "average rate", said, average)
    yield from _crude_row(model, section, average)
    times = np.linspace(start, end, N_POINTS)
    same = curves is not None and np.array_equal(curves.times, times)
    rate: Any = curves.rate if same and curves is not None else model.intensity(times)
    low, high = int(np.argmin(rate)), int(np.argmax(rate))
    if rate[high] > rate[low] * (1 + 1e-9):
        axis = TimeAxis.of(model)
        text = (
            f"from {estimate(rate[low])} at {when(times[low], axis)} "
            f"to {estimate(rate[high])} at {when(times[high], axis)}"
        )
        yield Row(section, "range of the rate", text, low=float(rate[low]), high=float(rate[high]))


def _crude_row(model: PanelEstimator, section: str, average: float) -> Iterator[Row]:
    """Events divided by time at risk, where it is not about the average rate, and why not."""
    known = model.data_summary_
    at_risk, events = known.get("exposure_time", 0.0), known.get("n_events", 0)
    expected = model.subject_expected_
    if not at_risk * events * average > 0 or (model.effect_ is not None and expected is None):
        return
    crude = events / at_risk
    if abs(math.log(crude / average)) <= _NOTICEABLE:
        return
    word = "lower" if crude < average else "higher"
    own = crude if expected is None else float(np.sum(expected)) / at_risk
    risk = "time at risk" if model.usage_ is None else "usage"
    rate = f"{estimate(crude)} {per(model.time_unit_, model.usage_)}"
    text = f"{rate} (events by {risk}), {word} because "
    yield Row(section, "crude rate", text + _why_crude(model, crude, average, own), crude)


def _why_crude(model: PanelEstimator, crude: float, average: float, expected: float) -> str:
    """Why a crude rate is not the average rate; `expected` is that of average subjects' own times.

    From the average to the expected rate times are weighted by who was there to be seen, from the
    expected to the crude one subjects are weighted by how long they were.
    """
    if has_effects(model):
        return "the average is that of average covariates"
    if abs(math.log(crude / expected)) > abs(math.log(expected / average)):
        word = "lower" if crude < expected else "higher"
        return f"subjects who were observed longer had {word} rates, and each counts once in a mean"
    return f"more of the time at risk is where the rate is {'low' if crude < average else 'high'}"


# -- the curve ------------------------------------------------------------------------------


def _curve_rows(model: PanelEstimator, level: float, curves: Curves | None) -> Iterator[Row]:
    section, unit = "Shape of the curve", model.time_unit_
    for name, meaning, counted, value, low, high in model.curve_parameters(level):
        estimate = f"{number(value)} {counted}".rstrip()
        ends = f"{percent(level)} interval {number(low)} to {number(high)}"
        yield Row(section, name, f"{estimate} ({ends}); {meaning}", value, low, high)
    if isinstance(model, GaussianProcessModel):
        yield _length_scale_row(model, section, level, curves)
        mean = model.mean_**2 + model.variance_
        share = model.variance_ / mean if mean > 0 else math.nan
        yield Row(
            section, "prior of the rate",
            f"mean {number(mean)} {per(unit, model.usage_)}; {share:.0%} of it is variation over "
            "time", mean, detail=True,
        )  # fmt: skip
        if is_variational(model):
            inputs = model.n_inducing_
            yield Row(section, "inducing inputs", str(inputs), int(inputs), detail=True)
    else:
        yield from _plug_in_rows(model, section)


def _plug_in_rows(model: PanelEstimator, section: str) -> Iterator[Row]:
    """What a single curve was smoothed with, or its jumps."""
    from gp4c.classical.smoothed.local_em import LocalEM  # the default needs no other estimator

    if isinstance(model, LocalEM):
        chosen = "chosen by cross-validation" if model.bandwidth == "cv" else "as given"
        text = f"{duration(model.bandwidth_, model.time_unit_)} ({chosen})"
        yield Row(section, "bandwidth", text, float(model.bandwidth_))
    elif model.is_step:
        jumps = int(np.sum(np.diff(model.values_, prepend=0.0) > 0))
        yield Row(section, "jumps", f"{jumps:,} at {len(model.times_):,} visit times", jumps)


def _length_scale_row(
    model: GaussianProcessModel, section: str, level: float, curves: Curves | None
) -> Row:
    """The scale on which the rate varies; a range if the hyper-parameters were integrated out."""
    unit, value = model.time_unit_, float(model.length_scale_)
    low, high = length_scale_range(model) or (None, None)
    constant = _constant_within(model, level, curves)
    if constant is not None:  # then the scale says little: nothing to see varies on it
        text = (
            f"the curve is flat within its band: a constant rate of {estimate(constant)} "
            f"{per(unit, model.usage_)} lies in the {percent(level)} band at all times"
        )
        return Row(section, "length scale", text, value, low, high)
    how = "deviates from its trend" if model.has_trend else "varies"
    text = f"the rate {how} on a scale of about {duration(value, unit)}"
    if low is not None and high is not None and high > 1.2 * low:
        text += f" (80% interval {number(low, 2)} to {number(high, 2)})"
    return Row(section, "length scale", text, value, low, high)


def _constant_within(
    model: GaussianProcessModel, level: float, curves: Curves | None
) -> float | None:
    """A rate that the band holds at all times, the middle of such rates; None without one."""
    if curves is not None and level in curves.rate_bands:
        low, high = curves.rate_bands[level]
    else:
        times = np.linspace(*model.window_, _FEW_POINTS)
        low, high = bands_of(model, "intensity", times, levels=(level,))[level]
    bottom, top = float(np.max(low)), float(np.min(high))
    return (bottom + top) / 2 if bottom <= top else None
