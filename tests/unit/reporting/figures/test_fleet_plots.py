"""Pictures of forecasts, bad actors and back-tests show the numbers that they are about."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import PanelDataError
from gp4c.reporting.figures.fleets.unit_plots import plot_funnel

mpl.use("agg")


@pytest.fixture(scope="module")
def model():
    panel = gp4c.simulate_panel(
        0.2, window=(0, 24), n_subjects=50, n_intervals=6, frailty=1.0, time_unit="months",
        random_state=4,
    )[0]  # fmt: skip
    return gp4c.HomogeneousPoisson(effect="gamma").fit(panel)


def markers(ax):
    """Points of the first line with markers only."""
    (line,) = [line for line in ax.lines if line.get_marker() == "D"][:1]
    return line.get_xdata(), line.get_ydata()


def test_windows_stand_side_by_side(model):
    found = model.forecast(24, 36, subjects="all", every=3)
    ax = found.plot()
    assert_allclose(markers(ax)[1], found.mean)
    assert ax.get_xlabel() == "window from (months)"
    each = model.forecast(24, 36, subjects="all", every=3, each=True)
    assert_allclose(markers(each.plot())[1], each.total().mean)


def test_subjects_have_a_row_each_highest_first(model):
    found = model.forecast(24, 36, subjects="all", each=True)
    ax = found.plot()
    assert_allclose(markers(ax)[0], np.sort(found.mean)[::-1][:40])
    assert ax.get_xlabel() == "number of events (and 10 more subjects with fewer)"


def test_one_law_is_a_row_of_bars(model):
    found = model.forecast(24, 36, subjects="all")
    heights = sum(bar.get_height() for bar in found.plot().patches)
    assert_allclose(heights, 1.0)


def test_the_funnel_marks_the_worst(model):
    ranking = model.unit_ranking()
    ax = plot_funnel(model, ranking)
    bad = ranking[ranking["probability"] >= 0.5]
    x, y = markers(ax)
    assert_allclose(x, bad["expected"])
    assert_allclose(y, bad["events"] / bad["expected"])
    assert [text.get_text() for text in ax.texts] == [str(s) for s in bad["subject"][:5]]


def test_backtests_show_what_came(model):
    panel = gp4c.simulate_panel(
        0.2, window=(0, 24), n_subjects=30, time_unit="months", random_state=1
    )[0]
    found = gp4c.backtest(gp4c.HomogeneousPoisson(), panel, horizon=6, n_origins=2)
    ax = found.plot()
    assert ax.get_ylabel() == "events in the next 6 months"
    table = found.to_frame().query("of == 'total' and model == 'HomogeneousPoisson'")
    came = next(line for line in ax.lines if line.get_marker() == "_")
    assert came.get_ydata().tolist() == table["events"].tolist()
    steps = found.plot(what="pit").patches
    assert_allclose(steps[0].get_data().values, found.pit("HomogeneousPoisson"))
    with pytest.raises(PanelDataError, match="what must be 'total' or 'pit'"):
        found.plot(what="all")


def test_the_report_has_units_where_the_data_are_a_fleet(model, tmp_path):
    from gp4c.reporting.page.html_report import Report

    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"subject": np.arange(20), "start": 0.0, "stop": 12.0})
    rows["count"] = rng.poisson(10 * rng.gamma(1, 1, 20))
    rows["hours"] = rng.uniform(100, 300, 20)
    fleet = gp4c.PanelCounts.from_frame(rows, usage="hours", time_unit="months")
    fitted = gp4c.HomogeneousPoisson(effect="gamma").fit(fleet)
    page = Report(models={"all subjects": fitted}, panel=fleet).html()
    assert "Units most likely among the worst tenth" in page
    assert "per hour of usage" in page
    plain = Report(models={"all subjects": model}).html()
    assert "Units most likely" not in plain
