r"""Counts of subjects under any law of counts, the effect of the subject integrated out.

A subject with effect υ and rows of m events, of which r are expected at effect 1, has

.. math::
    \ln p(\upsilon) = \sum_{m > 0} \bigl[ n \ln(\upsilon r) + q(\upsilon r; m, \theta)
                      + s(m, \theta) \bigr] - c(\theta)\, \upsilon R

without Σ ln m!, R the sum of r over all its rows (`gp4c.model.laws.count_law`). With effects,
υ ~ Gamma(α, α): in closed form for subjects without a remainder q, and for the others by the
trapezoid rule over y = ln υ around the mode. Derivatives of the logarithm of an integral are
expectations under its integrand,

.. math::
    \partial_i \ln \int e^g = E\, \partial_i g, \qquad
    \partial_{ij} \ln \int e^g = E\, \partial_{ij} g + \mathrm{Cov}(\partial_i g, \partial_j g) .
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma, zeta

from gp4c.classical.visit_cells import Floats, Indices, group_sums
from gp4c.model.effect_integral import Rule
from gp4c.model.gamma_frailty import log_marginal
from gp4c.model.laws import EFFECTS, CountLaw

#: steps of 0.4 standard deviations: the integral is within 1e-6 nat of a brute-force sum, for
#: shapes from 0.01 to 10⁴, φ from 0.001 to 10³ and counts from 2 to 10⁴ (tests/unit/classical/
#: test_marginal_counts.py); sums over large counts by the law itself are within 1e-5
_RULE = Rule.stretched(0.4, -14.0, 9.0, 0.4)
#: Newton steps to the mode of ln υ, each of at most 1; the rule forgives what is left
_MODE_STEPS = 12
#: most numbers in one array of rows times nodes
_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class RateRows:
    """Rows with events, and the time at risk of every subject.

    Attributes
    ----------
    count, time : (J,)
        Events of a row, and what a rate is multiplied with to be its expected number: time at
        risk, or the expected number itself at rate 1. By falling count.
    subject : (J,)
    time_at_risk : (K,)
        The sum of `time` over all rows of a subject, those without events too.
    """

    count: Floats
    time: Floats
    subject: Indices
    time_at_risk: Floats

    @classmethod
    def of(cls, count: Floats, time: Floats, subject: Indices, n_subjects: int) -> RateRows:
        """Rows of a panel, sorted by subject."""
        seen = np.flatnonzero(count > 0)
        rows = seen[np.argsort(-count[seen], kind="stable")]
        return cls(
            np.asarray(count[rows], dtype=np.float64), time[rows], subject[rows],
            group_sums(subject, time, n_subjects),
        )  # fmt: skip

    @property
    def n_subjects(self) -> int:
        """K."""
        return len(self.time_at_risk)

    def by_subject(self, values: Floats) -> Floats:
        """Sums over the rows of each subject, (K,)."""
        return group_sums(self.subject, values, self.n_subjects)


@dataclass(frozen=True, eq=False)
class SubjectTerms:
    """ln p of each subject with derivatives in the log rate, ln α and θ, in this order.

    Attributes
    ----------
    value : (K,)
    first : (P, K)
    second : (P, P, K)
    mean, variance : (K,)
        Of υ given the counts.
    """

    value: Floats
    first: Floats
    second: Floats
    mean: Floats
    variance: Floats


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """The likelihood of subjects' counts under a law, at any rate, shape α and θ."""

    rows: RateRows
    law: CountLaw

    def terms(self, rate: float, shape: float, theta: Floats) -> SubjectTerms:
        """Everything at once; without effects (α infinite) derivatives in ln α are 0."""
        n_params = 2 + len(theta)
        exposure = rate * self.rows.time_at_risk
        c, c1, c2 = self.law.hazard(theta)
        static, by_theta, twice = self._static(theta)
        # the parts of ∂ that do not depend on υ, and what multiplies υ in them
        fixed, slope = np.zeros((2, n_params, self.rows.n_subjects))
        curve = np.zeros((n_params, n_params, self.rows.n_subjects))
        fixed[0], slope[0] = self._power, -c * exposure
        fixed[2:], slope[2:] = by_theta, -np.outer(c1, exposure)
        curve[0, 0] = slope[0]
        curve[0, 2:] = curve[2:, 0] = slope[2:]
        curve[2:, 2:] = -c2[:, :, None] * exposure
        whole = _Linear(fixed, slope, curve, twice)
        if np.isfinite(shape):
            found = self._with_effects(rate, shape, theta, whole)
        else:
            found = self._without_effects(rate, theta, whole)
        logs = self._power_times_log_time + self._power * np.log(rate)
        return SubjectTerms(
            found.value + logs + static, found.first, found.second, found.mean, found.variance
        )

    def _without_effects(self, rate: float, theta: Floats, at: _Linear) -> SubjectTerms:
        one = np.ones(self.rows.n_subjects)
        value = at.slope[0].copy()
        first, second = at.fixed + at.slope, at.curve.copy()
        second[2:, 2:] += at.static_twice
        if len(self._hard):
            q = self.law.remainder(rate * self._time[:, None], self._count, theta)
            value[self._hard] += self._sum @ q.value[:, 0]
            first[0, self._hard] += self._sum @ q.slope[:, 0]
            second[0, 0, self._hard] += self._sum @ q.curve[:, 0]
            for i in range(len(theta)):
                first[2 + i, self._hard] += self._sum @ q.theta[i, :, 0]
                crossed = self._sum @ q.cross[i, :, 0]
                second[0, 2 + i, self._hard] += crossed
                second[2 + i, 0, self._hard] += crossed
                for j in range(len(theta)):
                    second[2 + i, 2 + j, self._hard] += self._sum @ q.theta_theta[i, j, :, 0]
        return SubjectTerms(value, first, second, one, np.zeros_like(one))

    def _with_effects(self, rate: float, shape: float, theta: Floats, at: _Linear) -> SubjectTerms:
        found = _closed_form(shape, self._power, at)
        if len(self._hard):
            _put(found, self._hard, self._integrated(rate, shape, theta, at.take(self._hard)))
        found.second[2:, 2:] += at.static_twice
        return found

    def _integrated(self, rate: float, shape: float, theta: Floats, at: _Linear) -> SubjectTerms:
        """Subjects with a remainder, by the trapezoid rule; the sums at nodes chunk by chunk."""
        mode, width, height = self._mode(rate, shape, theta, at)
        sums: list[Floats] | None = None
        per_chunk = max(1, _CHUNK // len(self._count))
        for k in range(0, len(_RULE.nodes), per_chunk):
            part = slice(k, k + per_chunk)
            y = mode[:, None] + width[:, None] * _RULE.nodes[part]
            log_weight = _RULE.log_weights[part] - height[:, None]
            found = self._at_nodes(y, log_weight, rate, shape, theta, at)
            sums = found if sums is None else [a + b for a, b in zip(sums, found, strict=True)]
        assert sums is not None
        mass, *moments = sums
        first, second, v, v_squared = (m / mass for m in moments)
        second = second - first[:, None] * first[None]
        value = height + np.log(mass * width)
        return SubjectTerms(value, first, second, v, v_squared - v**2)

    def _at_nodes(
        self, y: Floats, log_weight: Floats, rate: float, shape: float, theta: Floats, at: _Linear
    ) -> list[Floats]:
        """Sums over nodes of weight times 1, ∂g, ∂²g + ∂g ∂gᵀ, υ and υ²."""
        gamma, psi = EFFECTS["gamma"], np.log(np.array([shape]))
        v = np.exp(y)
        q = self.law.remainder(rate * self._time[:, None] * v[self._row], self._count, theta)
        by_psi, by_psi_twice, _ = gamma.parameter_derivatives(y, psi)
        log_value = gamma.log_density(y, psi) + self._power[self._hard][:, None] * y
        log_value = log_value + at.slope[0][:, None] * v + self._total(q.value)
        weight = np.exp(log_value + log_weight)
        g = at.fixed[:, :, None] + at.slope[:, :, None] * v
        g[0] += self._total(q.slope)
        g[1] += by_psi[0]
        h = at.curve[..., None] * v
        h[0, 0] += self._total(q.curve)
        h[1, 1] += by_psi_twice[0, 0]
        for i in range(len(theta)):
            g[2 + i] += self._total(q.theta[i])
            crossed = self._total(q.cross[i])
            h[0, 2 + i] += crossed
            h[2 + i, 0] += crossed
            for j in range(len(theta)):
                h[2 + i, 2 + j] += self._total(q.theta_theta[i, j])
        h += g[:, None] * g[None]
        return [(weight * part).sum(axis=-1) for part in (1.0, g, h, v, v * v)]

    def _mode(
        self, rate: float, shape: float, theta: Floats, at: _Linear
    ) -> tuple[Floats, Floats, Floats]:
        """Mode and width of ln υ, and ln p there, for subjects with a remainder."""
        gamma, psi = EFFECTS["gamma"], np.log(np.array([shape]))
        power, exposed = self._power[self._hard], -at.slope[0]
        dispersion = float(self.law.dispersion(theta))
        events = self._sum @ self._count
        quick = rate * self.rows.time_at_risk[self._hard] / dispersion
        y = np.log((shape + events / dispersion) / (shape + quick))
        least = 0.25 * (shape + power)
        for step in range(_MODE_STEPS + 1):
            v = np.exp(y)
            q = self.law.remainder((rate * self._time * v[self._row])[:, None], self._count, theta)
            first, second = gamma.derivatives(y, psi)
            slope = first + power - exposed * v + self._sum @ q.slope[:, 0]
            bend = np.maximum(exposed * v - second - self._sum @ q.curve[:, 0], least)
            if step < _MODE_STEPS:
                y = y + np.clip(slope / bend, -1.0, 1.0)
        height = gamma.log_density(y, psi) + power * y - exposed * v + self._sum @ q.value[:, 0]
        return y, 1.0 / np.sqrt(bend), height

    def _static(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Σ s(m, θ) of each subject with its derivatives: (K,), (P, K), (P, P, K)."""
        p, n = len(theta), self.rows.n_subjects
        value, first, second = np.zeros(n), np.zeros((p, n)), np.zeros((p, p, n))
        if not p or not len(self.rows.count):
            return value, first, second
        distinct, place = np.unique(self.rows.count, return_inverse=True)
        one = np.ones(1)
        found = [self.law.static(np.array([m]), one, theta) for m in distinct]
        value = self.rows.by_subject(np.array([float(s) for s, _, _ in found])[place])
        for i in range(p):
            first[i] = self.rows.by_subject(np.array([d[i] for _, d, _ in found])[place])
            for j in range(p):
                each = np.array([h[i, j] for _, _, h in found])[place]
                second[i, j] = self.rows.by_subject(each)
        return value, first, second

    # -- what does not change ---------------------------------------------------------------

    @cached_property
    def _power(self) -> Floats:
        return self.rows.by_subject(self.law.power(self.rows.count))

    @cached_property
    def _power_times_log_time(self) -> Floats:
        return self.rows.by_subject(self.law.power(self.rows.count) * np.log(self.rows.time))

    @cached_property
    def _remaining(self) -> NDArray[np.bool_]:
        return self.law.has_remainder(self.rows.count)

    @cached_property
    def _count(self) -> Floats:
        return self.rows.count[self._remaining]

    @cached_property
    def _time(self) -> Floats:
        return self.rows.time[self._remaining]

    @cached_property
    def _hard(self) -> Indices:
        """Subjects with a remainder."""
        return np.unique(self.rows.subject[self._remaining])

    @cached_property
    def _row(self) -> Indices:
        """Position among them of each row with a remainder."""
        return np.searchsorted(self._hard, self.rows.subject[self._remaining])

    @cached_property
    def _sum(self) -> sparse.csr_array:
        """Rows with a remainder, summed by subject."""
        n = len(self._row)
        shape = (len(self._hard), n)
        return sparse.csr_array((np.ones(n), (self._row, np.arange(n))), shape=shape)

    def _total(self, rows: Floats) -> Floats:
        return np.asarray(self._sum @ rows)


@dataclass(frozen=True, eq=False)
class _Linear:
    """∂g = fixed + slope · υ and ∂²g = static_twice + curve · υ, as far as q does not enter."""

    fixed: Floats
    slope: Floats
    curve: Floats
    static_twice: Floats

    def take(self, k: Indices) -> _Linear:
        return _Linear(
            self.fixed[:, k], self.slope[:, k], self.curve[..., k], self.static_twice[..., k]
        )


def _closed_form(alpha: float, power: Floats, at: _Linear) -> SubjectTerms:
    """Subjects whose υ is Gamma(α + n, α + cR) given the counts."""
    exposed = -at.slope[0]
    shape, rate = alpha + power, alpha + exposed
    mean, variance = shape / rate, shape / rate**2
    by_shape = alpha * (np.log(alpha) + 1.0 - digamma(alpha) + digamma(shape) - np.log(rate) - mean)
    first, second = at.fixed + at.slope * mean, at.curve * mean
    first[1] += by_shape
    # ∂g = … + slope · υ + other · ln υ, and ln υ has variance ψ′(shape), covariance 1/rate with υ
    slope, other = at.slope.copy(), np.zeros_like(at.slope)
    slope[1] -= alpha
    other[1] = alpha
    second[1, 1] += by_shape + alpha - alpha**2 * zeta(2.0, alpha)
    crossed = slope[:, None] * other[None] / rate
    second += slope[:, None] * slope[None] * variance + crossed + crossed.transpose(1, 0, 2)
    second += other[:, None] * other[None] * zeta(2.0, shape)
    return SubjectTerms(log_marginal(1.0 / alpha, power, exposed), first, second, mean, variance)


def _put(terms: SubjectTerms, where: Indices, some: SubjectTerms) -> None:
    """Write the terms of some subjects over what is there."""
    for name in ("value", "first", "second", "mean", "variance"):
        getattr(terms, name)[..., where] = getattr(some, name)
