r"""The permutation test of two arms from sums over subjects: the same statistic, many times faster.

:func:`gp4c.analysis.permutation.statistics` forms every subject's influence ψ_k in every
relabelling. For two arms U and V are sums of a few columns over the first arm: with s_kd the
weighted sum of a subject's residuals and z̄ the first arm's share of the exposure in each bin,

.. math::  \psi_{kd} = z_k s_{kd} - \sum_b \bar z_b w_{bd} M_{kb} , \qquad
           V_{de} = \sum_k z_k s_{kd} s_{ke} - \sum_b \bar z_b (A_{deb} + A_{edb})
                    + \sum_{bc} \bar z_b \bar z_c B_{debc} ,

.. math::  A_{deb} = \sum_k z_k s_{kd} w_{be} M_{kb} , \qquad
           B_{debc} = \sum_k w_{bd} M_{kb} w_{ce} M_{kc} ,

so that one product of the labels with a table of columns gives all relabellings. Labels are
permuted within strata, each of which has scores from its own pooled rate; U and V are summed over
strata.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.permutation import SubjectScores, bin_weights

Floats = NDArray[np.float64]
#: directions of V with less than this share of its largest eigenvalue are left out
_NO_VARIANCE = 1e-10
#: values this close to the observed one are ties
_TIE = 1e-9


def n_above(
    strata: Sequence[tuple[SubjectScores, NDArray[np.bool_]]],
    kind: str,
    n_permutations: int,
    rng: np.random.Generator,
) -> int:
    """Relabellings whose statistic reaches that of the labels given.

    (1 + n_above) / (1 + n_permutations) is the p-value.

    Parameters
    ----------
    strata : sequence of (SubjectScores, (K,) bool)
        Scores of the subjects of a stratum, and who is in the first arm.
    """
    parts = []
    for scores, first in strata:
        labels = np.empty((n_permutations + 1, len(first)), dtype=np.float64)
        labels[0] = first
        labels[1:] = rng.permuted(np.tile(labels[0], (n_permutations, 1)), axis=1)
        parts.append(score_and_variance(scores, labels, kind))
    score, variance = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
    values = studentised(score, variance)
    return int((values[1:] >= values[0] * (1 - _TIE)).sum())


def score_and_variance(scores: SubjectScores, labels: Floats, kind: str) -> tuple[Floats, Floats]:
    """U, (P, d), and V, (P, d, d), of labellings (P, K) with 1 in the first arm."""
    weights = _two_columns(bin_weights(scores.edges, scores.rate, kind), kind)
    weighted = np.einsum("kb,bd->dkb", scores.residual, weights)
    summed = weighted.sum(axis=2)  # s, (d, K)
    at_risk = scores.exposure.sum(axis=0)
    share = scores.exposure / np.where(at_risk > 0, at_risk, 1.0)
    n_kinds, n_bins = len(summed), share.shape[1]
    squares = np.einsum("dk,ek->kde", summed, summed).reshape(len(share), -1)
    crossed = np.einsum("dk,ekb->kdeb", summed, weighted).reshape(len(share), -1)
    columns = labels @ np.hstack([share, summed.T, squares, crossed])
    mean, own, square, cross = np.split(
        columns, np.cumsum([n_bins, n_kinds, n_kinds * n_kinds]), axis=1
    )
    inner = np.einsum("dkb,ekc->debc", weighted, weighted)
    mixed = np.einsum("pb,pdeb->pde", mean, cross.reshape(-1, n_kinds, n_kinds, n_bins))
    variance = (
        square.reshape(-1, n_kinds, n_kinds)
        - mixed
        - mixed.transpose(0, 2, 1)
        + np.einsum("pb,debc,pc->pde", mean, inner, mean, optimize=True)
    )
    return own - mean @ weighted.sum(axis=1).T, variance


def _two_columns(weights: Floats, kind: str) -> Floats:
    """The same number of columns in every stratum: no trend where there is one bin only."""
    if kind == "level" or weights.shape[1] > 1:
        return weights
    return np.hstack([weights, np.zeros_like(weights)])


def studentised(score: Floats, variance: Floats) -> Floats:
    """Uᵀ V⁺ U of stacks; directions without variance are left out."""
    values, vectors = np.linalg.eigh(variance)
    rotated = np.einsum("pde,pd->pe", vectors, score)
    good = values > _NO_VARIANCE * values.max(axis=1, keepdims=True, initial=1e-300)
    return np.asarray(np.where(good, rotated**2 / np.where(good, values, 1.0), 0.0).sum(axis=1))
