"""The data as the bound sees them: exposure weights, counted intervals and event times on a grid.

Everything is in unit time and unit rate; what the scaling costs is in `constant`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.inference.variational.count_terms import LEMMA2_CONSTANT, pointwise, theorem1
from gp4c.inference.variational.expected_logs.log_square import expected_log_square
from gp4c.inference.variational.exposure import SUBJECT_COSTS, Exposure
from gp4c.inference.variational.subject_integrals import SubjectIntegrals
from gp4c.model.observations import Observations
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.model.table_integrals import integrals_over

Floats = NDArray[np.float64]

#: count terms by name, each with its words in a methods section
COUNT_TERMS = {
    "lemma2": "with the bound of the original paper (b = {b:g})",
    "pointwise": "with a pointwise lower bound on the expected log-intensity of each interval",
    "exact": "with the expected log-intensity of each interval evaluated exactly",
}


@dataclass(frozen=True)
class NodeTerms:
    """Terms of the bound that need only pointwise moments, and their derivatives at the nodes."""

    counts: float
    events: float
    exposure: float
    by_mean: Floats
    by_variance: Floats


@dataclass(frozen=True)
class Likelihood:
    """Expected log-likelihood as a function of the mean and variance of f at the grid's nodes.

    Attributes
    ----------
    exposure : Exposure
        The cost of E f² at the nodes.
    integrals, start, stop, count
        The intervals with at least one event; the others enter through the exposure only.
    to_events : (N, Q) or None
        Interpolation from the nodes to exact event times.
    count_term, b
        How E ln ∫ f² is computed.
    constant : float
        The constant of the observations, and Lemma 2's where it is used.
    """

    grid: Grid
    exposure: Exposure
    integrals: IntervalIntegrals
    start: Floats
    stop: Floats
    count: Floats
    to_events: sparse.csr_array | None
    count_term: str
    b: float
    constant: float

    @classmethod
    def of(
        cls, data: Observations, grid: Grid, count_term: str, b: float, effect: str | None = None
    ) -> Likelihood:
        """Lay the observations on a grid."""
        seen = data.count != 0  # weights of nodes may be negative
        start, stop = data.start[seen], data.stop[seen]
        everywhere = integrals_over(grid, data.start, data.stop)
        exposure = Exposure(everywhere.transpose(data.exposure))
        if effect is not None:
            cost = SUBJECT_COSTS[effect]
            exposure = replace(
                exposure, subjects=SubjectIntegrals(everywhere, data.by_subject),
                totals=data.totals, subject_cost=cost,
            )  # fmt: skip
        constant = data.constant
        if count_term == "lemma2":
            constant -= LEMMA2_CONSTANT * float(data.count.sum())
        return cls(
            grid=grid,
            exposure=exposure,
            integrals=IntervalIntegrals(grid, start, stop, often=count_term != "exact"),
            start=start,
            stop=stop,
            count=data.count[seen],
            to_events=grid.interpolation(data.events) if len(data.events) else None,
            count_term=count_term,
            b=b,
            constant=constant,
        )

    @property
    def largest(self) -> int:
        """Most rows that anything has: nodes, counted intervals, or intervals of subjects."""
        subjects = self.exposure.subjects
        seen = subjects.largest if subjects is not None else 0
        return max(len(self.grid.nodes), self.integrals.size, seen)

    def node_terms(self, mean: Floats, variance: Floats, shape: float) -> NodeTerms:
        """All terms but the exact count term, which needs covariances (see `exact`)."""
        counts = events = 0.0
        exposure, weights = self.exposure(mean**2 + variance, shape)
        by_mean, by_variance = -2 * mean * weights, -weights
        if len(self.count) and self.count_term != "exact":
            counts, count_mean, count_variance = self._counts(mean, variance)
            by_mean, by_variance = by_mean + count_mean, by_variance + count_variance
        if self.to_events is not None:
            events, event_mean, event_variance = self._events(mean, variance)
            by_mean, by_variance = by_mean + event_mean, by_variance + event_variance
        return NodeTerms(counts, events, exposure, by_mean, by_variance)

    def _counts(self, mean: Floats, variance: Floats) -> tuple[float, Floats, Floats]:
        if self.count_term == "lemma2":
            return theorem1(self.integrals, self.count, mean, variance, self.b)
        return pointwise(self.integrals, self.count, mean, variance)

    def _events(self, mean: Floats, variance: Floats) -> tuple[float, Floats, Floats]:
        assert self.to_events is not None
        at_mean = self.to_events @ mean
        at_variance = np.maximum(self.to_events @ variance, 0.0)
        value, by_mean, by_variance = expected_log_square(at_mean, at_variance)
        back = self.to_events.T
        return float(value.sum()), back @ by_mean, back @ by_variance
