"""Usage in the interval: rates per hour, the clock of usage, and columns of the other kind."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import GP4CWarning, PanelDataError
from tolerances import ROUNDING

NAMES = {"subject": "id", "start": "from", "stop": "to", "count": "n"}
RATE = 0.02  # events per hour


def machines(n=40, seed=0, rate=RATE):
    """Machines that run 2 to 20 hours a day, inspected every 3 to 40 days."""
    rng, rows = np.random.default_rng(seed), []
    for k in range(n):
        t, daily = 0.0, rng.uniform(2, 20)
        while t < 200:
            length = rng.uniform(3, 40)
            hours = length * daily * rng.uniform(0.8, 1.25)
            rows.append((k, t, t + length, rng.poisson(rate * hours), hours))
            t += length
    return pd.DataFrame(rows, columns=["id", "from", "to", "n", "hours"])


def test_rates_are_per_unit_of_usage():
    table = machines()
    panel = gp4c.PanelCounts.from_frame(table, usage="hours", time_unit="days", **NAMES)
    assert panel.usage == "hours"
    assert_allclose(panel.exposure @ (panel.stop - panel.start), table["hours"].sum(), **ROUNDING)
    model = gp4c.HomogeneousPoisson().fit(panel)
    assert_allclose(model.rate_, table["n"].sum() / table["hours"].sum(), **ROUNDING)
    low, high = model.rate_interval(0.99)
    assert low < RATE < high
    said = str(model.summary())
    assert "per hour of usage" in said
    assert f"usage {table['hours'].sum():,.0f} hours" in " ".join(said.split())
    assert "time at risk" not in said
    assert "per hour of usage" in str(panel.summary())


def test_a_panel_with_usage_survives_frames_joins_and_subsets():
    panel = gp4c.PanelCounts.from_frame(machines(9), usage="hours", **NAMES)
    again = gp4c.PanelCounts.from_frame(panel.to_frame(), usage="usage")
    assert_allclose(again.exposure, panel.exposure, rtol=1e-12)
    joined = gp4c.PanelCounts.concat([panel[:4], panel[4:]])
    assert joined.usage == "hours"
    assert_allclose(joined.service.usage_rate, panel.service.usage_rate, rtol=1e-12)
    assert panel[[2, 5]].service.usage_rate.tolist() == panel.service.usage_rate[[2, 5]].tolist()
    plain = gp4c.PanelCounts.from_frame(machines(9).drop(columns="hours"), **NAMES)
    with pytest.raises(PanelDataError, match=r"must agree in time unit and origin; found .* per"):
        gp4c.PanelCounts.concat([panel, plain])


def test_visits_take_usage_too():
    table = machines(6)
    visits = table.rename(columns={"to": "day"})[["id", "day", "n", "hours"]]
    options = {"subject": "id", "count": "n", "usage": "hours"}
    ours = gp4c.PanelCounts.from_visits(visits, time="day", **options)
    other = gp4c.PanelCounts.from_frame(table, start="from", stop="to", **options)
    assert_allclose(ours.exposure, other.exposure, rtol=1e-9)
    assert_allclose(ours.service.usage_rate, other.service.usage_rate, rtol=1e-9)


def test_recent_usage_is_that_of_the_last_three_intervals_with_idle_ones():
    rows = {
        "id": ["a"] * 5,
        "from": [0, 10, 20, 30, 40],
        "to": [10, 20, 30, 40, 60],
        "n": [1, 0, 2, 0, 1],
        "hours": [500, 70, 80, 0, 40],
    }
    panel = gp4c.PanelCounts.from_frame(rows, usage="hours", **NAMES)
    assert panel.n_intervals == 4  # an interval without use is one without risk
    assert "1 interval with zero exposure left out" in " ".join(panel.notes)
    assert panel.service.usage_rate.tolist() == [(80 + 0 + 40) / 40]


def test_the_clock_of_usage_is_each_subjects_own_sum():
    table = machines(12)
    panel = gp4c.PanelCounts.from_frame(table, usage="hours", clock="usage", **NAMES)
    assert_allclose(panel.stop, table.groupby("id")["hours"].cumsum(), **ROUNDING)
    assert np.all(panel.exposure == 1)
    assert (panel.time_unit, panel.usage, panel.window[0]) == ("hours", None, 0.0)
    same = panel.subject_index[1:] == panel.subject_index[:-1]
    assert np.array_equal(panel.start[1:][same], panel.stop[:-1][same])
    model = gp4c.HomogeneousPoisson().fit(panel)
    assert_allclose(model.rate_, table["n"].sum() / table["hours"].sum(), **ROUNDING)
    wide = gp4c.PanelCounts.from_frame(
        table, usage="hours", clock="usage", window=(0, 9000), **NAMES
    )
    assert wide.window == (0.0, 9000.0)
    gone = gp4c.PanelCounts.from_frame(
        table.assign(out=np.where(table["id"] == 3, "yes", "")),
        usage="hours", clock="usage", end="out", **NAMES,
    )  # fmt: skip
    assert_allclose(gone.end[3], table.loc[table["id"] == 3, "hours"].sum(), **ROUNDING)


def test_a_forecast_on_the_clock_of_usage_says_that_all_are_at_the_same_usage(tmp_path):
    panel = gp4c.PanelCounts.from_frame(machines(12), usage="hours", clock="usage", **NAMES)
    gp4c.HomogeneousPoisson().fit(panel).save(tmp_path / "fit.json")
    model = gp4c.load_model(tmp_path / "fit.json")
    said = "all 12 subjects are put at the same usage, 1000 to 2000 hours."
    assert said in model.forecast(1000, 2000, "all", n_draws=50).note
    alone = model.forecast(1000, 2000, subjects=[3], n_draws=50)
    apart = model.forecast([1000, 1500], [2000, 2500], subjects=[3, 4], n_draws=50)
    assert "same usage" not in alone.note + apart.note
    by_time = gp4c.PanelCounts.from_frame(machines(12), usage="hours", **NAMES)
    later = gp4c.HomogeneousPoisson().fit(by_time).forecast(200, 230, "all", n_draws=50)
    assert "same usage" not in later.note


def test_gaps_do_not_count_on_the_clock_of_usage():
    table = {"id": [1, 1], "from": [0, 5], "to": [2, 9], "n": [0, 1], "hours": [4, 6]}
    panel = gp4c.PanelCounts.from_frame(table, usage="hours", clock="usage", **NAMES)
    assert (panel.start.tolist(), panel.stop.tolist()) == ([0, 4], [4, 10])
    assert panel.notes[-1] == "usage in 1 gap is not known and does not count"


def test_hours_given_as_exposure_are_noticed():
    with pytest.warns(GP4CWarning, match="'hours' grows with the length .* pass usage='hours'"):
        gp4c.PanelCounts.from_frame(machines(), exposure="hours", **NAMES)


def test_hours_are_noticed_where_machines_run_for_very_different_times():
    """Among all rows hours hardly follow the length of the interval; within machines they do."""
    table = machines()
    table["hours"] *= np.exp(np.random.default_rng(1).normal(0, 2, 40))[table["id"]]
    assert np.corrcoef(table["to"] - table["from"], table["hours"])[0, 1] < 0.4
    with pytest.warns(GP4CWarning, match="pass usage='hours'"):
        gp4c.PanelCounts.from_frame(table, exposure="hours", **NAMES)


def test_units_given_as_usage_are_noticed():
    table = machines().assign(units=lambda f: f["id"] % 5 + 1)
    with pytest.warns(GP4CWarning, match="'units' does not grow .* pass exposure='units'"):
        gp4c.PanelCounts.from_frame(table, usage="units", **NAMES)


@pytest.mark.parametrize("seed", range(5))
def test_columns_of_the_right_kind_are_not_remarked_upon(seed):
    table = machines(seed=seed)
    sizes = np.random.default_rng(seed).integers(1, 50, len(table))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gp4c.PanelCounts.from_frame(table, usage="hours", **NAMES)
        table = table.assign(units=table["id"] % 7 + 1, crew=sizes)
        gp4c.PanelCounts.from_frame(table, exposure="units", **NAMES)
        gp4c.PanelCounts.from_frame(table, exposure="crew", **NAMES)


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"hours": [0, 5]}, {}, r"'hours' must be positive where there are events; found 0 with"),
        ({"hours": [-1, 5]}, {}, r"'hours' must not be negative; found -1 \(row 0\)"),
        ({}, {"exposure": "units"}, "exposure= .* or usage= .*, not both; found 'units'"),
        ({}, {"usage": None, "clock": "usage"}, "clock='usage' needs the column of usage"),
        ({}, {"clock": "wall"}, "clock must be 'time' or 'usage'; found 'wall'"),
    ],
)
def test_bad_usage_is_one_sentence(changes, options, message):
    table = {"id": [1, 1], "from": [0, 2], "to": [2, 9], "n": [1, 0], "hours": [3, 4]}
    table |= {"units": [1, 1], **changes}
    with pytest.raises(PanelDataError, match=message):
        gp4c.PanelCounts.from_frame(table, **{"usage": "hours", **NAMES, **options})


def test_files_take_usage_and_leave_a_column_of_exposure_alone():
    text = "id,from,to,n,hours,exposure\n7,0,3,1,30,2\n7,3,5,0,10,2\n8,0,4,2,8,9\n"
    panel = gp4c.read_panel(io.StringIO(text), usage="hours")
    assert panel.exposure.tolist() == [10, 5, 2]
    assert "exposure_column" in panel.covariates
