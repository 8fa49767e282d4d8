"""What must not matter does not: time unit, origin, order and names of rows, merged intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.panel import PanelCounts
from problems import visits_panel
from tolerances import BIT_FOR_BIT, SAME_FIT

PANEL = visits_panel(41, 8, 3, level=4.0, window=(0.0, 48.0), frailty=1.0)
TIMES = np.linspace(0.0, 48.0, 13)
SETTINGS = {
    "paper-bound": {"count_term": "lemma2", "effect": None, "hyper": "optimize"},
    "matern": {
        "count_term": "pointwise",
        "kernel": "matern52",
        "effect": None,
        "hyper": "optimize",
    },
    "gamma": {"count_term": "lemma2", "effect": "gamma", "hyper": "optimize"},
    "weight": {"count_term": "lemma2", "effect": "weight", "hyper": "optimize"},
    "exact": {"count_term": "exact", "effect": None, "hyper": "optimize"},
    "integrated": {"count_term": "pointwise", "effect": "gamma", "hyper": "integrate"},
}
for _name in ("matern", "exact", "integrated"):  # for speed
    SETTINGS[_name]["n_inducing"] = 8

every_setting = pytest.mark.parametrize("name", sorted(SETTINGS))
quick_settings = pytest.mark.parametrize("name", ["paper-bound", "gamma", "weight"])


def fit(panel: PanelCounts, name: str) -> gp4c.GP4C:
    return gp4c.GP4C(**SETTINGS[name]).fit(panel)


@pytest.fixture(scope="module")
def fitted() -> dict[str, gp4c.GP4C]:
    return {name: fit(PANEL, name) for name in SETTINGS}


def rows_of(panel: PanelCounts) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "subject": panel.subjects[panel.subject_index],
            "start": panel.start,
            "stop": panel.stop,
            "count": panel.count,
        }
    )


def answers(model: gp4c.GP4C, times: np.ndarray) -> list[np.ndarray]:
    """Curves and their bands, at the given times."""
    return [
        model.intensity(times),
        model.cumulative(times),
        *model.intensity_band(times, 0.9),
        *model.cumulative_band(times[1:], 0.9),
    ]


@every_setting
def test_the_unit_of_time(name: str, fitted: dict[str, gp4c.GP4C]) -> None:
    unit = 86400.0 if name in ("gamma", "matern") else 1 / 30.4375  # to seconds, to months
    rows = rows_of(PANEL)
    rows[["start", "stop"]] *= unit
    other = fit(PanelCounts.from_frame(rows, window=(0.0, 48.0 * unit)), name)
    model = fitted[name]
    ours, theirs = answers(model, TIMES), answers(other, TIMES * unit)
    per_time = [unit, 1.0, unit, unit, 1.0, 1.0]
    for mine, their, factor in zip(ours, theirs, per_time, strict=True):
        assert_allclose(their * factor, mine, **SAME_FIT)
    assert_allclose(other.length_scale_, model.length_scale_ * unit, **SAME_FIT)
    assert_allclose(other.variance_, model.variance_ / unit, **SAME_FIT)
    assert_allclose(other.mean_, model.mean_ / np.sqrt(unit), **SAME_FIT)
    assert_allclose(other.objective_, model.objective_, **SAME_FIT)
    assert_allclose(other.elbo_, model.elbo_, **SAME_FIT)


@quick_settings
def test_the_origin_of_time(name: str, fitted: dict[str, gp4c.GP4C]) -> None:
    rows = rows_of(PANEL)
    rows[["start", "stop"]] += 1000.0
    other = fit(PanelCounts.from_frame(rows, window=(1000.0, 1048.0)), name)
    for mine, their in zip(
        answers(fitted[name], TIMES), answers(other, TIMES + 1000.0), strict=True
    ):
        # moving the origin rounds times to 1e-13 of the window
        assert_allclose(their, mine, rtol=1e-8, atol=1e-9)


@every_setting
def test_the_order_of_rows(name: str, fitted: dict[str, gp4c.GP4C]) -> None:
    rows = rows_of(PANEL).sample(frac=1.0, random_state=3)
    other = fit(PanelCounts.from_frame(rows, window=(0.0, 48.0)), name)
    for mine, their in zip(answers(fitted[name], TIMES), answers(other, TIMES), strict=True):
        assert_allclose(their, mine, **BIT_FOR_BIT)


@quick_settings
def test_the_names_of_subjects(name: str, fitted: dict[str, gp4c.GP4C]) -> None:
    rows = rows_of(PANEL)
    labels = {old: f"patient {(7 * i) % 8}" for i, old in enumerate(PANEL.subjects)}
    rows["subject"] = rows["subject"].map(labels)
    other = fit(PanelCounts.from_frame(rows, window=(0.0, 48.0)), name)
    model = fitted[name]
    for mine, their in zip(answers(model, TIMES), answers(other, TIMES), strict=True):
        assert_allclose(their, mine, **SAME_FIT)
    if model.subject_effects_ is not None:
        assert other.subject_effects_ is not None
        position = [list(other.subjects_).index(labels[old]) for old in PANEL.subjects]
        assert_allclose(other.subject_effects_[position], model.subject_effects_, **SAME_FIT)


def crowd() -> PanelCounts:
    """Nine subjects seen at the same visits."""
    rng, cuts = np.random.default_rng(4), np.array([0.0, 5.0, 11.0, 20.0, 34.0, 48.0])
    rows = {
        "subject": np.repeat(np.arange(9), 5),
        "start": np.tile(cuts[:-1], 9),
        "stop": np.tile(cuts[1:], 9),
        "count": rng.poisson(np.tile([2.0, 5.0, 3.0, 6.0, 1.0], 9)),
    }
    return PanelCounts.from_frame(rows)


@pytest.mark.parametrize("name", ["paper-bound", "matern", "exact"])
def test_merging_the_same_interval_of_different_subjects(name: str) -> None:
    # nine subjects are one subject with exposure nine, up to the constant Σ m ln 9
    panel = crowd()
    distinct = panel.distinct()
    merged = PanelCounts.from_frame(
        {
            "subject": np.zeros(5, dtype=int),
            "start": distinct.start,
            "stop": distinct.stop,
            "count": distinct.count,
            "n": distinct.exposure,
        },
        exposure="n",
    )
    one, other = fit(panel, name), fit(merged, name)
    for mine, their in zip(answers(one, TIMES), answers(other, TIMES), strict=True):
        assert_allclose(their, mine, **SAME_FIT)
    gained = panel.n_events * np.log(9.0)
    assert_allclose(other.objective_, one.objective_ + gained, **SAME_FIT)


@quick_settings
def test_rows_without_exposure_units_are_rows_with_exposure_one(
    name: str, fitted: dict[str, gp4c.GP4C]
) -> None:
    rows = rows_of(PANEL).assign(units=1.0)
    other = fit(PanelCounts.from_frame(rows, exposure="units", window=(0.0, 48.0)), name)
    assert_allclose(other.intensity(TIMES), fitted[name].intensity(TIMES), **BIT_FOR_BIT)


def test_exposure_in_other_units_scales_the_rate() -> None:
    rows = rows_of(PANEL)
    one = fit(PanelCounts.from_frame(rows.assign(u=1.0), exposure="u"), "paper-bound")
    ten = fit(PanelCounts.from_frame(rows.assign(u=10.0), exposure="u"), "paper-bound")
    times = np.linspace(*one.window_, 9)
    assert_allclose(10.0 * ten.intensity(times), one.intensity(times), **SAME_FIT)
    assert_allclose(ten.objective_, one.objective_, **SAME_FIT)


@quick_settings
def test_the_same_fit_twice_is_the_same_fit(name: str, fitted: dict[str, gp4c.GP4C]) -> None:
    again = fit(PANEL, name)
    for mine, their in zip(answers(fitted[name], TIMES), answers(again, TIMES), strict=True):
        assert_allclose(their, mine, **BIT_FOR_BIT)
    assert again.score(PANEL, n_draws=200) == fitted[name].score(PANEL, n_draws=200)
