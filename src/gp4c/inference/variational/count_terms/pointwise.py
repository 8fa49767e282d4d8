"""The count term before the paper's Lemma 2 loosens it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.count_terms.count_term import (
    CountTerm,
    NodeTerm,
    log_masses,
    logs_of,
)
from gp4c.inference.variational.expected_logs.log_square import expected_log_square
from gp4c.model.quadrature import IntervalIntegrals

Floats = NDArray[np.float64]


class Pointwise(CountTerm):
    r"""Jensen's inequality in the proof of the paper's Theorem 1, with E ln f² in closed form.

    .. math:: E_q \ln \int_j f^2 \ge \ln \int_j \exp(E_q \ln f^2) .
    """

    name = "pointwise"
    words = "with a pointwise lower bound on the expected log-intensity of each interval"
    copies = 40.0

    def at_nodes(
        self, integrals: IntervalIntegrals, count: Floats, mean: Floats, variance: Floats, b: float
    ) -> NodeTerm:
        """Σ_j c_j ln ∫_j exp(E ln f²); it has no use for b."""
        expected_log, by_mean, by_variance = expected_log_square(mean, variance)
        geometric = np.exp(expected_log)
        value, share = log_masses(count, integrals.apply(geometric))
        node = integrals.transpose(share) * geometric
        return NodeTerm(value, node * by_mean, node * by_variance)

    def interval_logs(
        self, integrals: IntervalIntegrals, mean: Floats, variance: Floats, b: float
    ) -> Floats:
        """ln ∫_j exp(E ln f²)."""
        return logs_of(integrals.apply(np.exp(expected_log_square(mean, variance)[0])))
