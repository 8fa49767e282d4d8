"""Subject effects for pooled subjects: costs that are sums over weighted spans.

The costs of :mod:`gp4c.inference.exposure` are linear in the totals m_k but for a part that no
expected count enters. Summed over subjects they need, for each span, the (weighted) number of
subjects and of their events, and the histogram of the totals (docs/maths_scale.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, xlogy

from gp4c.design.observations import PooledSubjects
from gp4c.inference.exposure import SMALLEST_WEIGHT, SubjectCost

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PooledGamma:
    """Gamma frailties: Σ_n (N_n α + E_n) ln(1 + R_n/α) − Σ_k ln((α)_{m_k} / α^{m_k})."""

    pooled: PooledSubjects

    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """Whose sum is the cost of all subjects."""
        number, p = _like(expected, self.pooled.number), self.pooled
        if not np.isfinite(shape):
            return np.asarray(number * expected)
        rising = gammaln(shape + p.totals) - gammaln(shape) - p.totals * np.log(shape)
        spread = (number * shape + totals) * np.log1p(expected / shape)
        return _with_constant(spread, -float(p.times @ rising))

    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """∂cost/∂R_n, the summed effects of the subjects that span n stands for."""
        if not np.isfinite(shape):
            return self.pooled.number
        return np.asarray((self.pooled.number * shape + totals) / (shape + expected))

    def shape_gradient(self, totals: Floats, expected: Floats, shape: float) -> float:
        """α ∂/∂α of Σ −cost."""
        number, p = self.pooled.number, self.pooled
        rising = digamma(shape + p.totals) - digamma(shape) - p.totals / shape
        by_shape = (number * shape + totals) * expected / (shape * (shape + expected))
        by_shape -= number * np.log1p(expected / shape)
        return float(shape * (by_shape.sum() + p.times @ rising))


@dataclass(frozen=True)
class PooledWeights:
    """Free weights υ_k = m_k/R_k, or ε without events: Σ_k (m − m ln m + m ln R) + ε R_0.

    ln R is written as ln(R/|span|), which is smooth down to the shortest spans, plus a constant.
    """

    pooled: PooledSubjects

    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """Whose sum is the cost of all subjects."""
        p = self.pooled
        spread = totals * (np.log(expected) - _like(expected, p.log_length))
        spread += SMALLEST_WEIGHT * _like(expected, p.zeros) * expected
        constant = p.log_spans + float(p.times @ (p.totals - xlogy(p.totals, p.totals)))
        return _with_constant(spread, constant)

    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """∂cost/∂R_n."""
        return np.asarray(totals / expected + SMALLEST_WEIGHT * self.pooled.zeros)

    def shape_gradient(self, totals: Floats, expected: Floats, shape: float) -> float:
        """There is no α."""
        return 0.0


def _like(expected: Floats, weights: Floats) -> Floats:
    """Weights of spans as a column if the expected counts have one for each of several curves."""
    return weights.reshape(-1, *(1,) * (expected.ndim - 1))


def _with_constant(costs: Floats, constant: float) -> Floats:
    """Costs of spans with one more row for what does not depend on them."""
    return np.concatenate([costs, np.full((1, *costs.shape[1:]), constant)])


POOLED_COSTS: dict[str, type[PooledGamma] | type[PooledWeights]] = {
    "gamma": PooledGamma, "weight": PooledWeights,
}  # fmt: skip


def pooled_cost(effect: str, pooled: PooledSubjects) -> SubjectCost:
    """The cost of one kind of effect for pooled subjects."""
    return POOLED_COSTS[effect](pooled)
