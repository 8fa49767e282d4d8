"""The rows of a panel as the classical estimators use them, with a multiplicity per subject.

Subjects are put in the order of their content, so that no result can depend on labels or on the
order of the input, not even by rounding. A bootstrap sample is the same rows with other
multiplicities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gp4c.classical.visit_cells import Flags, Floats, Grid, Indices, group_sums

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts


@dataclass(frozen=True, eq=False)
class PanelRows:
    """N rows of K subjects on a grid of D distinct intervals.

    Attributes
    ----------
    order : (K,)
        Subject k here is subject ``order[k]`` of the panel.
    subject, interval : (N,)
        Subject and distinct interval of each row; rows sorted by subject, then start.
    start, stop, count, exposure : (N,)
    grid : Grid
        The distinct intervals on the cells between all end points.
    window : (float, float)
    z : (N, p), optional
        Covariates, for an estimator that has a formula.
    """

    order: Indices
    subject: Indices
    interval: Indices
    start: Floats
    stop: Floats
    count: Floats
    exposure: Floats
    grid: Grid
    window: tuple[float, float]
    z: Floats | None = None

    @classmethod
    def of(cls, panel: PanelCounts) -> PanelRows:
        """Rows of a panel, subjects by content."""
        order = panel.content_order()
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        rows = np.argsort(rank[panel.subject_index], kind="stable")
        distinct = panel.distinct()
        return cls(
            order=order,
            subject=rank[panel.subject_index][rows],
            interval=distinct.inverse[rows],
            start=panel.start[rows],
            stop=panel.stop[rows],
            count=panel.count[rows].astype(np.float64),
            exposure=panel.exposure[rows].astype(np.float64),
            grid=Grid.of(distinct.start, distinct.stop),
            window=panel.window,
        )

    @property
    def n_subjects(self) -> int:
        """K."""
        return len(self.order)

    def by_interval(self, values: Floats) -> Floats:
        """Sum of row values over each distinct interval, (D,)."""
        return group_sums(self.interval, values, len(self.grid.runs))

    def by_subject(self, values: Floats) -> Floats:
        """Sum of row values over each subject, (K,)."""
        return group_sums(self.subject, values, self.n_subjects)

    def time_at_risk(self) -> Floats:
        """Exposure times length of each row, (N,)."""
        return self.exposure * (self.stop - self.start)

    def in_panel_order(self, values: Floats) -> Floats:
        """Put values of the subjects here into the panel's order, (K,)."""
        result = np.empty(self.n_subjects)
        result[self.order] = values
        return result

    def unbroken(self) -> Flags:
        """Rows up to which a subject was seen without a break since the earliest start, (N,).

        False from the first row of a subject that does not begin where the one before ended (the
        first: at the earliest start of all), or that has another exposure. Cumulative counts are
        comparable with Λ on the other rows only.
        """
        first = np.diff(self.subject, prepend=-1) != 0
        linked = np.concatenate([[False], self.start[1:] == self.stop[:-1]])
        linked &= np.concatenate([[False], self.exposure[1:] == self.exposure[:-1]])
        broken = ~np.where(first, self.start == self.start.min(), linked)
        so_far = np.cumsum(broken)
        before = np.repeat((so_far - broken)[first], np.bincount(self.subject))
        return np.asarray(so_far == before, dtype=np.bool_)

    def cumulative_count(self) -> Floats:
        """Events of the subject up to the end of each row, (N,)."""
        total = np.cumsum(self.count)
        first = np.diff(self.subject, prepend=-1) != 0
        before = np.repeat((total - self.count)[first], np.bincount(self.subject))
        return np.asarray(total - before, dtype=np.float64)
