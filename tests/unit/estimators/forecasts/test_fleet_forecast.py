"""Forecasts of fleets: who is in service, at which usage, windows by pairs or for each, stock."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from gp4c.estimators.forecasts import joint_counts
from gp4c.estimators.forecasts.count_forecast import forecast
from gp4c.estimators.forecasts.forecast_result import Forecast
from gp4c.exceptions import PanelDataError
from tolerances import ROUNDING, STANDARD_ERRORS

RATE = 0.01  # failures per hour


def fleet(n=60, seed=0, variance=0.5):
    """Machines that run 2 to 20 hours a day; a third goes out of service before day 400."""
    rng, rows = np.random.default_rng(seed), []
    for k in range(n):
        t, daily, effect = 0.0, rng.uniform(2, 20), rng.gamma(1 / variance) * variance
        end = rng.uniform(200, 400) if k % 3 == 0 else np.nan
        while t < min(400, end if np.isfinite(end) else 400):
            stop = min(t + rng.uniform(20, 60), 400, end if np.isfinite(end) else 400)
            hours = (stop - t) * daily
            rows.append((k, t, stop, rng.poisson(RATE * effect * hours), hours, end))
            t = stop
    return pd.DataFrame(rows, columns=["subject", "start", "stop", "count", "hours", "gone"])


@pytest.fixture(scope="module")
def table():
    return fleet()


@pytest.fixture(scope="module")
def panel(table):
    return gp4c.PanelCounts.from_frame(table, usage="hours", end="gone", time_unit="days")


@pytest.fixture(scope="module")
def constant(panel):
    return gp4c.HomogeneousPoisson(effect="gamma").fit(panel)


@pytest.fixture(scope="module")
def smooth(panel):
    return gp4c.GP4C(effect="gamma", bursts=False).fit(panel)


def own_means(model, panel, days):
    """Expected failures of each machine at its daily hours, by hand."""
    alpha, length = model.frailty_shape_, panel.stop - panel.start
    seen = np.bincount(panel.subject_index, panel.count)
    hours = np.bincount(panel.subject_index, panel.exposure * length)
    daily = hours / np.bincount(panel.subject_index, length)  # each runs evenly
    return (alpha + seen) / (alpha + model.rate_ * hours) * model.rate_ * daily * days


def test_those_in_service_are_the_default_and_both_numbers_are_said(constant, panel):
    found = forecast(constant, 400, 430)
    each = own_means(constant, panel, 30)
    assert_allclose(found.mean, each[np.isnan(panel.end)].sum(), rtol=1e-9)
    assert found.subjects == "active"
    assert "40 subjects in service" in str(found)
    assert "40 of 60 subjects are in service; 20 are out of service and not counted" in found.note
    assert "without an end are taken to stay in service throughout" in found.note
    everybody = forecast(constant, 400, 430, subjects="all")
    assert_allclose(everybody.mean, each.sum(), rtol=1e-9)
    assert "20 of 60 subjects are out of service and counted all the same" in everybody.note
    assert "Usage is that of each subject's last three intervals, 2." in found.note
    assert " hours per day" in found.note


def test_a_forecast_of_a_simulated_fleet_holds_its_future():
    # 40 fleets whose next quarter is simulated from the same truth: 90% intervals of the active
    inside = 0
    for seed in range(40):
        rows = fleet(n=40, seed=seed)
        known = gp4c.PanelCounts.from_frame(rows, usage="hours", end="gone")
        model = gp4c.HomogeneousPoisson(effect="gamma").fit(known)
        rng = np.random.default_rng(seed)  # the same machines again: fleet() draws them in order
        low, high = forecast(model, 400, 490, n_draws=2000).interval
        active = rows[rows["gone"].isna()].groupby("subject")
        daily = active["hours"].sum() / active["stop"].max()
        truth = RATE * 90 * daily * true_effects(40, seed)[daily.index]
        inside += low <= rng.poisson(truth.sum()) <= high
    assert stats.binomtest(inside, 40, 0.9).pvalue > 0.01


def true_effects(n, seed, variance=0.5):
    """The effects that fleet() drew."""
    rng, found = np.random.default_rng(seed), []
    for k in range(n):
        t, daily = 0.0, rng.uniform(2, 20)
        found.append(rng.gamma(1 / variance) * variance)
        end = rng.uniform(200, 400) if k % 3 == 0 else 400.0
        while t < end:
            stop = min(t + rng.uniform(20, 60), end)
            rng.poisson(RATE * found[-1] * (stop - t) * daily)
            t = stop
    return np.array(found)


def test_who_leaves_on_the_way_is_counted_until_then(table):
    planned = table.assign(gone=np.where(table["subject"] == 1, 415.0, table["gone"]))
    panel = gp4c.PanelCounts.from_frame(planned, usage="hours", end="gone")
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    days = np.where(np.isnan(panel.end), 30, np.clip(panel.end - 400, 0, 30))
    expected = own_means(model, panel, 1) @ days
    found = forecast(model, 400, 430)
    assert_allclose(found.mean, expected, rtol=1e-9)
    assert "1 goes out of service on the way" in found.note
    halves = forecast(model, 400, 430, every=15)
    assert_allclose(halves.mean.sum(), expected, rtol=1e-9)


def test_usage_may_be_given(constant, panel):
    found = forecast(constant, 400, 430, usage=8.0)
    alpha = constant.frailty_shape_
    hours = np.bincount(panel.subject_index, panel.exposure * (panel.stop - panel.start))
    seen = np.bincount(panel.subject_index, panel.count)
    effects = (alpha + seen) / (alpha + constant.rate_ * hours)
    active = np.isnan(panel.end)
    assert_allclose(found.mean, constant.rate_ * 240 * effects[active].sum(), rtol=1e-9)
    assert "Usage is as given, 8 hours per day." in found.note
    own = forecast(constant, 400, 430, subjects=[1, 2], usage=[8.0, 4.0])
    assert "Usage is as given, 4 to 8 hours per day." in own.note
    assert_allclose(own.mean, constant.rate_ * 30 * np.array([8, 4]) * effects[[1, 2]], rtol=1e-9)
    new = forecast(constant, 400, 430, subjects=None)
    daily = panel.service.usage_rate[active].mean()
    assert_allclose(new.mean, constant.rate_ * 30 * daily, **ROUNDING)
    assert "Usage is that of an average subject in service of late" in new.note


def test_planned_units_come_with_the_spread_of_new_ones(constant, panel):
    plain = forecast(constant, 400, 430, n_draws=40_000)
    more = forecast(constant, 400, 430, new_units=[10, 5], at=[415, 500], n_draws=40_000)
    daily = panel.service.usage_rate[np.isnan(panel.end)].mean()
    added = constant.rate_ * 15 * daily
    assert_allclose(more.mean - plain.mean, 10 * added, rtol=1e-9)
    variance = 10 * (added + added**2 / constant.frailty_shape_)  # negative binomial, independent
    spread = more.draws.var() - plain.draws.var()
    error = more.draws.var() * np.sqrt(4 / len(more.draws))
    assert abs(spread - variance) < STANDARD_ERRORS * error
    assert "10 from 415 on, 5 from 500 on" in more.note
    assert more.n_subjects == 40 + 15


def test_windows_and_subjects_are_pairs_unless_each_is_asked_for(smooth):
    who, start = [4, 2, 7], np.array([400.0, 410.0, 420.0])
    options = {"n_draws": 4000, "random_state": 1}
    pairs = forecast(smooth, start, start + 30, subjects=who, **options)
    assert pairs.mean.shape == (3,)
    assert pairs.to_frame()["subject"].tolist() == who
    assert pairs.to_frame()["start"].tolist() == start.tolist()
    every = forecast(smooth, start, start + 30, subjects=who, each=True, **options)
    assert every.mean.shape == (3, 3)
    assert_allclose(np.diag(every.mean), pairs.mean, rtol=0.03)
    one = forecast(smooth, 400, 430, subjects=who, **options)  # one window for all
    assert_allclose(one.mean, every.mean[:, 0], rtol=0.03)
    assert forecast(smooth, start, start + 30, subjects=4, **options).mean.shape == (3,)
    with pytest.raises(ValueError, match=r"3 windows and 2 subjects are no pairs; each=True"):
        forecast(smooth, start, start + 30, subjects=who[:2])
    whole = forecast(smooth, 400, 430, subjects="active", each=True, **options)
    assert len(whole.subjects) == 40
    assert_allclose(whole.total().mean, forecast(smooth, 400, 430, **options).mean, rtol=0.02)


def test_totals_have_the_dependence_between_windows_and_subjects(smooth):
    months = forecast(smooth, 400, 490, every=30, n_draws=20_000)
    whole = forecast(smooth, 400, 490, n_draws=20_000, random_state=5)
    assert_allclose(months.total().mean, whole.mean, rtol=0.02)
    assert_allclose(months.total().draws.std(), whole.draws.std(), rtol=0.05)
    each = forecast(smooth, 400, 490, every=30, each=True, n_draws=5000)
    assert each.mean.shape == (40, 3)
    assert_allclose(each.total().draws.std(axis=0), months.draws.std(axis=0), rtol=0.1)
    assert_allclose(each.total().total().draws.std(), whole.draws.std(), rtol=0.1)
    assert whole.total() is whole


def test_stock_is_the_smallest_number_that_is_enough(smooth):
    each = forecast(smooth, 400, 490, every=30, each=True, n_draws=2000)
    stock = each.stock(0.9)
    assert len(stock) == 40 * 3 + 3 + 1
    cells = each.draws.reshape(len(each.draws), -1)
    mine = stock["stock"].to_numpy()[:120]
    assert np.all((cells <= mine).mean(axis=0) >= 0.9)
    assert np.all((cells <= mine - 1).mean(axis=0) < 0.9)
    total = stock.iloc[-1]
    assert total["subject"] == "total"
    everything = cells.sum(axis=1)
    assert np.mean(everything <= total["stock"]) == total["chance"] >= 0.9
    assert np.mean(everything <= total["stock"] - 1) < 0.9
    assert total["stock"] < mine.sum()  # not everybody fails at once


def test_quantiles_are_counts_with_enough_probability_at_or_below():
    draws = np.array([0, 0, 1, 1, 1, 2, 2, 3, 7, 9])
    found = Forecast(2.6, draws, 0.9, np.zeros(1), np.ones(1), None, 1, "")
    assert [found.quantile(p) for p in (0.05, 0.2, 0.21, 0.5, 0.9, 0.95)] == [0, 0, 1, 1, 7, 9]
    assert found.stock(0.8)["stock"].tolist() == [3]


def test_months_are_those_of_the_calendar_where_there_are_dates():
    rows = {"id": ["a", "b"], "from": ["2024-01-01"] * 2, "to": ["2024-03-31", "2024-03-01"]}
    panel = gp4c.PanelCounts.from_frame(
        rows | {"n": [3, 4]}, subject="id", start="from", stop="to", count="n"
    )
    model = gp4c.HomogeneousPoisson().fit(panel)
    found = forecast(model, "2024-04-01", "2024-07-15", every="month", subjects="all")
    dates = found.to_frame()
    assert dates["start_date"].tolist() == ["2024-04-01", "2024-05-01", "2024-06-01", "2024-07-01"]
    assert dates["stop_date"].iloc[-1] == "2024-07-15"
    assert_allclose(found.mean, 2 * model.rate_ * np.array([30, 31, 30, 14]), **ROUNDING)
    weeks = forecast(model, "2024-04-01", "2024-04-15", every="week").to_frame()
    assert weeks["stop_date"].tolist() == ["2024-04-08", "2024-04-15"]


def test_large_tables_are_printed_short_and_exported_whole(smooth):
    found = forecast(smooth, 400, 490, every=30, each=True, n_draws=200)
    lines = str(found).splitlines()
    assert len(lines) < 32
    assert "… and 96 more rows: to_frame() has all of them" in lines
    assert len(found.to_frame()) == 120
    low, high = found.total().total().interval
    assert any(line.startswith("In all ") and f"({low}–{high})" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subjects": 4, "new_units": 2}, "new_units= goes with the sums"),
        ({"new_units": [1, 2], "at": 410}, "new_units= and at= are one number and one time"),
        ({"new_units": 1.5}, r"whole numbers of units; found 1\.5"),
        ({"usage": 2, "exposure": 3}, "usage= and exposure= say the same"),
        ({"every": 0}, "every must be a positive length of time; found 0"),
        ({"every": "moon"}, "every must be a number, or one of day, week"),
        ({"every": 1e-6}, "more than 10,000 windows"),
        ({"every": "month", "stop": [410, 420]}, "every= divides one window"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(constant, options, message):
    with pytest.raises(ValueError, match=message):
        forecast(constant, **{"start": 400, "stop": 430, **options})


def test_a_fleet_that_is_gone_and_data_without_usage_are_said(table):
    old = table.assign(gone=400.0)
    gone = gp4c.HomogeneousPoisson().fit(
        gp4c.PanelCounts.from_frame(old, usage="hours", end="gone")
    )
    with pytest.raises(PanelDataError, match="all 60 subjects are out of service by 410"):
        forecast(gone, 410, 420)
    plain = gp4c.HomogeneousPoisson().fit(
        gp4c.PanelCounts.from_frame(table[["subject", "start", "stop", "count"]])
    )
    with pytest.raises(PanelDataError, match="usage= is for fits to data with a column of usage"):
        forecast(plain, 400, 410, usage=8)


def test_with_bursts_curves_are_used_several_times_and_the_answer_is_the_same(table, monkeypatch):
    panel = gp4c.PanelCounts.from_frame(table, usage="hours", end="gone")
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    model.law_, model.dispersion_ = "bursts", 1.8
    plain = forecast(model, 400, 490, n_draws=6000)
    monkeypatch.setattr(joint_counts, "_DEAR", 40 * 600)
    monkeypatch.setattr(joint_counts, "_FEWEST", 1)
    shared = forecast(model, 400, 490, n_draws=6001, random_state=3)
    assert shared.draws.shape == (6001,)
    error = plain.draws.std() * np.sqrt(2 / 6000)
    assert abs(shared.draws.mean() - plain.draws.mean()) < STANDARD_ERRORS * error
    assert_allclose(shared.mean, plain.mean, rtol=1e-9)  # one curve: means are exact
    assert_allclose(shared.draws.std(), plain.draws.std(), rtol=0.06)


def test_saved_models_forecast_the_same(smooth, tmp_path):
    smooth.save(tmp_path / "fit.json")
    again = gp4c.load_model(tmp_path / "fit.json")
    options = {"every": 30, "new_units": 3, "at": 440, "n_draws": 500}
    one, two = forecast(smooth, 400, 490, **options), forecast(again, 400, 490, **options)
    assert np.array_equal(one.draws, two.draws)
    assert one.note == two.note


def test_a_panel_in_place_of_labels_is_sent_to_history(constant, panel):
    with pytest.raises(PanelDataError, match="a panel of what was seen of them goes in history="):
        constant.forecast(400, 430, subjects=panel)
