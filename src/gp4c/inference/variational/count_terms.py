"""E_q[ln ∫_I f²], the count term of the bound, from the moments of f at grid nodes.

Two lower bounds that need only pointwise means and variances live here; the exact value,
which needs covariances within an interval, is in
:mod:`gp4c.inference.variational.expected_logs.exact`. Both return Σ_j c_j · (term of
interval j) and its derivatives by mean and variance at the nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.expected_logs.log_square import expected_log_square
from gp4c.model.quadrature import IntervalIntegrals

Floats = NDArray[np.float64]
NodeTerm = tuple[float, Floats, Floats]

#: C + ln 2, what Lemma 2 gives away per event
LEMMA2_CONSTANT = float(np.euler_gamma + np.log(2.0))


def theorem1(
    integrals: IntervalIntegrals, count: Floats, mean: Floats, variance: Floats, b: float
) -> NodeTerm:
    """Theorem 1 of the paper *without* its constant −(C + ln 2) per event.

    Σ_j c_j ln ∫_j ((E f)² + b Var f): a lower bound for every b in [0, 1] once the constant is
    added; callers add ``-LEMMA2_CONSTANT * count.sum()``.
    """
    mass = integrals.apply(mean**2 + b * variance)
    value, share = _log_masses(count, mass)
    node = integrals.transpose(share)
    return value, 2 * mean * node, b * node


def pointwise(
    integrals: IntervalIntegrals, count: Floats, mean: Floats, variance: Floats
) -> NodeTerm:
    """Σ_j c_j ln ∫_j exp(E ln f²): the paper's inequality (15)–(16) before Lemma 2 loosens it."""
    expected_log, by_mean, by_variance = expected_log_square(mean, variance)
    geometric = np.exp(expected_log)
    mass = integrals.apply(geometric)
    value, share = _log_masses(count, mass)
    node = integrals.transpose(share) * geometric
    return value, node * by_mean, node * by_variance


def _log_masses(count: Floats, mass: Floats) -> tuple[float, Floats]:
    """Σ c ln μ and c/μ; −∞, for every search to turn away from, where some μ is not positive.

    The interpolant of a positive function may dip below 0 on an interval far shorter than its
    panel, where f changes sign between the nodes.
    """
    if mass.min(initial=np.inf) <= 0.0:
        return -np.inf, np.zeros_like(mass)
    return float(count @ np.log(mass)), count / mass
