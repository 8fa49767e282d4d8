r"""How counts vary within subjects, given the subjects' totals.

Given a subject's total M, Poisson counts are multinomial with shares p = r/R of the fitted
expected numbers, whatever the subject's effect and the law of effects:

.. math::
    X^2 = \sum_k \sum_j \frac{(m_{kj} - M_k p_{kj})^2}{M_k p_{kj}}, \quad
    E X^2 = \sum_{k: M_k > 0} (J_k - 1), \qquad
    D = \frac{\sum_{kj} (m_{kj} - M_k p_{kj})^2}{\sum_{kj} M_k p_{kj} (1 - p_{kj})}, \quad
    E D = 1 .

X² looks hard at rows in which next to nothing was expected; D, which pools the squares first, sees
bursts under a curve that passes through some of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: chance of a false alarm of each check
ALARM = 0.01
#: a quarter more variance than fitted makes bands a tenth too narrow; less is no reason to alarm
NOTICEABLE = 1.25
#: replicates of the counts: as many as a p-value at the alarm needs, and most; and most numbers
_FEWEST, _MOST, _NUMBERS = 199, 999, 20_000_000


@dataclass(frozen=True)
class WithinDispersion:
    """How counts vary within subjects, given their totals.

    Attributes
    ----------
    ratio : float
        X² over its degrees of freedom: about 1 for Poisson counts.
    fitted : float
        What it is on average under the fitted law: 1 without bursts.
    p_value : float
        Chance of such an X² or a larger one under the fitted law.
    pooled, pooled_fitted, pooled_p_value : float
        The same of D.
    degrees : int
        Σ (rows − 1) over subjects with events.
    """

    ratio: float
    fitted: float
    p_value: float
    pooled: float
    pooled_fitted: float
    pooled_p_value: float
    degrees: int

    @property
    def excess(self) -> float:
        """Variance relative to what the fitted law allows, by the statistic that is surer of it."""
        if self.p_value <= self.pooled_p_value:
            return self.ratio / self.fitted
        return self.pooled / self.pooled_fitted

    @property
    def smallest_p(self) -> float:
        """The smaller p-value, twice: there are two statistics."""
        return min(1.0, 2.0 * min(self.p_value, self.pooled_p_value))

    @property
    def is_bad(self) -> bool:
        """Whether chance is no explanation and the difference matters."""
        return self.smallest_p <= ALARM and self.excess >= NOTICEABLE


def within_subject_dispersion(
    count: Floats,
    expected: Floats,
    subject: Indices,
    n_subjects: int,
    *,
    excess: float = 0.0,
    effects: Floats | None = None,
    n_replicates: int | None = None,
    random_state: int = 0,
) -> WithinDispersion:
    """X² and D of counts given subjects' totals, against draws from the fitted law.

    Parameters
    ----------
    count, expected : (N,)
        Events of each row, and the expected number up to a factor per subject.
    subject : (N,)
        Sorted.
    n_subjects : int
    excess : float
        φ of the fitted law; 0 if events come one by one.
    effects : (K,), optional
        υ of the subjects; needed with φ > 0 alone, default 1.
    n_replicates : int, optional
        Draws behind the p-value; default 999, fewer for large panels.
    random_state : int

    Notes
    -----
    Given totals, Poisson counts are multinomial, for any effects. Counts with bursts are
    Dirichlet-multinomial with parameters υ r/φ: that law depends on υ, which is held at the value
    given (:func:`check_fit`: its mean given the counts).
    """
    total = np.bincount(subject, count, n_subjects).astype(np.float64, copy=False)
    impossible = bool(np.any((expected <= 0) & (count > 0)))
    used = (expected > 0) & (total[subject] > 0)
    count, expected, subject = count[used], expected[used], subject[used]
    degrees = len(count) - len(np.unique(subject))
    if degrees == 0:
        return WithinDispersion(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0)
    if impossible:
        return WithinDispersion(np.inf, 1.0, 0.0, np.inf, 1.0, 0.0, degrees)
    sums = np.bincount(subject, expected, n_subjects)
    mean = expected * np.divide(total, sums, out=np.zeros(n_subjects), where=sums > 0)[subject]
    strength = None
    if excess > 0.0:
        strength = expected / excess if effects is None else expected * effects[subject] / excess
    size = n_replicates or int(np.clip(_NUMBERS // len(count), _FEWEST, _MOST))
    drawn = _replicates(mean, strength, subject, total, size, np.random.default_rng(random_state))
    squares = (count - mean) ** 2
    found = np.array([(squares / mean).sum(), squares.sum()])
    unit = np.array([degrees, (mean * (1.0 - mean / total[subject])).sum()])
    ratio = found / unit
    above = (drawn >= found[:, None] * (1 - 1e-12)).sum(axis=1)  # ties are as large
    p_value = (1.0 + above) / (1.0 + size)
    fitted = np.ones(2) if strength is None else drawn.mean(axis=1) / unit
    (x2, x2_fitted, x2_p), (d, d_fitted, d_p) = np.stack([ratio, fitted, p_value], axis=1).tolist()
    return WithinDispersion(x2, x2_fitted, x2_p, d, d_fitted, d_p, degrees)


def _replicates(
    mean: Floats, strength: Floats | None, subject: Indices, total: Floats, size: int,
    rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """X² and Σ (m − Mp)² of drawn counts, (2, size).

    They are drawn one row of every subject at a time. Of the events left, a row gets a binomial
    number with its share of the expected numbers left, or with a beta share around it where events
    come in bursts.
    """
    weight = mean if strength is None else strength
    first = np.flatnonzero(np.diff(subject, prepend=-1))
    lengths = np.diff(np.append(first, len(subject)))
    place = np.arange(len(subject)) - np.repeat(first, lengths)
    so_far = np.cumsum(weight)
    later = np.maximum(np.repeat(so_far[first + lengths - 1], lengths) - so_far, 0.0)
    last = place == np.repeat(lengths, lengths) - 1
    left = np.tile(total.astype(np.int64), (size, 1))
    found = np.zeros((2, size))
    order = np.argsort(place, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        who, sure = subject[rows], last[rows] | (later[rows] <= 0.0)
        share: Floats = np.where(sure, 1.0, weight[rows] / (weight[rows] + later[rows]))
        if strength is not None:
            drawn = rng.beta(weight[rows], np.where(sure, 1.0, later[rows]), (size, len(rows)))
            share = np.where(sure, 1.0, drawn)
        counts = rng.binomial(left[:, who], share)
        left[:, who] -= counts
        squares = (counts - mean[rows]) ** 2
        found += (squares / mean[rows]).sum(axis=1), squares.sum(axis=1)
    return found
