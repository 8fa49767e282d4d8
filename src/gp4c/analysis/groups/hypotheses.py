r"""Three accounts of groups, weighed by their evidence: one curve, one shape, or a curve each.

* same: one curve for all subjects.
* factor: one shape; group g has e^{b_g} times its rate. b is a point of the plane Σ b_g = 0 with
  independent normal coordinates of deviation τ/√2, so that the log ratio of any two groups is
  N(0, τ²), whichever is the reference.
* curves: a curve for each group, independent of the others.

All three have the same law of counts and of subject effects, with the same parameters, and priors
around the same rate, and in an adjusted comparison one set of coefficients of the covariates: they
differ in the curves alone. The posterior probabilities have equal prior odds.
docs/maths_comparison.md has the derivations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.estimators.engine_fit import EngineData, fit_engine, given_mean
from gp4c.exceptions import GP4CWarning
from gp4c.model.hyper_priors import LEVEL, normal_log_density
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.draws import CurveDraws, systematic
from gp4c.posterior.quantiles import weighted_quantiles
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.analysis.groups.adjustment import Adjustment
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp4c import GP4C
    from gp4c.estimators.regression.engine_regression import SharedDesign

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

NAMES = ("same", "factor", "curves")
#: deviation τ of a log ratio of rates: two of three factors within 1/2 to 2, 95% within 1/4 to 4
FACTOR_DEVIATION = float(np.log(2.0))
#: draws of the laws' parameters behind the evidence of sharing them
_SHARED_DRAWS = 1000


@dataclass(frozen=True)
class Hypotheses:
    """Evidence of the three accounts, and the posterior of the second.

    Attributes
    ----------
    log_evidence : dict
        "same", "factor", "curves".
    law, effect : str, str or None
        What all three assume of counts and subjects.
    shape : CurveDraws
        The common shape of "factor", with the coefficients of the covariates.
    log_factors : (G, S)
        b of each group in each draw of `shape`.
    """

    log_evidence: dict[str, float]
    law: str
    effect: str | None
    shape: CurveDraws
    log_factors: Floats

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probabilities at equal prior odds."""
        values = np.array([self.log_evidence[name] for name in NAMES])
        shares = np.exp(values - logsumexp(values))
        return dict(zip(NAMES, shares.tolist(), strict=True))

    def factor_quantiles(self, first: int, second: int, levels: Sequence[float]) -> Floats:
        """Posterior quantiles of the factor of one group relative to another."""
        ratio = (self.log_factors[second] - self.log_factors[first])[None]
        found = weighted_quantiles(ratio, self.shape.weights, np.asarray(levels))
        return np.exp(found[:, 0])

    def curve(self, group: int) -> CurveDraws:
        """The curve of a group under "factor"."""
        return self.shape.multiplied(np.exp(self.log_factors[group]))


def weigh_hypotheses(
    pooled: GP4C,
    fits: Sequence[GP4C],
    panel: PanelCounts,
    codes: Indices,
    adjustment: Adjustment | None = None,
) -> Hypotheses:
    """Fit the factor model, and weigh the three.

    Parameters
    ----------
    pooled : fitted GP4C
        One curve for everybody; its laws are those of all three.
    fits : sequence of fitted GP4C
        A curve for each group; one with other laws is fitted anew.
    codes : (K,)
        Group of each subject.
    adjustment : Adjustment, optional
        The covariates that all fits have.
    """
    laws = pooled.law_, pooled.effect_
    shared = None if adjustment is None else adjustment.shared(panel)
    alone = [with_laws(fit, panel[codes == g], *laws, shared) for g, fit in enumerate(fits)]
    same = with_laws(pooled, panel, *laws, shared)
    covariates = _no_covariates(panel)
    if adjustment is not None and shared is not None:
        covariates = adjustment.rows * shared.scale, shared.scale
    shape, log_factors, evidence = _fit_factor(same, panel, codes, len(fits), covariates)
    separate = _separate(same, alone, covariates[1])
    return Hypotheses(
        {"same": same.log_evidence_, "factor": evidence, "curves": separate},
        *laws, shape, log_factors,
    )  # fmt: skip


def _no_covariates(panel: PanelCounts) -> tuple[Floats, Floats]:
    return np.zeros((panel.n_intervals, 0)), np.zeros(0)


def with_laws(
    fit: GP4C, panel: PanelCounts, law: str, effect: str | None, shared: SharedDesign | None
) -> GP4C:
    """The fit, or another one if it has other laws or its evidence comes from the sampler."""
    if (fit.law_, fit.effect_) == (law, effect) and fit.method == "vi":
        return fit
    again = type(fit)().set_params(**fit.get_params())
    again.set_params(bursts=law, effect=effect, method="vi")
    with warnings.catch_warnings():  # about a law that only this weighing needs
        warnings.simplefilter("ignore", GP4CWarning)
        return again.fit(panel, design=shared)


def _fit_factor(
    same: GP4C,
    panel: PanelCounts,
    codes: Indices,
    n_groups: int,
    covariates: tuple[Floats, Floats],
) -> tuple[CurveDraws, Floats, float]:
    """Draws of the common shape, the groups' log factors (G, S), and the log evidence.

    `covariates` are those of the rows in units of their scale, and the scale.
    """
    posterior = same.posterior_
    assert isinstance(posterior, CurveDraws)
    basis = balanced_basis(n_groups)
    scale = np.full(n_groups - 1, FACTOR_DEVIATION / np.sqrt(2.0))
    z = (basis * scale)[codes][panel.subject_index]
    z, scale = np.concatenate([z, covariates[0]], axis=1), np.concatenate([scale, covariates[1]])
    data = EngineData(panel, None, panel.window, z, scale, posterior.rate)
    with one_blas_thread():
        fit = fit_engine(same, data, [(LAWS[same.law_], EFFECTS[same.effect_])])
    draws = fit.draws(same.kernel, scale)
    levels, others = draws.coefficients[: n_groups - 1], draws.coefficients[n_groups - 1 :]
    return replace(draws, coefficients=others), basis @ levels, fit.weighted.log_evidence


def balanced_basis(n_groups: int) -> Floats:
    """Orthonormal columns that sum to zero, (G, G − 1): no group is special."""
    columns = np.zeros((n_groups, n_groups - 1))
    for k in range(1, n_groups):
        columns[:k, k - 1] = -1.0
        columns[k, k - 1] = k
        columns[:, k - 1] /= np.sqrt(k * (k + 1.0))
    return columns


def _separate(same: GP4C, alone: Sequence[GP4C], scale: Floats) -> float:
    """Log evidence of a curve for each group, with priors around one rate and one set of laws.

    Coefficients of covariates, of prior deviations `scale`, are shared like parameters of the laws.
    """
    pooled = same.posterior_
    assert isinstance(pooled, CurveDraws)
    total, params = 0.0, []
    for k, fit in enumerate(alone):
        draws = fit.posterior_
        assert isinstance(draws, CurveDraws)
        log_ratio = np.zeros(draws.size) if given_mean(same) else level_ratios(draws, pooled.rate)
        weights = draws.weights / draws.weights.sum() * np.exp(log_ratio)
        total += fit.log_evidence_ + float(np.log(weights.sum()))
        rng = np.random.default_rng(k)
        chosen = systematic(weights / weights.sum(), _SHARED_DRAWS, rng)
        beta = draws.coefficients[:, chosen] / scale[:, None]
        params.append(np.concatenate([draws.params[:, chosen], beta]))
    log_prior = partial(law_log_prior, same)
    return total + log_overlap(params, log_prior, np.random.default_rng(0))


def law_log_prior(model: GP4C, theta: Floats) -> Floats:
    """Log prior density of the laws' parameters, and of coefficients in units of their scale."""
    priors = (*EFFECTS[model.effect_].parameters, *LAWS[model.law_].parameters)
    each = [prior.log_density(row) for prior, row in zip(priors, theta, strict=False)]
    each += [normal_log_density(row, 0.0, 1.0) for row in theta[len(priors) :]]
    return np.asarray(sum(each))


def law_log_posterior(draws: CurveDraws, theta: Floats) -> Floats:
    """Log posterior density of the laws' parameters (P, S), by kernels around draws."""
    chosen = systematic(draws.weights, _SHARED_DRAWS, np.random.default_rng(0))
    return _Kernels.around(draws.params[:, chosen]).log_density(theta)


def level_ratios(draws: CurveDraws, rate: float) -> Floats:
    r"""Log ratio of the prior of each draw's level around another rate to that around its own.

    The level l = ln(g² + γ) is N(0, 1) in units of the rate of the fit; in units of another rate it
    is l + ln(own rate / other rate).
    """
    level = np.log(draws.variance + draws.prior_mean**2)
    moved = level + np.log(draws.rate / rate)
    return np.asarray(normal_log_density(moved, *LEVEL) - normal_log_density(level, *LEVEL))


def log_overlap(
    draws: Sequence[Floats], log_prior: Callable[[Floats], Floats], rng: np.random.Generator
) -> float:
    r"""What it adds to the log evidence of independent fits that they share parameters θ.

    .. math::  \ln \int \frac{\prod_g p(\theta \mid y_g)}{p(\theta)^{G-1}} \, d\theta ,

    from the identity p(y_g | θ) = p(y_g) p(θ | y_g) / p(θ). Posterior densities are those of
    kernels around draws, shrunk so that mean and covariance stay; the integral is a mean over draws
    of all of them.

    Parameters
    ----------
    draws : sequence of (P, S)
        Equally weighted draws of θ of each fit.
    """
    if not len(draws[0]):
        return 0.0
    kernels = [_Kernels.around(one) for one in draws]
    at = np.concatenate([kernel.sample(rng) for kernel in kernels], axis=1)
    each = np.array([kernel.log_density(at) for kernel in kernels])
    proposal = logsumexp(each, axis=0) - np.log(len(kernels))
    ratio = each.sum(axis=0) - (len(kernels) - 1) * log_prior(at) - proposal
    return float(logsumexp(ratio) - np.log(at.shape[1]))


@dataclass(frozen=True)
class _Kernels:
    """A density from draws: Gaussian kernels with the covariance of the draws, scaled by h²."""

    centres: Floats
    factor: Floats

    @classmethod
    def around(cls, draws: Floats) -> _Kernels:
        n_params, n = draws.shape
        mean = draws.mean(axis=1, keepdims=True)
        h = n ** (-1.0 / (n_params + 4))
        spread = np.atleast_2d(np.cov(draws)) + 1e-12 * np.eye(n_params)
        return cls(mean + np.sqrt(1.0 - h**2) * (draws - mean), h * np.linalg.cholesky(spread))

    def sample(self, rng: np.random.Generator) -> Floats:
        """One point near each centre."""
        return np.asarray(self.centres + self.factor @ rng.standard_normal(self.centres.shape))

    def log_density(self, at: Floats) -> Floats:
        x = np.linalg.solve(self.factor, at)
        y = np.linalg.solve(self.factor, self.centres)
        square = (x**2).sum(axis=0)[:, None] + (y**2).sum(axis=0) - 2 * x.T @ y
        constant = np.log(np.diag(self.factor)).sum() + 0.5 * len(x) * np.log(2 * np.pi)
        found = logsumexp(-0.5 * square, axis=1) - np.log(y.shape[1]) - constant
        return np.asarray(found)
