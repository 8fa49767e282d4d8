"""Forecasts of counts: one new subject, subjects we know something of, or the whole fleet."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.forecast_inputs import (
    check_forecast,
    covariate_rows,
    exposures,
    is_all,
    is_label,
    known_subjects,
    labels_of,
    seed_of,
    windows,
)
from gp4c.estimators.forecasts.forecast_words import exposure_words, note_of, window_text
from gp4c.plain import printable
from gp4c.posterior.fitted_counts import coefficient_deviations
from gp4c.posterior.forecasting import count_quantile
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import Numbers, PanelEstimator

Floats = NDArray[np.float64]
#: a count for one window, an array for several
Counts: TypeAlias = "int | NDArray[np.int64]"

#: nobody in particular, "all", the label of a subject, or several labels
Subjects: TypeAlias = "Hashable | Sequence[Hashable] | NDArray[np.generic]"

#: draws behind a forecast: quantiles of a count to about a hundredth of their probability
FORECAST_DRAWS = 10_000
#: most numbers held at once while the effects of a fleet are drawn
_CHUNK = 4_000_000


class ForecastOptions(TypedDict, total=False):
    """What may be asked of a forecast besides windows, subjects and level; see `forecast`."""

    exposure: ArrayLike | str
    covariates: Mapping[str, object] | None
    history: PanelCounts | None
    beyond: str
    n_draws: int
    random_state: int | None


@dataclass(frozen=True)
class Forecast:
    """Predictive distribution of the number of events in one or several windows.

    Arrays are indexed by subject if several were named, then by window if arrays of them were
    given; one of each gives plain numbers.

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
        How the curve goes on where a window leaves the observed one; empty if none does.
    level, start, stop, subjects, time_unit
        What was asked.
    time_origin : str or None
        The date of time 0, if times were dates; the table then has dates as well.
    """

    mean: Numbers
    draws: NDArray[np.int64] = field(repr=False)
    level: float
    start: Floats
    stop: Floats
    subjects: str | list[Hashable] | None
    n_subjects: int
    note: str
    time_unit: str | None = None
    time_origin: str | None = None

    @property
    def interval(self) -> tuple[Counts, Counts]:
        """Lower and upper end, at the level asked for."""
        tail = (1 - self.level) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    def quantile(self, p: float) -> Counts:
        """Smallest number of events with at least probability p at or below it."""
        if not 0 < p < 1:
            raise ValueError(f"p must be between 0 and 1, not {p!r}")
        value = count_quantile(self.draws, p)
        return int(value) if value.ndim == 0 else value.astype(np.int64)

    def probability(self, count: ArrayLike) -> Numbers:
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
    model: PanelEstimator,
    start: ArrayLike,
    stop: ArrayLike,
    subjects: Subjects = None,
    level: float = 0.9,
    *,
    exposure: ArrayLike | str = 1.0,
    covariates: Mapping[str, object] | None = None,
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
    if z is not None and model.coefficients_ is not None:
        units = units * np.exp(model.coefficients_.log_factor(z))
    task = _Task(model, first, last, units, beyond, n_draws, rng, z)
    with one_blas_thread():
        if known is None:
            mean, draws = _new_subject(task)
        else:
            mean, draws = _known_subjects(task, known, total=is_all(subjects))
    several = np.ndim(start) > 0 or np.ndim(stop) > 0
    pick: tuple[Any, ...] = (slice(None),) if several else (0,)
    if known is not None and not is_all(subjects):
        pick = (0 if is_label(subjects) else slice(None), *pick)
    return Forecast(
        mean=mean[pick].item() if mean[pick].ndim == 0 else mean[pick],
        draws=draws[(slice(None), *pick)],
        level=level,
        start=first,
        stop=last,
        subjects=None if known is None else "all" if is_all(subjects) else labels_of(subjects),
        n_subjects=1 if known is None else len(known.subjects),
        note=note_of(model, known, first, last, beyond, exposure_words(model, exposure, given)),
        time_unit=model.time_unit_,
        time_origin=model.time_origin_,
    )


@dataclass(frozen=True)
class _Task:
    """Windows to forecast, and where the randomness comes from."""

    model: PanelEstimator
    start: Floats
    stop: Floats
    exposure: Floats
    beyond: str
    n_draws: int
    rng: np.random.Generator
    covariates: Floats | None = None  # z of the subjects, (K, p)

    def chunks(self, per_draw: int) -> Iterator[slice]:
        """Draws, as many at a time as memory has room for."""
        size = max(1, _CHUNK // max(per_draw, 1))
        return (slice(k, min(k + size, self.n_draws)) for k in range(0, self.n_draws, size))

    def draw(self, start: Floats, stop: Floats, some: slice) -> tuple[Floats, Floats, Floats]:
        """∫λ over intervals (n, S), the laws' parameters (P, S) and β − β̂ (p, S) of some draws."""
        size = some.stop - some.start
        found = self.model._curve_draws(start, stop, size, self.rng, self.beyond)
        integrals, params, beta = found
        return integrals, params, coefficient_deviations(self.model, beta)

    def scatter(self, beta: Floats) -> Floats:
        """exp((β − β̂)ᵀz) of the subjects, (K, S); 1 without covariates."""
        if self.covariates is None:
            return np.ones((1, 1))
        return np.asarray(np.exp(self.covariates @ beta))

    def counts(self, mean: Floats, params: Floats) -> NDArray[np.int64]:
        """Counts with means (..., S), from the model's law of counts."""
        theta = params[len(self.model.effect_law_.parameters) :]
        return self.model.count_law_.draw(mean, theta, self.rng)

    def expected(self) -> Floats:
        """E ∫λ over the windows."""
        return self.model._mean_integrals(self.start, self.stop, self.beyond)


def _new_subject(task: _Task) -> tuple[Floats, NDArray[np.int64]]:
    """Mean (W,) and draws (S, W) for a subject of whom nothing is known."""
    means, kept = np.zeros(len(task.start)), []
    law, nothing = task.model.effect_law_, np.zeros(1)
    for some in task.chunks(len(task.start)):
        inside, params, beta = task.draw(task.start, task.stop, some)
        psi = params[: len(law.parameters)]
        effect = law.draw(psi, np.zeros(inside.shape[1]), nothing, task.rng)
        if law.is_free:
            effect = task.rng.choice(np.asarray(task.model.subject_effects_), inside.shape[1])
        average = task.scatter(beta)[0] * inside * task.exposure[0]
        means += average.sum(axis=1) / task.n_draws
        kept.append(task.counts(effect * average, params).T)
    if task.covariates is None or not task.covariates.any():  # in closed form over the curve
        means = task.exposure[0] * task.expected()
    return means, np.concatenate(kept)


def _known_subjects(
    task: _Task, known: SubjectHistories, total: bool
) -> tuple[Floats, NDArray[np.int64]]:
    """Mean and draws of known subjects: (K, W) and (S, K, W), or their sum, (W,) and (S, W)."""
    model = task.model
    counts = SubjectCounts.of_histories(known, model.count_law_, model.effect_law_, task.covariates)
    n_seen, n_windows, n_subjects = len(counts.start), len(task.start), len(known.subjects)
    start = np.concatenate([counts.start, task.start])
    stop = np.concatenate([counts.stop, task.stop])
    means, kept = np.zeros((n_subjects, n_windows)), []
    for some in task.chunks(len(start) + n_subjects * (1 if total else n_windows)):
        integrals, params, beta = task.draw(start, stop, some)
        seen, inside = integrals[:n_seen], integrals[n_seen:]
        effect, average = _effects(task, counts, known, seen, params, beta)
        units = task.exposure[:, None] * task.scatter(beta)
        everybody = np.broadcast_to(average * units, (n_subjects, inside.shape[1]))
        means += everybody @ inside.T / task.n_draws
        each = effect * units
        if total:  # a sum of counts of one law, given their means, has that law
            kept.append(task.counts(each.sum(axis=0) * inside, params).T)
        else:
            drawn = task.counts(each[:, None] * inside[None], params)
            kept.append(drawn.transpose(2, 0, 1))
    draws = np.concatenate(kept)
    if not model.effect_law_.varies and task.covariates is None:  # in closed form over the curve
        weights = _weights(model, known)
        means = (weights * task.exposure)[:, None] * task.expected()
    return (means.sum(axis=0), draws) if total else (means, draws)


def _effects(
    task: _Task,
    counts: SubjectCounts,
    known: SubjectHistories,
    seen: Floats,
    params: Floats,
    beta: Floats,
) -> tuple[Floats, Floats]:
    """υ of known subjects in some draws, and its mean given each draw of the curve, (K, S)."""
    model, law = task.model, task.model.effect_law_
    if not law.varies:
        weights = np.broadcast_to(_weights(model, known)[:, None], (len(known.subjects), 1))
        return weights, weights
    if known.mean_expected is not None:  # the spans were not kept: R is its mean
        psi = params[: len(law.parameters)]
        totals, expected = known.totals[:, None], known.mean_expected[:, None]
        return law.draw(psi, totals, expected, task.rng), law.mean(psi, totals, expected)
    drawn = counts.effect_draws(seen, params, task.rng, beta)
    return drawn, counts.effect_means(seen, params, beta)


def _weights(model: PanelEstimator, known: SubjectHistories) -> Floats:
    """Free weights of known subjects; 1 without."""
    if not model.effect_law_.is_free:
        return np.ones(len(known.subjects))
    order = {label: k for k, label in enumerate(model.subjects_.tolist())}
    return np.asarray(model.subject_effects_)[[order[label] for label in known.subjects.tolist()]]


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
