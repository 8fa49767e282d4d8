"""A fit looks back, and warns of draws that do not carry and of counts that vary too much."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from gp4c.exceptions import ConvergenceWarning, FitWarning, OverdispersionWarning
from gp4c.model.dispersion import Dispersion
from gp4c.posterior.own_check import OwnCheck, check_rows, compared_by

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.gp_base import GaussianProcessModel

#: k̂ of weights and R̂ of a sampled curve beyond which a fit warns
MOST_K, MOST_R_HAT = 0.7, 1.05


def warn_of_weights(model: GaussianProcessModel, rough: bool = False) -> None:
    """Say loudly that the draws are not to be trusted, why, and what to do."""
    if model.converged_:
        return
    name, k = type(model).__name__, model.pareto_k_
    if model.sampler_ is not None:
        words = (
            "independent runs of the sampler disagree about the curve (R̂ = "
            f"{model.sampler_.curve_r_hat:.2f}, above {MOST_R_HAT}): fit with another random_state "
            "and compare, or take hyper='optimize', which has less to sample"
        )
    elif rough and k is not None and k < MOST_K:
        words = (
            f"{name}: the curve may touch zero, where the quick method can miss some of the "
            "curves, and the sampler that finds them would take too long with so many rows: bands "
            "may be narrow there; compare with a fit to a sample of the subjects"
        )
    else:
        words = (
            f"{name}: the bands rest on drawn curves worth {model.effective_draws_:.0f} "
            f"independent ones (their Pareto k is {k:.2f}, reliable below {MOST_K}) and may be "
            "rough; compare with method='mcmc'"
        )
    warnings.warn(words, ConvergenceWarning, stacklevel=4)


def warn_if_overdispersed(name: str, found: Dispersion, remedy: str, stacklevel: int = 3) -> None:
    """Say that subjects differ more than the fitted model allows, by how much, and what to do."""
    if not found.is_bad:
        return
    warnings.warn(
        f"subjects' totals vary {found.ratio:.1f} times as much as Poisson counts would "
        f"(dispersion Σ(m − R)²/ΣR, {found.deviation:.0f} standard errors above 1), and this "
        f"{name} has no subject effects: its bands and forecasts are too narrow; use {remedy}",
        OverdispersionWarning,
        stacklevel=stacklevel,
    )


def look_back(model: PanelEstimator, panel: PanelCounts) -> OwnCheck:
    """Check a fitted model against the panel of its fit, covariates in the exposures."""
    time = compared_by(panel)
    times, inverse = np.unique(
        np.concatenate([panel.start, panel.stop, [time]]), return_inverse=True
    )
    curve = model._check_curve(times)[inverse]
    first, last, by_then = np.split(curve, [len(panel.start), -1])
    expected = panel.exposure * np.maximum(last - first, 0.0)
    inputs = model._inputs_of(panel)
    if inputs is not None:
        expected = panel.exposure * model._check_rows(panel.start, panel.stop, inputs)
    return check_rows(
        panel, expected, (time, float(by_then[0])), float(model.dispersion_) - 1.0,
        model.subject_effects_,
    )  # fmt: skip


def warn_of_misfit(model: PanelEstimator) -> None:
    """Say that counts vary within subjects clearly more than the law allows, and what to do."""
    found = model.fit_check_
    if found is None or not found.varies_more:
        return
    warnings.warn(
        f"{type(model).__name__}: counts vary {found.excess:.2g} times as much within subjects as "
        f"the fitted model allows (p < 0.001): {burst_remedy(model)}",
        FitWarning,
        stacklevel=3,
    )


def burst_remedy(model: PanelEstimator) -> str:
    """What to do where counts vary within subjects more than the fitted law allows."""
    if model.dispersion_ > 1.0 or not model.count_law_.one_by_one:
        return (
            "look for visits soon after another at which much was found (visits made because of "
            "events), or for a rate that changes faster"
        )
    if "yes" not in model.burst_options:
        return "bootstrap the subjects, or use a model with bursts=True"
    if model.get_params().get("count_term") is not None:
        return "leave out count_term, which counts events one by one"
    return "fit with bursts=True"
