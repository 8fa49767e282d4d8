"""What a fitted model shows: a summary, words for a paper, a table, a plot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from gp4c.estimators.interfaces.fitted_state import FittedState

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from gp4c.data.panel import PanelCounts
    from gp4c.data.summaries.table import Table
    from gp4c.estimators.base import PanelEstimator
    from gp4c.parts import ModelSummary


class Showing(FittedState):
    """Text, tables and figures of a fit, and what a class adds to them.

    Reporting stands after estimators in the house; methods reach it by name, so that no model
    depends on plotting.
    """

    def summary(self) -> ModelSummary:
        """What was fitted, to what, with what result; prints as a table, has ``to_frame()``.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.summary()["events"].text
        '402'
        """
        self._check_fitted()
        found: ModelSummary = import_module("gp4c.reporting.summary").summarise(self)
        return found

    def methods_text(self, length: str = "full") -> str:
        """How the fit was obtained, ready for a methods section.

        Parameters
        ----------
        length : {"full", "short"}
            A paragraph, or a sentence or two for an abstract or a caption.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.methods_text().split(". ")[0]
        'A constant event rate was estimated by maximum likelihood'
        """
        self._check_fitted()
        words = import_module("gp4c.reporting.page.report_method")
        return str(words.methods_text(self, length))

    def table(
        self, what: str = "estimates", *, level: float = 0.95, times: ArrayLike | None = None
    ) -> Table:
        """The fit as a table to publish: ``model.table().save("table2.docx")``.

        Parameters
        ----------
        what : {"estimates", "effects", "curve"}
            Everything that was estimated; the effects of covariates with standard errors; or rate
            and mean number of events at a few times.
        level : float in (0, 1)
            Level of the intervals.
        times : array, optional
            For "curve": which times; eleven over the window if absent.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.table().columns
        ('', 'estimate', '95% interval')
        >>> model.table("curve", times=[12, 24]).rows[0][:2]
        ('12', '0.152')
        """
        self._check_fitted()
        tables = import_module("gp4c.reporting.publication.fit_tables")
        found: Table = tables.model_table(self, what, level=level, times=times)
        return found

    def plot(
        self,
        ax: Axes | None = None,
        *,
        what: str | None = None,
        level: float = 0.95,
        panel: PanelCounts | None = None,
        label: str | None = None,
        index: int = 0,
    ) -> Axes:
        """Draw the fitted curve with its band.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure if absent.
        what : {"intensity", "cumulative", "history"}, optional
            The rate, the mean number of events, or the steps of the fit; the rate if absent and
            if there is one.
        level : float in (0, 1)
            Level of the band.
        panel : PanelCounts, optional
            Adds a tick at each visit below the curve.
        label : str, optional
            Name in the key.
        index : int
            Which colour and dashes, for several curves in one plot.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> ax = model.plot(what="cumulative")
        >>> ax.get_ylabel()
        'mean number of events'
        """
        self._check_fitted()
        draw = import_module("gp4c.reporting.figures.plots").plot_model
        drawn: Axes = draw(
            self, ax, what=what, level=level, panel=panel, label=label, index=index
        )  # fmt: skip
        return drawn

    def unit_ranking(
        self, worst: float = 0.1, level: float = 0.95, *, n_draws: int = 4000
    ) -> pd.DataFrame:
        """Units by the probability that they are among the worst; a frame, worst first.

        See :func:`gp4c.analysis.units.unit_ranking.unit_ranking`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
        >>> list(model.unit_ranking(worst=0.1).columns[:3])
        ['subject', 'probability', 'effect']
        """
        self._check_fitted()
        ranking = import_module("gp4c.analysis.units.unit_ranking").unit_ranking
        table: pd.DataFrame = ranking(self, worst, level, n_draws=n_draws)
        return table

    def _repr_html_(self) -> str:
        return str(import_module("gp4c.reporting.notebook").model_html(self))

    # -- what only this model has to say ----------------------------------------------------------

    @property
    def n_bootstraps_(self) -> int:
        """Bootstrap samples behind the bands."""
        return 0

    def band_text(self) -> str:
        """How the bands were obtained; empty if there are none yet.

        :meta private:
        """
        return ""

    def components(self) -> Mapping[str, PanelEstimator]:
        """Curves that the model is made of, by name, each as a fitted model; most have none.

        :meta private:
        """
        return {}

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """Tables that only this model has, by name; ``gp4c fit --out`` writes them.

        :meta private:
        """
        return {}

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """Plots that only this model has, by name; each takes axes.

        :meta private:
        """
        return {}

    def factor_methods(self) -> list[str]:
        """Sentences for a methods section about factors of the rate; see :class:`GP4C`.

        :meta private:
        """
        return []

    def facts(self) -> list[tuple[str, str, str, float]]:
        """What only this model says in a summary: section, quantity, words, number.

        :meta private:
        """
        return []

    def curve_parameters(self, level: float) -> list[tuple[str, str, str, float, float, float]]:
        """Parameters of a curve with a formula: name, meaning, unit, value, interval.

        :meta private:
        """
        return []
