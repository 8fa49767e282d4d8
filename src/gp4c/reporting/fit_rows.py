"""Rows of a summary about the fit: how the posterior was found, and what the fit found in its data.

The same facts as sentences of a methods section are in `posterior_sentence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.inference.variational.count_terms import count_term
from gp4c.plain import p_words
from gp4c.posterior.draws import CurveDraws
from gp4c.reporting.row import Row
from gp4c.reporting.words import estimate, number, span, when

if TYPE_CHECKING:
    from gp4c.posterior.own_check import OwnCheck

FIT = "Fit"
CHECK = "The fit beside its data"
#: k̂ below which the weights of draws can be trusted
_RELIABLE = 0.7


def fit_rows(model: PanelEstimator) -> Iterator[Row]:
    """How the model was fitted."""
    if isinstance(model, GaussianProcessModel):
        yield Row(FIT, "posterior", posterior_text(model), detail=True)
        yield _evidence_row(model)
    else:
        objective = float(model.objective_)
        yield Row(FIT, model.objective_name, f"{objective:,.2f}", objective)
    yield _converged_row(model)
    if model.compression_ is not None:
        yield Row(FIT, "rows", compression_text(model.compression_))
    if model.n_bootstraps_:
        text = f"{model.n_bootstraps_} bootstrap samples of the subjects"
        yield Row(FIT, "bands", text, model.n_bootstraps_)
    elif isinstance(model, GaussianProcessModel):
        yield Row(FIT, "bands", bands_text(model), model.effective_draws_)


def _converged_row(model: PanelEstimator) -> Row:
    steps = f"{model.n_iter_:,} step{'' if model.n_iter_ == 1 else 's'}"
    text = f"yes, after {steps}" if model.converged_ else f"NO, stopped after {steps}"
    return Row(FIT, "converged", text, bool(model.converged_))


def _evidence_row(model: GaussianProcessModel) -> Row:
    if is_variational(model):
        text = f"{model.elbo_:,.2f} (evidence lower bound, without Σ ln m!)"
        return Row(FIT, "ELBO", text, float(model.elbo_), detail=True)
    return Row(
        FIT, "log evidence", f"{model.log_evidence_:,.2f} (without Σ ln m!)",
        float(model.log_evidence_), detail=True,
    )  # fmt: skip


def is_variational(model: GaussianProcessModel) -> bool:
    """Whether the posterior is one Gaussian process that maximises a bound."""
    return not isinstance(model.posterior_, CurveDraws)


def _was_tempered(model: GaussianProcessModel) -> bool:
    """Whether draws were carried from the prior; such draws have no weights to smooth."""
    return model.pareto_k_ is not None and bool(np.isnan(model.pareto_k_))


def bands_text(model: GaussianProcessModel) -> str:
    """What the bands rest on, in plain words."""
    posterior = model.posterior_
    if not isinstance(posterior, CurveDraws):
        return "from one approximation of the curve, with the length scale at its best value"
    if model.sampler_ is not None:
        worth = model.sampler_.curve_ess
        return (
            f"from {posterior.size:,} sampled curves, worth at least {worth:,.0f} independent ones"
        )
    where = "; the rate may be zero in places" if _was_tempered(model) else ""
    return (
        f"from {posterior.size:,} drawn curves, worth {model.effective_draws_:,.0f} independent "
        f"ones{where}"
    )


def posterior_text(model: GaussianProcessModel) -> str:
    """How the posterior was found, in one line of a summary."""
    posterior = model.posterior_
    if not isinstance(posterior, CurveDraws):
        return "variational, hyper-parameters at their best values"
    if model.sampler_ is not None:
        return (
            f"sampled: {posterior.size:,} draws, of the curve R̂ at most "
            f"{model.sampler_.curve_r_hat:.3f}, effective sample size at least "
            f"{model.sampler_.curve_ess:,.0f}"
        )
    if _was_tempered(model):
        return (
            f"{posterior.size:,} draws carried from the prior, {model.effective_draws_:,.0f} "
            "effective, because the rate may be zero in places"
        )
    return (
        f"{posterior.size:,} weighted draws, {model.effective_draws_:,.0f} effective; "
        f"Pareto k {model.pareto_k_:.2f} (reliable below {_RELIABLE})"
    )


def posterior_sentence(model: GaussianProcessModel, counted: bool = True) -> str:
    """The same for a methods section; draws are not counted where it stands for several fits."""
    posterior = model.posterior_
    if not isinstance(posterior, CurveDraws):
        options = model.get_params()
        how = count_term(model.count_term).words.format(b=options.get("b", 0.0))
        return (
            f"The posterior was approximated by variational inference, {how}. The level, variance "
            "and length scale of the curve were set to the values that maximise the bound."
        )
    if model.sampler_ is not None or _was_tempered(model):
        how = "sampled by tempered sequential Monte Carlo"
        number = f" ({posterior.size:,} draws)"
    else:
        how = "computed by importance sampling around its modes"
        worth = f"{model.effective_draws_:,.0f}"
        number = f" ({posterior.size:,} draws, worth {worth} independent ones)"
    how += number if counted else ""
    hyper = (
        "were integrated out under weak priors."
        if model.hyper == "integrate"
        else "were set to their most probable values."
    )
    return f"The posterior was {how}. The level, variance and length scale of the curve {hyper}"


def compression_text(how: Mapping[str, str | float]) -> str:
    """What stands for the rows of a large table, and how closely."""
    error = f"log probabilities are within {how['error']:.1g} of those of the rows"
    if how["method"] == "expansion":
        return f"{how['n_rows']:,} rows by what they say near the best fit; {error}"
    if how["method"] != "nodes":
        return f"{how['n_rows']:,} rows as {how['n_intervals']:,} different intervals, exactly"
    return f"{how['n_rows']:,} rows as {how['n_intervals']:,} weighted intervals; {error}"


# -- what the fit found in its data ---------------------------------------------------------


def check_rows(model: PanelEstimator) -> Iterator[Row]:
    """What a fit found when it looked back at its data."""
    found = model.fit_check_
    if found is None:
        return
    axis = TimeAxis.of(model)
    yield Row(CHECK, "within subjects", _within(found), found.dispersion)
    yield Row(
        CHECK, "over time",
        f"events differ most from {span(found.worst_start, found.worst_stop, axis)}: "
        f"{found.worst_observed:,.0f} seen, "
        f"{number(found.worst_expected)} expected ({p_words(found.time_p_value)})",
        found.time_p_value,
    )  # fmt: skip
    yield Row(
        CHECK, "without a model",
        f"{estimate(found.nonparametric)} events by {when(found.time, axis)}; the model "
        f"says {estimate(found.mean)}", found.nonparametric,
    )  # fmt: skip


def _within(found: OwnCheck) -> str:
    return (
        f"counts vary {number(found.dispersion, 2)} times as much as Poisson counts; the model "
        f"expects {number(found.allowed, 2)} ({p_words(found.p_value)})"
    )
