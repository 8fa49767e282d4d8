r"""The law of a count to come, the effect of its subject being known only by what was seen of it.

.. math::
    P(N \le n) = \int p(\upsilon \mid \text{seen})\, P(N \le n \mid \upsilon r, \theta)\, d\upsilon

In closed form where counts are Poisson and the law of effects is conjugate: negative binomial with
υ ~ Gamma(α + m, α + R). Else a sum over nodes of υ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gp4c.model.laws import CountLaw
from gp4c.posterior.forecasting import count_cdf
from gp4c.posterior.subject_counts import SubjectCounts

Floats = NDArray[np.float64]


class EffectGiven(Protocol):
    """What is known of the effects of K subjects in S draws."""

    def mean(self) -> Floats:
        """E υ, broadcasting with (K, S)."""
        ...

    def cdf(self, count: Floats, mean: Floats) -> Floats:
        """P(N ≤ count) averaged over draws: counts (K,), means at effect 1 (K, S) → (K,)."""
        ...

    def probability(self, count: Floats, mean: Floats) -> Floats:
        """P(N = count), averaged likewise."""
        ...


@dataclass(frozen=True)
class ConjugateEffect:
    """Poisson counts and υ ~ Gamma(shape, rate): (K, S) each, or broadcasting to it."""

    shape: Floats
    rate: Floats

    def mean(self) -> Floats:
        """Shape over rate."""
        return np.asarray(self.shape / self.rate)

    def cdf(self, count: Floats, mean: Floats) -> Floats:
        """The negative-binomial law."""
        each = count_cdf(count[:, None], mean, 0.0, self.shape, self.rate)
        return np.asarray(each.mean(axis=1))

    def probability(self, count: Floats, mean: Floats) -> Floats:
        """A difference of two distribution functions."""
        return self.cdf(count, mean) - self.cdf(count - 1.0, mean)


@dataclass(frozen=True)
class EffectNodes:
    """υ on nodes, any law of counts.

    Attributes
    ----------
    effect, weight : (Q, K, S)
        Or broadcasting to it.
    law : CountLaw
    theta : (P, S)
    """

    effect: Floats
    weight: Floats
    law: CountLaw
    theta: Floats

    def mean(self) -> Floats:
        """Σ weight · υ."""
        return np.asarray((self.weight * self.effect).sum(axis=0))

    def cdf(self, count: Floats, mean: Floats) -> Floats:
        """Σ weight · P(N ≤ count | υ)."""
        total = np.zeros_like(mean)
        for effect, weight in zip(self.effect, self.weight, strict=True):
            total += weight * self.law.cdf(count[:, None], effect * mean, self.theta)
        return np.asarray(total.mean(axis=1))

    def probability(self, count: Floats, mean: Floats) -> Floats:
        """Σ weight · P(N = count | υ)."""
        total = np.zeros_like(mean)
        for effect, weight in zip(self.effect, self.weight, strict=True):
            log_p = self.law.log_probability(count, effect * mean, self.theta)
            total += weight * np.exp(log_p)
        return np.asarray(total.mean(axis=1))


def effect_given(
    counts: SubjectCounts, integrals: Floats, params: Floats, beta: Floats | None = None
) -> EffectGiven:
    """What the counts of subjects say of their effects, for draws of curve and parameters.

    Parameters
    ----------
    counts : SubjectCounts
        What was seen of the subjects.
    integrals : (intervals, S)
        ∫λ over the intervals of `counts`.
    params, beta : (P, S), (p, S)
    """
    psi, theta = counts.likelihood.split(params)
    if counts.law.one_by_one and counts.effect.conjugate:
        alpha = 1.0 / counts.effect.variance(psi)
        seen = np.bincount(counts.seen.subject, counts.seen.count, counts.n_subjects)
        return ConjugateEffect(alpha + seen[:, None], alpha + counts.expected(integrals, beta))
    effect, weight = counts.effect_nodes(integrals, params, beta)
    return EffectNodes(effect, weight, counts.law, theta)
