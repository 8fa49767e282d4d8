"""The answer of a forecast: joint draws, and what is read off them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.forecast_words import window_text
from gp4c.plain import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.data.summaries.table import Table

Floats = NDArray[np.float64]
#: a number of events, or one for each cell
Counts: TypeAlias = "int | NDArray[np.int64]"
#: what a forecast is of: a new subject (None), the sum over "active" or "all", or subjects by label
Whom: TypeAlias = "str | list[Hashable] | None"

#: rows of a table on the screen
SHOWN_ROWS = 24


@dataclass(frozen=True)
class Forecast:
    """Predictive distribution of the number of events in one or several windows.

    Arrays are indexed by subject if several were named, then by window if arrays of them were
    given; one of each gives plain numbers. Pairs of subjects and windows have one index.

    Attributes
    ----------
    mean : float or array
        Expected number of events: exact over subject effects and counts, and over the curve
        where that has a closed form; otherwise, as with covariates, an average over draws of
        curve and coefficients.
    interval : (low, high)
        Equal-tailed prediction interval: each tail has at most probability (1 − level) / 2.
    draws : (n_draws, ...) array
        Joint draws: the same row has the same curve and the same subject effects.
    note : str
        How the curve goes on where a window leaves the observed one; at which usage; who is out of
        service. Empty if there is nothing to say.
    level, start, stop, subjects, time_unit
        What was asked.
    time_origin : str or None
        The date of time 0, if times were dates; the table then has dates as well.
    pairs : bool
        Whether each subject has a window of its own.
    by_type : mapping
        Forecasts of the types of events by name, if the fit has types: joint with this one, the
        draws of which are their sums.
    """

    mean: Any
    draws: NDArray[np.int64] = field(repr=False)
    level: float
    start: Floats
    stop: Floats
    subjects: Whom
    n_subjects: int
    note: str
    time_unit: str | None = None
    time_origin: str | None = None
    pairs: bool = False
    by_type: Mapping[str, Forecast] = field(default_factory=dict, repr=False)

    @property
    def interval(self) -> tuple[Counts, Counts]:
        """Lower and upper end, at the level asked for."""
        tail = (1 - self.level) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    @cached_property
    def _sorted(self) -> NDArray[np.int64]:
        """Draws of each cell in order, (cells, n_draws)."""
        return np.sort(self.draws.reshape(len(self.draws), -1).T, axis=1)

    def quantile(self, p: float) -> Counts:
        """Smallest number of events with at least probability p at or below it.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> forecast = model.forecast(53, 60, subjects="all")
        >>> forecast.quantile(0.5) <= forecast.quantile(0.9)
        True
        """
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, not {p!r}")
        n_draws = len(self.draws)
        place = max(int(np.ceil(p * n_draws - 1e-9)) - 1, 0)
        value = self._sorted[:, place].reshape(self.draws.shape[1:])
        return int(value) if value.ndim == 0 else value

    def probability(self, count: ArrayLike) -> float | Floats:
        """P(at most `count` events).

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> forecast = model.forecast(53, 60, subjects="all")
        >>> forecast.probability(forecast.quantile(0.9)) >= 0.9
        True
        """
        value = np.mean(self.draws <= np.asarray(count), axis=0)
        return float(value) if value.ndim == 0 else value

    def total(self) -> Forecast:
        """The sum over the subjects, window by window; or, of one subject or sum, over the windows.

        Draws are joint, so the sum has the dependence between subjects and between windows.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> forecast = model.forecast([53, 56], [56, 60])
        >>> bool(forecast.total().mean == forecast.mean.sum())
        True
        """
        if self.draws.ndim == 1:
            return self
        by_window = self.draws.ndim == 3
        start, stop = self.start, self.stop
        if not by_window:
            start, stop = np.array([start.min()]), np.array([stop.max()])
        several = isinstance(self.subjects, list)
        mean = np.asarray(self.mean).sum(axis=0)
        return replace(
            self,
            mean=mean if by_window else float(mean),
            draws=self.draws.sum(axis=1),
            start=start,
            stop=stop,
            subjects="total" if several else self.subjects,
            pairs=False,
            by_type={name: one.total() for name, one in self.by_type.items()},
        )

    def stock(self, service: float = 0.95) -> pd.DataFrame:
        """How many spare parts are enough with a stated probability.

        Parameters
        ----------
        service : float in (0, 1)
            Probability that the number of events does not exceed the stock.

        Returns
        -------
        pandas.DataFrame
            One row per subject and window, then the totals: ``stock``, the smallest number that
            the events do not exceed with this probability, and ``chance``, the probability that
            they do not. The stock of a total is less than the total of the stocks.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> forecast = model.forecast(53, 60, subjects="all")
        >>> list(forecast.stock(0.95).columns[-2:])
        ['stock', 'chance']
        """
        import pandas as pd

        parts = [self]
        while parts[-1].draws.ndim > 1:
            parts.append(parts[-1].total())
        tables = []
        for part in parts:
            enough = part.quantile(service)
            table = part._rows()
            if part is not self:
                table["subject"] = "total"
            columns = {"stock": enough, "chance": part.probability(enough)}
            tables.append(table.assign(**{k: np.ravel(v) for k, v in columns.items()}))
        return pd.concat(tables, ignore_index=True)

    def table(self) -> Table:
        """The forecast as a table to publish: ``forecast.table().save("table4.docx")``.

        One row per subject and window, and their sum; the level is that of the forecast.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.forecast(53, 60).table().columns
        ('', 'window (months)', 'expected', 'median', '90% interval')
        """
        tables = import_module("gp4c.reporting.publication.result_tables")
        found: Table = tables.forecast_table(self)
        return found

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the forecast.

        Several windows stand side by side, several subjects below each other; one of each is
        drawn as the probability of each number of events.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure if absent.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.forecast(53, 60).plot().get_xlabel()
        'number of events'
        """
        plots = import_module("gp4c.reporting.figures.fleets.forecast_plots")
        return plots.plot_forecast(self, ax)  # type: ignore[no-any-return]

    def to_frame(self) -> pd.DataFrame:
        """One row per subject (or "new", "all", "active") and window: mean, median and interval.

        Where the data had dates, so has the table.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> forecast = model.forecast(53, 60, subjects="all")
        >>> list(forecast.to_frame().columns)
        ['subject', 'start', 'stop', 'mean', 'median', 'low', 'high', 'level']
        """
        low, high = self.interval
        columns = {"mean": self.mean, "median": self.quantile(0.5), "low": low, "high": high}
        columns = {name: np.asarray(value).ravel() for name, value in columns.items()}
        table: pd.DataFrame = self._rows().assign(**columns, level=self.level)
        if not self.by_type:
            return table
        import pandas as pd

        each = {**{name: one.to_frame() for name, one in self.by_type.items()}, "total": table}
        frames = [frame.assign(event=name) for name, frame in each.items()]
        joined: pd.DataFrame = pd.concat(frames, ignore_index=True)
        return joined

    def _rows(self) -> pd.DataFrame:
        """Subject and window of each cell."""
        import pandas as pd

        names = self.subjects if isinstance(self.subjects, list) else [self.subjects or "new"]
        labels, n = np.array([*names, None], dtype=object)[:-1], len(self.start)
        once = self.pairs or n == 0
        table: dict[str, Any] = {
            "subject": labels if once else np.repeat(labels, n),
            "start": self.start if once else np.tile(self.start, len(labels)),
            "stop": self.stop if once else np.tile(self.stop, len(labels)),
        }
        axis = TimeAxis(self.time_unit, self.time_origin)
        if axis.origin is not None:
            known = {time: axis.date(time) for time in np.union1d(self.start, self.stop)}
            table |= {f"{end}_date": [known[t] for t in table[end]] for end in ("start", "stop")}
        return pd.DataFrame(table)

    def _who(self) -> str:
        if isinstance(self.subjects, list):
            return f"subject {self.subjects[0]}"
        if self.subjects is None:
            return "a new subject"
        kind = {"all": "all {} subjects", "active": "{} subjects in service"}
        return kind.get(self.subjects, "{} subjects").format(self.n_subjects)

    def __str__(self) -> str:
        return printable(self._text())

    def _text(self) -> str:
        if self.draws[0].size > 1:
            return "\n".join(part for part in (self._table_text(), self.note) if part)
        line = f"{self._sentence()}; {100 * self.level:g}% interval"
        if self.by_type:
            each = (f"{name} {one._numbers()}" for name, one in self.by_type.items())
            line += f"\nof them {', '.join(each)}"
        return f"{line}\n{self.note}" if self.note else line

    def _sentence(self) -> str:
        axis = TimeAxis(self.time_unit, self.time_origin)
        window = window_text(self.start[0], self.stop[0], axis)
        when = f"from {window}" if axis.has_dates else f"in {window}"
        return f"{self._numbers()} events {when}, {self._who()}"

    def _numbers(self) -> str:
        mean, low, high = (np.ravel(value)[0] for value in (self.mean, *self.interval))
        return f"{_short(mean)} ({low}–{high})"

    def _table_text(self) -> str:
        """The table as a screen has room for it: one kind of times, the level said once."""
        table = self.to_frame().drop(columns="level")
        if self.time_origin is not None:
            table = table.drop(columns=["start", "stop"])
        more = len(table) - SHOWN_ROWS
        lines = [table.head(SHOWN_ROWS).to_string(index=False, float_format=lambda x: f"{x:.4g}")]
        if more > 0:
            lines.append(f"… and {more:,} more rows: to_frame() has all of them")
        unit = f"; times in {self.time_unit}" if self.time_unit and not self.time_origin else ""
        lines.append(f"{100 * self.level:g}% intervals{unit}")
        whole = self.total() if self.draws.ndim < 3 else self.total().total()
        lines.append(f"In all {whole._sentence()}.")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(import_module("gp4c.reporting.notebook").forecast_html(self))


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
