"""The exposure term: what the expected number of events costs, with or without subject effects.

Subject effects υ_k multiply a subject's intensity. Each kind is maximised or integrated over
υ_k in closed form, which leaves a function of the subjects' expected counts R_k = ∫ E f² over
what was seen of them; its derivative is the weight of subject k (docs/maths.md, section 6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from gp4c.inference.variational.subject_integrals import SubjectIntegrals
from gp4c.model.gamma_frailty import frailty_mean, log_marginal, variance_score

Floats = NDArray[np.float64]

#: ε of Appendix F: the smallest weight of a subject
SMALLEST_WEIGHT = 1e-6


#: every effect of subjects that the bound knows by name; it joins by being defined
SUBJECT_COSTS: dict[str, SubjectCost] = {}


class SubjectCost(ABC):
    """Cost of expected counts R for subjects with totals m; joins `SUBJECT_COSTS` by its name.

    Attributes
    ----------
    name : str
    first_shape : float
        α from which a search begins; infinite where there is none.
    shares_scale : bool
        Whether effects and f share a scale that the data leave open. Then a mean effect of 1
        fixes it, and g is not learned.
    """

    name: ClassVar[str]
    first_shape: ClassVar[float] = np.inf
    shares_scale: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        SUBJECT_COSTS[cls.name] = cls()

    @abstractmethod
    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """Per subject; the bound subtracts it."""

    @abstractmethod
    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """∂cost/∂R, the effect υ_k that the other terms see."""

    def shape_gradient(self, totals: Floats, expected: Floats, shape: float) -> float:
        """−∂(Σ cost)/∂ln α; zero where there is no α."""
        return 0.0


def subject_cost(name: str) -> SubjectCost:
    """The effect of that name."""
    if name not in SUBJECT_COSTS:
        known = ", ".join(SUBJECT_COSTS)
        raise ValueError(f"the variational bound knows the effects {known}, not {name!r}")
    return SUBJECT_COSTS[name]


class PaperWeights(SubjectCost):
    """υ_k = max(ε, m_k / R_k), a free weight per subject (Appendix F of the paper)."""

    name = "weight"
    shares_scale = True

    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """υR − m ln υ at the best υ."""
        weight = self.weight(totals, expected, shape)
        return np.asarray(weight * expected - xlogy(totals, weight))

    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """The best υ."""
        return np.maximum(SMALLEST_WEIGHT, totals / expected)


class GammaFrailty(SubjectCost):
    """υ_k ~ Gamma(α, α), integrated out: :mod:`gp4c.model.gamma_frailty` with v = 1/α."""

    name = "gamma"
    first_shape = 1.0

    def cost(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """−ln ∫ υᵐ e^{−υR} p(υ) dυ, the negative multinomial likelihood."""
        return -log_marginal(1.0 / shape, totals, expected)

    def weight(self, totals: Floats, expected: Floats, shape: float) -> Floats:
        """E υ_k = (α + m)/(α + R)."""
        return frailty_mean(1.0 / shape, totals, expected)

    def shape_gradient(self, totals: Floats, expected: Floats, shape: float) -> float:
        """α ∂/∂α = −v ∂/∂v of Σ −cost."""
        return -float(variance_score(1.0 / shape, totals, expected).sum()) / shape


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
