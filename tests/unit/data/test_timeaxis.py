"""Times as dates, timestamps, durations and texts, held against the standard library."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gp4c
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import PanelDataError

STARTS = [dt.datetime(2023, 12, 30, 6), dt.datetime(2024, 2, 28), dt.datetime(2024, 1, 15, 12)]
STOPS = [dt.datetime(2024, 2, 28), dt.datetime(2024, 3, 1, 18), dt.datetime(2024, 1, 16)]
SECONDS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86400, "weeks": 604800,
           "months": 365.25 * 7200, "years": 365.25 * 86400}  # fmt: skip


def table(start=STARTS, stop=STOPS):
    return {"subject": [1, 1, 2], "start": start, "stop": stop, "count": [0, 1, 2]}


def expected(times, unit, origin=STARTS[0]):
    return [(t - origin).total_seconds() / SECONDS[unit] for t in times]


@pytest.mark.parametrize("unit", SECONDS)
def test_dates_become_numbers_in_the_unit_asked_for(unit):
    panel = gp4c.PanelCounts.from_frame(table(), time_unit=unit)
    assert np.allclose(panel.start, expected(STARTS, unit), rtol=1e-15, atol=0)
    assert np.allclose(panel.stop, expected(STOPS, unit), rtol=1e-15, atol=0)
    assert panel.time_unit == unit
    assert panel.time_origin == pd.Timestamp(STARTS[0])


def test_the_unit_is_days_if_not_stated_and_this_is_noted():
    panel = gp4c.PanelCounts.from_frame(table())
    assert panel.time_unit == "days"
    assert panel.notes == ("dates were converted to days since 2023-12-30 06:00:00",)
    assert gp4c.PanelCounts.from_frame(table(), time_unit="Day") == panel


@pytest.mark.parametrize(
    "make",
    [
        lambda times: times,
        lambda times: pd.Series(times),
        lambda times: pd.Series(times).dt.as_unit("s"),
        lambda times: pd.Series(times).dt.as_unit("ns"),
        lambda times: pd.Series(times, dtype=object),
        lambda times: pd.Series(times).dt.tz_localize("UTC"),
        lambda times: pd.Series(times).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        lambda times: [t.isoformat() for t in times],
        lambda times: [t.isoformat() + "+00:00" for t in times],
        lambda times: [t.isoformat(sep=" ") for t in times],
        lambda times: np.array(times, dtype="datetime64[s]"),
        lambda times: pl.Series(times),
        lambda times: pa.array(times),
        lambda times: pd.Categorical([t.isoformat() for t in times]),
    ],
)
def test_all_kinds_of_timestamps_give_the_same_panel(make):
    panel = gp4c.PanelCounts.from_frame(table(make(STARTS), make(STOPS)), time_unit="hours")
    assert panel == gp4c.PanelCounts.from_frame(table(), time_unit="hours")


def test_plain_dates_of_every_library():
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 31)]
    ends = [dt.date(2024, 1, 31), dt.date(2024, 3, 1)]
    columns = {"subject": [1, 1], "start": days, "stop": ends, "count": [0, 0]}
    for data in (columns, pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        panel = gp4c.PanelCounts.from_frame(data)
        assert panel.stop.tolist() == [30.0, 60.0]


def test_daylight_saving_is_counted_in_elapsed_time():
    start = pd.to_datetime(["2024-03-31 00:00"]).tz_localize("Europe/Berlin")
    stop = pd.to_datetime(["2024-04-01 00:00"]).tz_localize("Europe/Berlin")
    panel = gp4c.PanelCounts.from_frame(
        {"subject": [1], "start": start, "stop": stop, "count": [0]}, time_unit="hours"
    )
    assert panel.stop.tolist() == [23.0]


def test_durations_have_no_origin():
    hours = [dt.timedelta(hours=h) for h in (0, 30, 6)]
    more = [dt.timedelta(hours=h) for h in (30, 31, 7)]
    panel = gp4c.PanelCounts.from_frame(table(pd.Series(hours), pd.Series(more)), time_unit="hours")
    assert panel.start.tolist() == [0.0, 30.0, 6.0]
    assert panel.time_origin is None


def test_origin_and_window_may_be_dates():
    panel = gp4c.PanelCounts.from_frame(
        table(), origin="2023-12-25", window=("2023-12-25", dt.date(2024, 3, 24))
    )
    assert panel.window == (0.0, 90.0)
    assert np.allclose(panel.start, expected(STARTS, "days", dt.datetime(2023, 12, 25)))
    assert panel.with_window((0, "2024-04-03")).window == (0.0, 100.0)


def test_numbers_keep_any_unit_as_a_label():
    data = {"subject": [1], "start": [0], "stop": [1], "count": [0]}
    assert gp4c.PanelCounts.from_frame(data, time_unit="10^3 km").time_unit == "10^3 km"


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (
            table(),
            {"time_unit": "fortnights"},
            "need a time_unit out of seconds, minutes, hours, days, weeks, months, years; "
            "found 'fortnights'",
        ),
        (
            table(stop=[1, 2, 3]),
            {},
            "times must be all numbers, all dates or all durations; 'start' holds dates, "
            "'stop' holds numbers",
        ),
        (
            table(stop=["2024-02-28", "2024-02-30", "2024-03-01"]),
            {},
            r"'stop' must be a number or a date; found '2024-02-30' \(row 1\)",
        ),
        (
            table(stop=[*STOPS[:2], None]),
            {},
            r"'stop' must be a number or a date; the cell is missing \(row 2\)",
        ),
        (table(stop=[None] * 3), {}, "'stop' must be a number or a date; the cell is missing"),
        (table(), {"origin": "yesteryear"}, "not a date: 'yesteryear'"),
        (table(stop=["12:30", "13:30", "14:30"]), {}, "found '12:30'"),
        (table(start=[True] * 3), {}, "'start' must be a number or a date; found True"),
    ],
)
def test_times_that_cannot_be_read(data, options, message):
    with pytest.raises(PanelDataError, match=message):
        gp4c.PanelCounts.from_frame(data, **options)


def test_a_date_of_the_user_has_one_meaning():
    axis = TimeAxis("days", pd.Timestamp("2024-01-01"))
    assert axis.number("31/1/2024") == axis.number("1/31/2024") == axis.number("31JAN2024") == 30
    with pytest.raises(PanelDataError, match="1 February 2024 with the day first and 2 January"):
        axis.number("1/2/2024")
    assert TimeAxis("days", pd.Timestamp("2024-01-01"), day_first=True).number("1/2/2024") == 31
    assert TimeAxis("days", pd.Timestamp("2024-01-01"), day_first=False).number("1/2/2024") == 1


@pytest.mark.parametrize("text", ["31.02.2024", "", "now", "20240131", "31/31/2024"])
def test_a_date_of_the_user_is_written_year_month_day(text):
    with pytest.raises(PanelDataError, match="dates are written year-month-day"):
        TimeAxis("days", pd.Timestamp("2024-01-01")).number(text)


@pytest.mark.parametrize(
    ("unit", "date"),
    [
        ("days", "2024-02-29"), ("weeks", "2024-12-31"), ("months", "1999-12-31"),
        ("years", "2031-07-04"), ("hours", "2024-01-02 03:30"), ("minutes", "2024-01-01 00:01"),
    ],
)  # fmt: skip
def test_a_date_is_a_number_and_back(unit, date):
    for origin in (pd.Timestamp("2024-01-01"), "2024-01-01T00:00:00", np.datetime64("2024-01-01")):
        axis = TimeAxis(unit, origin)
        assert axis.date(axis.number(date)) == date


def test_dates_are_rounded_to_days_and_no_farther_than_a_calendar_goes():
    axis = TimeAxis("months", pd.Timestamp("2024-01-01"))
    assert axis.date(12.0) == "2024-12-31"  # 365.25 days
    assert axis.date(1e15) is None
    assert TimeAxis("months").date(12.0) is None
    assert TimeAxis("shifts", pd.Timestamp("2024-01-01")).date(12.0) is None


def test_dates_with_dots_are_day_month_year():
    dotted = ["03.02.2024", "13.02.2024 12:30", " 1.3.2024"]
    data = {"subject": [1, 2, 3], "start": ["01.02.2024"] * 3, "stop": dotted, "count": [0, 0, 0]}
    panel = gp4c.PanelCounts.from_frame(data)
    assert panel.stop.tolist() == [2.0, 12 + 12.5 / 24, 29.0]
    iso = {
        **data,
        "start": ["2024-02-01"] * 3,
        "stop": ["2024-02-03", "2024-02-13 12:30", "2024-03-01"],
    }
    assert panel == gp4c.PanelCounts.from_frame(iso)
    mixed = {**data, "stop": ["2024-02-03", "13.02.2024 12:30", "2024-03-01"]}
    assert panel == gp4c.PanelCounts.from_frame(mixed)
    with pytest.raises(PanelDataError, match=r"found .31\.02\.2024."):
        gp4c.PanelCounts.from_frame({**data, "stop": ["31.02.2024"] * 3})
    assert TimeAxis("days", pd.Timestamp("2024-02-01")).number("13.2.2024") == 12.0
