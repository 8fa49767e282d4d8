"""A season on the calendar, beside a curve over the calendar or over time since entry."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import PanelDataError

AMPLITUDE, PEAK = 0.5, 6.5 / 12  # the middle of July


def visits(n, seed, months=36):
    """Machines that enter over two years, with monthly visits; ageing and a season by date."""
    rng, rows = np.random.default_rng(seed), []
    zero = pd.Timestamp("2019-01-01")
    for k in range(n):
        entry = rng.uniform(0, 730)
        effect = rng.gamma(2.0, 0.5)
        rows.append((k, zero + pd.Timedelta(days=entry), 0))
        for age in np.arange(1, months + 1) * 30.4375:
            middle = (entry + age - 15.2) / 365.25
            season = np.exp(AMPLITUDE * np.cos(2 * np.pi * (middle - PEAK)))
            mean = effect * 0.12 * (1 + age / 730) * season
            rows.append((k, zero + pd.Timedelta(days=entry + age), rng.poisson(mean)))
    return pd.DataFrame(rows, columns=["subject", "time", "count"])


@pytest.fixture(scope="module")
def table():
    return visits(50, 1)


@pytest.fixture(scope="module")
def since_entry(table):
    panel = gp4c.PanelCounts.from_visits(table, origin=None, since_entry=True, time_unit="months")
    return gp4c.GP4C(season="year", effect="gamma", bursts=False).fit(panel), panel


def test_methods_and_forecasts_say_which_season(since_entry):
    """A sentence in the methods; new subjects have the average season, known ones their own."""
    model, _ = since_entry
    assert "A season with a period of one year multiplies the rate" in model.methods_text()
    assert "trend" not in model.methods_text()
    average = "New subjects have the average season, a factor of 1"
    assert average in model.forecast(36, 39, n_draws=50).note
    assert average not in model.forecast(36, 39, subjects=[0], n_draws=50).note
    more = model.forecast(36, 39, subjects="all", new_units=2, at=37, n_draws=50)
    assert average in more.note


def truth(phase):
    return np.exp(AMPLITUDE * np.cos(2 * np.pi * (phase - PEAK)))


def test_the_season_is_found_beside_time_since_entry(since_entry):
    """Each subject has its own calendar; the band holds the truth nearly everywhere."""
    model, _ = since_entry
    table = model.season_table(0.95)
    assert list(table["part"])[:2] == ["January", "February"]
    expected = truth((np.arange(12) + 0.5) / 12)
    inside = (table["low"] < expected) & (expected < table["high"])
    assert inside.sum() >= 11
    assert "highest in July" in model.season_ or "highest in June" in model.season_
    low, high = model.season_band(["2021-07-16", "2022-07-16"])
    factor = model.season_factor(["2021-07-16", "2022-07-16"])
    assert_allclose(factor[0], factor[1], rtol=1e-2)
    assert (low < factor).all()
    assert (factor < high).all()


def test_the_same_season_on_the_calendar_itself(table, since_entry):
    """Another curve, the same factor: both clocks agree within their bands."""
    panel = gp4c.PanelCounts.from_visits(table, origin=None, time_unit="months")
    model = gp4c.GP4C(season="year", effect="gamma", bursts=False).fit(panel)
    other = since_entry[0].season_table()
    mine = model.season_table()
    assert ((mine["low"] < other["high"]) & (other["low"] < mine["high"])).all()
    assert_allclose(mine["factor"], other["factor"], rtol=0.2)
    july, january = model.intensity(["2021-07-16", "2022-01-16"])
    assert july > 1.5 * january  # the rate of the calendar has its season


def test_expected_numbers_of_known_subjects_follow_their_calendar(since_entry):
    """A summer and a winter of one machine, against integrals of its own rate."""
    model, panel = since_entry
    label = panel.subjects[0]
    entry = panel.service.entry[0]  # months since 2000-01-01
    found = model.forecast([6.0, 12.0], [7.0, 13.0], subjects=label, beyond="prior", random_state=1)
    draws, who = model.posterior_, np.arange(model.posterior_.size)
    phase = (entry + np.array([6.5, 12.5])) / 12 % 1
    ratio = model._factors_at(phase, [0.5])[0]
    curve = model.intensity([6.5, 12.5])
    assert_allclose(found.mean[0] / found.mean[1], ratio[0] * curve[0] / (ratio[1] * curve[1]),
                    rtol=0.08)  # fmt: skip
    inputs = model._inputs_of(panel)[:1]
    area = draws.integrals_of(np.zeros(1), np.ones(1), who, np.random.default_rng(0), inputs)
    assert_allclose(
        draws.expected_integral(np.zeros(1), np.ones(1), inputs), area @ draws.weights, rtol=1e-6
    )


def test_a_saved_season_gives_the_same_answers(since_entry, tmp_path):
    model, panel = since_entry
    model.save(tmp_path / "fit.json")
    loaded = gp4c.load_model(tmp_path / "fit.json")
    assert loaded.season_ == model.season_
    assert loaded.score_subjects(panel).sum() == model.score_subjects(panel).sum()
    ask = {"subjects": "all", "random_state": 2, "n_draws": 200}
    assert loaded.forecast(36, 39, **ask).mean == model.forecast(36, 39, **ask).mean
    assert "season" in str(model.summary())


def test_subsets_keep_the_calendar(since_entry):
    _, panel = since_entry
    part = panel[10:20]
    assert_allclose(part.service.entry, panel.service.entry[10:20])
    assert "out of service" not in str(panel.summary())
    whole = gp4c.PanelCounts.concat([panel[:10], panel[10:]])
    assert_allclose(whole.service.entry, panel.service.entry)
    assert whole.service.dated


def test_bad_seasons_are_one_sentence(table):
    dated = gp4c.PanelCounts.from_visits(table, origin=None, time_unit="months")
    numbers, _ = gp4c.simulate_panel(0.2, n_subjects=8, window=(0, 24), random_state=0)
    cases = [
        (numbers, "year", "needs dates"),
        (numbers, 30, "longer than the record"),
        (numbers, -1.0, "positive period"),
        (dated, "moon", "'year' or 'week'"),
    ]
    for panel, season, words in cases:
        with pytest.raises(PanelDataError, match=words):
            gp4c.GP4C(season=season).fit(panel)
