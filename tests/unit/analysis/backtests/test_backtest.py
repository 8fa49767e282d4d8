"""Back-testing: what was known when, calibrated forecasts, and scores against a constant rate."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from gp4c.analysis.backtests.backtest import CONSTANT
from gp4c.analysis.backtests.rolling_origins import RollingOrigins
from gp4c.exceptions import PanelDataError


@pytest.fixture(scope="module")
def steady():
    """A constant rate with frailty: the yardstick is the truth."""
    return gp4c.simulate_panel(
        0.3, window=(0, 60), n_subjects=80, n_intervals=20, frailty=("gamma", 0.7), random_state=3
    )[0]


@pytest.fixture(scope="module")
def tested(steady):
    return gp4c.backtest({"poisson": gp4c.HomogeneousPoisson()}, steady, horizon=6, n_origins=6)


def test_forecasts_know_only_what_had_ended(steady):
    rolling = RollingOrigins(steady, 6, 4)
    for origin in rolling.times:
        seen, came = rolling.split(origin)
        assert seen.stop.max() <= origin == seen.window[1]
        assert came.stop.min() > origin
        assert came.stop.max() <= origin + 6 * (1 + 1e-9)
    assert_allclose(rolling.times, steady.stop.max() - [24, 18, 12, 6])


def test_what_came_is_counted_once(steady, tested):
    table = tested.to_frame()
    one = table[table["model"] == CONSTANT]
    late = steady.count[steady.stop > one["origin"].min()].sum()
    assert one.loc[one["of"] == "total", "events"].sum() == late
    assert one.loc[one["of"] == "subject", "events"].sum() == late
    assert set(table["model"]) == {"poisson", CONSTANT, "power-law", "log-linear"}


def test_forecasts_of_the_truth_are_calibrated(tested):
    # subjects: several hundred forecasts; the exact coverage is 0.9 on average
    held = tested.coverage.loc[CONSTANT]
    rows = tested.to_frame()
    n = ((rows["model"] == CONSTANT) & (rows["of"] == "subject")).sum()
    assert n > 400
    assert abs(held["subjects_exact"] - 0.9) < 4 * np.sqrt(0.09 / n)
    assert held["subjects"] >= held["subjects_exact"]
    density = tested.pit(CONSTANT)
    assert_allclose(density.mean(), 1.0)
    assert stats.chisquare(density * n / 10).pvalue > 0.001
    assert tested.coverage.loc["poisson", "subjects_exact"] < held["subjects_exact"] - 0.02


def test_scores_are_relative_to_the_constant_rate(tested):
    scores = tested.scores
    assert scores.loc[CONSTANT].tolist() == [0, 0, 0, 0]
    assert scores.loc["poisson", "subjects"] < -2 * scores.loc["poisson", "subjects_error"]
    said = str(tested)
    assert "from 6 origins" in said
    assert max(map(len, said.splitlines())) <= 92


def test_log_scores_and_pit_are_those_of_the_negative_binomial(steady):
    found = gp4c.backtest(gp4c.HomogeneousPoisson(effect="gamma"), steady, 10, 1, n_draws=40_000)
    table = found.to_frame()
    row = table[(table["model"] == "HomogeneousPoisson") & (table["subject"] == 7)].iloc[0]
    seen, came = RollingOrigins(steady, 10, 1).split(row["origin"])
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(seen)
    own, next_one = seen.where(subject=7), came.where(subject=7)
    shape = model.frailty_shape_ + own.n_events
    rate = model.frailty_shape_ + model.rate_ * (own.stop - own.start).sum()
    mean = model.rate_ * (next_one.stop - next_one.start).sum()
    law = stats.nbinom(shape, rate / (rate + mean))
    assert row["events"] == next_one.n_events
    assert_allclose(row["log_score"], law.logpmf(row["events"]), atol=0.02)
    assert_allclose(row["pit_high"], law.cdf(row["events"]), atol=0.01)
    assert_allclose(row["mean"], law.mean(), rtol=0.02)


def test_a_trend_is_worth_a_curve():
    panel = gp4c.simulate_panel(
        ([0, 40], [0.05, 0.6]), window=(0, 40), n_subjects=60, n_intervals=20, random_state=1
    )[0]
    found = gp4c.backtest({"gp4c": gp4c.GP4C()}, panel, horizon=4, n_origins=2)
    assert found.scores.loc["gp4c", "subjects"] > 5
    assert found.to_frame().query("of == 'total'").groupby("model")["low"].min().all()


def test_growth_is_among_the_yardsticks():
    panel = gp4c.simulate_panel(
        ([0, 40], [0.05, 0.6]), window=(0, 40), n_subjects=60, n_intervals=20, random_state=1
    )[0]
    found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=4, n_origins=2)
    assert found.scores.loc["power-law", "totals"] > 5  # the rate grows nearly as time itself


def test_with_entries_on_the_calendar_nothing_later_is_known():
    rng, rows = np.random.default_rng(2), []
    for k in range(40):
        entry = float(rng.uniform(0, 20))
        for age in range(0, 40 - int(entry), 2):
            season = np.exp(1.2 * np.cos(2 * np.pi * (entry + age - 1) / 12))
            rows.append((k, pd.Timestamp("2020-01-01") + pd.Timedelta(days=30.4375 * (entry + age)),
                         rng.poisson(season) if age else 0))  # fmt: skip
    table = pd.DataFrame(rows, columns=["subject", "time", "count"])
    panel = gp4c.PanelCounts.from_visits(table, origin=None, since_entry=True, time_unit="months")
    rolling = RollingOrigins(panel, 3, 2)
    seen, came = rolling.split(rolling.times[-1])
    late = [p.stop + p.service.entry[p.subject_index] for p in (seen, came)]
    assert late[0].max() <= rolling.times[-1] < late[1].min()
    assert came.start.max() > 20  # at many ages
    assert came.start.min() < 20
    models = {"season": gp4c.GP4C(season="year", effect=None, bursts=False)}
    found = gp4c.backtest(models, panel, horizon=3, n_origins=2)
    assert found.scores.loc["season", "subjects"] > 10
    said = found.to_frame()["origin_date"].unique().tolist()
    assert said == [rolling.axis.date(t) for t in rolling.times]
    assert f"from 2 origins, {said[0]} to {said[1]}" in str(found)


def test_newcomers_and_covariates_are_forecast():
    panel = gp4c.load_dataset("bladder")
    found = gp4c.backtest({"gp4c": gp4c.GP4C(formula="treatment")}, panel, horizon=20, n_origins=1)
    table = found.to_frame()
    assert np.isfinite(table["log_score"]).all()
    assert len(table) == 4 * (table["of"].eq("subject").sum() // 4 + 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0}, "horizon must be a positive length of time; found 0"),
        ({"horizon": 6, "n_origins": 0}, "n_origins must be at least 1"),
        ({"horizon": 30, "n_origins": 2}, "2 origins of 30 each leave nothing to learn from"),
        ({"horizon": 1e-9}, "choose a longer horizon"),
    ],
)
def test_what_cannot_be_tested_is_one_sentence(steady, options, message):
    if options["horizon"] == 1e-9:
        options = options | {"n_origins": 3}
    with pytest.raises(PanelDataError, match=message):
        gp4c.backtest(gp4c.HomogeneousPoisson(), steady, **options)
