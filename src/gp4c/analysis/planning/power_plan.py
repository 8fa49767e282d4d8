"""Power of a trial, or how many subjects it needs: the result of :func:`gp4c.power`."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.planning.power_words import plan_text, table_rows
from gp4c.analysis.planning.trial_design import TrialDesign
from gp4c.data.summaries.panel_summary import html_table
from gp4c.plain import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.data.summaries.table import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PowerRow:
    """Power of one size and one ratio.

    Attributes
    ----------
    n_first, n_second : int
        Subjects of the arms.
    ratio : float
    n_trials, n_rejected : int
        Simulated trials, and those whose test rejects.
    formula : float
        Power by the negative-binomial formula.
    events : float
        Events that the trial is expected to count.
    """

    n_first: int
    n_second: int
    ratio: float
    n_trials: int
    n_rejected: int
    formula: float
    events: float

    @property
    def power(self) -> float:
        """Share of trials whose test rejects."""
        return self.n_rejected / self.n_trials

    @property
    def error(self) -> float:
        """Monte-Carlo standard error; one rejection more and one less keep it above 0."""
        share = (self.n_rejected + 1) / (self.n_trials + 2)
        return float(np.sqrt(share * (1 - share) / self.n_trials))


@dataclass(frozen=True)
class PowerPlan:
    """Power of a trial of two arms; printing gives a paragraph for its protocol.

    Attributes
    ----------
    design : TrialDesign
        What was assumed.
    rows : tuple of PowerRow
        Every size and ratio that was simulated.
    chosen : int or None
        The row that the plan is about; None if several were asked for.
    target : float or None
        The power that a size was searched for.
    formula_size : float or None
        Subjects of the first arm by the negative-binomial formula, where a size was searched.
    alpha : float
        Two-sided level of the test.
    random_state : int
    time_unit : str or None
    pilot : str or None
        Where rate and spread are from.
    """

    design: TrialDesign
    rows: tuple[PowerRow, ...]
    chosen: int | None
    target: float | None
    formula_size: float | None
    alpha: float
    random_state: int
    time_unit: str | None = None
    pilot: str | None = None

    @property
    def power(self) -> float | Floats:
        """Power; an array in the order of the rows if several were asked for."""
        if self.chosen is not None:
            return self.rows[self.chosen].power
        return np.array([row.power for row in self.rows])

    @property
    def error(self) -> float | Floats:
        """Monte-Carlo standard error of :attr:`power`."""
        if self.chosen is not None:
            return self.rows[self.chosen].error
        return np.array([row.error for row in self.rows])

    @property
    def n_per_arm(self) -> int | NDArray[np.intp]:
        """Subjects of the first arm; an array if several sizes were asked for."""
        if self.chosen is not None:
            return self.rows[self.chosen].n_first
        return np.array([row.n_first for row in self.rows], dtype=np.intp)

    def to_frame(self) -> pd.DataFrame:
        """One row per size and ratio.

        Columns: ratio, n_first, n_second, power, error (Monte-Carlo standard error), formula
        (power by the negative-binomial formula), events (expected), trials, chosen.

        Examples
        --------
        >>> import gp4c
        >>> plan = gp4c.power(ratio=0.6, rate=0.2, n_per_arm=60, follow_up=24, n_trials=20)
        >>> plan.to_frame()[["n_first", "trials"]].to_dict("records")
        [{'n_first': 60, 'trials': 20}]
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "ratio": [row.ratio for row in self.rows],
                "n_first": [row.n_first for row in self.rows],
                "n_second": [row.n_second for row in self.rows],
                "power": [row.power for row in self.rows],
                "error": [row.error for row in self.rows],
                "formula": [row.formula for row in self.rows],
                "events": [row.events for row in self.rows],
                "trials": [row.n_trials for row in self.rows],
                "chosen": [k == self.chosen for k in range(len(self.rows))],
            }
        )

    def table(self) -> Table:
        """The plan as a table to publish, with its assumptions as notes.

        Examples
        --------
        >>> import gp4c
        >>> plan = gp4c.power(ratio=0.6, rate=0.2, n_per_arm=60, follow_up=24, n_trials=20)
        >>> plan.table().columns[:4]
        ('ratio', 'first arm', 'second arm', 'power')
        """
        tables = import_module("gp4c.reporting.publication.result_tables")
        found: Table = tables.plan_table(self)
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the power over the number of subjects, or over the ratio.

        Examples
        --------
        >>> import gp4c
        >>> plan = gp4c.power(ratio=0.6, rate=0.2, n_per_arm=[40, 80], follow_up=24, n_trials=20)
        >>> ax = plan.plot()
        """
        drawn: Axes = import_module("gp4c.reporting.figures.power_plot").plot_power(self, ax)
        return drawn

    def __str__(self) -> str:
        return printable(plan_text(self))

    def _repr_html_(self) -> str:
        header, rows = table_rows(self)
        text, _, _ = plan_text(self).partition("\n\n  ")
        return html_table("Power of a trial of two arms", header, rows, text.split("\n\n"))
