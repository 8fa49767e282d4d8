"""The exposure term: what the expected number of events costs, with or without subject effects.

Subject effects υ_k multiply a subject's intensity. Each kind is maximised or integrated over
υ_k in closed form, which leaves a function of the subjects' expected counts R_k = ∫ E f² over
what was seen of them; its derivative is the weight of subject k (docs/maths.md, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, xlogy

from gp4c.inference.variational.subject_integrals import SubjectIntegrals

Floats = NDArray[np.float64]

#: ε of Appendix F: the smallest weight of a subject
SMALLEST_WEIGHT = 1e-6


class SubjectCost(Protocol):
    """Cost of expected counts R for subjects with totals m."""

    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """Per subject; the bound subtracts it."""
        ...

    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """∂cost/∂R, the effect υ_k that the other terms see."""
        ...

    def shape_gradient(self, totals: Floats, expected: Floats, shape: float) -> float:
        """−∂(Σ cost)/∂ln α; zero where there is no α."""
        ...


class PaperWeights:
    """υ_k = max(ε, m_k / R_k), a free weight per subject (Appendix F of the paper)."""

    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """υR − m ln υ at the best υ."""
        weight = self.weight(totals, expected, shape)
        return np.asarray(weight * expected - xlogy(totals, weight))

    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """The best υ."""
        return np.maximum(SMALLEST_WEIGHT, totals / expected)

    def shape_gradient(self, totals: Floats, expected: Floats, shape: float) -> float:
        """There is no α."""
        return 0.0


class GammaFrailty:
    """υ_k ~ Gamma(α, α), integrated out: the negative multinomial likelihood.

    −cost = α ln α − ln Γ(α) + ln Γ(α + m) − (α + m) ln(α + R), and E υ_k = (α + m)/(α + R).
    """

    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """Written as R at α = ∞ plus corrections that stay accurate for large α."""
        if not np.all(np.isfinite(shape)):
            return expected
        rising = gammaln(shape + totals) - gammaln(shape) - totals * np.log(shape)
        return np.asarray((shape + totals) * np.log1p(expected / shape) - rising)

    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """E υ_k."""
        if not np.isfinite(shape):
            return np.ones_like(expected)
        return np.asarray((shape + totals) / (shape + expected))

    def shape_gradient(self, totals: Floats, expected: Floats, shape: float) -> float:
        """α ∂/∂α of Σ −cost."""
        by_shape = digamma(shape + totals) - digamma(shape) - np.log1p(expected / shape)
        by_shape += (expected - totals) / (shape + expected)
        return float(shape * by_shape.sum())


SUBJECT_COSTS: dict[str, SubjectCost] = {"weight": PaperWeights(), "gamma": GammaFrailty()}


@dataclass(frozen=True)
class Exposure:
    """Exposure as a function of E f² at the nodes of a grid.

    Attributes
    ----------
    base_weights : (Q,)
        Σ_j n_j ∫_j h = base_weights @ h(nodes).
    subjects, totals, subject_cost
        Only with subject effects: integrals over what was seen of each subject, and its count.
    """

    base_weights: Floats
    subjects: SubjectIntegrals | None = None
    totals: Floats | None = None
    subject_cost: SubjectCost | None = None

    def __call__(self, second_moment: Floats, shape: float) -> tuple[float, Floats]:
        """The cost, and its derivative by E f² at the nodes."""
        if self.subject_cost is None or self.totals is None:
            return float(self.base_weights @ second_moment), self.base_weights
        expected = self.expected(second_moment)
        weight = self.subject_cost.weight(self.totals, expected, shape)
        assert self.subjects is not None
        node = self.subjects.transpose(weight)
        return float(self.subject_cost.cost(self.totals, expected, shape).sum()), node

    def expected(self, second_moment: Floats) -> Floats:
        """R_k, the expected counts of subjects with effect 1."""
        assert self.subjects is not None
        return np.maximum(self.subjects.apply(second_moment), 1e-300)

    def shape_gradient(self, second_moment: Floats, shape: float) -> float:
        """Derivative of −cost by ln α."""
        if self.subject_cost is None or self.totals is None or not np.isfinite(shape):
            return 0.0
        return self.subject_cost.shape_gradient(self.totals, self.expected(second_moment), shape)
