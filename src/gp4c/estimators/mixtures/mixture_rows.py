"""Counts of subjects under combinations of bases: weights that fit them, likelihoods, scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.bases.basis_weights import EventRows, best_weights
from gp4c.model.quadrature import IntervalIntegrals
from gp4c.posterior.joint_score import CountLaw, SquaredCurve, mean_log_likelihood
from gp4c.posterior.scoring import ScoredRows, subject_log_likelihoods
from gp4c.posterior.summed.summed_posterior import SummedPosterior
from gp4c.posterior.weight_law import WeightLaw

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: most points from which the law of weights chooses
_MOST_POINTS = 500
#: least expected number
_TINY = 1e-300


def event_rows(panel: PanelCounts, counted: NDArray[np.bool_]) -> EventRows:
    """The rows of a panel with events; `counted` says which distinct intervals have any."""
    place, rows = np.cumsum(counted) - 1, np.flatnonzero(panel.count > 0)
    return EventRows(
        np.asarray(panel.subject_index[rows], dtype=np.intp), place[panel.distinct().inverse[rows]],
        panel.count[rows].astype(np.float64), panel.n_subjects, int(counted.sum()),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """Rows of a panel beside the bases of a fit.

    Attributes
    ----------
    panel : PanelCounts
        Within the window of the fit.
    posterior : SummedPosterior
        The bases.
    """

    panel: PanelCounts
    posterior: SummedPosterior

    @property
    def rows(self) -> ScoredRows:
        """The rows as likelihoods take them."""
        panel = self.panel
        return ScoredRows(
            panel.count.astype(np.float64), panel.exposure, panel.subject_index,
            panel.distinct().inverse, panel.n_subjects,
        )  # fmt: skip

    def integrals(self) -> Floats:
        """E ∫ over the distinct intervals of each basis, (L, J)."""
        distinct = self.panel.distinct()
        found = self.posterior.expected_integrals(distinct.start, distinct.stop)
        return np.maximum(found, _TINY)

    def own_weights(self) -> Floats:
        """Weights that fit the subjects' own counts best at the mean curves, (K, L)."""
        distinct, mean = self.panel.distinct(), self.integrals()
        counted = distinct.count > 0
        expected = np.maximum(self.rows.expected(mean).T, _TINY)
        events = event_rows(self.panel, counted)
        return best_weights(
            events, np.log(mean[:, counted].T), expected, np.ones_like(expected)
        ).weights

    def factors(self, weights: Floats) -> Floats:
        """What weights (K, L) make of the rows' expected numbers at mean weights, (N,)."""
        distinct, mean = self.panel.distinct(), self.integrals()
        rows = mean[:, distinct.inverse]
        own = (weights[self.panel.subject_index].T * rows).sum(axis=0)
        return np.asarray(own / rows.sum(axis=0))

    def log_likelihoods(self, weights: Floats, integrals: Floats | None = None) -> Floats:
        """ln p(counts of subject k | weights a) + Σ ln m!, (A, K); at the mean curves by default.

        Parameters
        ----------
        weights : (A, L)
        integrals : (L, J)
            Of the bases over the distinct intervals.
        """
        given = self.integrals() if integrals is None else integrals
        return subject_log_likelihoods(self.rows, weights @ given)

    def weight_law(self, weights: Floats) -> WeightLaw:
        """The law of weights on points among the fitted ones, most likely for these subjects."""
        points = np.unique(weights, axis=0)
        if len(points) > _MOST_POINTS:
            points = points[np.linspace(0, len(points) - 1, _MOST_POINTS).astype(np.intp)]
        return WeightLaw.fitted(points, self.log_likelihoods(points))

    def new_subject_draws(self, law: WeightLaw, size: int, rng: np.random.Generator) -> Floats:
        """ln p(counts of subject k | curves s), the weights averaged over their law, (S, K)."""
        distinct = self.panel.distinct()
        draws = self.posterior.sample_parts(distinct.start, distinct.stop, size, rng)
        return np.array(
            [
                law.mixed(self.log_likelihoods(law.weights, np.maximum(one, _TINY)))
                for one in draws.transpose(1, 0, 2)
            ]
        )

    def refitted_draws(self, size: int, rng: np.random.Generator) -> Floats:
        """ln p(counts of subject k | curves s) with the subjects' own weights, (S, K)."""
        distinct, weights = self.panel.distinct(), self.own_weights()
        draws = self.posterior.sample_parts(distinct.start, distinct.stop, size, rng)
        law, own = self._by_row(weights)
        rows = own * np.take(draws, distinct.inverse, axis=2)  # (L, S, N)
        return subject_log_likelihoods(law.rows, rows.sum(axis=0))

    def joint_refitted(self, size: int, rng: np.random.Generator) -> tuple[float, float]:
        """Log-likelihood of all counts together with the subjects' own weights, and its error."""
        distinct = self.panel.distinct()
        law, own = self._by_row(self.own_weights())
        parts, means, factors = [], [], []
        for part in self.posterior.parts:
            integrals = part.integrals(distinct.start, distinct.stop)
            mean, factor, _ = part.spread(integrals.grid.nodes)
            parts.append(integrals)
            means.append(mean * np.sqrt(part.rate))
            factors.append(factor * np.sqrt(part.rate))
        from scipy.linalg import block_diag

        by_row = _RowIntegrals(tuple(parts), own[:, 0], distinct.inverse)
        curve = SquaredCurve(law, by_row, 1.0, np.concatenate(means), block_diag(*factors))
        return mean_log_likelihood(curve, size, rng)

    def _by_row(self, weights: Floats) -> tuple[CountLaw, Floats]:
        """The law of rows that are intervals of their own, and the rows' weights (L, 1, N)."""
        rows = self.rows
        each = ScoredRows(
            rows.count, rows.exposure, rows.subject, np.arange(len(rows.count)), rows.n_subjects
        )
        return CountLaw(each), weights[rows.subject].T[:, None, :]


@dataclass(frozen=True)
class _RowIntegrals:
    """Σ_l w_l ∫ of the rows, from values at the nodes of all bases beside each other."""

    parts: tuple[IntervalIntegrals, ...]
    weights: Floats
    interval: NDArray[np.intp]

    def apply(self, values: Floats) -> Floats:
        """Integrals (N,) or (N, S)."""
        ends = np.cumsum([len(part.grid.nodes) for part in self.parts])
        total: Floats = np.zeros((len(self.interval), *values.shape[1:]))
        for part, weight, own in zip(
            self.parts, self.weights, np.split(values, ends[:-1]), strict=True
        ):
            integrals = part.apply(own)[self.interval]
            total += weight.reshape(-1, *(1,) * (values.ndim - 1)) * integrals
        return total
