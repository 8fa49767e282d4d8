"""The counts that a fitted model knows of its subjects, under its laws."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.posterior.subject_counts import SubjectCounts

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.parts import PanelEstimator

Floats = NDArray[np.float64]


def fitted_counts(model: PanelEstimator, panel: PanelCounts | None = None) -> SubjectCounts:
    """What was seen of the subjects of a fit, under its laws.

    Exposures hold free weights, and the covariates at their estimates: coefficients are deviations
    from these. Covariates are those of the rows if the `panel` is given, its exposure adjusted;
    else those of the subjects at their last visits.
    """
    law, effect, design = model.count_law_, model.effect_law_, subject_design(model)
    if design is not None and panel is not None:
        return SubjectCounts.of(panel, law, effect, model._covariates_of(panel))
    return SubjectCounts.of_histories(_with_weights(model), law, effect, design)


def coefficient_deviations(model: PanelEstimator, beta: Floats) -> Floats:
    """Draws of β less its estimate, (p, S); without covariates as they are."""
    known = model.coefficients_
    return beta if known is None else beta - known.beta[:, None]


def subject_design(model: PanelEstimator) -> Floats | None:
    """Covariates of the fitted subjects at their last visits, (K, p); None without a formula."""
    known = model.coefficients_
    return None if known is None else known.subject_design


def _with_weights(model: PanelEstimator) -> SubjectHistories:
    """The histories of a fit, free weights in their exposures."""
    known = model.histories_
    if known is None:
        raise ValueError(f"this {type(model).__name__} keeps no histories of its subjects")
    if not model.effect_law_.is_free:
        return known
    weights = np.asarray(model.subject_effects_)
    return replace(
        known,
        span_exposure=known.span_exposure * weights[known.span_subject],
        row_exposure=known.row_exposure * weights[known.row_subject],
    )
