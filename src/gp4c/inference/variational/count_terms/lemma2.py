"""The paper's count term: its Lemma 2 for one point, its Theorem 1 for an interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.count_terms.count_term import (
    CountTerm,
    NodeTerm,
    log_masses,
    logs_of,
)
from gp4c.model.quadrature import IntervalIntegrals

Floats = NDArray[np.float64]

#: C + ln 2, C Euler's constant: what Lemma 2 gives away, and so Theorem 1 per event
LEMMA2_CONSTANT = float(np.euler_gamma + np.log(2.0))


def lemma2(mean: Floats, variance: Floats, b: float | Floats) -> Floats:
    r"""Lemma 2 of the paper: a lower bound on E ln y² for y ~ N(mean, variance).

    .. math::
        E \ln y^2 \ge \ln(\mu^2 + b \sigma^2) - C - \ln 2, \qquad 0 \le b \le 1 .
    """
    return np.asarray(np.log(mean**2 + b * variance) - LEMMA2_CONSTANT)


def theorem1(
    integrals: IntervalIntegrals, count: Floats, mean: Floats, variance: Floats, b: float
) -> NodeTerm:
    r"""Theorem 1 of the paper, summed over the events of all intervals.

    .. math::
        \sum_j c_j\, E_q \ln \int_j f^2 \ge \sum_j c_j \ln \int_j (E_q^2 f + b\,\mathrm{Var}_q f)
        - (C + \ln 2) \sum_j c_j, \qquad 0 \le b \le 1 .

    The first sum is `value`, the second with its sign `constant`. It is the pointwise inequality
    ln ∫ exp(E ln f²) with :func:`lemma2` for E ln f².
    """
    value, share = log_masses(count, integrals.apply(mean**2 + b * variance))
    node = integrals.transpose(share)
    constant = -LEMMA2_CONSTANT * float(np.add.reduce(count))
    return NodeTerm(value, 2 * mean * node, b * node, constant)


class Lemma2(CountTerm):
    """Theorem 1 of the paper, which rests on its Lemma 2: loose, and needs `b`."""

    name = "lemma2"
    words = "with the bound of the original paper (b = {b:g})"
    remark = (
        "the paper's bound (b = {b:g}) is loose, which can misplace the curve's smoothness and "
        "the width of the band; the default, count_term=None, has no bound"
    )

    def at_nodes(
        self, integrals: IntervalIntegrals, count: Floats, mean: Floats, variance: Floats, b: float
    ) -> NodeTerm:
        """Theorem 1."""
        return theorem1(integrals, count, mean, variance, b)

    def interval_logs(
        self, integrals: IntervalIntegrals, mean: Floats, variance: Floats, b: float
    ) -> Floats:
        """Theorem 1 for one event in each interval."""
        return logs_of(integrals.apply(mean**2 + b * variance)) - LEMMA2_CONSTANT
