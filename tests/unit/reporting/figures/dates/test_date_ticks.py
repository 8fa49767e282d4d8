"""Round dates on axes of time."""

import json

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import gp4c
from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.forecasts.forecast_result import Forecast
from gp4c.reporting.figures.curves import curves_of
from gp4c.reporting.figures.dates.date_ticks import date_names, date_ticks, time_names
from gp4c.reporting.figures.fleets.forecast_plots import plot_forecast
from gp4c.reporting.figures.observed_numbers import observed_numbers
from gp4c.reporting.figures.panel_picture import plot_panel
from gp4c.reporting.figures.plots import plot_cumulative, plot_groups
from gp4c.reporting.page.drawn_figures import draw_figure
from gp4c.reporting.page.report_figures import curve_figure

MONTHS = TimeAxis("months", "2018-01-04")


def named(axis, low, high):
    return date_names(axis.moments(date_ticks(axis, low, high)))


@pytest.mark.parametrize(
    ("axis", "span", "names"),
    [
        (MONTHS, (0, 30), ["Jul 2018", "Jan 2019", "Jul 2019", "Jan 2020"]),
        (MONTHS, (0, 5), ["Feb 2018", "Mar 2018", "Apr 2018", "May 2018", "Jun 2018"]),
        (MONTHS, (0, 72), ["2019", "2020", "2021", "2022", "2023", "2024"]),
        (TimeAxis("years", "1850-06-01"), (0, 160), ["1860", "1880", "1900", "1920", "1940",
                                                      "1960", "1980", "2000"]),
        (TimeAxis("days", "2024-02-27"), (0, 4), ["27 Feb 2024", "28 Feb 2024", "29 Feb 2024",
                                                  "1 Mar 2024", "2 Mar 2024"]),
        (TimeAxis("hours", "2024-02-28 20:00"), (0, 20), ["29 Feb 2024 00:00",
                                                          "29 Feb 2024 06:00"]),
    ],
)  # fmt: skip
def test_ticks_are_round_dates(axis, span, names):
    found = named(axis, *span)
    assert found[: len(names)] == names


@pytest.mark.parametrize("unit", ["seconds", "hours", "days", "months", "years"])
@pytest.mark.parametrize("length", [3.0, 40.0, 1100.0])
def test_ticks_lie_inside_evenly_and_are_few(unit, length):
    axis = TimeAxis(unit, "1999-11-17 03:20")
    ticks = date_ticks(axis, 0.3, length)
    assert 2 <= len(ticks) <= 12
    assert ticks[0] >= 0.3
    assert ticks[-1] <= length
    assert np.all(np.diff(ticks) > 0)
    assert len(set(date_names(axis.moments(ticks)))) == len(ticks)
    assert np.ptp(np.diff(ticks)) <= 0.15 * np.diff(ticks).max()  # months and years vary


def test_names_agree_with_pandas():
    days = pd.date_range("1995-03-07", periods=50, freq="37D")
    assert date_names(days.to_numpy()) == [f"{d.day} {d:%b %Y}" for d in days]


def test_names_of_times_are_to_the_day():
    months = time_names(TimeAxis("months", "2024-01-01"), [0.0, 12.0])
    assert months == ["1 Jan 2024", "31 Dec 2024"]
    assert time_names(TimeAxis("days", "2024-01-01"), [0.0, 31.0]) == ["Jan 2024", "Feb 2024"]
    assert time_names(TimeAxis("days"), [0.0, 31.0]) == ["0", "31"]
    assert date_ticks(MONTHS, 0.0, 1e12).size == 0


@pytest.fixture(scope="module")
def dated():
    start = pd.Timestamp("2018-01-04") + pd.to_timedelta(np.tile([0, 300, 600], 6), "D")
    table = pd.DataFrame(
        {"subject": np.repeat(np.arange(6), 3), "start": start,
         "stop": start + pd.Timedelta(days=300), "count": np.tile([1, 0, 2], 6)}
    )  # fmt: skip
    return gp4c.PanelCounts.from_frame(table, time_unit="months")


@pytest.fixture(scope="module")
def model(dated):
    return gp4c.HomogeneousPoisson().fit(dated)


HALF_YEARS = ["Jul 2018", "Jan 2019", "Jul 2019", "Jan 2020"]


def shown(ax):
    ax.figure.draw_without_rendering()
    return ax.get_xlabel(), [label.get_text() for label in ax.get_xticklabels()]


def test_every_plot_over_time_shows_dates(dated, model):
    new = lambda: Figure(figsize=(6.4, 3.9), layout="constrained").subplots()  # noqa: E731
    for ax in (
        plot_cumulative(model, new()), model.plot(new()), plot_panel(dated, new()),
        plot_groups({"a": model}, new(), observed={"a": dated}),
    ):  # fmt: skip
        assert shown(ax) == ("date", HALF_YEARS)


def test_zoomed_axes_have_closer_dates_and_the_pointer_tells_the_day(model):
    ax = plot_cumulative(model, Figure(figsize=(6.4, 3.9)).subplots())
    ax.set_xlim(1.0, 2.0)
    _, names = shown(ax)
    assert names[0].endswith("Feb 2018")
    assert names[0] != "Feb 2018"
    assert ax.format_xdata(0.0) == "2018-01-04"


def test_time_without_dates_is_as_it_was(dated):
    plain = gp4c.PanelCounts.from_frame(dated.to_frame(), time_unit="months")
    ax = gp4c.HomogeneousPoisson().fit(plain).plot(Figure().subplots())
    label, names = shown(ax)
    assert label == "time (months)"
    assert names[0] == "0"
    assert "dates" not in curve_figure({"a": curves_of(gp4c.HomogeneousPoisson().fit(plain))},
                                       "rate")  # fmt: skip


def test_figures_of_the_page_have_dates_on_screen_and_on_paper(dated, model):
    figure = curve_figure({"a": curves_of(model)}, "rate", dated, observed_numbers({"a": dated}))
    figure = json.loads(json.dumps(figure))
    assert (figure["xlabel"], figure["tickNames"]) == ("date", HALF_YEARS)
    zero, step = figure["dates"]["origin"], figure["dates"]["step"]
    ticks = [pd.Timestamp(zero) + pd.Timedelta(milliseconds=t * step) for t in figure["ticks"]]
    assert [f"{t.round('D'):%b %Y}" for t in ticks] == HALF_YEARS
    assert shown(draw_figure(figure, "0.95", Figure().subplots())) == ("date", HALF_YEARS)
    del figure["observed"], figure["ticks"]
    assert shown(draw_figure(figure, "0.95", Figure(figsize=(6.4, 3.9)).subplots()))[0] == "date"


def test_windows_of_a_forecast_are_named_by_month(model):
    found = model.forecast("2021-01-01", "2021-04-01", "all", every="month", n_draws=20)
    assert isinstance(found, Forecast)
    names = shown(plot_forecast(found, Figure().subplots()))[1]
    assert names == ["Jan 2021", "Feb 2021", "Mar 2021"]


def test_summaries_and_tables_name_dates(dated, model):
    end = (pd.Timestamp("2018-01-04") + pd.Timedelta(days=900)).date().isoformat()
    assert f"by {end}" in " ".join(str(model.summary()).split())
    assert any(f"by {end}" in row[0] for row in model.table().rows)
    page = gp4c.Report({"all": model}, dated).header()
    assert f"events per subject by {end}" in page
