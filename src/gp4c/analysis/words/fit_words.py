"""What a failed check of a fit means, and what to do, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gp4c.classical.parametric.homogeneous import HomogeneousPoisson
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.fit_warnings import burst_remedy

if TYPE_CHECKING:
    from gp4c.analysis.fit_checks import MeanCheck, OverTime
    from gp4c.estimators.base import PanelEstimator
    from gp4c.posterior.within_subjects import WithinDispersion


def warnings_about(
    model: PanelEstimator, within: WithinDispersion, over_time: OverTime, mean: MeanCheck
) -> Iterator[str]:
    """One sentence per check that failed."""
    if within.is_bad:
        yield _about_bursts(model, within)
    if over_time.is_bad:
        yield _about_time(model, over_time)
    if mean.is_bad:
        yield _about_mean(model, mean)


def _about_bursts(model: PanelEstimator, within: WithinDispersion) -> str:
    text = (
        f"Counts vary {within.excess:.2g} times as much within subjects as the fitted model allows "
        f"(p = {within.smallest_p:.2g}): "
    )
    return text + burst_remedy(model)


def _about_time(model: PanelEstimator, over_time: OverTime) -> str:
    worst, axis = over_time.worst(), TimeAxis.of(model)
    start = axis.date(worst["start"]) or f"{worst['start']:.3g}"
    text = (
        f"Events come at other times than the fitted curve says (p = {over_time.p_value:.2g}): "
        f"from {start} to {_moment(worst['stop'], axis)} there are "
        f"{worst['observed']:.0f} where {worst['expected']:.3g} are expected; "
    )
    if isinstance(model, HomogeneousPoisson):
        return text + "fit a rate that varies over time, GP4C()"
    return text + "allow for a faster change of the rate, or for groups with curves of their own"


def _moment(time: float, axis: TimeAxis) -> str:
    """A date where the data have dates, else a number with its unit."""
    return axis.date(time) or f"{time:.3g}" + (f" {axis.unit}" if axis.unit else "")


def _about_mean(model: PanelEstimator, mean: MeanCheck) -> str:
    end = _moment(mean.time, TimeAxis.of(model))
    text = (
        f"The mean number of events by {end} is {mean.model:.3g} "
        f"(99% band {mean.low:.3g} to {mean.high:.3g}), and {mean.npmle:.3g} by the nonparametric "
        "estimator: "
    )
    if model.effect_ is not None:
        return text + (
            "subjects who are observed longer have other rates than those who leave early; put "
            "what they differ in into a formula"
        )
    return text + 'fit with effect="gamma", whose bands allow for differences between subjects'
