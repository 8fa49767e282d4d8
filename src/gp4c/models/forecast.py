"""Forecasts of counts: one new subject, subjects we know something of, or the whole fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import TimeAxis
from gp4c.inference.forecasting import (
    count_quantile,
    draw_effects,
    expected_integrals,
    integral_draws,
    mean_effects,
)
from gp4c.inference.threads import one_blas_thread
from gp4c.models.forecast_inputs import (
    check_forecast,
    covariate_rows,
    exposures,
    is_all,
    is_label,
    known_subjects,
    seed_of,
    windows,
)
from gp4c.models.forecast_words import exposure_words, note_of, window_text
from gp4c.plain import printable

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: draws behind a forecast: quantiles of a count to about a hundredth of their probability
FORECAST_DRAWS = 10_000
#: most numbers held at once while the effects of a fleet are drawn
_CHUNK = 4_000_000


@dataclass(frozen=True)
class Forecast:
    """Predictive distribution of the number of events in one or several windows.

    Arrays are indexed by subject if several were named, then by window if arrays of them were
    given; one of each gives plain numbers.

    Attributes
    ----------
    mean : float or array
        Expected number of events: exact over subject effects and counts, and over the curve
        where that has a closed form (otherwise an average over draws of the curve). Coefficients
        of covariates are at their estimates here, and uncertain in the draws.
    interval : (low, high)
        Equal-tailed prediction interval: each tail has at most probability (1 − level) / 2.
    draws : (n_draws, ...) array
        Joint draws: the same row has the same curve and the same subject effects.
    note : str
        How the curve goes on where a window leaves the observed one; empty if none does.
    level, start, stop, subjects, time_unit
        What was asked.
    time_origin : str or None
        The date of time 0, if times were dates; the table then has dates as well.
    """

    mean: Any
    draws: NDArray[np.int64] = field(repr=False)
    level: float
    start: Floats
    stop: Floats
    subjects: str | list[Any] | None
    n_subjects: int
    note: str
    time_unit: str | None = None
    time_origin: str | None = None

    @property
    def interval(self) -> tuple[Any, Any]:
        """Lower and upper end, at the level asked for."""
        tail = (1 - self.level) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def quantile(self, p: float) -> Any:
        """Smallest number of events with at least probability p at or below it."""
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, not {p!r}")
        value = count_quantile(self.draws, p)
        return int(value) if value.ndim == 0 else value.astype(np.int64)

    def probability(self, count: ArrayLike) -> Any:
        """P(at most `count` events)."""
        value = np.mean(self.draws <= np.asarray(count), axis=0)
        return float(value) if value.ndim == 0 else value

    def to_frame(self) -> pd.DataFrame:
        """One row per subject (or "new", "all") and window: mean, median and interval.

        Where the data had dates, so has the table.
        """
        import pandas as pd

        names = self.subjects if isinstance(self.subjects, list) else [self.subjects or "new"]
        shape = (len(names), len(self.start))
        low, high = self.interval
        table: dict[str, Any] = {
            "subject": np.repeat(np.array(names, dtype=object), shape[1]),
            "start": np.tile(self.start, shape[0]),
            "stop": np.tile(self.stop, shape[0]),
        }
        axis = TimeAxis(self.time_unit, self.time_origin)
        if axis.origin is not None:
            table |= {
                f"{end}_date": [axis.date(t) for t in table[end]] for end in ("start", "stop")
            }
        columns = {"mean": self.mean, "median": self.quantile(0.5), "low": low, "high": high}
        table |= {name: np.asarray(value).ravel() for name, value in columns.items()}
        return pd.DataFrame(table).assign(level=self.level)

    def _who(self) -> str:
        if isinstance(self.subjects, list):
            return f"subject {self.subjects[0]}"
        return "a new subject" if self.subjects is None else f"all {self.n_subjects} subjects"

    def __str__(self) -> str:
        return printable(self._text())

    def _text(self) -> str:
        if self.draws[0].size > 1:
            return "\n".join(part for part in (self._table_text(), self.note) if part)
        mean, low, high = (np.ravel(value)[0] for value in (self.mean, *self.interval))
        axis = TimeAxis(self.time_unit, self.time_origin)
        line = (
            f"{_short(mean)} ({low}–{high}) events in "
            f"{window_text(self.start[0], self.stop[0], axis)}, {self._who()}; "
            f"{100 * self.level:g}% interval"
        )
        return f"{line}\n{self.note}" if self.note else line

    def _table_text(self) -> str:
        """The table as a screen has room for it: one kind of times, the level said once."""
        table = self.to_frame().drop(columns="level")
        if self.time_origin is not None:
            table = table.drop(columns=["start", "stop"])
        text = table.to_string(index=False, float_format=lambda x: f"{x:.4g}")
        unit = f"; times in {self.time_unit}" if self.time_unit and not self.time_origin else ""
        return f"{text}\n{100 * self.level:g}% intervals{unit}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return str(import_module("gp4c.reporting.notebook").forecast_html(self))


def forecast(
    model: Any,
    start: ArrayLike,
    stop: ArrayLike,
    subjects: Any = None,
    level: float = 0.9,
    *,
    exposure: ArrayLike | str = 1.0,
    covariates: Mapping[str, Any] | None = None,
    history: PanelCounts | None = None,
    beyond: str = "prior",
    n_draws: int = FORECAST_DRAWS,
    random_state: int | None = None,
) -> Forecast:
    """Predictive distribution of the number of events in windows (start, stop].

    Parameters
    ----------
    model : fitted estimator
        GP4C and GP3 average over their posterior; a classical estimator plugs its curve in, so
        that the interval leaves out how uncertain the curve is (the note says so).
    start, stop : float or date, or array of them
        One window, or several of which the joint distribution is wanted: of the future, the
        past, or across the end of the observation window. Dates if the data had dates.
    subjects : None, "all", label or list of labels
        None: a new subject like those of the fit. Labels of the fitted panel: those subjects,
        given what was seen of them. "all": the sum over all of them.
    level : float in (0, 1)
        Probability of the interval.
    exposure : float, array or "last"
        Units at risk during the windows, one for all or one per subject; "last" for those of
        known subjects when they were last observed.
    covariates : dict, optional
        Column to value for a new subject, those not named at their average. Known subjects have
        their own, which are taken to stay as they were last.
    history : PanelCounts, optional
        What is known of the subjects; default the panel of the fit. Subjects that the fit has
        not seen can be forecast from their own earlier visits; the curve stays that of the fit.
    beyond : {"prior", "hold"}
        How the curve goes on outside the observation window. "prior": as the model says, within
        about a length-scale back to its long-run level, with the uncertainty of the prior.
        "hold": at its value at the window's end, uncertain as that is.
    n_draws : int
    random_state : int, optional
        Seed; default that of the model.

    Returns
    -------
    Forecast

    Notes
    -----
    Just beyond the window the two ways agree. Farther out neither is knowledge: "prior" suits
    rates that fluctuate around a level, "hold" those that have changed for good (ageing, a
    repair, a new rule). If they give different answers, the data do not decide.
    """
    check_forecast(model, level, beyond, n_draws)
    first, last = windows(model, start, stop)
    known = known_subjects(model, subjects, history)
    rng = np.random.default_rng(seed_of(model, random_state))
    z = covariate_rows(model, known, history, covariates)
    units = given = exposures(model, exposure, known, z)
    if z is not None:
        units = units * np.exp(model.coefficients_.log_factor(z))
    deviations = None if z is None else model.coefficients_.deviations(n_draws, rng)
    task = _Task(model, first, last, units, beyond, n_draws, rng, z, deviations)
    with one_blas_thread():
        if known is None:
            mean, draws = _new_subject(task)
        else:
            mean, draws = _known_subjects(task, known, total=is_all(subjects))
    several = np.ndim(start) > 0 or np.ndim(stop) > 0
    named = [subjects] if is_label(subjects) else subjects
    pick: tuple[Any, ...] = (slice(None),) if several else (0,)
    if known is not None and not is_all(subjects):
        pick = (0 if is_label(subjects) else slice(None), *pick)
    return Forecast(
        mean=mean[pick].item() if mean[pick].ndim == 0 else mean[pick],
        draws=draws[(slice(None), *pick)],
        level=level,
        start=first,
        stop=last,
        subjects=None if known is None else "all" if is_all(subjects) else list(named),
        n_subjects=1 if known is None else len(known.subjects),
        note=note_of(model, known, first, last, beyond, exposure_words(model, exposure, given)),
        time_unit=model.time_unit_,
        time_origin=model.time_origin_,
    )


@dataclass(frozen=True)
class _Task:
    """Windows to forecast, and where the randomness comes from."""

    model: Any
    start: Floats
    stop: Floats
    exposure: Floats
    beyond: str
    n_draws: int
    rng: np.random.Generator
    covariates: Floats | None = None  # z of the subjects, (K, p)
    deviations: Floats | None = None  # draws of β − β̂, (S, p)

    def scatter(self, part: Any) -> Any:
        """exp((β − β̂)ᵀz) of some subjects in each draw, (S, part); 1 without covariates."""
        if self.covariates is None or self.deviations is None:
            return 1.0
        return np.exp(self.deviations @ self.covariates[part].T)

    @property
    def shape(self) -> float:
        return float(self.model.frailty_shape_) if self.model.effect_ == "gamma" else np.inf

    def integrals(self, start: Floats, stop: Floats) -> Floats:
        """Draws of ∫λ, (n_draws, intervals); all the same for a plugged-in curve."""
        if hasattr(self.model, "posterior_"):
            posterior = self.model.posterior_
            return integral_draws(posterior, start, stop, self.n_draws, self.rng, self.beyond)
        fixed = self.model.expected_counts(start, stop, extrapolate=True)
        return np.broadcast_to(fixed, (self.n_draws, len(fixed)))

    def expected(self) -> Floats:
        """E ∫λ over the windows."""
        if hasattr(self.model, "posterior_"):
            return expected_integrals(self.model.posterior_, self.start, self.stop, self.beyond)
        return np.asarray(self.model.expected_counts(self.start, self.stop, extrapolate=True))


def _new_subject(task: _Task) -> tuple[Floats, NDArray[np.int64]]:
    """Mean (W,) and draws (S, W) for a subject of whom nothing is known."""
    inside = task.integrals(task.start, task.stop)
    effect = draw_effects(task.shape, np.zeros(1), np.zeros((task.n_draws, 1)), task.rng)
    if task.model.effect_ == "weight":
        effect = task.rng.choice(task.model.subject_effects_, (task.n_draws, 1))
    draws = task.rng.poisson(effect * task.scatter([0]) * inside * task.exposure[0])
    return task.exposure[0] * task.expected(), draws


def _known_subjects(
    task: _Task, known: SubjectHistories, total: bool
) -> tuple[Floats, NDArray[np.int64]]:
    """Mean and draws of known subjects: (K, W) and (S, K, W), or their sum, (W,) and (S, W)."""
    n_spans = len(known.span_start)
    starts = np.concatenate([known.span_start, task.start])
    stops = np.concatenate([known.span_stop, task.stop])
    both = task.integrals(starts, stops)
    inside = both[:, n_spans:]
    weights = task.model.subject_effects_ if task.model.effect_ == "weight" else None
    means, kept = [], []
    level = np.zeros((task.n_draws, 1))
    for part in _chunks(len(known.subjects), task.n_draws):
        some = known.take(part)
        spans = np.isin(known.span_subject, part)
        scatter = task.scatter(part)
        expected = some.expected(both[:, :n_spans][:, spans]) * scatter
        units = task.exposure[part] * scatter
        if weights is not None:
            mean, effect = weights[part], np.broadcast_to(weights[part], expected.shape)
            means.append((mean * units)[:, None] * task.expected())
        elif np.isfinite(task.shape):
            mean = mean_effects(task.shape, some.totals, expected) * units
            effect = draw_effects(task.shape, some.totals, expected, task.rng)
            means.append(mean.T @ inside / task.n_draws)
        else:
            effect = np.ones_like(expected)
            means.append(task.exposure[part][:, None] * task.expected())
        if total:
            level = level + (effect * units).sum(axis=1, keepdims=True)
        else:
            kept.append(task.rng.poisson((effect * units)[:, :, None] * inside[:, None, :]))
    mean = np.concatenate(means)
    if total:
        return mean.sum(axis=0), task.rng.poisson(level * inside)
    return mean, np.concatenate(kept, axis=1)


def _chunks(n_subjects: int, n_draws: int) -> list[NDArray[np.intp]]:
    size = max(1, _CHUNK // n_draws)
    return [np.arange(k, min(k + size, n_subjects)) for k in range(0, n_subjects, size)]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
