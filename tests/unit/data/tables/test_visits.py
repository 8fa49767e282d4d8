"""Tables of visits: counts since the last visit, or totals."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.exceptions import PanelDataError


def visits(**changes):
    table = {
        "id": ["a", "a", "b", "a", "b"],
        "month": [2.0, 5.0, 1.0, 6.0, 9.0],
        "n": [1, 0, 2, 3, 0],
        "arm": ["x", "x", "y", "x", "y"],
    }
    return {**table, **changes}


def panel_of(table, **options):
    return gp4c.PanelCounts.from_visits(table, subject="id", time="month", count="n", **options)


def message_of(table, **options) -> str:
    with pytest.raises(PanelDataError) as caught:
        panel_of(table, **options)
    return str(caught.value)


def rows(panel):
    subject = panel.subjects[panel.subject_index].tolist()
    columns = (panel.start.tolist(), panel.stop.tolist(), panel.count.tolist())
    return list(zip(subject, *columns, strict=True))


EXPECTED = [("a", 0, 2, 1), ("a", 2, 5, 0), ("a", 5, 6, 3), ("b", 0, 1, 2), ("b", 1, 9, 0)]


def test_an_interval_reaches_from_visit_to_visit():
    panel = panel_of(visits())
    assert rows(panel) == EXPECTED
    assert panel.covariates["arm"].tolist() == ["x", "y"]


def test_cumulative_counts_give_the_same_panel():
    assert panel_of(visits(n=[1, 1, 2, 4, 2]), cumulative=True) == panel_of(visits())


def test_origin_is_where_first_intervals_start():
    assert panel_of(visits(), origin=-1).start.tolist() == [-1, 2, 5, -1, 1]


def test_origin_can_be_a_column():
    panel = panel_of(visits(entry=[1, 1, 0, 1, 0]), origin="entry")
    assert panel.start.tolist() == [1, 2, 5, 0, 1]
    assert "entry" not in panel.covariates


def test_origin_none_starts_at_the_first_visit():
    panel = panel_of(visits(n=[0, 0, None, 3, 0]), origin=None)
    assert rows(panel) == [("a", 2, 5, 0), ("a", 5, 6, 3), ("b", 1, 9, 0)]


def test_a_visit_at_the_origin_closes_no_interval():
    table = {"id": [1, 1, 2], "month": [0, 4, 0], "n": [0, 2, None]}
    panel = panel_of(table)
    assert rows(panel) == [(1, 0, 4, 2)]
    assert "1 subject without any counted interval left out: 2" in panel.notes


def test_a_total_at_the_origin_is_what_later_totals_start_from():
    table = {"id": [1, 1], "month": [0, 4], "n": [5, 7]}
    assert rows(panel_of(table, cumulative=True)) == [(1, 0, 4, 2)]


def test_missing_counts_leave_gaps():
    panel = panel_of(visits(n=[1, None, 2, 3, 0]), missing="drop")
    assert rows(panel) == [EXPECTED[0], *EXPECTED[2:]]
    assert panel.notes == ("1 interval without a count left out, as a gap",)


def test_missing_totals_join_the_intervals_around_them():
    panel = panel_of(visits(n=[1, None, 2, 4, 2]), cumulative=True, missing="drop")
    assert rows(panel) == [("a", 0, 2, 1), ("a", 2, 6, 3), *EXPECTED[3:]]
    assert panel.notes == ("1 visit without a total left out; their intervals joined",)


def test_exposure_belongs_to_the_interval_that_ends_at_the_visit():
    table = visits(n=[1, 0, None, 3, 0], units=[10, 20, None, 30, 0])
    panel = panel_of(table, exposure="units", missing="drop")
    assert panel.exposure.tolist() == [10, 20, 30]
    assert panel.start.tolist() == [0, 2, 5]


def test_zero_exposure_without_new_events_is_a_gap_for_totals_too():
    table = visits(n=[1, 1, 2, 4, 2], units=[1, 0, 1, 1, 1])
    assert rows(panel_of(table, cumulative=True, exposure="units")) == [EXPECTED[0], *EXPECTED[2:]]


def test_rows_may_come_in_any_order_unless_order_is_a_rule():
    whole = pd.DataFrame(visits())
    for order in itertools.permutations(range(5)):
        assert panel_of(whole.iloc[list(order)]) == panel_of(whole)
    assert panel_of(whole.iloc[[2, 0, 4, 1, 3]], sort=False) == panel_of(whole)
    assert message_of(whole.iloc[[1, 0, 2, 3, 4]], sort=False) == (
        "visit times must increase within a subject; subject a goes 5 → 2 (row 1)"
    )


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (
            {"month": [2, 2, 1, 6, 9]},
            {},
            "duplicate rows with different counts must be put right; subject a has a visit at 2 "
            "with counts 1 and 0 (rows 0 and 1)",
        ),
        (
            {"month": [2, 2, 1, 6, 9], "n": [1, 1, 2, 3, 0]},
            {},
            "duplicate rows must be left out; subject a has a visit at 2 with count 1 twice "
            "(rows 0 and 1)",
        ),
        (
            {"month": [-1, 2, 1, 6, 9]},
            {},
            "visits must come after the origin 0; subject a has one at -1 (row 0)",
        ),
        (
            {"month": [0, 2, 1, 6, 9]},
            {},
            "a visit that only starts the observation must have count 0; subject a has 1 (row 0)",
        ),
        (
            {},
            {"origin": None},
            "events at a first visit need a time since when they were counted; subject a has 1 "
            "event at 2: pass origin=a time or origin='column of entry times' (row 0)\nevents at",
        ),
        (
            {"n": [1, 0, 2, 3, 2]},
            {"cumulative": True},
            "cumulative counts must not decrease within a subject; subject a goes 1 → 0 (row 1)",
        ),
        (
            {"n": [1, None, 2, 3, 2]},
            {},
            "'n' must be a number; the cell is missing; missing='drop' leaves it out (row 1)",
        ),
        (
            {"n": [1, None, 2, 3, 2]},
            {"cumulative": True},
            "'n' must be a number; the cell is missing; missing='drop' leaves it out (row 1)",
        ),
        ({"n": [None] * 5}, {"cumulative": True, "missing": "drop"}, "'n' is missing in every row"),
        ({"n": [None] * 5}, {"missing": "drop"}, "nothing is left"),
        ({"n": [1, -2, 2, 3, 2]}, {}, "'n' must not be negative; found -2 (row 1)"),
        ({"month": [2, "?", 1, 6, 9]}, {}, "'month' must be a number or a date; found '?' (row 1)"),
        (
            {"id": ["a", None, "b", "a", "b"]},
            {},
            "'id' must label the subject; the cell is missing (row 1)",
        ),
        (
            {"e": [1, 0, 0, 1, 0]},
            {"origin": "e"},
            "'e' must be the same in all rows of a subject; found another one, 0 (row 1)",
        ),
        ({}, {"origin": "2020-01-01"}, "origin is for times given as dates"),
        ({"u": [1, 1, -1, 1, 1]}, {"exposure": "u"}, "'u' must not be negative; found -1 (row 2)"),
        (
            {"u": [1] * 5, "n": [1, None, 2, 3, 2]},
            {"exposure": "u", "cumulative": True, "missing": "drop"},
            "cannot be joined if they have exposures; 'n' is missing (row 1)",
        ),
        ({}, {"missing": "maybe"}, "missing must be"),
        ({}, {"origin": float("nan")}, "origin must be finite; found nan"),
    ],
)
def test_rules_of_visits(changes, options, message):
    assert message in message_of(visits(**changes), **options)


def test_rules_are_reported_together_by_row_and_counted():
    table = {"id": [1] * 9, "month": [9, 8, 7, 6, 5, 4, 3, 2, 1], "n": [0] * 8 + [-1]}
    lines = message_of(table, sort=False).splitlines()
    assert lines[0] == "visit times must increase within a subject; subject 1 goes 9 → 8 (row 1)"
    assert lines[-1] == "and 4 more"


def test_missing_column_names_the_nearest():
    with pytest.raises(PanelDataError, match=r"'tme' \(for time\).*did you mean 'time'\?"):
        gp4c.PanelCounts.from_visits({"subject": [1], "time": [1], "count": [1]}, time="tme")


# --- dates -------------------------------------------------------------------------------------

DAYS = [dt.date(2024, 3, 1), dt.date(2024, 3, 11), dt.date(2024, 2, 27), dt.date(2024, 3, 12),
        dt.date(2024, 4, 1)]  # fmt: skip


def test_dates_with_a_date_as_origin():
    panel = panel_of(visits(month=DAYS), origin=dt.date(2024, 2, 20))
    assert panel.stop.tolist() == [10, 20, 21, 7, 41]
    assert panel.time_unit == "days"
    assert panel.time_origin == pd.Timestamp("2024-02-20")
    assert panel.start.tolist() == [0, 10, 20, 0, 7]


def test_dates_with_a_column_of_entry_dates():
    entry = ["2024-02-28", "2024-02-28", "2024-02-20", "2024-02-28", "2024-02-20"]
    panel = panel_of(visits(month=DAYS, entry=entry), origin="entry", time_unit="weeks")
    assert np.allclose(panel.start * 7, [8, 10, 20, 0, 7], rtol=1e-14)
    assert panel.time_origin == pd.Timestamp("2024-02-20")


def test_dates_without_an_origin_need_one_if_first_visits_have_events():
    assert message_of(visits(month=DAYS)).splitlines()[0] == (
        "events at a first visit need a time since when they were counted; subject a has 1 event "
        "at 2024-03-01: pass origin=a date or origin='column of entry dates' (row 0)"
    )
    assert "or origin='Enrolled' (row 0)" in message_of(visits(month=DAYS, Enrolled=DAYS))
    assert "origin=a date" in message_of(visits(month=DAYS), origin=3)
    dated = visits(month=DAYS, n=[0, 1, 0, 2, 3])
    assert panel_of(dated) == panel_of(dated, origin=None)
    assert "each subject is observed from its first visit on" in " ".join(panel_of(dated).notes)
    panel = panel_of(visits(month=DAYS, n=[0, 1, 0, 2, 3]), origin=None)
    assert panel.time_origin == pd.Timestamp("2024-02-27")
    assert panel.start.tolist() == [3, 13, 0]


# -- time since entry ----------------------------------------------------------------------------

DATED = {
    "subject": ["a", "a", "a", "b", "b"],
    "time": ["2024-01-05", "2024-01-15", "2024-02-04", "2024-03-01", "2024-03-31"],
    "count": [0, 2, 1, 0, 4],
    "enrolled": ["2024-01-01"] * 3 + ["2024-03-01"] * 2,
}


def test_time_may_be_counted_from_each_subjects_first_visit():
    panel = gp4c.PanelCounts.from_visits(DATED, since_entry=True)
    assert panel.start.tolist() == [0.0, 10.0, 0.0]
    assert panel.stop.tolist() == [10.0, 30.0, 30.0]
    assert panel.count.tolist() == [2, 1, 4]
    assert (panel.time_unit, panel.time_origin) == ("days", None)
    assert "time is counted from each subject's first visit in days" in panel.notes
    assert not any("converted to days since" in note for note in panel.notes)
    numbers = {**DATED, "time": [4.0, 14.0, 34.0, 60.0, 90.0]}
    same = gp4c.PanelCounts.from_visits(numbers, since_entry=True, time_unit="days")
    assert (same.start.tolist(), same.stop.tolist()) == (panel.start.tolist(), panel.stop.tolist())


def test_time_may_be_counted_from_a_column_of_entries():
    panel = gp4c.PanelCounts.from_visits(
        {**DATED, "count": [1, 2, 1, 0, 4]}, origin="enrolled", since_entry=True, time_unit="days"
    )
    assert panel.start.tolist() == [0.0, 4.0, 14.0, 0.0]
    assert panel.stop.tolist() == [4.0, 14.0, 34.0, 30.0]
    assert panel.count.tolist() == [1, 2, 1, 4]
    assert "time is counted from each subject's entry in days" in panel.notes
