"""A constant rate, with and without gamma frailty, and its confidence interval."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, gammainccinv, gammaincinv

from gp4c.classical.visit_cells import Floats
from gp4c.model.gamma_frailty import (
    best_variance,
    frailty_mean,
    log_marginal,
    refine_variance,
)

#: how far, in log rate, an end of a profile interval is looked for
_FARTHEST = 150.0


@dataclass(frozen=True, eq=False)
class Totals:
    """Sufficient statistics: events, time at risk and multiplicity of each subject, (K,)."""

    events: Floats
    time_at_risk: Floats
    weights: Floats

    @property
    def n_events(self) -> float:
        """All events."""
        return float(self.weights @ self.events)

    @property
    def pooled_rate(self) -> float:
        """All events over all time at risk: the Poisson maximum-likelihood rate."""
        total = float(self.weights @ self.time_at_risk)
        return self.n_events / total if total > 0.0 else 0.0

    def log_likelihood(self, rate: float, variance: float) -> float:
        """Σ N log rate + log marginal likelihood of the frailty, without constants."""
        if self.n_events == 0.0:
            return 0.0 if rate == 0.0 else float(self._marginal(rate, variance))
        return self.n_events * float(np.log(rate)) + self._marginal(rate, variance)

    def _marginal(self, rate: float, variance: float) -> float:
        return float(self.weights @ log_marginal(variance, self.events, rate * self.time_at_risk))


@dataclass(frozen=True)
class RateFit:
    """Rate, frailty variance and φ at the maximum, with the trace of the log-likelihood."""

    rate: float
    variance: float
    residual: float
    history: Floats
    excess: float = 0.0


def fit_rate_and_frailty(data: Totals, tol: float = 1e-10, max_iter: int = 500) -> RateFit:
    """Maximise over rate and frailty variance, each exactly given the other.

    Parameters
    ----------
    data : Totals
    tol : float
        Bound on both scores (in log rate per event and log variance per subject).
    max_iter : int
        Rounds.
    """
    rate = data.pooled_rate
    if rate == 0.0:
        return RateFit(0.0, 0.0, 0.0, np.zeros(1))
    variance = best_variance(data.events, rate * data.time_at_risk, data.weights)
    history = [data.log_likelihood(rate, variance)]
    residual = np.inf
    for _ in range(max_iter):
        rate = _rate_given(data, variance)
        exposure = rate * data.time_at_risk
        variance = refine_variance(variance, data.events, exposure, data.weights)
        history.append(data.log_likelihood(rate, variance))
        residual = abs(_rate_score(data, rate, variance)) / data.n_events
        if residual <= tol:
            break
    return RateFit(rate, variance, residual, np.maximum.accumulate(np.asarray(history)))


def exact_interval(events: float, time_at_risk: float, level: float) -> tuple[float, float]:
    """Exact (Garwood 1936) interval of a Poisson rate: quantiles of gamma distributions."""
    tail = (1.0 - level) / 2.0
    low = float(gammaincinv(events, tail)) if events > 0 else 0.0
    high = float(gammainccinv(events + 1.0, tail))
    return low / time_at_risk, high / time_at_risk


def profile_interval(data: Totals, fit: RateFit, level: float) -> tuple[float, float]:
    """Rates whose likelihood, maximised over the frailty variance, is not significantly lower.

    With no events the exact Poisson interval. Very few subjects with events leave the upper end
    all but open; it is infinite if it cannot be found.
    """
    total = float(data.weights @ data.time_at_risk)
    if data.n_events == 0.0:
        return exact_interval(0.0, total, level)
    best = data.log_likelihood(fit.rate, fit.variance)
    allowed = float(chdtri(1.0, 1.0 - level)) / 2.0

    variance = fit.variance

    def excess(shift: float) -> float:
        nonlocal variance  # the last one is a good guess for the next
        rate = fit.rate * float(np.exp(shift))
        variance = refine_variance(variance, data.events, rate * data.time_at_risk, data.weights)
        return best - data.log_likelihood(rate, variance) - allowed

    low = find_crossing(excess, -1.0)
    variance = fit.variance
    high = find_crossing(excess, 1.0)
    return fit.rate * float(np.exp(low)), fit.rate * float(np.exp(high))


def find_crossing(excess: Callable[[float], float], direction: float) -> float:
    """Where a function of the shift in log rate first turns positive; ±inf if too far."""
    # with very many events rounding exceeds a nat: each value is taken once, so that the signs at
    # the ends of the bracket stay what they were
    known = {0.0: -1.0}

    def value(shift: float) -> float:
        if shift not in known:
            known[shift] = excess(shift)
        return known[shift]

    inner, outer = 0.0, 0.1
    while value(direction * outer) < 0.0:
        inner, outer = outer, 2.0 * outer
        if outer > _FARTHEST:
            return direction * np.inf
    return float(brentq(value, direction * inner, direction * outer, xtol=1e-10))


def _rate_score(data: Totals, rate: float, variance: float) -> float:
    """Derivative of the log-likelihood in log rate."""
    exposure = rate * data.time_at_risk
    expected = exposure * frailty_mean(variance, data.events, exposure)
    return float(data.weights @ (data.events - expected))


def _rate_given(data: Totals, variance: float) -> float:
    """Maximum over the rate for a given frailty variance: the score falls in log rate."""
    pooled = data.pooled_rate
    if variance == 0.0 or _rate_score(data, pooled, variance) == 0.0:
        return pooled
    low, high = -1.0, 1.0
    while _rate_score(data, pooled * float(np.exp(low)), variance) < 0.0:
        low *= 2.0
    while _rate_score(data, pooled * float(np.exp(high)), variance) > 0.0:
        high *= 2.0
    shift = brentq(
        lambda s: _rate_score(data, pooled * float(np.exp(s)), variance),
        low,
        high,
        xtol=1e-15,
        rtol=1e-15,
    )
    return pooled * float(np.exp(shift))
