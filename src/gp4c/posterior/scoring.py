"""Held-out log-likelihood of panel counts given draws of the interval integrals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from gp4c.model.laws import EFFECTS, SubjectEffect

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: of a law of effects without parameters
NO_PARAMETERS = np.zeros(0)


@dataclass(frozen=True)
class ScoredRows:
    """Rows to score: counts m on intervals (by index) of subjects (by index) with exposures."""

    count: Floats
    exposure: Floats
    subject: Indices
    interval: Indices
    n_subjects: int

    @property
    def totals(self) -> Floats:
        """Events of each subject."""
        return np.bincount(self.subject, self.count, self.n_subjects).astype(np.float64)

    def expected(self, integrals: Floats) -> Floats:
        """Expected counts of the subjects at effect 1, for each draw: (S, J) → (S, K)."""
        return self._by_subject(integrals[:, self.interval] * self.exposure)

    def counts_term(self, integrals: Floats) -> Floats:
        """Σ m ln(exposure · ∫λ) of each subject, for each draw: (S, J) → (S, K)."""
        with np.errstate(divide="ignore"):
            return self._by_subject(xlogy(self.count, self.exposure * integrals[:, self.interval]))

    def _by_subject(self, rows: Floats) -> Floats:
        starts = np.flatnonzero(np.diff(self.subject, prepend=-1))
        sums = np.zeros((len(rows), self.n_subjects))
        sums[:, self.subject[starts]] = np.add.reduceat(rows, starts, axis=1)
        return sums


def subject_log_likelihoods(
    rows: ScoredRows,
    integrals: Floats,
    *,
    effect: SubjectEffect = EFFECTS[None],
    psi: Floats = NO_PARAMETERS,
    weights: Floats | None = None,
) -> Floats:
    """ln p(counts of subject k | draw s) + Σ ln m!, shape (S, K).

    Parameters
    ----------
    integrals : (S, J)
        Draws of ∫λ over the distinct intervals.
    effect, psi : SubjectEffect, (P,)
        The law of the effects, integrated out in closed form, and its parameters.
    weights : (K,), optional
        Known effects, which multiply the subjects' intensities.
    """
    counts, expected = rows.counts_term(integrals), rows.expected(integrals)
    if effect.varies:
        return counts + effect.closed_form_each(rows.totals, expected.T, psi[:, None]).T
    if weights is not None:
        return np.asarray(counts + xlogy(rows.totals, weights) - weights * expected)
    return counts - expected


def log_mean_exp(values: Floats) -> tuple[Floats, Floats]:
    """ln of the mean of exp(values) over the first axis, and its Monte-Carlo standard error."""
    n = len(values)
    result = logsumexp(values, axis=0) - np.log(n)
    relative = np.exp(values - np.where(np.isfinite(result), result, 0.0))
    error = relative.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full_like(result, np.nan)
    return result, error
