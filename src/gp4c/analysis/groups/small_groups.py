r"""Groups of one or two subjects, whose fits learn laws and level from all groups together.

One subject cannot say how far it is from the mean of others like it: a band from this subject alone
is about this subject alone. So the laws of counts and effects, their parameters θ and the level l
of the curve are learned from everybody. With draws of the group's own posterior, the weights

.. math::  \frac{p(\theta \mid \text{all})}{p(\theta)} \;
           \frac{p(l \mid \text{rate of all})}{p(l \mid \text{rate of the group})}

make them draws for a prior of θ that is everybody's posterior, and a prior of l around the rate of
all groups. docs/maths_comparison.md says what this assumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gp4c.analysis.groups.hypotheses import (
    law_log_posterior,
    law_log_prior,
    level_ratios,
    with_laws,
)
from gp4c.estimators.engine_fit import given_mean, store_draws
from gp4c.estimators.gp4c import GP4C
from gp4c.posterior.draws import CurveDraws

if TYPE_CHECKING:
    from collections.abc import Hashable

    from gp4c.analysis.groups.panel_test import PanelTest
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp_base import GaussianProcessModel
    from gp4c.estimators.regression.engine_regression import SharedDesign

#: so many subjects leave at most one degree of freedom for the differences between subjects
FEW = 2


def small_groups(model: GaussianProcessModel, tested: PanelTest) -> list[int]:
    """Groups whose fits learn from everybody; none where the model has no shared laws."""
    if not isinstance(model, GP4C) or model.has_factors:
        return []
    sizes = np.bincount(tested.groups.codes, minlength=len(tested.groups.levels))
    return np.flatnonzero(sizes <= FEW).tolist()


def informed_fits(
    fits: Mapping[Hashable, GaussianProcessModel],
    small: Sequence[int],
    everybody: GaussianProcessModel,
    tested: PanelTest,
    shared: SharedDesign | None,
) -> dict[Hashable, GaussianProcessModel]:
    """The fits of small groups, with what everybody says; empty for other kinds of posterior."""
    found: dict[Hashable, GaussianProcessModel] = {}
    for g in small:
        name, part = tested.groups.levels[g], tested.panel[tested.groups.codes == g]
        fit = fits[name]
        assert isinstance(fit, GP4C)
        assert isinstance(everybody, GP4C)
        if isinstance(fit.posterior_, CurveDraws) and isinstance(everybody.posterior_, CurveDraws):
            found[name] = informed(fit, everybody, part, shared)
    return found


def informed(
    fit: GP4C, everybody: GP4C, panel: PanelCounts, shared: SharedDesign | None = None
) -> GP4C:
    """The fit to a small group with laws, their parameters and the level learned from everybody."""
    result = copy(with_laws(fit, panel, everybody.law_, everybody.effect_, shared))
    draws, known = result.posterior_, everybody.posterior_
    assert isinstance(draws, CurveDraws)
    assert isinstance(known, CurveDraws)
    log_weights = np.log(np.maximum(draws.weights, 1e-300))
    if given_mean(everybody) is None:
        log_weights += level_ratios(draws, known.rate)
    if len(known.params):
        theta = draws.params
        log_weights += law_log_posterior(known, theta) - law_log_prior(everybody, theta)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    store_draws(result, replace(draws, weights=weights))
    result.effective_draws_ = float(1.0 / (weights**2).sum())
    result.effect_choice_ = "taken from all groups together: this one has too few subjects to tell"
    return result
