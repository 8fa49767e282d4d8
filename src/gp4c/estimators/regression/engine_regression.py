"""The default fit with covariates: coefficients are part of the posterior.

Model-based standard errors are those of the draws. Robust ones are the sandwich over subjects at
the mode, for all coordinates at once: with G the inverse of minus the Hessian, s_k the gradient of
subject k's log-likelihood and P the prior's precision,

    cov = G (Σ s_k s_kᵀ + P) G ,

and the jackknife divides s_k by 1 − h_k, where h_k is the share of the information along G s_k that
subject k brings itself (docs/maths_covariates.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.formulas.covariate_rows import design_rows, last_rows, learn_design
from gp4c.estimators.engine_fit import EngineData, candidates, store_engine
from gp4c.estimators.regression.covariate_effects import CovariateEffects
from gp4c.estimators.regression.estimable import check_estimable
from gp4c.estimators.regression.factors.changing_effects import changing_factors, check_sheets
from gp4c.estimators.regression.factors.factor_fit import best_fit, season_factors
from gp4c.inference.engine.climb import Mode
from gp4c.inference.engine.posterior_fit import Say
from gp4c.model.modulation.sheets import SheetIntegrals
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.subject_counts import SubjectCounts

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.formulas.formula import FormulaDesign
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp4c import GP4C

Floats = NDArray[np.float64]

#: step of the differences that give the subjects' gradients, and their curvatures
_STEP, _CURVATURE_STEP = 1e-4, 1e-3
#: most leverage of a subject in the jackknife, and subjects whose curvatures are taken at once
_MOST_LEVERAGE, _AT_ONCE = 0.9, 50


@dataclass(frozen=True)
class SharedDesign:
    """What a formula learned from a panel, for fits to parts of it.

    Curves then belong to the average covariates of the whole panel, and coefficients have the same
    prior in every part.

    Attributes
    ----------
    design : FormulaDesign
    scale : (p,)
        Coefficients in the user's units are those of the engine times this.
    """

    design: FormulaDesign
    scale: Floats

    @classmethod
    def of(cls, panel: PanelCounts, design: FormulaDesign, rows: Floats) -> SharedDesign:
        """That of a panel, whose rows have these covariates."""
        scale = EngineData.with_covariates(panel, rows).scale
        assert scale is not None
        return cls(design, scale)


def fit_covariates(
    model: GP4C,
    panel: PanelCounts,
    events: RecurrentEvents | None,
    say: Say | None = None,
    shared: SharedDesign | None = None,
) -> None:
    """Fit curve, laws and coefficients together, and store all of it."""
    if events is not None:
        raise ValueError("formula= and events= do not go together")
    assert model.formula is not None
    if shared is None:
        design, panel = learn_design(panel, model.formula, model.missing)
        rows = design_rows(design, panel)
        check_estimable(panel, rows, design)
        data = EngineData.with_covariates(panel, rows)
    else:
        design, rows = shared.design, design_rows(shared.design, panel)
        data = EngineData.with_covariates(panel, rows, shared.scale)
    laws = candidates(model.effect, model.bursts, data)
    factors = season_factors(model.season, panel)
    factors = factors.joined(changing_factors(model.formula, design, panel, rows))
    check_sheets(factors)
    data, fit = best_fit(model, data, laws, factors, say)
    assert data.scale is not None
    beta, covariance = coefficient_moments(fit.draws(model.kernel, data.scale))
    robust, jackknife, model.factor_covariance_ = robust_covariances(fit.lattice.best.mode, data)
    model.coefficients_ = CovariateEffects(
        design, beta, covariance, robust, jackknife, rows[last_rows(panel)]
    )
    model._keep_time_axis(panel)
    store_engine(model, data, fit)
    model._engine_data = data


def coefficient_moments(draws: CurveDraws) -> tuple[Floats, Floats]:
    """Posterior mean and covariance of the coefficients."""
    mean = draws.coefficients @ draws.weights
    off = draws.coefficients - mean[:, None]
    return mean, (off * draws.weights) @ off.T


def robust_covariances(mode: Mode, data: EngineData) -> tuple[Floats, Floats, Floats]:
    """Sandwich and jackknife covariances of the coefficients, (p, p) each.

    The third is the sandwich of the coefficients of factors, (r, r), without the prior's part.
    """
    land = mode.landscape
    assert data.scale is not None
    at = land.derivatives(mode.x[:, None], np.array([mode.u]))
    bread = np.linalg.inv(-at.hessian[0])
    scores = subject_scores_at(mode, data)
    n = scores.shape[1]
    prior = prior_precision(mode)
    influence = bread @ scores  # (D, K)
    first, n_beta = land.dimension - land.task.n_beta, land.task.likelihood.cells.n_covariates
    b = slice(first, first + n_beta)
    scale = np.outer(data.scale, data.scale)
    from_prior = bread @ (prior[:, None] * bread)
    few = n / max(n - n_beta - 1, 1)  # subjects, not rows, are independent
    robust = few * (influence @ influence.T) + from_prior
    leverage = np.minimum(_leverages(mode, data, scores, influence), _MOST_LEVERAGE)
    left_out = influence / (1.0 - leverage)
    jackknife = left_out @ left_out.T + from_prior
    of_factors = few * (influence[b.stop :] @ influence[b.stop :].T)
    return robust[b, b] * scale, jackknife[b, b] * scale, of_factors


def prior_precision(mode: Mode) -> Floats:
    """Precision of the prior of each coordinate."""
    land, likelihood = mode.landscape, mode.landscape.task.likelihood
    both = (*likelihood.effect.parameters, *likelihood.law.parameters)
    scales = [q.deviation for q in both]
    level = land.task.level_prior(np.array([mode.u]))[1]
    return np.concatenate(
        [np.ones(land.size), [level**-2.0], np.array(scales) ** -2.0, np.ones(land.task.n_beta)]
    )


def subject_scores_at(mode: Mode, data: EngineData) -> Floats:
    """Gradient of each subject's log-likelihood at the mode, (D, K), by central differences."""
    assert data.panel is not None
    shifts = _STEP * np.eye(mode.landscape.dimension)
    x = mode.x[:, None] + np.concatenate([shifts, -shifts], axis=1)
    values = _subject_log_likelihoods(mode, data, np.arange(data.panel.n_subjects), x)
    up, down = np.split(values, 2, axis=1)
    return np.asarray(((up - down) / (2 * _STEP)).T)


def _leverages(mode: Mode, data: EngineData, scores: Floats, influence: Floats) -> Floats:
    r"""Share of the information along d_k = G s_k that subject k brings itself, (K,).

    d_kᵀ(−∂² ln p_k)d_k / s_kᵀd_k; of a linear regression these are the leverages.
    """
    assert data.panel is not None
    panel, found = data.panel, np.zeros(scores.shape[1])
    length = np.sqrt((influence**2).sum(axis=0))
    direction = influence / np.maximum(length, 1e-300)
    for first in range(0, panel.n_subjects, _AT_ONCE):
        some = np.arange(first, min(first + _AT_ONCE, panel.n_subjects))
        shifts = _CURVATURE_STEP * direction[:, some]
        x = mode.x[:, None] + np.concatenate([shifts, -shifts, 0 * shifts[:, :1]], axis=1)
        values = _subject_log_likelihoods(mode, data, some, x)
        up, down = np.diag(values[:, : len(some)]), np.diag(values[:, len(some) : -1])
        found[some] = (2 * values[:, -1] - up - down) / _CURVATURE_STEP**2
    along = (scores * direction).sum(axis=0)
    safe = np.where(along > 0, along, 1.0)
    return np.asarray(np.where(along > 0, found * length / safe, 0.0))


def _subject_log_likelihoods(
    mode: Mode, data: EngineData, some: NDArray[np.intp], x: Floats
) -> Floats:
    """Log-likelihoods (K, C) of some subjects at points x (D, C)."""
    land, panel = mode.landscape, data.panel
    assert panel is not None
    likelihood, window = land.task.likelihood, data.window
    modulation, inputs = data.modulated or (None, None)
    rows = np.isin(panel.subject_index, some)
    z, inputs = (None if each is None else each[rows] for each in (data.z, inputs))
    counts = SubjectCounts.of(panel[some], likelihood.law, likelihood.effect, z, inputs)
    _, level, params, beta = land.parts(x)
    edges = np.linspace(0.0, 1.0, max(land.size, 2))
    grid = Grid.on(edges if modulation is None else modulation.refined(edges), 8)
    length = window[1] - window[0]
    start, stop = (counts.start - window[0]) / length, (counts.stop - window[0]) / length
    square = np.exp(level) * land.curve_at(grid.nodes, x, np.full(x.shape[1], mode.u)) ** 2
    if modulation is None:
        areas = IntervalIntegrals(grid, start, stop).apply(square)
    else:
        brought = np.zeros((len(start), 0)) if counts.inputs is None else counts.inputs
        w = x[land.dimension - modulation.size :]
        areas = SheetIntegrals(modulation, grid, start, stop, brought).apply(square, w)
    return counts.log_likelihoods(likelihood.cells.rate * areas, params, beta)
