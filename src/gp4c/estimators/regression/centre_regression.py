r"""Random effects of centres beside those of subjects: a regression with a deviation σ of its own.

The rate of a subject in centre c is multiplied by exp(b_c), b_c ~ N(0, σ²). Given σ the b_c are
coefficients of indicators with the prior N(0, σ²), so that the engine fits them with the others.
It does so at a few σ; its log evidence, interpolated between them, and the prior of σ give the
posterior of σ, and the fits are mixed by it (docs/maths_comparison.md, section "Centres").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.estimators.engine_fit import EngineData, candidates, fit_engine
from gp4c.estimators.regression.engine_regression import (
    coefficient_moments,
    prior_precision,
    subject_scores_at,
)
from gp4c.inference.engine.climb import Mode
from gp4c.inference.engine.posterior_fit import EngineFit, Say
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from scipy.interpolate import PchipInterpolator

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp4c import GP4C

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: deviations of ln rate between centres at which fits are made; 0 is a fit without centres
DEVIATIONS = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
#: σ has a half-normal prior with this scale: rates of centres that differ by a factor of e^0.5 are
#: usual, by e^1.5 rare
PRIOR_SCALE = 0.5
#: deviations at which the posterior of σ is evaluated, and draws of it for intervals of the share
_FINE, _DRAWS = 801, 4000
#: fits with less weight than this are left out of the mixture
_LIGHT = 1e-3


@dataclass(frozen=True)
class CentreFit:
    """What one fit at a given σ says.

    Attributes
    ----------
    log_evidence : float
    beta, robust : (p,), (p, p)
        Coefficients of the regression, and their sandwich over centres.
    covariance : (p, p)
        Of the posterior.
    effects, variances : (C,)
        Mean and variance of b.
    frailty : (S,)
        Draws of the variance of subjects' effects within centres.
    """

    log_evidence: float
    beta: Floats
    covariance: Floats
    robust: Floats
    effects: Floats
    variances: Floats
    frailty: Floats


@dataclass(frozen=True)
class CentreEffects:
    """A regression with random effects of centres, mixed over σ.

    Attributes
    ----------
    beta, covariance, robust_covariance
        Coefficients of the covariates; their posterior covariance, and the sandwich over centres.
    effects, deviations : (C,)
        Mean and posterior deviation of b.
    sigma : (S,)
        Draws of the deviation between centres.
    share : (S,)
        Draws of the share of the variance of subjects' rates that lies between centres.
    log_odds : float
        Log evidence of centres that differ, over that of centres that do not.
    """

    beta: Floats
    covariance: Floats
    robust_covariance: Floats
    effects: Floats
    deviations: Floats
    sigma: Floats
    share: Floats
    log_odds: float

    @property
    def n_centres(self) -> int:
        """C."""
        return len(self.effects)

    @property
    def degrees(self) -> float:
        """Degrees of freedom: centres beyond those that the coefficients use up."""
        return float(max(self.n_centres - len(self.beta) - 1, 1))


def fit_centres(
    model: GP4C, panel: PanelCounts, rows: Floats, centres: Indices, say: Say | None = None
) -> CentreEffects:
    """Fit a regression with an effect of each centre.

    Parameters
    ----------
    model : GP4C
        Whose options the fits have.
    rows : (n_intervals, p)
        Covariates of the rows.
    centres : (n_subjects,)
        Centre of each subject, 0 … C − 1.
    """
    with one_blas_thread():
        fits = _fits(model, panel, rows, centres, say or (lambda text: None))
    return mixed(fits, np.random.default_rng(model._seed(None)))


def _fits(
    model: GP4C, panel: PanelCounts, rows: Floats, centres: Indices, tell: Say
) -> list[CentreFit]:
    """A fit at each of :data:`DEVIATIONS`; the laws are chosen without effects of centres."""
    plain = EngineData.with_covariates(panel, rows)
    assert plain.scale is not None
    tell("fitting without effects of centres")
    first = fit_engine(model, plain, candidates(model.effect, model.bursts, plain))
    fits = [_read(first, plain, model.kernel, centres, rows.shape[1])]
    indicators = np.eye(int(centres.max()) + 1)[centres[panel.subject_index]]
    for sigma in DEVIATIONS[1:]:
        tell(f"fitting effects of centres with deviation {sigma:g}")
        scale = np.append(plain.scale, np.full(indicators.shape[1], sigma))
        data = EngineData.with_covariates(panel, np.hstack([rows, indicators]), scale)
        fit = fit_engine(model, data, [first.laws])
        fits.append(_read(fit, data, model.kernel, centres, rows.shape[1]))
    return fits


def _read(fit: EngineFit, data: EngineData, kernel: str, centres: Indices, p: int) -> CentreFit:
    """The first p coefficients, the effects of centres behind them, and the sandwich."""
    draws, effect = fit.draws(kernel, data.scale), fit.laws[1]
    beta, covariance = coefficient_moments(draws)
    b, variances = beta[p:], np.diag(covariance)[p:]
    if not len(b):
        b = variances = np.zeros(int(centres.max()) + 1)
    frailty = effect.variance(draws.params[: len(effect.parameters)])
    each = np.searchsorted(np.cumsum(draws.weights), (np.arange(_DRAWS) + 0.5) / _DRAWS)
    return CentreFit(
        fit.weighted.log_evidence, beta[:p], covariance[:p, :p],
        _sandwich(fit.lattice.best.mode, data, centres, p), b, variances,
        np.broadcast_to(frailty, len(draws.weights))[np.minimum(each, len(draws.weights) - 1)],
    )  # fmt: skip


def _sandwich(mode: Mode, data: EngineData, centres: Indices, p: int) -> Floats:
    """The sandwich of the first p coefficients over centres, (p, p).

    The effects b_c are integrated out: at their mode the gradient of a centre's marginal
    likelihood is that of its likelihood, and the inverse of the marginal curvature is a block of
    the inverse of the whole one.
    """
    land = mode.landscape
    assert data.scale is not None
    at = land.derivatives(mode.x[:, None], np.array([mode.u]))
    first = land.dimension - land.task.n_beta
    kept = slice(0, first + p)
    bread = np.linalg.inv(-at.hessian[0])[kept, kept]
    scores = subject_scores_at(mode, data)[kept]
    by_centre = np.array([np.bincount(centres, row) for row in scores])
    influence, prior = bread @ by_centre, prior_precision(mode)[kept]
    n = by_centre.shape[1]
    few = n / max(n - p - 1, 1)  # centres are independent, not subjects
    robust = few * (influence @ influence.T) + bread @ (prior[:, None] * bread)
    scale = data.scale[:p]
    return np.asarray(robust[first:, first:] * np.outer(scale, scale))


def mixed(fits: Sequence[CentreFit], rng: np.random.Generator) -> CentreEffects:
    """Fits at :data:`DEVIATIONS`, mixed by the posterior of σ."""
    sigma = np.linspace(0.0, DEVIATIONS[-1], _FINE)
    evidence = np.array([fit.log_evidence for fit in fits])
    log_posterior = _between(evidence)(_stretched(sigma)) - 0.5 * (sigma / PRIOR_SCALE) ** 2
    share = np.exp(log_posterior - logsumexp(log_posterior))
    hats = np.array([np.interp(_stretched(sigma), _PLACES, row) for row in np.eye(len(fits))])
    weights = hats @ share
    weights = np.where(weights > _LIGHT, weights, 0.0)
    weights /= weights.sum()
    beta = _average(weights, [fit.beta for fit in fits])
    covariance, robust = (
        _average(weights, [m + np.outer(f.beta - beta, f.beta - beta) for m, f in each])
        for each in ([(f.covariance, f) for f in fits], [(f.robust, f) for f in fits])
    )
    effects = _average(weights, [fit.effects for fit in fits])
    variance = _average(weights, [f.variances + (f.effects - effects) ** 2 for f in fits])
    log_prior = -0.5 * (sigma / PRIOR_SCALE) ** 2
    log_odds = float(logsumexp(log_posterior) - logsumexp(log_prior)) - fits[0].log_evidence
    drawn = _quantile_draws(sigma, share)
    node = (np.cumsum(hats[:, drawn], axis=0) < rng.random(_DRAWS)).sum(axis=0)
    frailty = np.array([fit.frailty for fit in fits])[node, rng.permutation(_DRAWS)]
    between = np.expm1(sigma[drawn] ** 2)
    total = between + frailty + between * frailty
    return CentreEffects(
        beta, covariance, robust, effects, np.sqrt(variance), sigma[drawn],
        np.divide(between, total, out=np.zeros(_DRAWS), where=total > 0), log_odds,
    )  # fmt: skip


def _stretched(sigma: Floats) -> Floats:
    """σ on a scale on which the fits are about equally far apart."""
    return np.asarray(np.log1p(sigma / DEVIATIONS[1]))


_PLACES = _stretched(np.array(DEVIATIONS))


def _between(evidence: Floats) -> PchipInterpolator:
    """The log evidence between the fits, without overshooting."""
    from scipy.interpolate import PchipInterpolator

    return PchipInterpolator(_PLACES, evidence)


def _average(weights: Floats, values: list[Floats]) -> Floats:
    return np.asarray(np.tensordot(weights, np.array(values), axes=1))


def _quantile_draws(sigma: Floats, share: Floats) -> Indices:
    """Places of evenly spaced quantiles of σ."""
    levels = (np.arange(_DRAWS) + 0.5) / _DRAWS
    return np.minimum(np.searchsorted(np.cumsum(share), levels), len(sigma) - 1)
