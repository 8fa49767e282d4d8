r"""How forecasts would have done: rolling origins, and what came after each.

At an origin t every model is fitted to the intervals that had ended by t, and forecasts the counts
of those that ended in (t, t + h], at the exposure that they had. Given draws of curve, effects and
parameters the sum of a subject's counts has the law of counts with mean r_s, so that

.. math::
    P(N \le n) = \frac{1}{S} \sum_s F(n \mid r_s, \theta_s), \qquad
    \ln p(n) = \ln \frac{1}{S} \sum_s p(n \mid r_s, \theta_s).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.backtests.rolling_origins import RollingOrigins
from gp4c.data.checks import few_digits, plural
from gp4c.data.formulas.covariate_rows import design_rows, last_rows
from gp4c.data.ordering import ranks
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.joint_counts import Asked, JointCounts
from gp4c.exceptions import GP4CWarning
from gp4c.plain import printable
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts
    from gp4c.data.summaries.table import Table
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: the yardstick: a constant rate with frailty and bursts
CONSTANT = "constant rate"


@dataclass(frozen=True)
class Backtest:
    """Forecasts from rolling origins beside what came.

    Attributes
    ----------
    rows : DataFrame
        See :meth:`to_frame`.
    level : float
        Of the intervals.
    horizon : float
    reference : str
        The model that log scores are compared with.
    time_unit, time_origin
        Of the data.
    """

    rows: pd.DataFrame = field(repr=False)
    level: float
    horizon: float
    reference: str
    time_unit: str | None = None
    time_origin: Any = None

    def to_frame(self) -> pd.DataFrame:
        """One row per model, origin and subject, and one for the total of each origin.

        ``of`` is "subject" or "total"; ``events`` came where ``mean`` were expected, with the
        interval from ``low`` to ``high``; ``pit_low`` and ``pit_high`` are P(N < events) and
        P(N ≤ events); ``log_score`` is ln P(N = events).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=10, n_origins=1)
        >>> sorted(found.to_frame()["of"].unique())
        ['subject', 'total']
        """
        return self.rows.copy()

    @cached_property
    def coverage(self) -> pd.DataFrame:
        """How often intervals held what came, by model: of subjects and of totals.

        Intervals of whole numbers hold a little more than they say. ``subjects_exact`` and
        ``totals_exact`` count a number at the edge for the part of its probability that belongs to
        the interval, so that they are the level on average if forecasts are right.
        """
        import pandas as pd

        table = self.rows
        inside = (table["events"] >= table["low"]) & (table["events"] <= table["high"])
        tail = (1 - self.level) / 2
        low, high = table["pit_low"].to_numpy(), table["pit_high"].to_numpy()
        width = np.maximum(high - low, 1e-300)
        part = (np.minimum(high, 1 - tail) - np.maximum(low, tail)) / width
        rows = table.assign(inside=inside, exact=np.clip(part, 0.0, 1.0))
        found = rows.groupby(["model", "of"], sort=False)[["inside", "exact"]].mean().unstack("of")
        return pd.DataFrame(
            {
                "subjects": found["inside", "subject"],
                "subjects_exact": found["exact", "subject"],
                "totals": found["inside", "total"],
                "totals_exact": found["exact", "total"],
                "level": self.level,
            }
        )

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Log scores relative to the reference, by model: sums over all forecasts, with errors.

        The standard error is that of differences between subjects, or between origins, taken for
        independent.
        """
        import pandas as pd

        keys = ["of", "origin", "subject"]
        wide = self.rows.pivot_table(index=keys, columns="model", values="log_score", sort=False)
        rows = []
        for name in self.rows["model"].unique():
            gain = wide[name] - wide[self.reference]
            row: dict[str, Any] = {"model": name}
            for of, plural_name in (("subject", "subjects"), ("total", "totals")):
                part = gain.loc[of].to_numpy()
                spread = part.std(ddof=1) if len(part) > 1 else np.nan
                row |= {plural_name: part.sum(), f"{plural_name}_error": spread * len(part) ** 0.5}
            rows.append(row)
        return pd.DataFrame(rows).set_index("model")

    def pit(self, model: str, of: str = "subject", n_bins: int = 10) -> Floats:
        """Density of the PIT of a model's forecasts in even bins; 1 everywhere if they are right.

        Each count is spread evenly between P(N < n) and P(N ≤ n).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=10, n_origins=1)
        >>> found.pit("HomogeneousPoisson").shape
        (10,)
        """
        rows = self.rows[(self.rows["model"] == model) & (self.rows["of"] == of)]
        low, high = (rows[name].to_numpy()[:, None] for name in ("pit_low", "pit_high"))
        edges = np.linspace(0.0, 1.0, n_bins + 1)
        filled = np.clip((edges - low) / np.maximum(high - low, 1e-300), 0.0, 1.0).mean(axis=0)
        return np.asarray(np.diff(filled) * n_bins)

    def table(self) -> Table:
        """The result as a table to publish: how often intervals held, and scores, by model.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=10, n_origins=2)
        >>> found.table().columns[:3]
        ('model', 'held, subjects', 'held, totals')
        """
        tables = import_module("gp4c.reporting.publication.result_tables")
        found: Table = tables.backtest_table(self)
        return found

    def plot(self, ax: Axes | None = None, *, what: str = "total") -> Axes:
        """Draw totals with intervals beside what came, or with ``what="pit"`` the PIT.

        See :mod:`gp4c.reporting.figures.fleets.backtest_plots`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=10, n_origins=1)
        >>> ax = found.plot(what="pit")
        """
        plots = import_module("gp4c.reporting.figures.fleets.backtest_plots")
        return plots.plot_backtest(self, ax, what=what)  # type: ignore[no-any-return]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page with scores, totals and PIT to an HTML file, whole or not at all.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=10, n_origins=1)
        >>> found.save("backtest.html")  # doctest: +SKIP
        """
        from gp4c.atomic import replacing

        pages = import_module("gp4c.reporting.page.backtest_page")
        html = pages.backtest_page(self)
        with replacing(path) as temporary:
            temporary.write_text(html, encoding="utf-8")

    def _when(self) -> str:
        """The first and the last origin, where they have dates."""
        axis, origins = TimeAxis(self.time_unit, self.time_origin), self.rows["origin"]
        dates = dict.fromkeys(axis.date(time) for time in (origins.min(), origins.max()))
        return f", {' to '.join(filter(None, dates))}" if axis.has_dates else ""

    def __str__(self) -> str:
        import pandas as pd

        origins = self.rows["origin"].nunique()
        unit = f" {self.time_unit}" if self.time_unit else ""
        table = pd.concat([self.coverage[["subjects_exact", "totals_exact"]], self.scores], axis=1)
        table.columns = ["held, subjects", "held, totals", *self.scores.columns]
        text = table.to_string(float_format=lambda x: f"{x:.3g}", index_names=False)
        return printable(
            f"Forecasts of the next {few_digits(self.horizon)}{unit} from "
            f"{plural(origins, 'origin')}{self._when()}\n{text}\n"
            f"held: share of the counts inside their {100 * self.level:g}% intervals; a count at "
            f"the edge counts in part.\nsubjects, totals: log score relative to {self.reference}; "
            "more is better, with standard errors."
        )

    __repr__ = __str__


def backtest(
    models: Mapping[str, PanelEstimator] | PanelEstimator,
    panel: PanelCounts,
    horizon: float,
    n_origins: int = 6,
    *,
    level: float = 0.9,
    n_draws: int = 2000,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Backtest:
    """Forecasts from rolling origins against what came.

    Parameters
    ----------
    models : dict of str to estimator, or an estimator
        Fitted afresh at each origin. A constant rate, a power law and a log-linear rate, each with
        frailty and bursts, are added as yardsticks, unless there are models called "constant rate",
        "power-law" and "log-linear".
    panel : PanelCounts
    horizon : float
        How far ahead forecasts go; origins lie so far apart, the last one so far before the end.
    n_origins : int
    level : float in (0, 1)
        Of the intervals.
    n_draws : int
        Draws behind each forecast.
    random_state : int
        Seed.
    progress : callable, optional
        Called with one line of text whenever a new fit begins.

    Returns
    -------
    Backtest

    Notes
    -----
    An interval that straddles an origin is forecast from it, since its count was not known then.
    Where time is counted from entry, origins are on the clock that the subjects share (the
    calendar, if entries are dates).
    Exposure, usage and covariates are those that came: only the counts are forecast.

    Examples
    --------
    >>> import gp4c
    >>> panel = gp4c.load_dataset("bladder")
    >>> found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=10, n_origins=1)
    >>> list(found.coverage.columns)
    ['subjects', 'subjects_exact', 'totals', 'totals_exact', 'level']
    """
    named = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise ValueError("there is no model to test")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level!r}")
    parts: list[pd.DataFrame] = []
    rolling = RollingOrigins(panel, horizon, n_origins)
    named |= {name: one for name, one in _yardsticks(rolling).items() if name not in named}
    for origin in rolling.times:
        seen, came = rolling.split(origin)
        for name, model in named.items():
            if progress is not None:
                progress(f"{name} at {rolling.shown(origin)}")
            rng = np.random.default_rng([random_state, len(parts)])
            fitted = _fit(model, seen)
            parts.append(
                _judge(fitted, came, level, n_draws, rng).assign(model=name, origin=origin)
            )
    import pandas as pd

    table = pd.concat(parts, ignore_index=True)
    first = ["model", "origin", "of", "subject"]
    table = table[[*first, *(name for name in table.columns if name not in first)]]
    axis = rolling.axis
    if axis.has_dates:
        table.insert(2, "origin_date", [axis.date(origin) for origin in table["origin"]])
    return Backtest(table, level, horizon, CONSTANT, axis.unit, axis.origin)


def _yardsticks(rolling: RollingOrigins) -> dict[str, PanelEstimator]:
    """What other models are held against: a constant rate and growth, with frailty and bursts.

    Growth only where the first origin knows enough to estimate it.
    """
    home = "gp4c.classical.parametric"
    growth = import_module(f"{home}.growth")
    found = {CONSTANT: import_module(f"{home}.homogeneous").HomogeneousPoisson}
    seen, _ = rolling.split(rolling.times[0])
    if seen.n_events and len(seen.distinct()) > 1:
        found["log-linear"] = growth.LogLinear
        if seen.start.min() >= 0:  # the clock of a power law begins at 0
            found["power-law"] = growth.PowerLaw
    return {name: kind(effect="gamma", bursts=True) for name, kind in found.items()}


def _fit(model: PanelEstimator, panel: PanelCounts) -> PanelEstimator:
    fresh = type(model)(**model.get_params())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GP4CWarning)  # what came says it better
        return fresh.fit(panel)


def _judge(
    model: PanelEstimator, came: PanelCounts, level: float, n_draws: int, rng: np.random.Generator
) -> pd.DataFrame:
    """Forecast the counts of a panel, by subject and in total, and hold them against it."""
    import pandas as pd

    counts, asked = _question(model, came)
    law, k = model.count_law_, came.n_subjects
    mean, theta = _rates(counts, asked, n_draws, rng)
    mean = np.concatenate([mean, mean.sum(axis=0, keepdims=True)])
    events = np.bincount(came.subject_index, came.count, k).astype(np.float64)
    events = np.append(events, events.sum())
    draws = np.sort(law.draw(mean, theta, rng), axis=1)
    tail = (1 - level) / 2
    low, high = (
        draws[:, max(int(np.ceil(p * n_draws - 1e-9)) - 1, 0)] for p in (tail, 1 - tail)
    )  # fmt: skip
    log_p = law.log_probability(events, mean, theta)
    return pd.DataFrame(
        {
            "of": ["subject"] * k + ["total"],
            "subject": [*came.subjects.tolist(), "total"],
            "events": events.astype(np.int64),
            "mean": mean.mean(axis=1),
            "low": low,
            "high": high,
            "pit_low": law.cdf(events[:, None] - 1, mean, theta).mean(axis=1),
            "pit_high": law.cdf(events[:, None], mean, theta).mean(axis=1),
            "log_score": np.logaddexp.reduce(log_p, axis=1) - np.log(n_draws),
        }
    )


def _question(model: PanelEstimator, came: PanelCounts) -> tuple[JointCounts, Asked]:
    """Rows of a panel as windows of known and new subjects, one cell per subject."""
    assert model.histories_ is not None
    place = {label: k for k, label in enumerate(model.histories_.subjects.tolist())}
    where = np.array([place.get(label, -1) for label in came.subjects.tolist()], dtype=np.intp)
    order = np.concatenate([np.flatnonzero(where >= 0), np.flatnonzero(where < 0)])
    n_new = int((where < 0).sum())
    known = None
    if n_new < len(order):
        known = model.histories_.take(where[order[: len(order) - n_new]])
    units, z = np.asarray(came.exposure), None
    if model.coefficients_ is not None:
        own = design_rows(model.coefficients_.design, came)[last_rows(came)]
        units = units * np.exp(model.coefficients_.log_factor(own))[came.subject_index]
        z = own[order]
    asked = Asked(
        ranks(order)[came.subject_index], np.asarray(came.start), np.asarray(came.stop), units,
        np.asarray(came.subject_index, dtype=np.intp), came.n_subjects, n_new,
    )  # fmt: skip
    return model._joint_counts(known, z, "trend" if model.has_trend else "prior", None), asked


def _rates(
    counts: JointCounts, asked: Asked, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Means of the cells in every draw, (cells, S), and θ of the law of counts, (P, S)."""
    means, thetas = [], []
    with one_blas_thread():
        for _, drawn, _, params in counts.rates(asked, n_draws, rng):
            means.append(drawn)
            thetas.append(counts.theta(params))
    return np.concatenate(means, axis=1), np.concatenate(thetas, axis=1)
