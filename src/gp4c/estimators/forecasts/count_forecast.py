"""Forecasts of counts: one new subject, subjects we know something of, or the whole fleet."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.fleet_inputs import (
    NewUnits,
    addition_words,
    covariate_words,
    default_subjects,
    given_usage,
    in_service,
    planned_units,
    recent_rates,
    service_words,
    usage_words,
)
from gp4c.estimators.forecasts.forecast_inputs import (
    changed_covariates,
    check_forecast,
    covariate_rows,
    exposures,
    is_label,
    is_sum,
    known_subjects,
    seed_of,
)
from gp4c.estimators.forecasts.forecast_layout import (
    Layout,
    Step,
    layout,
    while_in_service,
    with_new_units,
)
from gp4c.estimators.forecasts.forecast_result import Forecast, Whom
from gp4c.estimators.forecasts.forecast_windows import Windows
from gp4c.estimators.forecasts.forecast_words import (
    exposure_words,
    how_it_goes_on,
    note_of,
    past_words,
)
from gp4c.estimators.forecasts.own_calendar import age_words, at_ages
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.forecasts.joint_counts import JointCounts

Floats = NDArray[np.float64]

#: nobody in particular, "active", "all", the label of a subject, or several labels
Subjects: TypeAlias = "Hashable | Sequence[Hashable] | NDArray[np.generic]"

#: draws behind a forecast: quantiles of a count to about a hundredth of their probability; fewer
#: where so many cells are asked for that all draws together would be more than the second number
FORECAST_DRAWS, _ALL_DRAWS = 10_000, 8_000_000
_FEWEST_DRAWS = 2_000


def forecast(
    model: PanelEstimator,
    start: ArrayLike,
    stop: ArrayLike,
    subjects: Subjects = "auto",
    level: float = 0.9,
    *,
    every: Step | None = None,
    each: bool = False,
    exposure: ArrayLike | str | None = None,
    usage: ArrayLike | str | None = None,
    new_units: ArrayLike = 0,
    at: ArrayLike | None = None,
    covariates: Mapping[str, object] | None = None,
    history: PanelCounts | None = None,
    beyond: str = "auto",
    n_draws: int | None = None,
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
        past, or across the end of the observation window. Dates if the data had dates. Where time
        is counted from entry, dates take every known subject at its own age, and numbers take all
        at the same.
    subjects : None, "active", "all", label or list of labels
        None: a new subject like those of the fit. Labels of the fitted panel: those subjects,
        given what was seen of them. "all": the sum over all of them; "active": over those in
        service, each until it goes out of service. By default "active" where the data say that
        somebody went out of service, or times since entry are asked about by date; else None.

        A list of subjects with one window: that window for each. With as many windows: pairs, the
        first window for the first subject and so on. A subject named for several windows has one
        effect in all of them, so that sums over its windows have the right spread.
    level : float in (0, 1)
        Probability of the interval.
    every : number or str, optional
        Divide the window into consecutive ones of this length: in the unit of the data, or "day",
        "week", "month", "quarter", "year".
    each : bool
        Every window for every subject; with "active" or "all" every subject by itself.
    exposure : float, array or "last", optional
        Units at risk during the windows, one for all or one per subject; "last" for those of
        known subjects when they were last observed. By default "last" for known subjects and 1
        for a new one.
    usage : float, array or "last", optional
        The same where the data have usage: usage per unit of time. By default that of each
        subject's last three intervals, and for a new one the average of those in service.
    new_units, at : int and time, or arrays of them
        Planned additions to "active" or "all": so many new subjects from these times on.
    covariates : dict, optional
        Column to value. Those not named are at their average for a new subject; a known one keeps
        its own as they were last, and what was seen of it was seen under its own.
    history : PanelCounts, optional
        What is known of the subjects; default the panel of the fit. Subjects that the fit has
        not seen can be forecast from their own earlier visits; the curve stays that of the fit.
    beyond : {"auto", "prior", "hold", "trend"}
        How the curve goes on outside the observation window. "prior": within about a length-scale
        back to its long-run level, with the uncertainty of the prior, a trend staying as it is at
        the end. "hold": at its value at the window's end, uncertain as that is. "trend": the
        trend of the fit goes on, and the deviation from it returns to its level. "auto": as the
        model says ("trend" if it has one, else "prior"), unless another way would have forecast
        the last quarter of the window with odds of 20 to 1 better; the note says so. A season goes
        on in every case.
    n_draws : int, optional
        Default 10,000, down to 2,000 where very many subjects and windows are asked for.
    random_state : int, optional
        Seed; default that of the model.

    Returns
    -------
    Forecast

    Notes
    -----
    Just beyond the window all ways agree. Farther out none is knowledge: "prior" suits rates that
    fluctuate around a level, "hold" those that have changed for good (a repair, a new rule),
    "trend" ageing that goes on. If they give different answers, the past does not decide; "auto"
    says which of them it would have served.
    """
    plan = planned(
        model, start, stop, subjects, level, every=every, each=each, exposure=exposure, usage=usage,
        new_units=new_units, at=at, covariates=covariates, history=history, beyond=beyond,
        n_draws=n_draws, random_state=random_state,
    )  # fmt: skip
    mean, draws = plan.counts.draw(plan.plan.asked, plan.size, np.random.default_rng(plan.seed))
    return plan.answer(mean, draws)


def planned(
    model: PanelEstimator,
    start: ArrayLike,
    stop: ArrayLike,
    subjects: Subjects,
    level: float = 0.9,
    *,
    every: Step | None = None,
    each: bool = False,
    exposure: ArrayLike | str | None = None,
    usage: ArrayLike | str | None = None,
    new_units: ArrayLike = 0,
    at: ArrayLike | None = None,
    covariates: Mapping[str, object] | None = None,
    history: PanelCounts | None = None,
    beyond: str = "auto",
    n_draws: int | None = None,
    random_state: int | None = None,
) -> Planned:
    """What a forecast must draw; the options are those of :func:`forecast`."""
    check_forecast(model, level, beyond, n_draws)
    times = Windows.of(model, start, stop, every)
    who = _Who.of(model, subjects, history, covariates, times)
    given = given_usage(model, exposure, usage)
    units = _units(model, given, who)
    plan = _plan(model, times, who, units, each)
    new = _additions(times, new_units, at, who.is_sum and not each)
    if new is not None:
        plan = _with_additions(plan, times, units, who, new)
    size = n_draws or int(np.clip(_ALL_DRAWS // plan.asked.n_cells, _FEWEST_DRAWS, FORECAST_DRAWS))
    begin, end = times.start, times.stop
    if times.own is not None:
        begin, end = plan.asked.start, plan.asked.stop
    going_on = how_it_goes_on(model, begin, end, beyond)
    once, plan = _each_once(who, plan)
    counts = model._joint_counts(once.known, once.covariates_with(new), going_on.way, once.own)
    alike = (
        not plan.pairs or times.own is not None or np.ptp([times.start, times.stop], 1).max() == 0
    )
    words = (
        service_words(
            who.everybody, times.begin, float(times.stop.max()), who.active,
            times.since(who.everybody),
        ),
        age_words(model, who.known, plan.asked, times.own is not None) if alike else "",
        "" if new is None else addition_words(model, times.axis, new, float(units.mean())),
        model.new_subject_words() if who.known is None or new is not None else "",
        usage_words(model, given, units, who.known is None),
        exposure_words(model, given, units, who.known is None),
        covariate_words(covariates) if who.known is not None else "",
    )  # fmt: skip
    past = past_words(who.known, times.begin, model.window_[1], times.axis, times.since(who.known))
    return Planned(
        model, times.start, times.stop, level, plan, counts, size, seed_of(model, random_state),
        subjects=who.named(each),
        n_subjects=who.n_subjects + (0 if new is None else new.total),
        note=note_of(model, past, begin, end, going_on, _joined(words)),
        axis=times.axis,
    )  # fmt: skip


@dataclass(frozen=True)
class Planned:
    """A forecast before its draws: what is asked, of whom, and what is known of them."""

    model: PanelEstimator
    start: Floats
    stop: Floats
    level: float
    plan: Layout
    counts: JointCounts
    size: int
    seed: int
    subjects: Whom
    n_subjects: int
    note: str
    axis: TimeAxis

    def answer(self, mean: Floats, draws: NDArray[np.int64]) -> Forecast:
        """The forecast with its means (cells,) and draws (cells, size)."""
        shape = self.plan.shape
        return Forecast(
            mean=mean[0].item() if shape == () else mean.reshape(shape),
            draws=draws.T.reshape(self.size, *shape),
            level=self.level,
            start=self.start,
            stop=self.stop,
            subjects=self.subjects,
            n_subjects=self.n_subjects,
            note=self.note,
            time_unit=self.axis.unit,
            time_origin=None if self.axis.origin is None else str(self.axis.origin),
            pairs=self.plan.pairs,
        )


@dataclass(frozen=True)
class _Who:
    """The subjects asked for: those that count, and all that there are."""

    asked: Subjects
    known: SubjectHistories | None
    everybody: SubjectHistories | None
    covariates: Floats | None
    own: Floats | None

    @classmethod
    def of(
        cls,
        model: PanelEstimator,
        subjects: Subjects,
        history: PanelCounts | None,
        covariates: Mapping[str, object] | None,
        times: Windows,
    ) -> _Who:
        if isinstance(subjects, str) and subjects == "auto":
            subjects = default_subjects(model, history)
            subjects = "active" if subjects is None and times.own is not None else subjects
        if subjects is None and times.own is not None:
            raise PanelDataError(
                "times of a new subject are counted from its entry: give numbers, not dates"
            )
        everybody = known = known_subjects(model, subjects, history)
        if known is not None and is_sum(subjects) and subjects == "active":
            known = in_service(known, times.begin, times.since(known))
        own = z = covariate_rows(model, known, history, covariates)
        if known is not None and covariates is not None:
            z = changed_covariates(model, known, history, covariates)
        return cls(subjects, known, everybody, z, own)

    @property
    def is_sum(self) -> bool:
        """Whether the sum over them is asked for."""
        return is_sum(self.asked)

    @property
    def active(self) -> bool:
        """Whether only those in service count."""
        return self.is_sum and bool(self.asked == "active")

    @property
    def n_subjects(self) -> int:
        """How many count."""
        return 1 if self.known is None else len(self.known.subjects)

    def covariates_with(self, new: NewUnits | None) -> Floats | None:
        """Covariates of the subjects and of new ones, which are average."""
        if self.covariates is None or new is None:
            return self.covariates
        average = np.zeros((new.total, self.covariates.shape[1]))
        return np.concatenate([self.covariates, average])

    def named(self, each: bool) -> Whom:
        """What the answer is of, for its table."""
        if self.known is None:
            return None
        return str(self.asked) if self.is_sum and not each else list(self.known.subjects.tolist())


def _units(model: PanelEstimator, given: ArrayLike | str | None, who: _Who) -> Floats:
    """Units at risk of each subject: as given, else as of late."""
    recent = recent_rates(model, who.known)
    if recent is not None and (given is None or (isinstance(given, str) and given == "last")):
        return recent
    return exposures(model, given, who.known, who.own)


def _plan(model: PanelEstimator, times: Windows, who: _Who, units: Floats, each: bool) -> Layout:
    """Pairs of subjects and windows; those in service are counted until they leave."""
    if who.covariates is not None and model.coefficients_ is not None:
        units = units * np.exp(model.coefficients_.log_factor(who.covariates))
    plan = layout(
        (times.start, times.stop), times.several, len(units), units,
        one=who.known is None or is_label(who.asked), total=who.is_sum and not each,
        each=each or times.divided,
    )  # fmt: skip
    if who.known is None:
        return replace(plan, asked=replace(plan.asked, n_new=1))
    asked = plan.asked
    if times.own is not None:
        asked = at_ages(asked, times.own.entries(who.known))
    return replace(plan, asked=while_in_service(asked, who.known) if who.active else asked)


def _each_once(who: _Who, plan: Layout) -> tuple[_Who, Layout]:
    """The same with every subject once: one named for several windows has one effect in all."""
    labels = [] if who.known is None else who.known.subjects.tolist()
    place = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    if who.known is None or len(place) == len(labels):
        return who, plan
    number = np.array([place[label] for label in labels], dtype=np.intp)
    first = np.unique(number, return_index=True)[1]
    z, own = (None if rows is None else rows[first] for rows in (who.covariates, who.own))
    asked = replace(plan.asked, subject=number[plan.asked.subject])
    once = replace(who, known=who.known.take(first), covariates=z, own=own)
    return once, replace(plan, asked=asked)


def _additions(
    times: Windows, number: ArrayLike, at: ArrayLike | None, total: bool
) -> NewUnits | None:
    """Planned additions, if there are any."""
    found = planned_units(times.axis, number, at, times.begin)
    if not found.total:
        return None
    if not total:
        raise ValueError('new_units= goes with the sums subjects="active" and subjects="all"')
    return found


def _with_additions(
    plan: Layout, times: Windows, units: Floats, who: _Who, new: NewUnits
) -> Layout:
    """Add new subjects of average covariates at the average exposure of the others."""
    asked = with_new_units(
        plan.asked, who.n_subjects, (times.start, times.stop), (new.number, new.at),
        float(units.mean()),
    )  # fmt: skip
    if times.own is not None:
        entry = np.repeat(new.at, new.number.astype(np.intp))
        asked = at_ages(asked, np.concatenate([np.zeros(who.n_subjects), entry]))
    return replace(plan, asked=asked)


def _joined(words: tuple[str, ...]) -> str:
    return " ".join(word for word in words if word)
