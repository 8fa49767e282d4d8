"""What must hold of every fit, whatever the data."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import gp4c
from gp4c.classical.bootstrap import BootstrapEstimator
from gp4c.data.types.typed_panel import TypedPanel
from gp4c.exceptions import ConvergenceWarning, GP4CWarning, NoIntensityError, PanelDataError

from .estimators import WAYS, Case, Way, fitted
from .studies import in_another_unit, reordered

#: levels of the bands; the first is practically the median
LEVELS = (0.02, 0.5, 0.95, 0.999)
#: share of the largest value that rounding may take from an order of two numbers
ROUNDING = 1e-9
#: share of its size that an objective may lose by rounding: sums of up to 1e16 events
NEVER_DOWN = 1e-10
#: nats by which a log-likelihood may be off before its profile says nothing: 1e11 events or more
BLURRED = 1e-4
#: factor of another unit of time, exact in floating point
UNIT = 2.0
#: share of the largest value by which a curve may differ between units: searches end where the
#: next step gains nothing, which rounding moves
SAME = 1e-4
#: most characters of a line of an error message
LONGEST = 600


class FindingError(AssertionError):
    """Something that must not happen."""


def check(good: Any, message: str) -> None:
    """Raise a finding unless all are true."""
    if not np.all(good):
        raise FindingError(message)


@contextmanager
def only_our_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect warnings; one that is not gp4c's own is a finding."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with np.errstate(all="warn", under="ignore"):
            yield seen
    foreign = [w for w in seen if not issubclass(w.category, GP4CWarning)]
    if foreign:
        first = foreign[0]
        place = "/".join(Path(first.filename).parts[-2:])
        raise FindingError(f"{first.category.__name__}: {first.message} ({place}:{first.lineno})")


def check_refusal(error: PanelDataError) -> None:
    """A refusal says what is wrong in a few short lines."""
    lines = str(error).splitlines()
    check(1 <= len(lines) <= 8 and all(len(line) <= LONGEST for line in lines), f"{error!r}")
    check(lines[0].strip(), "an empty message")


def check_fit(name: str, case: Case) -> bool:
    """Fit in one way and check the answers; False if it refused the data."""
    way = WAYS[name]
    with only_our_warnings() as seen:
        try:
            model = fitted(way, case.data, case.arguments)
        except PanelDataError as error:
            check_refusal(error)
            return False
        check_objective(model, way)
        unsettled = any(issubclass(w.category, ConvergenceWarning) for w in seen)
        check(model.converged_ or unsettled, "not converged, and no warning says so")
        check(str(model.summary()).strip(), "an empty summary")
        times = times_of(case.data)
        for one in by_type(model):
            check_curves(one, times)
            check_bands(one, times)
        check_counts(model, case, way)
        check_scores(model, case.data)
        check_saving(model, times)
        if case.again is not None:
            check_again(model, way, case, times)
    return True


def by_type(model: Any) -> list[Any]:
    """The fit of each type of events; the fit itself where there is one type."""
    types = getattr(model, "event_types_", ())
    return [model.of_type(name) for name in types] if types else [model]


def times_of(data: Any) -> np.ndarray:
    """Evenly spaced times, and the data's own ends."""
    own = np.concatenate(list(_rows(data)))
    own = own[:: max(1, len(own) // 20)]
    return np.unique(np.concatenate([np.linspace(*data.window, 15), own, data.window]))


def _rows(data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of all rows."""
    if isinstance(data, TypedPanel):
        return tuple(np.concatenate([getattr(p, e) for p in data.parts]) for e in ("start", "stop"))
    whole = getattr(data, "panel", data)
    return whole.start, whole.stop


def check_objective(model: Any, way: Way) -> None:
    """The objective is a number, and no step lowered it."""
    check(np.isfinite(model.objective_), f"objective {model.objective_}")
    history = np.asarray(model.history_, dtype=float)
    check(np.isfinite(history), f"history {history}")
    if way.climbs and len(history) > 1:
        slack = NEVER_DOWN * max(1.0, float(np.abs(history).max()))
        fall = float(np.diff(history).min())
        check(fall >= -slack, f"the objective fell by {-fall:.3g}, of {history[-1]:.6g}")
        if getattr(model, "hyper", None) == "optimize":  # no prior beside the objective
            end = abs(history[-1] - model.objective_)
            check(end <= slack, f"the history ends {end:.3g} from the objective")


def check_curves(model: Any, times: np.ndarray) -> None:
    """Λ is finite, starts at 0 and never falls; λ is finite and not negative."""
    mean = model.cumulative(times)
    check(np.isfinite(mean), f"cumulative {mean}")
    top = max(float(mean.max()), 1e-300)
    check(np.diff(mean) >= -ROUNDING * top, f"cumulative falls: {np.diff(mean).min()} of {top}")
    check(mean >= -ROUNDING * top, f"cumulative below 0: {mean.min()}")
    check(model.cumulative(float(times[0])) == mean[0], "a scalar gives another number")
    try:
        rate = model.intensity(times)
    except NoIntensityError:
        return
    check(np.isfinite(rate) & (rate >= 0.0), f"intensity {rate}")


def check_counts(model: Any, case: Case, way: Way) -> None:
    """Expected counts are finite and not negative; what balances, balances."""
    for one in by_type(model):
        expected = one.expected_counts(*_rows(case.data))
        check(np.isfinite(expected) & (expected >= 0.0), f"expected counts {expected}")
    if way.balances(case.arguments) and model.converged_:
        data = case.data
        total = float(data.exposure @ expected)
        # increments are differences of Λ: a jump beside a far larger one is known to its rounding
        top = float(model.cumulative(data.window[1]))
        blur = 4 * np.finfo(float).eps * top * float(data.exposure.sum())
        check(
            abs(total - data.n_events) <= 1e-6 * max(data.n_events, 1e-3) + blur,
            f"{data.n_events} events, {total} expected",
        )


def check_bands(model: Any, times: np.ndarray) -> None:
    """Bands are ordered, finite, not negative, nest by level, and hold the mean."""
    if isinstance(model, BootstrapEstimator) and not model.band_text():
        model.bootstrap(3, random_state=0)
    own = not isinstance(model, BootstrapEstimator) or not getattr(model, "bootstrap_", None)
    profile = own and not model.has_posterior
    if profile and np.finfo(float).eps * abs(model.objective_) > BLURRED:
        return  # rounding of the likelihood exceeds the ratio that the interval allows
    # documented: few subjects with events leave the upper end of the profile interval open
    open_end = profile
    _nested([model.cumulative_band(times, level) for level in LEVELS], "cumulative", open_end)
    try:
        _nested([model.intensity_band(times, level) for level in LEVELS], "intensity", open_end)
    except NoIntensityError:
        return
    if own:
        _holds(model.cumulative_band(times, LEVELS[-1]), model.cumulative(times), "cumulative")
        _holds(model.intensity_band(times, LEVELS[-1]), model.intensity(times), "intensity")


def _nested(bands: list[tuple[np.ndarray, np.ndarray]], what: str, open_end: bool = False) -> None:
    """`open_end`: an upper end may be infinite."""
    ends = bands[-1][1]
    top = float(np.max(ends[np.isfinite(ends)], initial=1e-300))
    slack = ROUNDING * top
    for low, high in bands:
        check(np.isfinite(low) & (np.isfinite(high) | open_end), f"{what} band {low} {high}")
        check(low >= 0.0, f"{what} band below 0: {np.min(low)}")
        check(low <= high, f"{what} band upside down: {np.max(low - high)} of {top}")
    for (inner_low, inner_high), (low, high) in pairwise(bands):
        inside = (low <= inner_low + slack) & (inner_high <= high + slack)
        check(inside, f"{what} bands do not nest: {low} {inner_low} {inner_high} {high}")


def _holds(band: tuple[np.ndarray, np.ndarray], mean: np.ndarray, what: str) -> None:
    slack = ROUNDING * max(float(np.max(mean)), 1e-300)
    inside = (band[0] <= mean + slack) & (mean <= band[1] + slack)
    check(inside, f"the mean {mean} is outside the {what} band {band}")


def check_scores(model: Any, data: Any) -> None:
    """Scores are finite, and the same call gives the same number."""
    panel = getattr(data, "panel", data)
    if isinstance(panel, gp4c.RecurrentEvents):
        return
    draws = {"n_draws": 64} if "n_draws" in signature(model.score).parameters else {}
    value = model.score(panel, **draws)
    check(np.isfinite(value), f"score {value}")
    each = model.score_subjects(panel, **draws)
    check(np.isfinite(each), f"scores of subjects {each}")
    check(len(each) == panel.n_subjects, "a score per subject")
    check(model.score(panel, **draws) == value, "the same score twice")


def check_again(model: Any, way: Way, case: Case, times: np.ndarray) -> None:
    """Other names in another order change no bit; another unit of time, nothing but the unit."""
    if case.again == "same":
        other = fitted(way, reordered(case.data), case.arguments)
        for one, two in zip(by_type(model), by_type(other), strict=True):
            check(
                np.array_equal(one.cumulative(times), two.cumulative(times)),
                "other names in another order gave another curve",
            )
        return
    other = fitted(way, in_another_unit(case.data, UNIT), case.arguments)
    if not (model.converged_ and other.converged_):
        return
    for one, two in zip(by_type(model), by_type(other), strict=True):
        here, there = one.cumulative(times), two.cumulative(UNIT * times)
        off = float(np.abs(here - there).max()) / max(float(here.max()), 1e-300)
        check(off <= SAME, f"another unit of time changed the curve by {off:.2g} of itself")


def check_saving(model: Any, times: np.ndarray) -> None:
    """What comes back from a file gives the same answers to the last bit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fit.json"
        model.save(path)
        again = gp4c.load_model(path)
    for one, two in zip(by_type(model), by_type(again), strict=True):
        check(np.array_equal(one.cumulative(times), two.cumulative(times)), "saved curve differs")
        bands = (m.cumulative_band(times, 0.9) for m in (one, two))
        for here, there in zip(*bands, strict=True):
            check(np.array_equal(here, there), "saved band differs")
    check(repr(model) == repr(again), "saved parameters differ")
    check(str(model.summary()) == str(again.summary()), "saved summary differs")
