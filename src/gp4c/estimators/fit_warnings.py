"""A fit looks back at its data, and warns where counts vary more than the model allows."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from gp4c.exceptions import FitWarning, OverdispersionWarning
from gp4c.model.dispersion import Dispersion
from gp4c.posterior.own_check import OwnCheck, check_rows, compared_by

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator


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
        f"the fitted law allows (p < 0.001): {burst_remedy(model)}",
        FitWarning,
        stacklevel=3,
    )


def burst_remedy(model: PanelEstimator) -> str:
    """What to do where counts vary within subjects more than the fitted law allows."""
    if model.dispersion_ > 1.0:
        return (
            "look for visits soon after another at which much was found (visits made because of "
            "events), or for a rate that changes faster"
        )
    if "yes" not in model.burst_options:
        return "bootstrap the subjects, or use a model with bursts=True"
    if model.get_params().get("count_term") is not None:
        return "leave out count_term, whose bound counts events one by one"
    return "fit with bursts=True"
