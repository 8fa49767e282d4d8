r"""Scores of subjects: events minus those expected under the pooled rate, in bins of time.

The residual of subject k in bin b is

.. math::  M_{kb} = \text{events expected in the bin given the counts} - e_k \rho_b |b| ,

with ρ the pooled rate of the subject's stratum, constant on bins (EM for the unseen event times).
It has mean zero whatever the follow-up and however overdispersed the counts are. A count of R
expected events has the variance (1 + φ) R + v R², φ of bursts and v between subjects, so that the
best weights of subjects are c_k = 1 / (1 + φ + v R_k) (``docs/maths_comparison.md``). Bursts make
the counts of one subject scatter, v the totals of all: each is estimated where it shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.groups.null_regression import CovariateScores, NullFit, fit_null, information

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most time bins, and events per bin below which there are fewer
MAX_BINS, EVENTS_PER_BIN = 10, 10


@dataclass(frozen=True)
class CountMoments:
    """The variance (1 + φ) R + v R² of a subject's count with R expected events.

    Attributes
    ----------
    dispersion : float
        1 + φ.
    frailty_variance : float
        v.
    """

    dispersion: float = 1.0
    frailty_variance: float = 0.0

    def weights(self, expected: Floats) -> Floats:
        """R / Var, the weights of the best estimating equation."""
        return np.asarray(1.0 / (self.dispersion + self.frailty_variance * expected))


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
        watched there; weighted by 1 / (1 + φ + v · expected so far).
    watched : (K, B)
        Time that subjects were watched in the bins.
    poisson : (K, B)
        Variance that the residuals would have if counts were Poisson: the least there is.
    law : CountMoments
        Behind the weights c_k.
    covariates : CovariateScores, optional
        Of an adjusted comparison, whose exposures have exp(βᵀz) in them.
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
    law: CountMoments
    covariates: CovariateScores | None = None

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
    z: Floats | None = None,
) -> SubjectScores:
    """Residuals of subjects under the pooled rate of their stratum; nothing here knows of groups.

    Parameters
    ----------
    start, stop, count, exposure, subject : (N,)
        Rows of a panel.
    strata : (K,), optional
        Stratum of each subject, 0 … S − 1; one for all by default.
    z : (N, p), optional
        Covariates of the rows, whose effect on the rate is estimated and taken out.
    """
    strata = np.zeros(n_subjects, dtype=np.intp) if strata is None else strata
    z = np.zeros((len(count), 0)) if z is None else z
    edges = time_bins(start, stop, count)
    overlap = np.minimum(stop[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1])
    overlap = np.maximum(overlap, 0.0)
    at_risk = exposure[:, None] * overlap
    weights: Floats = np.ones(n_subjects)
    law, null = CountMoments(), None
    for _ in range(2):  # weights need a rate, the final rate needs the weights
        null = fit_null(at_risk, count, weights[subject], strata[subject], z, null)
        mean = null.mass.sum(axis=1)
        law = count_moments(count, mean, subject, n_subjects)
        weights = law.weights(np.bincount(subject, mean, n_subjects))  # type: ignore[arg-type]
    null = fit_null(at_risk, count, weights[subject], strata[subject], z, null)
    total = null.mass.sum(axis=1)
    ratio = np.divide(count, total, out=np.ones_like(total), where=total > 0)
    residual = _by_subject((ratio - 1.0)[:, None] * null.mass, subject, n_subjects)
    watched = _by_subject(overlap, subject, n_subjects)
    expected_in_bins = _by_subject(null.mass, subject, n_subjects)
    seen = np.minimum(watched / np.diff(edges), 1.0)
    so_far, expected_so_far = _so_far(residual, expected_in_bins, seen, strata, law)
    if z.shape[1]:
        at_risk = at_risk * np.exp(z @ null.beta)[:, None]
    found = SubjectScores(
        edges, strata, null.rate, weights[:, None] * residual,
        weights[:, None] * _by_subject(at_risk, subject, n_subjects),
        so_far, expected_so_far, watched,
        weights[:, None] ** 2 * expected_in_bins, law,
    )  # fmt: skip
    if not z.shape[1]:
        return found
    taken = _covariate_scores(null, z, (ratio - 1.0)[:, None] * null.mass, subject, weights, found)
    return replace(found, covariates=taken)


def _covariate_scores(
    null: NullFit, z: Floats, residual: Floats, subject: Indices, weights: Floats,
    scores: SubjectScores,
) -> CovariateScores:  # fmt: skip
    """What β̂ adds to the groups' scores; `residual` (N, B) is that of the rows."""
    n_subjects, strata = len(weights), scores.strata
    mean, inverse = information(null.mass, weights[subject], strata[subject], z)
    parts = [
        (
            _by_subject(residual * off, subject, n_subjects),
            _by_subject(null.mass * off, subject, n_subjects),
        )
        for off in (z[:, [j]] - mean[strata[subject], :, j] for j in range(z.shape[1]))
    ]
    score = weights[:, None] * np.stack([one.sum(axis=1) for one, _ in parts], axis=-1)
    slope = np.stack([each for _, each in parts], axis=-1)
    return CovariateScores(
        null.beta, score, weights[:, None, None] * slope,
        _slope_so_far(slope, _by_subject(null.mass, subject, n_subjects), scores), inverse,
    )  # fmt: skip


def _slope_so_far(slope: Floats, expected: Floats, scores: SubjectScores) -> Floats:
    """Minus the derivative by β of the residuals so far, (K, B, p), whose level follows β too."""
    plain = np.cumsum(expected, axis=1)
    mean = scores.expected_so_far
    weight = np.divide(mean, plain, out=np.zeros_like(mean), where=plain > 0)
    moved = weight[:, :, None] * np.cumsum(slope, axis=1)
    shape = (int(scores.strata.max()) + 1, *moved.shape[1:])
    sums, total = np.zeros(shape), np.zeros(shape[:2])
    np.add.at(sums, scores.strata, moved)
    np.add.at(total, scores.strata, mean)
    level = sums / np.where(total > 0, total, 1.0)[:, :, None]
    return np.asarray(moved - level[scores.strata] * mean[:, :, None])


def _so_far(
    residual: Floats, expected: Floats, seen: Floats, strata: Indices, law: CountMoments
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
    weight = seen * law.weights(mean)
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


def count_moments(count: Floats, mean: Floats, subject: Indices, n_subjects: int) -> CountMoments:
    """Moment estimates of 1 + φ, not below 1, and of v, not below 0.

    Given its effect υ, a subject's count m_j departs from its share π_j of the subject's total m
    with the variance (1 + φ) υ R π_j (1 − π_j), whatever the law of υ. So with both sums over all
    rows 1 + φ is Σ (m_j − π_j m)² / Σ π_j (1 − π_j) m. The totals give v, as
    Σ ((m − R)² − (1 + φ) R) / Σ R².

    Parameters
    ----------
    count, mean, subject : (N,)
        Of the rows; `mean` under the pooled rate.
    """
    total = np.bincount(subject, count, n_subjects).astype(np.float64)
    expected = np.bincount(subject, mean, n_subjects).astype(np.float64)
    share = np.divide(mean, expected[subject], out=np.zeros_like(mean), where=mean > 0)
    scatter = float(((count - share * total[subject]) ** 2).sum())
    plain = float((share * (1.0 - share) * total[subject]).sum())
    dispersion = max(scatter / plain, 1.0) if plain > 0 else 1.0
    spread = float(((total - expected) ** 2 - dispersion * expected).sum())
    size = float((expected**2).sum())
    return CountMoments(dispersion, max(spread / size, 0.0) if size > 0 else 0.0)


def _by_subject(rows: Floats, subject: Indices, n_subjects: int) -> Floats:
    """Sums of the rows of each subject, (N, B) → (K, B)."""
    sums = np.zeros((n_subjects, rows.shape[1]))
    np.add.at(sums, subject, rows)
    return sums
