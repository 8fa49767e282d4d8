r"""A test between groups of subjects that permutes the subjects' labels.

Under "one curve for all" the residuals of subject k in time bin b,

.. math::  M_{kb} = \text{events expected in the bin given the counts} - e_k \rho_b |b| ,

have mean zero whatever the follow-up and however overdispersed the counts are. ρ is the pooled
rate, constant on bins (EM for the unseen event times). With weights c_k for subjects and w_b for
bins the score of group g is

.. math::  U_g = \sum_k \psi_{kg} , \qquad
           \psi_{kg} = c_k \sum_b w_b (1\{k \in g\} - \bar z_{gb}) M_{kb} ,

z̄_gb the group's share of the weighted exposure in the bin: the log-rank score with the influence
of the pooled rate taken off. Its covariance is estimated by Σ_k ψ_k ψ_kᵀ, subject by subject,
and U is studentised with it. Nothing but the labels changes under permutation, so no refit is
needed, and the pooled quantities (ρ, c, the bins) do not depend on the labels at all.

If subjects are exchangeable between groups, follow-up and visits included, the test is exact for
every sample size. If follow-up or visits differ between groups, U still has mean zero and the
studentised statistic is asymptotically free of nuisance, so the level holds approximately.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most time bins, and events per bin below which there are fewer
MAX_BINS, EVENTS_PER_BIN = 10, 10
#: EM stops early: scores are centred by the groups' shares, and any pooled rate is valid
_EM_STEPS, _EM_TOL = 100, 1e-5
#: numbers held at once while permutations are evaluated
_CHUNK = 4_000_000


@dataclass(frozen=True)
class SubjectScores:
    """Residuals of subjects in time bins under the pooled rate.

    Attributes
    ----------
    edges : (B + 1,)
    rate : (B,)
        Pooled rate on the bins.
    residual, exposure : (K, B)
        c_k M_kb, and c_k times the subject's exposed time in the bin.
    frailty_variance : float
        Moment estimate v behind the weights c_k = 1 / (1 + v R_k).
    """

    edges: Floats
    rate: Floats
    residual: Floats
    exposure: Floats
    frailty_variance: float


def subject_scores(
    start: Floats, stop: Floats, count: Floats, exposure: Floats, subject: Indices, n_subjects: int
) -> SubjectScores:
    """Residuals of subjects under one pooled rate; nothing here knows of groups."""
    edges = time_bins(start, stop, count)
    overlap = np.minimum(stop[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1])
    at_risk = exposure[:, None] * np.maximum(overlap, 0.0)
    weights: Floats = np.ones(n_subjects)
    totals = np.bincount(subject, count, n_subjects).astype(np.float64)
    variance, rate = 0.0, None
    for _ in range(2):  # weights need a rate, the final rate needs the weights
        rate = pooled_rate(at_risk, count, weights[subject], rate)
        expected = np.bincount(subject, at_risk @ rate, n_subjects).astype(np.float64)
        variance = frailty_variance(totals, expected)
        weights = 1.0 / (1.0 + variance * expected)
    rate = pooled_rate(at_risk, count, weights[subject], rate)
    mass = at_risk * rate
    total = mass.sum(axis=1)
    ratio = np.divide(count, total, out=np.ones_like(total), where=total > 0)
    rows = weights[subject][:, None]
    return SubjectScores(
        edges,
        rate,
        _by_subject(rows * (ratio - 1.0)[:, None] * mass, subject, n_subjects),
        _by_subject(rows * at_risk, subject, n_subjects),
        variance,
    )


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


def bin_weights(edges: Floats, rate: Floats, kind: str) -> Floats:
    """Columns of weights w_b, (B, 1) for "level", (B, 2) for "curve".

    "level": the same for all times. "curve": also a trend, −1 to 1 over the share of pooled
    events, which sees curves that cross.
    """
    ones = np.ones(len(rate))
    if kind == "level" or len(rate) < 2:
        return ones[:, None]
    mass = rate * np.diff(edges)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.stack([ones, 2 * middle - 1], axis=1)


def statistics(scores: SubjectScores, groups: NDArray[np.intp], weights: Floats) -> Floats:
    """Studentised statistics Uᵀ V⁺ U of several labellings.

    Parameters
    ----------
    groups : (P, K)
        Labels 0 … G − 1 of the subjects in each labelling; the last group is left out, as the
        scores of all groups sum to zero.
    weights : (B, d)

    Returns
    -------
    (P,)
    """
    n_groups = int(groups.max()) + 1
    weighted = np.einsum("kb,bd->kbd", scores.residual, weights)
    summed = weighted.sum(axis=1)
    at_risk = scores.exposure.sum(axis=0)
    share = scores.exposure / np.where(at_risk > 0, at_risk, 1.0)
    chunk = max(1, _CHUNK // max(weighted.size * n_groups, 1))
    parts = []
    for first in range(0, len(groups), chunk):
        some = groups[first : first + chunk]
        columns = []
        for g in range(n_groups - 1):
            member = (some == g).astype(np.float64)  # (P, K)
            mean = member @ share  # z̄, (P, B)
            for d in range(weights.shape[1]):
                columns.append(member * summed[:, d] - mean @ weighted[:, :, d].T)
        influence = np.stack(columns, axis=2)  # ψ, (P, K, q)
        total = influence.sum(axis=1)
        covariance = np.einsum("pkq,pkr->pqr", influence, influence)
        parts.append(_quadratic(total, covariance))
    return np.concatenate(parts)


def _quadratic(vector: Floats, matrix: Floats) -> Floats:
    """Vᵀ M⁺ V for stacks; directions without variance are left out."""
    values, vectors = np.linalg.eigh(matrix)
    rotated = np.einsum("pqr,pq->pr", vectors, vector)
    good = values > 1e-10 * values.max(axis=1, keepdims=True, initial=1e-300)
    return np.asarray(np.where(good, rotated**2 / np.where(good, values, 1.0), 0.0).sum(axis=1))


def permutation_p_value(
    scores: SubjectScores,
    groups: Indices,
    *,
    kind: str = "level",
    n_permutations: int = 9999,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Statistic of the labels given, and its p-value among random relabellings.

    (1 + #{permuted ≥ observed}) / (1 + n_permutations), which is valid for any number of
    permutations. They run where ``joblib.parallel_config`` says: in this process, or on a
    cluster.

    Parameters
    ----------
    groups : (K,)
        Labels 0 … G − 1.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    weights = bin_weights(scores.edges, scores.rate, kind)
    observed = float(statistics(scores, groups[None], weights)[0])
    at_once = -(-n_permutations // max(1, effective_n_jobs(None)))
    chunk = max(1, min(at_once, _CHUNK // max(len(groups), 1)))
    n_above = Parallel()(
        delayed(_n_above)(scores, labels, weights, observed * (1 - 1e-9))
        for labels in _relabelled(groups, n_permutations, chunk, rng)
    )
    return observed, (1 + sum(n_above)) / (1 + n_permutations)


def _relabelled(
    groups: Indices, n: int, chunk: int, rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Random relabellings, (at most chunk, K) at a time; the same for every chunk."""
    for first in range(0, n, chunk):
        yield rng.permuted(np.tile(groups, (min(chunk, n - first), 1)), axis=1)


def _n_above(scores: SubjectScores, labels: NDArray[np.intp], weights: Floats, limit: float) -> int:
    """Relabellings whose statistic reaches the limit."""
    return int((statistics(scores, labels, weights) >= limit).sum())


def _by_subject(rows: Floats, subject: Indices, n_subjects: int) -> Floats:
    """Sums of the rows of each subject, (N, B) → (K, B)."""
    sums = np.zeros((n_subjects, rows.shape[1]))
    np.add.at(sums, subject, rows)
    return sums
