r"""Maximum likelihood of a rate with a formula, under any law of counts and of effects.

The parameters are x = (ln ρ, shape, coefficients; ψ of the effects; θ of the law). No bursts and no
frailty are infinitely far away on the scales of θ and ψ, so that each simpler law is fitted by
itself, and a richer one is kept only if it is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gp4c.classical.parametric.marginal_counts import LogMeans, MarginalCounts
from gp4c.classical.parametric.rate_curves import RateCurve
from gp4c.classical.visit_cells import Flags, Floats, Indices, group_sums
from gp4c.model.laws import EFFECTS, LAWS, CountLaw, SubjectEffect

#: deviations of its prior that a parameter of a law may be from the prior's mean: a frailty
#: variance of 10⁻⁶ could not be told from none
_REACH = 7.0
#: nats by which a richer law must be better: rounding of sums over large counts
_BETTER = 1e-4
#: nats that are too few to choose between laws
_ROUGH = 1e-6
#: longest Newton step in any parameter
_LONGEST = 1.5
#: the law without parameters, in which every other one ends
_ONE_BY_ONE = "poisson"

#: value, gradient (P,) and Hessian (P, P) at x
Target = Callable[[Floats], tuple[float, Floats, Floats]]


@dataclass(frozen=True, eq=False)
class RateRows:
    """Rows with their exposures and covariates; subjects are numbered from 0.

    Attributes
    ----------
    count, start, stop, exposure : (N,)
    subject : (N,)
    z : (N, p)
        Covariates, centred.
    n_subjects : int
    """

    count: Floats
    start: Floats
    stop: Floats
    exposure: Floats
    subject: Indices
    z: Floats
    n_subjects: int

    @property
    def time_at_risk(self) -> Floats:
        """Exposure times length of each row."""
        return self.exposure * (self.stop - self.start)

    @property
    def events(self) -> Floats:
        """Events of each subject, (K,)."""
        return group_sums(self.subject, self.count, self.n_subjects)

    def merged(self) -> RateRows:
        """The same for a constant rate: the rows of a subject without events are one."""
        seen = self.count > 0
        empty, owner = ~seen, self.subject[~seen]
        time = group_sums(owner, self.time_at_risk[empty], self.n_subjects)
        rest = np.flatnonzero(time > 0)
        return RateRows(
            np.concatenate([self.count[seen], np.zeros(len(rest))]),
            np.zeros(int(seen.sum()) + len(rest)),
            np.concatenate([self.time_at_risk[seen], time[rest]]),
            np.ones(int(seen.sum()) + len(rest)),
            np.concatenate([self.subject[seen], rest]),
            np.zeros((int(seen.sum()) + len(rest), 0)),
            self.n_subjects,
        )


@dataclass(frozen=True, eq=False)
class LawFit:
    """A maximum: the laws that were fitted, x, and the trace of the log-likelihood."""

    law: CountLaw
    effect: SubjectEffect
    x: Floats
    n_rate: int
    residual: float
    history: Floats

    @property
    def value(self) -> float:
        """Log-likelihood at the maximum, without Σ ln m!."""
        return float(self.history[-1])

    @property
    def rate(self) -> Floats:
        """ln ρ, shape and coefficients."""
        return self.x[: self.n_rate]

    @property
    def psi(self) -> Floats:
        """Parameters of the effects."""
        return self.x[self.n_rate : self.n_rate + len(self.effect.parameters)]

    @property
    def theta(self) -> Floats:
        """Parameters of the law of counts."""
        return self.x[self.n_rate + len(self.effect.parameters) :]

    @property
    def variance(self) -> float:
        """Of the effects."""
        return float(self.effect.variance(self.psi[:, None])[0])

    @property
    def dispersion(self) -> float:
        """Variance of a count over its mean, given the effect."""
        return float(self.law.dispersion(self.theta[:, None])[0])


@dataclass(frozen=True, eq=False)
class RateData:
    """Rows under a curve; subjects with multiplicities, (K,)."""

    rows: RateRows
    curve: RateCurve
    weights: Floats

    @property
    def n_rate(self) -> int:
        """Parameters of the rate."""
        return 1 + len(self.curve.limits) + int(self.rows.z.shape[1])

    @property
    def n_events(self) -> float:
        """All events."""
        return float(self.weights @ self.rows.events)

    def means(self, x: Floats) -> LogMeans:
        """ln of expected numbers with derivatives in the rate's parameters."""
        rows, shapes = self.rows, len(self.curve.limits)
        n, d = len(rows.count), self.n_rate
        g = float(x[1]) if shapes else 0.0
        value, by_g, twice = self.curve.log_integral(rows.start, rows.stop, g)
        first, second = np.ones((d, n)), np.zeros((d, d, n))
        first[1 + shapes :] = rows.z.T
        if shapes:
            first[1], second[1, 1] = by_g, twice
        beta = x[1 + shapes : d]
        return LogMeans(x[0] + self._log_exposure + value + rows.z @ beta, first, second)

    @cached_property
    def _log_exposure(self) -> Floats:
        return np.log(np.maximum(self.rows.exposure, 1e-300))

    def counts(self, law: CountLaw, effect: SubjectEffect) -> MarginalCounts:
        """The likelihood of each subject."""
        return MarginalCounts(self.rows.count, self.rows.subject, self.rows.n_subjects, law, effect)

    def target(self, law: CountLaw, effect: SubjectEffect) -> Target:
        """ln p with gradient and Hessian."""
        counts, d, e = self.counts(law, effect), self.n_rate, len(effect.parameters)

        def at(x: Floats) -> tuple[float, Floats, Floats]:
            with np.errstate(over="ignore", invalid="ignore"):  # `climb` turns away from these
                found = counts.terms(self.means(x), x[d : d + e], x[d + e :])
                return (
                    float(self.weights @ found.value),
                    found.first @ self.weights,
                    found.second @ self.weights,
                )

        return at

    def limits(self, law: CountLaw, effect: SubjectEffect) -> tuple[Floats, Floats]:
        """Least and largest x."""
        low = [-np.inf, *(a for a, _ in self.curve.limits)]
        high = [np.inf, *(b for _, b in self.curve.limits)]
        for parameter in [None] * self.rows.z.shape[1] + [*effect.parameters, *law.parameters]:
            reach = np.inf if parameter is None else _REACH * parameter.deviation
            middle = 0.0 if parameter is None else parameter.mean
            low.append(middle - reach)
            high.append(middle + reach)
        return np.array(low), np.array(high)

    def start(self) -> Floats:
        """The constant rate that the events give, without effects of covariates."""
        x = np.zeros(self.n_rate)
        expected = np.exp(self.means(x).value)
        x[0] = np.log(self.n_events / float(self.weights[self.rows.subject] @ expected))
        return x


def fit_laws(
    data: RateData, law: CountLaw, effect: SubjectEffect, tol: float, plain: LawFit | None = None
) -> LawFit:
    """Maximise under the law and the effect asked for, and under what they end in.

    Parameters
    ----------
    data : RateData
        With events.
    tol : float
        Bound on the scores, per event.
    plain : LawFit, optional
        The maximum with this effect where events come one by one, if it is known already.
    """
    if plain is None:
        plain = _one_by_one(data, effect, tol)
    if not law.parameters:
        return plain
    theta = _means(law)
    alone = _roughly(data, law, EFFECTS[None], np.concatenate([plain.rate, theta]), tol)
    best = _better(plain, alone)
    if not effect.parameters:
        return _polished(data, best, tol)
    spread = [p.deviation for p in effect.parameters]
    # where differences between subjects are taken for effects, and where for the law's own
    for psi, start in (
        (plain.psi if plain.effect is effect else _means(effect) + spread, theta),
        (_means(effect) + 0.6 * np.array(spread), alone.theta),
    ):
        x = np.concatenate([plain.rate, psi, start])
        best = _better(best, _roughly(data, law, effect, x, tol))
    return _polished(data, best, tol)


def _one_by_one(data: RateData, effect: SubjectEffect, tol: float) -> LawFit:
    """The maximum where events come one by one, with and without the effect."""
    single = LAWS[_ONE_BY_ONE]
    best = climb(data, single, EFFECTS[None], data.start(), tol)
    if not effect.varies:
        return best
    rate, middle = best.rate, _means(effect)
    for shift in (-1.0, 1.0):
        psi = middle + shift * np.array([p.deviation for p in effect.parameters])
        found = _roughly(data, single, effect, np.concatenate([rate, psi]), tol)
        best = _better(best, found)
    return _polished(data, best, tol)


def _roughly(
    data: RateData, law: CountLaw, effect: SubjectEffect, start: Floats, tol: float
) -> LawFit:
    """A maximum as closely as a comparison of laws needs it: most of them are given up."""
    return climb(data, law, effect, start, tol, least_gain=_ROUGH)


def _polished(data: RateData, fit: LawFit, tol: float) -> LawFit:
    """The maximum that was chosen, to the end."""
    if fit.residual <= tol:
        return fit
    found = climb(data, fit.law, fit.effect, fit.x, tol)
    return replace(found, history=np.concatenate([fit.history, found.history]))


def _means(law: CountLaw | SubjectEffect) -> Floats:
    return np.array([p.mean for p in law.parameters])


def _better(one: LawFit, other: LawFit) -> LawFit:
    return other if other.value > one.value + _BETTER else one


def climb(
    data: RateData,
    law: CountLaw,
    effect: SubjectEffect,
    start: Floats,
    tol: float,
    free: Indices | None = None,
    target: Target | None = None,
    least_gain: float = 0.0,
) -> LawFit:
    """Newton steps in the free parameters, uphill along every axis of the Hessian.

    They end where scores per event are at most `tol`, or a step promises less than `least_gain`.
    """
    target = data.target(law, effect) if target is None else target
    low, high = data.limits(law, effect)
    free = np.arange(len(low)) if free is None else free
    x = start.copy()
    x[free] = np.clip(x[free], low[free], high[free])
    value, gradient, hessian = target(x)
    value = value if np.isfinite(value) else -np.inf  # an overflow is no maximum
    history, residual = [value], np.inf
    for _ in range(200):
        inside = free[~_outward(x, gradient, low, high)[free]]
        residual = float(np.abs(gradient[inside]).max(initial=0.0)) / data.n_events
        if residual <= tol or not _is_finite(gradient, hessian):
            break
        moved = _step(gradient[inside], hessian[np.ix_(inside, inside)])
        if gradient[inside] @ moved < least_gain:
            break
        new = x.copy()
        for _ in range(30):
            new[inside] = np.clip(x[inside] + moved, low[inside], high[inside])
            found = target(new)
            if found[0] >= value - 1e-12 * abs(value) and _is_finite(*found):
                break
            moved = moved / 2.0
        else:  # nothing better in reach of rounding
            break
        x, (value, gradient, hessian) = new, found
        history.append(value)
    trace = np.maximum.accumulate(np.asarray(history))
    return LawFit(law, effect, x, data.n_rate, residual, trace)


def _is_finite(*parts: float | Floats) -> bool:
    """Whether a step may end there: counts of 10¹² can overflow where bursts are long."""
    return all(bool(np.isfinite(each).all()) for each in parts)


def _outward(x: Floats, gradient: Floats, low: Floats, high: Floats) -> Flags:
    """Which parameters are at a limit that the likelihood rises towards."""
    return np.asarray(((x <= low) & (gradient < 0)) | ((x >= high) & (gradient > 0)))


def _step(gradient: Floats, hessian: Floats) -> Floats:
    """A Newton step that climbs where the surface bends upwards too, of bounded length."""
    curvature, axes = np.linalg.eigh(-hessian)
    along = axes.T @ gradient
    least = 1e-12 * float(np.abs(curvature).max(initial=1.0))
    step = axes @ (along / np.maximum(np.abs(curvature), least))
    return np.asarray(step * min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300)))
