"""Rows of a summary about the laws: how subjects differ, how visits differ, and why this law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.reporting.row import Row
from gp4c.reporting.words import number

SUBJECTS = "Differences between subjects"
VISITS = "Differences between visits"
CHOICE = "Choice of the model"


def law_rows(model: PanelEstimator) -> Iterator[Row]:
    """Subjects, then visits, then why."""
    yield from _subject_rows(model)
    yield from _visit_rows(model)
    if model.effect_choice_ != "as asked":
        yield Row(CHOICE, "why", model.effect_choice_, model.effect_choice_)


def _subject_rows(model: PanelEstimator) -> Iterator[Row]:
    law, effects = model.effect_law_, model.subject_effects_
    if law.is_free and effects is not None:
        low, high = number(float(effects.min())), number(float(effects.max()))
        words = f"{law.title}, mean 1, from {low} to {high}"
        yield Row(SUBJECTS, "subject effects", words, model.effect_)
        return
    yield Row(SUBJECTS, "subject effects", law.title, model.effect_)
    if model.effect_ is not None:
        variance = 1.0 / model.frailty_shape_
        yield Row(SUBJECTS, "frailty variance", number(variance), variance)
    if law.varies:
        yield Row(SUBJECTS, "in other words", frailty_words(model.frailty_shape_))


def _visit_rows(model: PanelEstimator) -> Iterator[Row]:
    """Bursts, of models that can have them."""
    if "yes" in model.burst_options:
        words = model.count_law_.words(model.law_parameters_)
        yield Row(VISITS, "bursts", words, float(model.dispersion_))


def frailty_words(shape: float) -> str:
    """A frailty distribution as a statement about subjects."""
    from scipy.special import gammainccinv

    most, middle = gammainccinv(shape, [0.1, 0.5]) / shape  # upper quantiles of Gamma(α, α)
    half = f"{number(middle, 2)} times" if middle >= 0.01 else "a hundredth of it"
    return (
        f"one subject in ten has more than {number(most, 2)} times the mean rate, "
        f"half have less than {half}"
    )


def length_scale_range(model: PanelEstimator) -> tuple[float, float] | None:
    """Middle 80% of the posterior of the length scale; None where it is a point estimate."""
    from gp4c.posterior.draws import CurveDraws, weighted_quantiles

    posterior = model.posterior_ if isinstance(model, GaussianProcessModel) else None
    if not isinstance(posterior, CurveDraws) or len(posterior.groups) < 2:
        return None
    scale = np.log(posterior.length_scale[None])
    ends = weighted_quantiles(scale, posterior.weights, np.array([0.1, 0.9]))[:, 0]
    low, high = np.exp(ends) * (model.window_[1] - model.window_[0])
    return float(low), float(high)
