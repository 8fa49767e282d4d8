"""Rows of a summary about the laws: how subjects differ, how visits differ, and why this law."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.engine_fit import varying
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.interfaces.credible import credible_interval
from gp4c.model.laws import SubjectEffect
from gp4c.posterior.draws import CurveDraws
from gp4c.reporting.row import Row
from gp4c.reporting.words import number

Floats = NDArray[np.float64]

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
        words = f"{law.title}, mean {number(float(effects.mean()))}, from {low} to {high}"
        yield Row(SUBJECTS, "subject effects", words, model.effect_)
        return
    yield Row(SUBJECTS, "subject effects", law.title, model.effect_)
    if model.effect_ is not None:
        variance = 1.0 / model.frailty_shape_
        yield Row(SUBJECTS, "frailty variance", number(variance), variance)
    if law.varies:
        yield Row(SUBJECTS, "in other words", effect_words(law, model.effect_parameters_))


def _visit_rows(model: PanelEstimator) -> Iterator[Row]:
    """Bursts, of models that can have them."""
    if "yes" in model.burst_options:
        words = model.count_law_.words(model.law_parameters_)
        yield Row(VISITS, "bursts", words, float(model.dispersion_))


def effect_words(law: SubjectEffect, psi: Floats) -> str:
    """A law of effects with parameters (P,) as a statement about subjects."""
    from scipy.special import ndtri

    most, middle = np.exp(law.log_quantile(ndtri([0.9, 0.5]), psi[:, None])[0])
    half = f"{number(middle, 2)} times" if middle >= 0.01 else "a hundredth of it"
    return (
        f"one subject in ten has more than {number(most, 2)} times the mean rate, "
        f"half have less than {half}"
    )


def length_scale_range(model: PanelEstimator, level: float = 0.8) -> tuple[float, float] | None:
    """Middle of the posterior of the length scale; None where it is a point estimate.

    Of the curves that vary, as `length_scale_` is.
    """
    posterior = _draws(model)
    if posterior is None or len(posterior.groups) < 2:
        return None
    some = varying(posterior)
    ends = credible_interval(np.log(posterior.length_scale[some]), posterior.weights[some], level)
    low, high = np.exp(ends) * (model.window_[1] - model.window_[0])
    return float(low), float(high)


def frailty_range(model: PanelEstimator, level: float) -> tuple[float, float] | None:
    """Middle of the posterior of the frailty variance; None without draws of it."""
    posterior, effect = _draws(model), model.effect_law_
    if posterior is None or not effect.parameters:
        return None
    psi = posterior.params[: len(effect.parameters)]
    return credible_interval(np.asarray(effect.variance(psi)), posterior.weights, level)


def dispersion_range(model: PanelEstimator, level: float) -> tuple[float, float] | None:
    """Middle of the posterior of the variance of a count over its mean; None without draws."""
    posterior, law = _draws(model), model.count_law_
    if posterior is None or not law.parameters:
        return None
    theta = posterior.params[-len(law.parameters) :]
    return credible_interval(law.dispersion(theta), posterior.weights, level)


def _draws(model: PanelEstimator) -> CurveDraws | None:
    posterior = model.posterior_ if isinstance(model, GaussianProcessModel) else None
    return posterior if isinstance(posterior, CurveDraws) else None
