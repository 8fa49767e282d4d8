r"""Pooled rates and covariates under the hypothesis that groups do not matter.

The rate of a row is :math:`\rho_{sb}\, e^{\beta^T z_r}`, ρ constant on bins of time in each
stratum. β solves the weighted score equation of Poisson counts,
:math:`\sum_r c_k z_r (m_r - \mu_r) = 0`, which needs the mean alone to be right. Nothing here knows
of groups. To first order the score of a group at :math:`\hat\beta` is the sum over subjects of
their scores at the true β, minus :math:`\Gamma_g^T s_k` for

.. math::  s_k = c_k \sum_b (z_{kb} - \bar z_{sb}) M_{kb}, \qquad
           \Gamma_g = I^{-1} \sum_{k \in g} c_k \sum_b w_b (z_{kb} - \bar z_{sb}) \mu_{kb}, \qquad
           I = \sum_k c_k \sum_b (z_{kb} - \bar z_{sb})(z_{kb} - \bar z_{sb})^T \mu_{kb} :

what covariates know of the group is taken out (docs/maths_comparison.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: EM stops early: scores are centred by the groups' shares, and any pooled rate is valid
_EM_STEPS, _EM_TOL = 100, 1e-5
#: Newton steps of β end at this share of a deviation of its covariate; none is longer than one
_NEWTON_STEPS, _NEWTON_TOL = 100, 1e-6
#: information below this share of the largest is none: what strata or other columns know already
_NO_INFORMATION = 1e-9


@dataclass(frozen=True)
class NullFit:
    """Rates and coefficients that groups have in common.

    Attributes
    ----------
    rate : (S, B)
        Pooled rates on the bins, of average covariates.
    beta : (p,)
    mass : (N, B)
        Expected events of the rows in the bins.
    """

    rate: Floats
    beta: Floats
    mass: Floats


@dataclass(frozen=True)
class CovariateScores:
    """What covariates take out of the groups' scores.

    Attributes
    ----------
    beta : (p,)
    score : (K, p)
        s of each subject, which sum to zero.
    slope : (K, B, p)
        Minus the derivative by β of the weighted residuals in the bins; the pooled rate follows β.
    slope_so_far : (K, B, p)
        The same for the residuals of the number of events so far.
    inverse : (p, p)
        I⁻¹; a pseudo-inverse where strata already tell a covariate.
    """

    beta: Floats
    score: Floats
    slope: Floats
    slope_so_far: Floats
    inverse: Floats

    def drift(self, weights: Floats) -> Floats:
        """What each subject adds to Γ of its group, for weights over time, (K, p)."""
        return np.asarray(np.einsum("kbp,b->kp", self.slope, weights) @ self.inverse)

    @property
    def drift_so_far(self) -> Floats:
        """The same for each time so far, (K, B, p)."""
        return np.asarray(self.slope_so_far @ self.inverse)


def fit_null(
    at_risk: Floats,
    count: Floats,
    weights: Floats,
    stratum: Indices,
    z: Floats,
    start: NullFit | None = None,
) -> NullFit:
    """Rates of the strata and coefficients of the covariates, in turn until they rest.

    Parameters
    ----------
    at_risk : (N, B)
        Exposed time of each row in each bin.
    count, weights, stratum : (N,)
    z : (N, p)
        Covariates of the rows; p may be 0.
    start : NullFit, optional
        Where to begin.
    """
    beta = np.zeros(z.shape[1]) if start is None else start.beta
    found = _at(beta, at_risk, count, weights, stratum, z, None if start is None else start.rate)
    deviation = z.std(axis=0)
    for _ in range(_NEWTON_STEPS if z.shape[1] else 0):
        score = (weights * (count - found.mass.sum(axis=1))) @ z
        step = information(found.mass, weights, stratum, z)[1] @ score
        longest = float((np.abs(step) * deviation).max())
        if longest <= _NEWTON_TOL:
            break
        beta = beta + step / max(longest, 1.0)
        found = _at(beta, at_risk, count, weights, stratum, z, found.rate)
    return found


def _at(
    beta: Floats, at_risk: Floats, count: Floats, weights: Floats, stratum: Indices, z: Floats,
    rate: Floats | None,
) -> NullFit:  # fmt: skip
    """The pooled rates at given coefficients."""
    adjusted = at_risk * np.exp(z @ beta)[:, None] if len(beta) else at_risk
    new = _stratum_rates(adjusted, count, weights, stratum, rate)
    return NullFit(new, beta, adjusted * new[stratum])


def information(
    mass: Floats, weights: Floats, stratum: Indices, z: Floats
) -> tuple[Floats, Floats]:
    """z̄ of strata and bins, (S, B, p), and I⁻¹, (p, p)."""
    weighted = weights[:, None] * mass
    n_strata = int(stratum.max()) + 1
    member = (stratum == np.arange(n_strata)[:, None]).astype(np.float64)
    total = member @ weighted
    first = np.stack([member @ (weighted * column[:, None]) for column in z.T], axis=-1)
    mean = first / np.where(total > 0, total, 1.0)[:, :, None]
    matrix = z.T @ (weighted.sum(axis=1)[:, None] * z)
    matrix -= np.einsum("sb,sbp,sbq->pq", total, mean, mean)
    inverse = np.linalg.pinv(matrix, rcond=_NO_INFORMATION, hermitian=True)
    return np.asarray(mean), np.asarray(inverse)


def _stratum_rates(
    at_risk: Floats, count: Floats, weights: Floats, stratum: Indices, rate: Floats | None
) -> Floats:
    """Pooled rate of each stratum on the bins, (S, B)."""
    found = []
    for s in range(int(stratum.max()) + 1):
        rows = stratum == s
        begin = None if rate is None else rate[s]
        found.append(pooled_rate(at_risk[rows], count[rows], weights[rows], begin))
    return np.array(found)


def pooled_rate(
    at_risk: Floats, count: Floats, weights: Floats, rate: Floats | None = None
) -> Floats:
    """Weighted maximum-likelihood rate on bins from counts of intervals that span several.

    EM: events of an interval are spread in proportion to rate · exposed time.

    Parameters
    ----------
    at_risk : (N, B)
        Exposed time of each row in each bin.
    count, weights : (N,)
    rate : (B,), optional
        Where to start.
    """
    time = weights @ at_risk
    seen = time > 0
    events = weights * count
    if rate is None:
        rate = np.where(seen, events.sum() / max(time.sum(), 1e-300), 0.0)
    rows = count > 0
    inside, events = at_risk[rows], events[rows]
    for _ in range(_EM_STEPS):
        share = (events / (inside @ rate)) @ inside
        new = np.where(seen, rate * share / np.where(seen, time, 1.0), 0.0)
        change = np.abs(new - rate).max(initial=0.0)
        rate = new
        if change <= _EM_TOL * rate.max(initial=0.0):
            break
    return np.asarray(rate)
