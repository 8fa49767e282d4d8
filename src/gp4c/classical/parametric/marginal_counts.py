r"""Counts of subjects under any law of counts, the effect of the subject integrated out.

A row has m events where r = e^η are expected at effect 1, and η depends on parameters of the rate.
A subject with effect υ has

.. math::
    \ln p(\upsilon) = \sum_{m > 0} \bigl[ n \ln(\upsilon r) + q(\upsilon r; m, \theta)
                      + s(m, \theta) \bigr] - c(\theta)\, \upsilon R

without Σ ln m!, R the sum of r over all its rows (`gp4c.model.laws.count_law`). Effects of subjects
without a remainder q are integrated in closed form, if their law has one, the others around the
mode of ln υ (`gp4c.model.effect_integral`). Derivatives of the logarithm of an integral are
expectations under its integrand,

.. math::
    \partial_i \ln \int e^g = E\, \partial_i g, \qquad
    \partial_{ij} \ln \int e^g = E\, \partial_{ij} g + \mathrm{Cov}(\partial_i g, \partial_j g) .

The sum over subjects of `gp4c.model.count_likelihood` does not serve here: the bootstrap and the
sandwich need each subject by itself, and maxima need integrals to 1e-6 rather than 0.01 nat.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gp4c.classical.visit_cells import Floats, Indices, group_sums
from gp4c.model.effect_integral import EffectIntegral, EffectRows, Rule
from gp4c.model.laws import CountLaw, SubjectEffect
from gp4c.model.laws.effects import ClosedFormTerms

#: steps of 0.4 standard deviations: the integral is within 1e-6 nat of a brute-force sum, for
#: shapes from 0.01 to 10⁴, φ from 0.001 to 10³ and counts from 2 to 10⁴ (tests/unit/classical/
#: parametric/test_marginal_counts.py); sums over large counts by the law itself are within 1e-5
_RULE = Rule.stretched(0.4, -14.0, 9.0, 0.4)
#: Newton steps to the mode of ln υ, each of at most 1; the rule forgives what is left
_MODE_STEPS = 12
#: most numbers in one array of rows times nodes
_CHUNK = 2_000_000


@dataclass(frozen=True, eq=False)
class LogMeans:
    """η = ln r of rows with its derivatives in the D parameters of the rate.

    Attributes
    ----------
    value : (N,)
    first, second : (D, N), (D, D, N)
    """

    value: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, expected: Floats) -> LogMeans:
        """Given expected numbers, without parameters."""
        n = len(expected)
        return cls(np.log(np.maximum(expected, 1e-300)), np.zeros((0, n)), np.zeros((0, 0, n)))


@dataclass(frozen=True, eq=False)
class SubjectTerms:
    """ln p of each subject with derivatives in the rate's parameters, ψ and θ, in this order.

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
    """The likelihood of K subjects' counts under a law of counts and a law of effects.

    Attributes
    ----------
    count, subject : (N,)
        Rows in any order.
    """

    count: Floats
    subject: Indices
    n_subjects: int
    law: CountLaw
    effect: SubjectEffect

    def terms(self, means: LogMeans, psi: Floats, theta: Floats) -> SubjectTerms:
        """Everything at once, at ψ (P,) of the effects and θ (Q,) of the law."""
        sums = self._sums(means, psi, theta)
        at = self.effect.subject_terms(self._power, sums.exposure, psi) if self._closed else None
        found = _unknown(sums) if at is None else _closed_form(sums, at)
        if len(self._hard) and self.effect.varies:
            _put(found, self._hard, self._integrated(means, psi, theta, sums.take(self._hard)))
        elif len(self._hard):
            self._add_remainders(found, means, theta)
        value = found.value + sums.value
        return SubjectTerms(
            value, found.first, found.second + sums.twice, found.mean, found.variance
        )

    # -- the parts ----------------------------------------------------------------------------

    def _sums(self, means: LogMeans, psi: Floats, theta: Floats) -> _Sums:
        """What rows add to the logarithm of the integrand: constants, and what multiplies υ."""
        d, e, q = len(means.first), len(psi), len(theta)
        size, k, law = d + e + q, self.n_subjects, slice(d + e, d + e + q)
        r, n = np.exp(means.value), self._row_power
        c, c1, c2 = self.law.hazard(theta)
        total = self._by_subject(r)
        value, fixed, twice = self._static(theta, size)
        value = value + self._by_subject(n * means.value)
        slope, curve = np.zeros((size, k)), np.zeros((size, size, k))
        slope[law], curve[law, law] = np.outer(c1, total), c2[:, :, None] * total
        for i in range(d):
            fixed[i] = self._by_subject(n * means.first[i])
            moved = self._by_subject(r * means.first[i])
            slope[i] = c * moved
            curve[i, law] = curve[law, i] = np.outer(c1, moved)
            for j in range(i + 1):
                both = means.first[i] * means.first[j] + means.second[i, j]
                curve[i, j] = curve[j, i] = c * self._by_subject(r * both)
                twice[i, j] = twice[j, i] = self._by_subject(n * means.second[i, j])
        return _Sums(value, fixed, twice, c * total, slope, curve, d, e)

    def _static(self, theta: Floats, size: int) -> tuple[Floats, Floats, Floats]:
        """Σ s(m, θ) of each subject with its derivatives: (K,), (P, K), (P, P, K)."""
        k, q = self.n_subjects, len(theta)
        value, first, second = np.zeros(k), np.zeros((size, k)), np.zeros((size, size, k))
        if not q:
            return value, first, second
        distinct, place = self._distinct
        one = np.ones(1)
        found = [self.law.static(np.array([m]), one, theta) for m in distinct]
        value = self._by_subject(np.array([float(s) for s, _, _ in found])[place])
        for i in range(q):
            at = size - q + i
            first[at] = self._by_subject(np.array([d[i] for _, d, _ in found])[place])
            for j in range(q):
                each = np.array([h[i, j] for _, _, h in found])[place]
                second[at, size - q + j] = self._by_subject(each)
        return value, first, second

    def _add_remainders(self, found: SubjectTerms, means: LogMeans, theta: Floats) -> None:
        """Add Σ q(r) where subjects do not differ."""
        mean = np.exp(means.value[self._remaining])[:, None]
        value, first, second = self._remainder_sums(mean, means, theta, len(found.first))
        found.value[self._hard] += value[:, 0]
        found.first[:, self._hard] += first[..., 0]
        found.second[..., self._hard] += second[..., 0]

    def _remainder_sums(
        self, mean: Floats, means: LogMeans, theta: Floats, size: int
    ) -> tuple[Floats, Floats, Floats]:
        """Σ q of each hard subject with derivatives in all parameters, at nodes (…, n)."""
        rows, total = self._remaining, self._integral.sums
        d, q = len(means.first), self.law.remainder(mean, self._count, theta)
        first = np.zeros((size, len(self._hard), mean.shape[1]))
        second = np.zeros((size, *first.shape))
        law = size - len(theta)
        for i in range(d):
            by_i = means.first[i, rows][:, None]
            first[i] = total @ (q.slope * by_i)
            for j in range(i + 1):
                bent = q.curve * (by_i * means.first[j, rows][:, None])
                if means.second[i, j].any():
                    bent = bent + q.slope * means.second[i, j, rows][:, None]
                second[i, j] = second[j, i] = total @ bent
            for j in range(len(theta)):
                second[i, law + j] = second[law + j, i] = total @ (q.cross[j] * by_i)
        for i in range(len(theta)):
            first[law + i] = total @ q.theta[i]
            for j in range(len(theta)):
                second[law + i, law + j] = total @ q.theta_theta[i, j]
        return np.asarray(total @ q.value), first, second

    def _integrated(self, means: LogMeans, psi: Floats, theta: Floats, at: _Sums) -> SubjectTerms:
        """Hard subjects by the trapezoid rule; the sums at nodes chunk by chunk."""
        row = np.exp(means.value[self._remaining])[:, None]
        owner = at.exposure[:, None] / self.law.hazard(theta)[0]
        found = self._integral.mode(row, owner, psi[:, None], theta[:, None], _MODE_STEPS)
        mode, width = found
        height = self._height(mode, row, psi, theta, at)
        sums: list[Floats] | None = None
        per_chunk = max(1, _CHUNK // max(len(row), 1))
        for k in range(0, len(_RULE.nodes), per_chunk):
            part = slice(k, k + per_chunk)
            y = mode + width * _RULE.nodes[part]
            log_weight = _RULE.log_weights[part] - height
            new = self._at_nodes(y, log_weight, row, means, psi, theta, at)
            sums = new if sums is None else [a + b for a, b in zip(sums, new, strict=True)]
        assert sums is not None
        mass, *moments = sums
        first, second, v, v_squared = (m / mass for m in moments)
        second = second - first[:, None] * first[None]
        value = height[:, 0] + np.log(mass * width[:, 0])
        return SubjectTerms(value, first, second, v, v_squared - v**2)

    def _height(self, y: Floats, row: Floats, psi: Floats, theta: Floats, at: _Sums) -> Floats:
        """The logarithm of the integrand at the mode, (H, 1)."""
        v, integral = np.exp(y), self._integral
        rest = self.law.remainder_value(row * v[integral.row_subject], self._count, theta)
        value = self.effect.log_density(y, psi) + integral.power[:, None] * y
        return np.asarray(value - at.exposure[:, None] * v + integral.sums @ rest)

    def _at_nodes(
        self, y: Floats, log_weight: Floats, row: Floats, means: LogMeans, psi: Floats,
        theta: Floats, at: _Sums,
    ) -> list[Floats]:  # fmt: skip
        """Sums over nodes of weight times 1, ∂g, ∂²g + ∂g ∂gᵀ, υ and υ²."""
        v, integral = np.exp(y), self._integral
        mean = row * v[integral.row_subject]
        q, g, h = self._remainder_sums(mean, means, theta, len(at.fixed))
        by_psi, by_psi_twice, _ = self.effect.parameter_derivatives(y, psi)
        log_value = self.effect.log_density(y, psi) + integral.power[:, None] * y
        log_value = log_value - at.exposure[:, None] * v + q
        weight = np.exp(log_value + log_weight)
        g += at.fixed[:, :, None] - at.slope[:, :, None] * v
        g[at.effect] += by_psi
        h -= at.curve[..., None] * v
        h[at.effect, at.effect] += by_psi_twice
        h += g[:, None] * g[None]
        return [(weight * part).sum(axis=-1) for part in (1.0, g, h, v, v * v)]

    # -- what does not change -----------------------------------------------------------------

    def _by_subject(self, values: Floats) -> Floats:
        return group_sums(self.subject, values, self.n_subjects)

    @property
    def _closed(self) -> bool:
        """Whether some subjects have a closed form."""
        return self.effect.conjugate or not self.effect.varies

    @cached_property
    def _row_power(self) -> Floats:
        return self.law.power(self.count)

    @cached_property
    def _power(self) -> Floats:
        return self._by_subject(self._row_power)

    @cached_property
    def _distinct(self) -> tuple[Floats, Indices]:
        """Different counts, and which one a row has."""
        distinct, place = np.unique(self.count, return_inverse=True)
        return distinct, place

    @cached_property
    def _remaining(self) -> Indices:
        """Rows with a remainder, by falling count."""
        rows = np.flatnonzero(self.law.has_remainder(self.count))
        return rows[np.argsort(-self.count[rows], kind="stable")]

    @cached_property
    def _count(self) -> Floats:
        return self.count[self._remaining]

    @cached_property
    def _hard(self) -> Indices:
        """Subjects that are not in closed form."""
        if not self._closed:
            return np.arange(self.n_subjects)
        return np.unique(self.subject[self._remaining])

    @cached_property
    def _integral(self) -> EffectIntegral:
        place = np.searchsorted(self._hard, self.subject[self._remaining])
        rows = EffectRows(self._power[self._hard], self._count, place)
        return EffectIntegral(rows, self.law, self.effect)


@dataclass(frozen=True, eq=False)
class _Sums:
    """ln of the integrand is value + … − exposure · υ, as far as q and p(υ) do not enter.

    `fixed` and `twice` are the derivatives of the constants, `slope` and `curve` those of the
    exposure c R; D parameters of the rate come before E of the effects.
    """

    value: Floats
    fixed: Floats
    twice: Floats
    exposure: Floats
    slope: Floats
    curve: Floats
    n_rate: int
    n_effect: int

    @property
    def effect(self) -> slice:
        """Where ψ is."""
        return slice(self.n_rate, self.n_rate + self.n_effect)

    def take(self, k: Indices) -> _Sums:
        """Those of some subjects."""
        return _Sums(
            self.value[k], self.fixed[:, k], self.twice[..., k], self.exposure[k],
            self.slope[:, k], self.curve[..., k], self.n_rate, self.n_effect,
        )  # fmt: skip


def _unknown(sums: _Sums) -> SubjectTerms:
    """Room for the terms of subjects of whom none has a closed form."""
    size, k = sums.fixed.shape
    return SubjectTerms(
        np.zeros(k), np.zeros((size, k)), np.zeros((size, size, k)), np.zeros(k), np.zeros(k)
    )


def _put(terms: SubjectTerms, where: Indices, some: SubjectTerms) -> None:
    """Write the terms of some subjects over what is there."""
    for name in ("value", "first", "second", "mean", "variance"):
        getattr(terms, name)[..., where] = getattr(some, name)


def _closed_form(sums: _Sums, at: ClosedFormTerms) -> SubjectTerms:
    """The chain rule through the exposure E = c(θ) R."""
    first = sums.fixed + sums.slope * at.by_exposure
    first[sums.effect] += at.by_psi
    second = sums.curve * at.by_exposure
    second += sums.slope[:, None] * sums.slope[None] * at.by_exposure_twice
    second[sums.effect, sums.effect] += at.by_psi_twice
    for i, crossed in enumerate(at.crossed, start=sums.n_rate):
        second[i] += sums.slope * crossed
        second[:, i] += sums.slope * crossed
    return SubjectTerms(at.value, first, second, -at.by_exposure, at.by_exposure_twice)
