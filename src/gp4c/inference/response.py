"""Linear response: what the frailties' own uncertainty adds to the uncertainty of f.

The bound treats frailties and f as independent a posteriori, which makes f too sure of its
level: a high rate with low frailties fits nearly as well as the reverse. At the optimum the
frailties can be integrated out exactly: the log-likelihood of subject k is then
−(α + m) ln(α + R_k(f)) + …, whose curvature lacks (α + m)/(α + R_k)² ∇R_k ∇R_kᵀ of that of
−υ_k R_k (docs/maths.md, section 6). The precision of q is lowered by that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.hyper import Optimum
from gp4c.inference.variational import Gaussian

Floats = NDArray[np.float64]

#: share of the precision that is left in every direction at the least
LEAST_PRECISION = 0.02
#: share of the correction that is tried next where all of it leaves less
BACK_OFF = 0.9


def frailty_response(at: Optimum) -> Gaussian:
    """q with the frailties' uncertainty in its covariance; the mean stays."""
    exposure, evaluation, q = at.work.likelihood.exposure, at.estep.evaluation, at.estep.q
    alpha = at.hyper.shape
    loose = at.work.likelihood.count_term == "lemma2"  # its q is not a curvature to correct
    if not np.isfinite(alpha) or exposure.totals is None or loose:
        return q
    assert exposure.subjects is not None
    expected = exposure.expected(evaluation.mean**2 + evaluation.variance)
    # ∇_v R_k = 2 √γ ∫ E f · b over what was seen of the subject
    inside = exposure.subjects.apply(evaluation.mean[:, None] * at.work.features)
    gradients = 2 * np.sqrt(at.hyper.variance) * inside
    assert exposure.subject_cost is not None
    weights = exposure.subject_cost.weight(exposure.totals, expected, alpha) / (alpha + expected)
    lost = gradients.T @ (weights[:, None] * gradients)
    share = 1.0
    while share > 0.1:
        precision = q.precision - share * lost
        floor = precision - LEAST_PRECISION * q.precision
        if Gaussian.from_natural(floor, q.mean) is not None:
            return Gaussian.from_natural(precision, precision @ q.mean) or q
        share *= BACK_OFF
    return q
