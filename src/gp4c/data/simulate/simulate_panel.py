"""Panels and event histories drawn from a known intensity."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gp4c.data.checks import check_window, unknown_name
from gp4c.data.simulate.burst_sizes import bursts_per_event, check_bursts, spread_bursts
from gp4c.data.simulate.intensities import as_intensity
from gp4c.data.simulate.thinning import draw_events, events_until
from gp4c.data.simulate.visit_schemes import Schedule, Visits, cut_at, end_of_follow_up, plan_visits
from gp4c.data.subjects import FloatArray, IndexArray, IntArray
from gp4c.data.tables.frames import table_of
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.data.tables.frames import IntoTable

#: α of Gamma(α, α); ("gamma", α); ("lognormal", σ); weights (n_subjects,); callable (rng, n)
Frailty: TypeAlias = (
    "float | tuple[str, float] | ArrayLike | Callable[[np.random.Generator, int], ArrayLike] | None"
)
#: column -> log rate ratio per unit, or column -> {level: log rate ratio}
Coefficients: TypeAlias = Mapping[str, "float | Mapping[Hashable, float]"]

#: laws of weights with mean 1, by name: draws from a generator, a parameter and a number
_FRAILTIES: dict[str, Callable[[np.random.Generator, float, int], FloatArray]] = {
    "gamma": lambda rng, shape, n: rng.gamma(shape, 1 / shape, n),
    "lognormal": lambda rng, sigma, n: rng.lognormal(-(sigma**2) / 2, sigma, n),
}


def simulate_panel(
    intensity: object,
    *,
    window: tuple[float, float] = (0.0, 60.0),
    n_subjects: int = 100,
    n_intervals: int = 10,
    visits: Visits = "dirichlet",
    dropout: float = 0.0,
    frailty: Frailty = None,
    bursts: float | None = None,
    covariates: IntoTable | None = None,
    coefficients: Coefficients | None = None,
    time_unit: str | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[PanelCounts, RecurrentEvents]:
    r"""Simulate event histories and the panel of counts they leave at the visits.

    Subject k has events at the rate

    .. math:: \lambda_k(t) = \upsilon_k \, e^{\beta^\top z_k} \, \lambda(t)

    from the window's start to the end of its follow-up. The panel holds exactly these events,
    counted between visits.

    Parameters
    ----------
    intensity : str, callable, array, (array, array) or float
        λ: a name ("square_wave", the paper's Synthetic A; "synthetic_b"; "synthetic_c"), a
        function of an array of times, rates on an even grid over the window, a pair of times and
        rates (linear in between), or one constant rate. See :mod:`gp4c.data.simulate.intensities`.
    window : (float, float)
        Where events are observed.
    n_subjects : int
        Number of subjects, labelled 1, 2, ...
    n_intervals : int
        Intervals per subject for the named visit schemes.
    visits : str, array, sequence of arrays or callable
        "dirichlet" splits the window at random (the paper's scheme), "fixed" evenly. An array
        gives the same visit times to all; an array (n_subjects, m), NaN where there is no visit,
        or a sequence of arrays gives each subject its own; a callable (rng, n_subjects) returns
        one of these. Observation starts with the window and ends with the last visit.
    dropout : float
        Rate of leaving the study, per unit of time: follow-up then ends at an exponential time,
        and the last interval with it. 0 keeps everybody.
    frailty : None, float, (str, float), array or callable
        υ, mean 1: a number v or ("gamma", 1/v) for a gamma law of variance v; ("lognormal", σ) for
        exp(N(−σ²/2, σ²)); an array (n_subjects,) of weights; a callable (rng, n_subjects).
    bursts : float, optional
        φ: events come in bursts of φ / ln(1 + φ) on average, all events of a burst at one time.
        Counts keep their means and have 1 + φ times the variance that they had, given υ. None or
        0: one by one.
    covariates : data frame or dict of arrays, optional
        z: one row per subject, kept as the panel's covariates.
    coefficients : dict, optional
        β: log rate ratio per unit of a numeric column, or ``{level: log rate ratio}`` for the
        levels of any other column (levels not named have 0).
    time_unit : str, optional
        Unit of the times, for axes and tables.
    random_state : int, Generator or None
        Seed; the same seed gives the same data. Visits, drop-out, frailties, events and sizes of
        bursts have independent streams, so changing one leaves the others as they were.

    Returns
    -------
    panel : PanelCounts
        The counts between visits.
    events : RecurrentEvents
        The events themselves.

    Notes
    -----
    Events are drawn by thinning. The named intensities, grids and constants know a tight bound
    from above, so the draw is exact. A callable is bounded by probing it at 8193 points with
    head-room; when it turns out higher than that anywhere an event is tried, the bound is doubled
    there and all is drawn anew. Spikes narrower than the probes can escape: hand such an
    intensity over as a grid.

    With bursts the counts are a negative-binomial process (:mod:`gp4c.data.simulate.burst_sizes`):
    counts of a subject on intervals that do not overlap are independent given υ, and a count is
    the sum of those on the parts of its interval, whatever the parts.

    Examples
    --------
    >>> import gp4c
    >>> panel, events = gp4c.simulate_panel("square_wave", n_subjects=20, random_state=1)
    >>> panel.n_subjects, panel.n_intervals, panel.n_events == len(events.time)
    (20, 200, True)
    """
    window = check_window(window, np.inf, -np.inf)
    if n_subjects < 1:
        raise PanelDataError(f"n_subjects must be at least 1; it is {n_subjects!r}")
    phi = check_bursts(bursts)
    rate = as_intensity(intensity, window)
    frame = _covariate_frame(covariates, n_subjects)
    source = np.random.default_rng(random_state)
    visit_rng, dropout_rng, frailty_rng, event_rng = source.spawn(4)

    weight = draw_frailty(frailty, n_subjects, frailty_rng) * rate_ratios(frame, coefficients)
    plan = plan_visits(
        visits, window=window, n_subjects=n_subjects, n_intervals=n_intervals, rng=visit_rng
    )
    schedule = cut_at(plan, end_of_follow_up(dropout, window, n_subjects, dropout_rng))
    end = np.full(n_subjects, window[0])
    np.maximum.at(end, schedule.subject_index, schedule.stop)
    often = weight * bursts_per_event(phi)
    time, n_events = draw_events(rate, window=window, weight=often, end=end, rng=event_rng)
    if phi > 0:
        time, n_events = spread_bursts(time, n_events, phi, source.spawn(1)[0])
    return _containers(
        schedule, time, n_events, end, window=window, time_unit=time_unit, covariates=frame
    )


def _containers(
    schedule: Schedule,
    time: FloatArray,
    n_events: IndexArray,
    end: FloatArray,
    *,
    window: tuple[float, float],
    time_unit: str | None,
    covariates: pd.DataFrame | None,
) -> tuple[PanelCounts, RecurrentEvents]:
    """Count the events between visits and hand both over as public containers."""
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts

    subjects = np.arange(1, len(n_events) + 1)
    panel = PanelCounts._from_arrays(
        subjects,
        schedule.subject_index,
        schedule.start,
        schedule.stop,
        count_between(schedule.subject_index, schedule.start, schedule.stop, time, n_events),
        window=window,
        time_unit=time_unit,
        covariates=covariates,
    )
    events = RecurrentEvents._from_arrays(
        subjects,
        np.repeat(np.arange(len(n_events)), n_events),
        time,
        np.full(len(n_events), window[0]),
        end,
        window=window,
        time_unit=time_unit,
        covariates=covariates,
    )
    return panel, events


def draw_frailty(frailty: Frailty, n_subjects: int, rng: np.random.Generator) -> FloatArray:
    """Weight of each subject (n_subjects,); see `frailty` of :func:`simulate_panel`."""
    if frailty is None:
        return np.ones(n_subjects)
    if callable(frailty):
        return _checked_weights(frailty(rng, n_subjects), n_subjects)
    if isinstance(frailty, int | float):
        if not frailty > 0.0:
            raise PanelDataError(f"the frailty variance must be positive; it is {frailty!r}")
        frailty = ("gamma", 1.0 / frailty)
    if not isinstance(frailty, tuple):
        return _checked_weights(frailty, n_subjects)
    kind, parameter = frailty
    if not (np.isfinite(parameter) and parameter > 0):
        raise PanelDataError(f"the parameter of the frailty must be positive; it is {parameter!r}")
    if kind not in _FRAILTIES:
        raise PanelDataError(
            f"frailty must be a number, ('gamma', α), ('lognormal', σ), weights or a callable; "
            f"it is {frailty!r}"
        )
    return _FRAILTIES[kind](rng, parameter, n_subjects)


def rate_ratios(covariates: pd.DataFrame | None, coefficients: Coefficients | None) -> FloatArray:
    """Compute exp(βᵀz) for each row of the covariates."""
    if not coefficients:
        return np.ones(1)
    columns = [] if covariates is None else list(covariates.columns)
    log_ratio = np.zeros(1)
    for name, coefficient in coefficients.items():
        if covariates is None or name not in columns:
            raise PanelDataError(f"no covariate {name!r}; {unknown_name(name, columns)}")
        log_ratio = log_ratio + _log_ratio(name, covariates[name], coefficient)
    return np.asarray(np.exp(log_ratio))


def count_between(
    subject_index: IndexArray,
    start: FloatArray,
    stop: FloatArray,
    time: FloatArray,
    n_events: IndexArray,
) -> IntArray:
    """Count each subject's events in its intervals (start, stop].

    Parameters
    ----------
    subject_index, start, stop : array (n_intervals,)
        The intervals.
    time : array (n_total,)
        Event times sorted by subject, then time.
    n_events : array (n_subjects,)
        Number of events of each subject.

    Returns
    -------
    array (n_intervals,)
    """
    last = np.cumsum(n_events)
    first = last - n_events
    own_first, own_last = first[subject_index], last[subject_index]
    until_stop = events_until(time, own_first, own_last, stop)
    until_start = events_until(time, own_first, own_last, start)
    return (until_stop - until_start).astype(np.int64)


def _covariate_frame(covariates: Any, n_subjects: int) -> pd.DataFrame | None:
    """One row per subject, whatever kind of table came."""
    if covariates is None:
        return None
    import pandas as pd

    table = table_of(covariates)
    if table.n_rows != n_subjects:
        raise PanelDataError(
            f"covariates must have one row per subject; there are {table.n_rows} rows "
            f"for {n_subjects} subjects"
        )
    return pd.DataFrame(table.columns)


def _checked_weights(weights: Any, n_subjects: int) -> FloatArray:
    """User-given frailties: one finite, non-negative number per subject."""
    weight = np.asarray(weights, dtype=np.float64)
    if weight.shape != (n_subjects,):
        raise PanelDataError(
            f"frailties must be one number for each of {n_subjects} subjects; "
            f"their shape is {weight.shape}"
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        place = int(np.argmax(bad))
        raise PanelDataError(
            f"frailties must be finite and not negative; subject {place + 1} has {weight[place]:g}"
        )
    return weight


def _log_ratio(
    name: str, column: pd.Series[Any], coefficient: float | Mapping[Hashable, float]
) -> FloatArray:
    """Effect of one covariate on the log rate of each subject."""
    if isinstance(coefficient, Mapping):
        levels = set(column)
        for level in coefficient:
            if level not in levels:
                raise PanelDataError(
                    f"covariate {name!r} has no level {level!r}; "
                    f"{unknown_name(level, sorted(levels, key=str))}"
                )
        return np.array([coefficient.get(level, 0.0) for level in column], dtype=np.float64)
    try:
        values = column.to_numpy(dtype=np.float64)
    except (TypeError, ValueError):
        raise PanelDataError(
            f"covariate {name!r} is not a number; give its coefficient as {{level: log rate ratio}}"
        ) from None
    if not np.isfinite(values).all():
        raise PanelDataError(f"covariate {name!r} has missing or infinite values")
    return np.asarray(values * coefficient)
