r"""Weights of subjects on bases, and how the events of each row are shared among the bases.

Given the bases, the bound depends on the weights w of a subject through

.. math:: \sum_i m_i \ln \sum_l w_l c_{il} - \sum_l w_l R_l ,

with c_il = exp(E ln ∫_i f_l²), or its bound, and R_l = E ∫ f_l² over all that was seen of the
subject. It is concave in w; the updates of the paper's Appendix F, w_l = m_l / R_l with m_l the
events that belong to basis l, climb it (docs/maths_mixture.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.exposure import SMALLEST_WEIGHT

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most updates of the weights between two of the bases, and the gain in nats below which they end
MOST_UPDATES, LEAST_GAIN = 200, 1e-7
#: smallest share of a row that counts: an interval keeps its place in every basis
SMALLEST_SHARE = 1e-200


@dataclass(frozen=True)
class EventRows:
    """The rows with events: m of them, of a subject, in a counted interval.

    Attributes
    ----------
    subject, interval : (N,)
        Positions among all subjects and among the counted intervals.
    count : (N,)
    n_subjects, n_intervals : int
    """

    subject: Indices
    interval: Indices
    count: Floats
    n_subjects: int
    n_intervals: int

    def by_interval(self, share: Floats) -> Floats:
        """Events of one basis in each counted interval."""
        return np.bincount(self.interval, self.count * share, self.n_intervals).astype(np.float64)

    def by_subject(self, share: Floats) -> Floats:
        """Events of one basis of each subject."""
        return np.bincount(self.subject, self.count * share, self.n_subjects).astype(np.float64)


@dataclass(frozen=True)
class Shared:
    """Weights (K, L), shares of the rows (N, L), and Σ m ln Σ_l w_l c_il − Σ w_l R_l."""

    weights: Floats
    shares: Floats
    value: float


def best_weights(rows: EventRows, logs: Floats, expected: Floats, start: Floats) -> Shared:
    """Climb over the weights of all subjects at once.

    Parameters
    ----------
    logs : (J, L)
        ln c of each counted interval and basis.
    expected : (K, L)
        R of each subject and basis.
    start : (K, L)
        Weights from which to begin; all positive.
    """
    top = logs.max(axis=1, keepdims=True)
    masses = np.exp(logs - top)[rows.interval]
    constant, weights = float(rows.count @ top[rows.interval, 0]), start
    here = _shared(rows, masses, expected, weights)
    for _ in range(MOST_UPDATES if logs.shape[1] > 1 else 1):
        found = np.stack([rows.by_subject(share) for share in here.shares.T], axis=1)
        there = _shared(rows, masses, expected, np.maximum(SMALLEST_WEIGHT, found / expected))
        gain, here = there.value - here.value, there
        if gain < LEAST_GAIN:
            break
    return Shared(here.weights, here.shares, here.value + constant)


def _shared(rows: EventRows, masses: Floats, expected: Floats, weights: Floats) -> Shared:
    parts = weights[rows.subject] * masses
    whole = parts.sum(axis=1)
    shares = np.maximum(parts / whole[:, None], SMALLEST_SHARE)
    value = float(rows.count @ np.log(whole)) - float((weights * expected).sum())
    return Shared(weights, shares, value)
