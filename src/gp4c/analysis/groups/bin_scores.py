r"""Scores of subjects: events minus those expected under the pooled rate, in bins of time.

The residual of subject k in bin b is

.. math::  M_{kb} = \text{events expected in the bin given the counts} - e_k \rho_b |b| ,

with ρ the pooled rate of the subject's stratum, constant on bins (EM for the unseen event times).
It has mean zero whatever the follow-up and however overdispersed the counts are. Subjects have the
weights c_k = 1 / (1 + v R_k): of those who were watched long, v tells how alike their events are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most time bins, and events per bin below which there are fewer
MAX_BINS, EVENTS_PER_BIN = 10, 10
#: EM stops early: scores are centred by the groups' shares, and any pooled rate is valid
_EM_STEPS, _EM_TOL = 100, 1e-5


@dataclass(frozen=True)
class SubjectScores:
    """Residuals of subjects in time bins under the pooled rates of their strata.

    Attributes
    ----------
    edges : (B + 1,)
    strata : (K,)
        0 … S − 1.
    rate : (S, B)
        Pooled rates on the bins.
    residual, exposure : (K, B)
        c_k M_kb, and c_k times the subject's exposed time in the bin.
    so_far, expected_so_far : (K, B)
        Events minus those expected until the end of the bin, and those expected, of the subjects
        watched there; weighted by 1 / (1 + v · expected so far).
    watched : (K, B)
        Time that subjects were watched in the bins.
    poisson : (K, B)
        Variance that the residuals would have if counts were Poisson: the least there is.
    frailty_variance : float
        Moment estimate v behind the weights c_k = 1 / (1 + v R_k).
    """

    edges: Floats
    strata: Indices
    rate: Floats
    residual: Floats
    exposure: Floats
    so_far: Floats
    expected_so_far: Floats
    watched: Floats
    poisson: Floats
    frailty_variance: float

    def time_weights(self, when: str) -> Floats:
        """Weights w_b: 1, or from 1 to 0 ("early"), 0 to 1 ("late"), −1 to 1 ("crossing").

        Time is the share of the events expected so far of all that are expected in the data.
        """
        expected = (self.rate[self.strata] * self.exposure).sum(axis=0)
        if when == "even" or expected.sum() <= 0:
            return np.ones(len(expected))
        share = (np.cumsum(expected) - expected / 2) / expected.sum()
        each = {"early": 1.0 - share, "late": share, "crossing": 2.0 * share - 1.0}
        return np.asarray(each[when])


def subject_scores(
    start: Floats,
    stop: Floats,
    count: Floats,
    exposure: Floats,
    subject: Indices,
    n_subjects: int,
    strata: Indices | None = None,
) -> SubjectScores:
    """Residuals of subjects under the pooled rate of their stratum; nothing here knows of groups.

    Parameters
    ----------
    start, stop, count, exposure, subject : (N,)
        Rows of a panel.
    strata : (K,), optional
        Stratum of each subject, 0 … S − 1; one for all by default.
    """
    strata = np.zeros(n_subjects, dtype=np.intp) if strata is None else strata
    edges = time_bins(start, stop, count)
    overlap = np.minimum(stop[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1])
    overlap = np.maximum(overlap, 0.0)
    at_risk = exposure[:, None] * overlap
    weights: Floats = np.ones(n_subjects)
    totals = np.bincount(subject, count, n_subjects).astype(np.float64)
    variance, rate = 0.0, None
    for _ in range(2):  # weights need a rate, the final rate needs the weights
        rate = _stratum_rates(at_risk, count, weights[subject], strata[subject], rate)
        mass = at_risk * rate[strata[subject]]
        expected = np.bincount(subject, mass.sum(axis=1), n_subjects).astype(np.float64)
        variance = frailty_variance(totals, expected)
        weights = 1.0 / (1.0 + variance * expected)
    rate = _stratum_rates(at_risk, count, weights[subject], strata[subject], rate)
    mass = at_risk * rate[strata[subject]]
    total = mass.sum(axis=1)
    ratio = np.divide(count, total, out=np.ones_like(total), where=total > 0)
    residual = _by_subject((ratio - 1.0)[:, None] * mass, subject, n_subjects)
    watched = _by_subject(overlap, subject, n_subjects)
    expected_in_bins = _by_subject(mass, subject, n_subjects)
    so_far, expected_so_far = _so_far(
        residual, expected_in_bins,
        np.minimum(watched / np.diff(edges), 1.0), strata, variance,
    )  # fmt: skip
    return SubjectScores(
        edges, strata, rate, weights[:, None] * residual,
        weights[:, None] * _by_subject(at_risk, subject, n_subjects),
        so_far, expected_so_far, watched,
        weights[:, None] ** 2 * expected_in_bins, variance,
    )  # fmt: skip


def _stratum_rates(
    at_risk: Floats, count: Floats, weights: Floats, stratum: Indices, rate: Floats | None
) -> Floats:
    """Pooled rate of each stratum on the bins, (S, B)."""
    found = []
    for s in range(int(stratum.max()) + 1):
        rows = stratum == s
        begin = None if rate is None else rate[s]
        found.append(pooled_rate(at_risk[rows], count[rows], weights[rows], begin))
    return np.array(found)


def _so_far(
    residual: Floats, expected: Floats, seen: Floats, strata: Indices, variance: float
) -> tuple[Floats, Floats]:
    """Residuals of the number of events so far, which sum to zero in a stratum at any time.

    Parameters
    ----------
    residual, expected : (K, B)
        Of the bins, unweighted.
    seen : (K, B)
        Share of the bin in which the subject was watched.
    """
    mean = np.cumsum(expected, axis=1)
    weight = seen / (1.0 + variance * mean)
    mean, events = weight * mean, weight * (mean + np.cumsum(residual, axis=1))
    shape = (int(strata.max()) + 1, residual.shape[1])
    sums = np.zeros((2, *shape))
    np.add.at(sums[0], strata, events)
    np.add.at(sums[1], strata, mean)
    level = np.divide(sums[0], sums[1], out=np.zeros(shape), where=sums[1] > 0)
    return events - level[strata] * mean, mean


def time_bins(start: Floats, stop: Floats, count: Floats) -> Floats:
    """Edges of bins with about equally many events each, an interval's spread evenly over it."""
    n_bins = int(np.clip(count.sum() // EVENTS_PER_BIN, 1, MAX_BINS))
    points = np.unique(np.concatenate([start, stop]))
    cumulated = np.zeros(len(points))
    density = count / (stop - start)
    np.add.at(cumulated, np.searchsorted(points, start), density)
    np.add.at(cumulated, np.searchsorted(points, stop), -density)
    events = np.concatenate([[0.0], np.cumsum(np.cumsum(cumulated)[:-1] * np.diff(points))])
    if events[-1] <= 0 or n_bins == 1:
        return points[[0, -1]]
    inner = np.interp(np.arange(1, n_bins) / n_bins * events[-1], events, points)
    return np.unique(np.concatenate([points[:1], inner, points[-1:]]))


def pooled_rate(
    at_risk: Floats, count: Floats, weights: Floats, rate: Floats | None = None
) -> Floats:
    """Weighted maximum-likelihood rate on bins from counts of intervals that span several.

    EM: events of an interval are spread in proportion to rate · exposed time.

    Parameters
    ----------
    at_risk : (N, B)
        Exposed time of each row in each bin.
    count, weights : (N,)
    rate : (B,), optional
        Where to start.
    """
    time = weights @ at_risk
    seen = time > 0
    events = weights * count
    if rate is None:
        rate = np.where(seen, events.sum() / max(time.sum(), 1e-300), 0.0)
    rows = count > 0
    inside, events = at_risk[rows], events[rows]
    for _ in range(_EM_STEPS):
        share = (events / (inside @ rate)) @ inside
        new = np.where(seen, rate * share / np.where(seen, time, 1.0), 0.0)
        change = np.abs(new - rate).max(initial=0.0)
        rate = new
        if change <= _EM_TOL * rate.max(initial=0.0):
            break
    return np.asarray(rate)


def frailty_variance(totals: Floats, expected: Floats) -> float:
    """Moment estimate of Var υ: Σ((m − R)² − R) / Σ R², not below 0."""
    spread = float(((totals - expected) ** 2 - expected).sum())
    size = float((expected**2).sum())
    return max(spread / size, 0.0) if size > 0 else 0.0


def _by_subject(rows: Floats, subject: Indices, n_subjects: int) -> Floats:
    """Sums of the rows of each subject, (N, B) → (K, B)."""
    sums = np.zeros((n_subjects, rows.shape[1]))
    np.add.at(sums, subject, rows)
    return sums
