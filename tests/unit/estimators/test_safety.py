"""Extreme but legal data: finite answers, no warnings, an increasing cumulative."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.panel import PanelCounts
from gp4c.exceptions import ConvergenceWarning, FitWarning, OverdispersionWarning
from problems import visits_panel

QUICK = {"hyper": "optimize", "n_inducing": 8}
SETTINGS = {
    "paper": {"count_term": "lemma2", "effect": None},
    "b0": {"count_term": "lemma2", "b": 0.0, "effect": None},
    "b1": {"count_term": "lemma2", "b": 1.0, "effect": None},
    "zero-mean": {"count_term": "lemma2", "mean": 0.0, "effect": None},
    "matern": {"count_term": "pointwise", "kernel": "matern32", "effect": None},
    "exact": {"count_term": "exact", "effect": None},
    "gamma": {"count_term": "lemma2", "effect": "gamma"},
    "weight": {"count_term": "lemma2", "effect": "weight"},
}


def panel(
    start: list[float], stop: list[float], count: list[int], subject: list[int] | None = None,
    window: tuple[float, float] | None = None,
) -> PanelCounts:  # fmt: skip
    labels = list(range(len(start))) if subject is None else subject
    rows = {"subject": labels, "start": start, "stop": stop, "count": count}
    return PanelCounts.from_frame({k: np.array(v) for k, v in rows.items()}, window=window)


def scaled(length: float, origin: float = 0.0) -> PanelCounts:
    return visits_panel(81, 5, 3, level=3.0, window=(origin, origin + length))


CASES = {
    "window of 1e-6": scaled(1e-6),
    "window of 1e6": scaled(1e6),
    "far from time zero": scaled(10.0, 1e9),
    "one event": panel([0.0, 0.0, 3.0], [3.0, 5.0, 9.0], [0, 1, 0]),
    "no events": panel([0.0, 0.0, 3.0], [3.0, 5.0, 9.0], [0, 0, 0]),
    "one subject, two visits": panel([0.0, 2.0], [2.0, 7.0], [3, 1], [1, 1]),
    "one subject, one visit": panel([0.0], [2.0], [3]),
    "one visit, no event": panel([0.0], [2.0], [0]),
    "the same interval for all": panel([0.0] * 8, [4.0] * 8, [0, 1, 2, 5, 0, 0, 9, 1]),
    "window much wider than the data": panel(
        [0.0, 2.0, 1.0], [2.0, 7.0, 6.0], [3, 1, 4], window=(-100.0, 1000.0)
    ),
    "a gap in the middle": panel([0.0, 9.0], [1.0, 10.0], [4, 2], [1, 1]),
    "an interval of 1e-9": panel(
        [0.0, 5.0, 5.0 + 1e-9], [5.0, 5.0 + 1e-9, 10.0], [3, 1, 2], [1, 1, 1]
    ),
    "1e9 events beside one": panel([0.0, 5.0], [5.0, 10.0], [10**9, 1], [1, 1]),
    "1e9 events beside none": panel([0.0, 5.0], [5.0, 10.0], [10**9, 0], [1, 1]),
    "1e9 events for all": panel([0.0] * 3, [4.0] * 3, [10**9] * 3),
    "one subject with all events": panel(
        [0.0] * 5, [4.0] * 5, [0, 0, 100_000, 0, 0]
    ),
}  # fmt: skip


def check(model: gp4c.GP4C, data: PanelCounts) -> None:
    """Every answer is finite, ordered and consistent."""
    times = np.linspace(*data.window, 41)
    intensity, cumulative = model.intensity(times), model.cumulative(times)
    band, total_band = model.intensity_band(times), model.cumulative_band(times[1:])
    for values in (intensity, cumulative, *band, *total_band):
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0)
    assert np.diff(cumulative).min() >= -1e-13 * cumulative[-1]
    assert np.all(band[0] <= band[1])
    assert np.all(total_band[0] <= total_band[1])
    for number in ("objective_", "elbo_", "length_scale_", "variance_", "mean_"):
        assert np.isfinite(getattr(model, number)), number
    assert np.isfinite(model.score(data, n_draws=50))
    draws = model.sample_intensity(times, 3)
    assert np.all(np.isfinite(draws) & (draws >= 0))


HUGE = ["1e9 events beside one", "1e9 events beside none"]


@pytest.mark.parametrize("name", sorted(SETTINGS))
@pytest.mark.parametrize("case", sorted(set(CASES) - {*HUGE, "1e9 events for all"}))
def test_extreme_data_get_finite_answers(case: str, name: str) -> None:
    data = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OverdispersionWarning)  # honest of a plain Poisson model
        model = gp4c.GP4C(**QUICK, **SETTINGS[name]).fit(data)
        check(model, data)
    assert model.converged_


def fit_with_honest_warnings(data: PanelCounts, name: str) -> gp4c.GP4C:
    """Fit; warnings may say that it did not converge, and then it says so, or that it misfits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = gp4c.GP4C(**QUICK, **SETTINGS[name]).fit(data)
        check(model, data)
    kinds = {warning.category for warning in caught}
    assert kinds <= {ConvergenceWarning, FitWarning}
    assert model.converged_ == (ConvergenceWarning not in kinds)
    return model


@pytest.mark.parametrize("name", ["paper", "b0", "matern"])
def test_a_billion_events_of_each(name: str) -> None:
    model = fit_with_honest_warnings(CASES["1e9 events for all"], name)
    assert_allclose(model.cumulative(4.0), 1e9, rtol=1e-4)


@pytest.mark.parametrize("case", HUGE)
@pytest.mark.parametrize("name", ["paper", "b0", "weight"])
def test_a_billion_events_beside_few(case: str, name: str) -> None:
    model = fit_with_honest_warnings(CASES[case], name)
    assert_allclose(model.cumulative(10.0), 1e9, rtol=1e-4)
    assert model.expected_counts(7.5, 10.0) < 1e6


def test_without_events_the_answer_is_a_low_rate() -> None:
    # a fixed weak prior whose mean is one event in the whole exposure: documented in fitting.py
    data = CASES["no events"]
    model = gp4c.GP4C(**QUICK, **SETTINGS["paper"]).fit(data)
    at_risk = float((data.stop - data.start).sum())
    assert 0.0 < model.intensity(4.0) < 1.0 / at_risk
    low, high = model.intensity_band(4.0)
    assert low < 0.05 / at_risk
    assert 1.0 / at_risk < high < 5.0 / at_risk


def test_defaults_survive_small_data() -> None:
    for case in ("one event", "no events", "one subject, one visit", "the same interval for all"):
        data = CASES[case]
        check(gp4c.GP4C(n_inducing=8).fit(data), data)
