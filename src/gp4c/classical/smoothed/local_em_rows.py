"""A panel in unit time, ready for local EM: whole, in folds, or resampled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.smoothed.local_em_steps import LocalEMData
from gp4c.classical.smoothed.smoothing import Smoother
from gp4c.classical.visit_cells import Floats, Grid, Indices, group_sums

UNIT = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class UnitRows:
    """Rows with time counted from the window's start in units of its length.

    Bandwidths are shares of the window here, so that no result depends on the unit of time.
    """

    rows: PanelRows
    grid: Grid
    length: float

    @classmethod
    def of(cls, rows: PanelRows) -> UnitRows:
        """Scale the grid of a panel."""
        low, high = rows.window
        points = (rows.grid.points - low) / (high - low)
        return cls(rows, Grid(points, rows.grid.runs), high - low)

    def data(self, weights: Floats) -> LocalEMData:
        """Return all subjects, with multiplicities (K,)."""
        count, exposure = self._summed(weights, np.zeros(self.rows.n_subjects, dtype=np.intp), 1)
        return LocalEMData(self.grid, count, exposure)

    def folds(self, fold: Indices, weights: Floats) -> tuple[LocalEMData, LocalEMData]:
        """Training and held-out data of each fold, as columns.

        Parameters
        ----------
        fold : (K,)
            Fold in which each subject is held out.
        weights : (K,)
            Multiplicities; copies of a subject stay together.
        """
        count, exposure = self._summed(weights, fold, int(fold.max()) + 1)
        rest_count = count.sum(axis=1, keepdims=True) - count
        rest_exposure = np.stack(
            [np.delete(exposure, f, axis=1).sum(axis=1) for f in range(exposure.shape[1])], axis=1
        )
        return (
            LocalEMData(self.grid, rest_count, rest_exposure),
            LocalEMData(self.grid, count, exposure),
        )

    def smoother(self, share: float) -> Smoother:
        """Kernel with a bandwidth of this share of the window."""
        return Smoother.of(self.grid.points, share, UNIT)

    def _summed(self, weights: Floats, group: Indices, n_groups: int) -> tuple[Floats, Floats]:
        """Count and exposure of each distinct interval in each group of subjects, (D, F)."""
        rows = self.rows
        n_intervals = len(rows.grid.runs)
        key = rows.interval * n_groups + group[rows.subject]
        multiplicity = weights[rows.subject]
        count, exposure = (
            group_sums(key, multiplicity * values, n_intervals * n_groups)
            for values in (rows.count, rows.exposure)
        )
        return count.reshape(-1, n_groups), exposure.reshape(-1, n_groups)
