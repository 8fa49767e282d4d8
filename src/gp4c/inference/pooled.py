"""Gamma frailties of pooled subjects: their cost is a sum over weighted spans.

The cost of a subject is linear in its total m_k but for a part that no expected count enters.
Summed over subjects it needs, for each span, the (weighted) number of subjects and of their
events, and the histogram of the totals (docs/maths_scale.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from gp4c.design.observations import PooledSubjects

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


def _like(expected: Floats, weights: Floats) -> Floats:
    """Weights of spans as a column if the expected counts have one for each of several curves."""
    return weights.reshape(-1, *(1,) * (expected.ndim - 1))


def _with_constant(costs: Floats, constant: float) -> Floats:
    """Costs of spans with one more row for what does not depend on them."""
    return np.concatenate([costs, np.full((1, *costs.shape[1:]), constant)])
