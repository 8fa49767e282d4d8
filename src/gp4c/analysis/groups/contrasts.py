r"""Statistics of labellings: what differs between groups, divided by its error between subjects.

With residuals M (K, B) of subjects, exposures E (K, B) and weights w over the columns, group g of
one stratum has the score

.. math::  U_g = \sum_k \psi_{kg}, \qquad
           \psi_{kg} = \sum_b w_b (1\{k \in g\} - \bar z_{gb}) M_{kb}, \qquad
           \bar z_{gb} = \sum_{k \in g} E_{kb} \Big/ \sum_k E_{kb} .

Scores and their covariances :math:`V_{gh} = \sum_k \psi_{kg} \psi_{kh}` add up over strata; the
statistic is Uᵀ V⁺ U, with the sign of U where that is one number. Multiplied out, everything is a
product of the matrix of memberships with few columns, so that ten thousand labellings take
milliseconds.

Adjusted for covariates, ψ_kg loses Γ_gᵀ s_k (:mod:`gp4c.analysis.groups.null_regression`), where
Γ_g is a sum over the members of the group too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.groups.bin_scores import SubjectScores

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Labels = NDArray[np.integer]

#: variances below this share of the largest are zero
_SMALL = 1e-10
#: and so are those below this share of the residuals' squares
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Taken:
    """What covariates take out of scores: Γ_gᵀ s_k, Γ_g the sum of `drift` over the group.

    Attributes
    ----------
    drift : (K, p), or (K, B, p) for columns by themselves
    score : (K, p)
        s of each subject.
    """

    drift: Floats
    score: Floats


def taken_out(scores: SubjectScores, weights: Floats | None) -> Taken | None:
    """What covariates take out of scores with weights over time, or (None) of numbers so far."""
    known = scores.covariates
    if known is None:
        return None
    return Taken(known.drift_so_far if weights is None else known.drift(weights), known.score)


def score_statistics(
    residual: Floats,
    exposure: Floats,
    weights: Floats,
    strata: Indices,
    labels: Labels,
    n_groups: int,
    trend: Floats | None = None,
    least: Floats | None = None,
    taken: Taken | None = None,
) -> Floats:
    """Uᵀ V⁺ U of each labelling, (P,); with the sign of U if it is one number.

    Parameters
    ----------
    weights : (B,)
    labels : (P, K)
        Groups 0 … G − 1; the last is left out, as the scores of all groups sum to zero.
    trend : (G,), optional
        Scores x of the groups: the statistic of Σ_g x_g U_g alone, (xᵀU)² / xᵀVx, signed.
    least : (K, B), optional
        Variances of the residuals, such as Poisson's, below which xᵀVx does not fall.
    taken : Taken, optional
        What covariates take out.
    """
    total, covariance = score_moments(residual, exposure, weights, strata, labels, n_groups, taken)
    size = (np.abs(residual * weights).sum(axis=1) ** 2).sum()
    if trend is None:
        form = _form(total, covariance, np.asarray(size))
        return form if n_groups > 2 else np.copysign(form, total[:, 0])
    x = (trend[:-1] - trend[-1]) / np.ptp(trend)
    variance = covariance @ x @ x
    if least is not None:
        each = _column_covariance(least * weights**2, exposure, strata, labels, n_groups)
        variance = np.maximum(variance, each.sum(axis=1) @ x @ x)
    along = total @ x
    form = _form(along[:, None], variance[:, None, None], np.asarray(size))
    return np.copysign(form, along)  # type: ignore[no-any-return]


def score_moments(
    residual: Floats,
    exposure: Floats,
    weights: Floats,
    strata: Indices,
    labels: Labels,
    n_groups: int,
    taken: Taken | None = None,
) -> tuple[Floats, Floats]:
    """U (P, G − 1) and V (P, G − 1, G − 1) of each labelling."""
    weighted = residual * weights
    q = n_groups - 1
    total, covariance = np.zeros((len(labels), q)), np.zeros((len(labels), q, q))
    n_taken = 0 if taken is None else taken.score.shape[1]
    with_score = np.zeros((len(labels), q, n_taken))  # Σ_k ψ_kg s_k before anything is taken
    for stratum in np.unique(strata):
        some = np.flatnonzero(strata == stratum)
        part, summed = weighted[some], weighted[some].sum(axis=1)
        members = [(labels[:, some] == g).astype(np.float64) for g in range(q)]
        means = [member @ _shares(exposure[some]) for member in members]
        crossed = [member @ (summed[:, None] * part) for member in members]
        outer = part.T @ part
        for g, (member, mean) in enumerate(zip(members, means, strict=True)):
            total[:, g] += member @ summed - mean @ part.sum(axis=0)
            covariance[:, g, g] += member @ summed**2
            if taken is not None:
                mine = taken.score[some]
                with_score[:, g] += member @ (summed[:, None] * mine) - mean @ (part.T @ mine)
            for h in range(q):
                covariance[:, g, h] -= (crossed[g] * means[h] + crossed[h] * mean).sum(axis=1)
                covariance[:, g, h] += ((mean @ outer) * means[h]).sum(axis=1)
    if taken is None:
        return total, covariance
    gamma = np.stack([(labels == g).astype(float) @ taken.drift for g in range(q)], axis=1)
    return _without(total, covariance, with_score, gamma, taken.score)


def _without(
    total: Floats, covariance: Floats, with_score: Floats, gamma: Floats, score: Floats
) -> tuple[Floats, Floats]:
    """U and V after Γ_gᵀ s_k is taken from ψ_kg; `with_score` and `gamma` are (..., G − 1, p)."""
    both = np.einsum("...gp,...hp->...gh", with_score, gamma)
    square = np.einsum("...gp,pq,...hq->...gh", gamma, score.T @ score, gamma, optimize=True)
    less = covariance - both - np.swapaxes(both, -1, -2) + square
    return total - gamma @ score.sum(axis=0), less


def column_statistics(
    residual: Floats,
    exposure: Floats,
    strata: Indices,
    labels: Labels,
    n_groups: int,
    taken: Taken | None = None,
) -> Floats:
    """Uᵀ V⁺ U of each column by itself, (P, B)."""
    q, n_columns = n_groups - 1, residual.shape[1]
    total = np.zeros((len(labels), n_columns, q))
    n_taken = 0 if taken is None else taken.score.shape[1]
    with_score = np.zeros((len(labels), n_columns, q, n_taken))
    for stratum in np.unique(strata):
        some = np.flatnonzero(strata == stratum)
        part, share = residual[some], _shares(exposure[some])
        for g in range(q):
            member = (labels[:, some] == g).astype(np.float64)
            total[:, :, g] += member @ part - (member @ share) * part.sum(axis=0)
            for j in range(n_taken):
                each = part * taken.score[some, j][:, None]  # type: ignore[union-attr]
                with_score[:, :, g, j] += member @ each - (member @ share) * each.sum(axis=0)
    covariance = _column_covariance(residual**2, exposure, strata, labels, n_groups)
    if taken is not None:
        gamma = np.stack(
            [np.tensordot((labels == g).astype(float), taken.drift, 1) for g in range(q)], axis=2
        )
        total, covariance = _without(total, covariance, with_score, gamma, taken.score)
    return _form(total, covariance, (residual**2).sum(axis=0))


def _column_covariance(
    square: Floats, exposure: Floats, strata: Indices, labels: Labels, n_groups: int
) -> Floats:
    """Σ_k (1{k ∈ g} − z̄_gb)(1{k ∈ h} − z̄_hb) square_kb, (P, B, G − 1, G − 1)."""
    q = n_groups - 1
    result = np.zeros((len(labels), square.shape[1], q, q))
    for stratum in np.unique(strata):
        some = np.flatnonzero(strata == stratum)
        members = [(labels[:, some] == g).astype(np.float64) for g in range(q)]
        means = [member @ _shares(exposure[some]) for member in members]
        squares = [member @ square[some] for member in members]
        for g, mean in enumerate(means):
            result[:, :, g, g] += squares[g]
            for h in range(q):
                both = squares[g] * means[h] + squares[h] * mean
                result[:, :, g, h] += mean * means[h] * square[some].sum(axis=0) - both
    return result


def joint_watch(watched: Floats, strata: Indices, labels: Labels, n_groups: int) -> Floats:
    r"""Time in each column that tells of a difference, (P, B).

    :math:`\sum_s W_s \sum_g q_{gs}(1 - q_{gs})`, W the time that the subjects of a stratum were
    watched and q the groups' shares of it: nothing where one group is left.
    """
    result = np.zeros((len(labels), watched.shape[1]))
    for stratum in np.unique(strata):
        some = np.flatnonzero(strata == stratum)
        total = watched[some].sum(axis=0)
        result += total
        for g in range(n_groups):
            mine = (labels[:, some] == g).astype(np.float64) @ watched[some]
            result -= mine**2 / np.where(total > 0, total, 1.0)
    return np.maximum(result, 0.0)


def _shares(exposure: Floats) -> Floats:
    """Each subject's share of the exposure of its stratum, column by column."""
    total = exposure.sum(axis=0)
    return np.asarray(exposure / np.where(total > 0, total, 1.0))


def _form(vector: Floats, matrix: Floats, size: Floats) -> Floats:
    """Uᵀ V⁺ U for stacks; directions without variance are left out.

    `size` is what a variance could be at most: one that is much smaller is rounding, as where all
    counts lie in one interval and nothing is known about early and late.
    """
    if vector.shape[-1] == 1:
        value, variance = vector[..., 0], matrix[..., 0, 0]
        good = variance > _ROUNDING * size
        return np.asarray(np.where(good, value**2 / np.where(good, variance, 1.0), 0.0))
    values, vectors = np.linalg.eigh(matrix)
    rotated = np.einsum("...qr,...q->...r", vectors, vector)
    least = np.maximum(_SMALL * values.max(axis=-1, initial=0.0), _ROUNDING * size)
    good = values > least[..., None]
    return np.asarray(np.where(good, rotated**2 / np.where(good, values, 1.0), 0.0).sum(axis=-1))
