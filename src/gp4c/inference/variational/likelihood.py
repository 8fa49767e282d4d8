"""The data as the bound sees them: exposure weights, counted intervals and event times on a grid.

Everything is in unit time and unit rate; `units` brings the bound back to the user's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.inference.variational.count_terms.count_term import (
    NOTHING,
    CountTerm,
    NodeTerm,
    count_term,
)
from gp4c.inference.variational.expected_logs.log_square import expected_log_square
from gp4c.inference.variational.exposure import Exposure, subject_cost
from gp4c.inference.variational.subject_integrals import SubjectIntegrals
from gp4c.model.observations import Observations
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.model.table_integrals import integrals_over

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Likelihood:
    """Terms of the bound as functions of the mean and variance of f at the grid's nodes.

    Attributes
    ----------
    exposure : Exposure
        The cost of E f² at the nodes.
    integrals, start, stop, count
        The intervals with at least one event; the others enter through the exposure only.
    to_events : (N, Q) or None
        Interpolation from the nodes to exact event times.
    term, b
        How E ln ∫ f² is computed.
    units : float
        What the user's units add to the bound: Σ m ln(rate · exposure), events alike.
    """

    grid: Grid
    exposure: Exposure
    integrals: IntervalIntegrals
    start: Floats
    stop: Floats
    count: Floats
    to_events: sparse.csr_array | None
    term: CountTerm
    b: float
    units: float

    @classmethod
    def of(
        cls, data: Observations, grid: Grid, name: str, b: float, effect: str | None = None
    ) -> Likelihood:
        """Lay the observations on a grid, with the count term of that name."""
        term, seen = count_term(name), data.count != 0  # weights of nodes may be negative
        start, stop = data.start[seen], data.stop[seen]
        everywhere = integrals_over(grid, data.start, data.stop)
        exposure = Exposure(everywhere.transpose(data.exposure))
        if effect is not None:
            subjects = SubjectIntegrals(everywhere, data.by_subject)
            exposure = Exposure(
                exposure.base_weights, subjects, data.totals, subject_cost(effect)
            )  # fmt: skip
        return cls(
            grid=grid,
            exposure=exposure,
            integrals=IntervalIntegrals(grid, start, stop, often=not term.within),
            start=start,
            stop=stop,
            count=data.count[seen],
            to_events=grid.interpolation(data.events) if len(data.events) else None,
            term=term,
            b=b,
            units=data.constant,
        )

    def with_counts(self, count: Floats, totals: Floats) -> Likelihood:
        """The same intervals and subjects with other numbers of events, which may be fractions."""
        return replace(self, count=count, exposure=replace(self.exposure, totals=totals))

    def counts(self, mean: Floats, variance: Floats) -> NodeTerm:
        """The part of the count term that pointwise moments decide; others are in blocks."""
        if not len(self.count):
            return NOTHING
        return self.term.at_nodes(self.integrals, self.count, mean, variance, self.b)

    def events(self, mean: Floats, variance: Floats) -> NodeTerm:
        """Σ E ln f² at exact event times."""
        if self.to_events is None:
            return NOTHING
        at_mean = self.to_events @ mean
        at_variance = np.maximum(self.to_events @ variance, 0.0)
        value, by_mean, by_variance = expected_log_square(at_mean, at_variance)
        back = self.to_events.T
        return NodeTerm(float(value.sum()), back @ by_mean, back @ by_variance)
