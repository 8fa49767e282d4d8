"""Every rule at the door, provoked; messages name the rule, the value and the row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.exceptions import GP4CError, PanelDataError

GOOD = {"subject": [1, 1, 2, 2], "start": [0, 2, 0, 3], "stop": [2, 3, 3, 4], "count": [0, 1, 2, 3]}


def message_of(table, **options) -> str:
    with pytest.raises(PanelDataError) as caught:
        gp4c.PanelCounts.from_frame(table, **options)
    return str(caught.value)


def with_cell(column: str, row: int, value: object) -> dict[str, list[object]]:
    table: dict[str, list[object]] = {name: list(values) for name, values in GOOD.items()}
    table[column][row] = value
    return table


def test_the_error_is_a_value_error_of_the_family():
    assert issubclass(PanelDataError, ValueError)
    assert issubclass(PanelDataError, GP4CError)


def test_a_good_table_passes():
    assert gp4c.PanelCounts.from_frame(GOOD).n_events == 6


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("count", 2, -3, "'count' must not be negative; found -3 (row 2)"),
        ("count", 1, b"\xff", "'count' must be a number; found b'\\xff' (row 1)"),
        ("count", 1, 2.5, "'count' must be a whole number; found 2.5 (row 1)"),
        ("count", 0, 2**53 + 1, "'count' must be at most 2^53; found 9007199254740993 (row 0)"),
        ("count", 0, 10**400, "'count' must be finite; found 1000000000"),
        ("count", 3, float("inf"), "'count' must be finite; found inf (row 3)"),
        (
            "count",
            3,
            float("nan"),
            "'count' must be a number; the cell is missing; missing='drop' leaves it out (row 3)",
        ),
        (
            "count",
            3,
            None,
            "'count' must be a number; the cell is missing; missing='drop' leaves it out (row 3)",
        ),
        (
            "count",
            3,
            "",
            "'count' must be a number; the cell is missing; missing='drop' leaves it out (row 3)",
        ),
        (
            "count",
            3,
            "NA",
            "'count' must be a number; the cell is missing; missing='drop' leaves it out (row 3)",
        ),
        ("count", 1, "many", "'count' must be a number; found 'many' (row 1)"),
        ("count", 1, True, "'count' must be a number; found True (row 1)"),
        ("count", 1, dt.date(2020, 1, 1), "'count' must be a number; found 2020-01-01 (row 1)"),
        ("start", 1, "x", "'start' must be a number or a date; found 'x' (row 1)"),
        ("start", 1, None, "'start' must be a number or a date; the cell is missing (row 1)"),
        ("stop", 1, float("-inf"), "'stop' must be finite; found -inf (row 1)"),
        ("stop", 1, 2**53 + 2, "'stop' must be at most 2^53 in size"),
        ("stop", 1, 2, "'stop' must be greater than 'start'; found (2, 2] (row 1)"),
        ("stop", 1, 1.5, "'stop' must be greater than 'start'; found (2, 1.5] (row 1)"),
        ("subject", 1, None, "'subject' must label the subject; the cell is missing (row 1)"),
        (
            "start",
            1,
            "1,5",
            "found '1,5'; if that is a decimal comma, read_panel takes decimal=','",
        ),
        (
            "start",
            1,
            1.5,
            "intervals of one subject must not overlap; subject 1 has (0, 2] and (1.5, 3] "
            "(rows 0 and 1)",
        ),
    ],
)
def test_one_bad_cell_is_one_sentence(column, row, value, message):
    found = message_of(with_cell(column, row, value))
    assert message in found
    assert "\n" not in found


def test_complex_numbers_are_no_counts():
    assert message_of(with_cell("count", 1, 1j)).startswith("'count' must be a number; found 0j")


def test_the_same_interval_twice():
    table = {"subject": ["p", "q", "p"], "start": [0, 0, 0], "stop": [1, 1, 1], "count": [1, 1, 2]}
    assert message_of(table) == (
        "duplicate rows with different counts must be put right; subject p has (0, 1] with counts "
        "1 and 2 (rows 0 and 2)"
    )


def test_an_interval_inside_another_overlaps_it_and_a_touching_one_does_not():
    table = {"subject": [1, 1, 1], "start": [0, 2, 9], "stop": [9, 3, 10], "count": [1, 1, 1]}
    assert message_of(table) == (
        "intervals of one subject must not overlap; subject 1 has (0, 9] and (2, 3] (rows 0 and 1)"
    )


def test_the_first_five_problems_are_listed_in_order_of_rows():
    table = {
        "subject": list(range(9)),
        "start": [0, 5, 0, 0, 0, 0, 0, 0, 0],
        "stop": [1, 1, 1, 1, "x", 1, 1, 1, 1],
        "count": [0, 0, -1, 0.5, 0, None, 0, -7, -8],
    }
    assert message_of(table).splitlines() == [
        "'stop' must be greater than 'start'; found (5, 1] (row 1)",
        "'count' must not be negative; found -1 (row 2)",
        "'count' must be a whole number; found 0.5 (row 3)",
        "'stop' must be a number or a date; found 'x' (row 4)",
        "'count' must be a number; the cell is missing; missing='drop' leaves it out (row 5)",
        "and 2 more",
    ]


def test_many_clashes_are_counted():
    table = {"subject": [1] * 9, "start": [0] * 9, "stop": [1] * 9, "count": [0] * 9}
    lines = message_of(table).splitlines()
    assert len(lines) == 6
    assert lines[-1] == "and 3 more"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"count": "cuont"},
            "the table has no column 'cuont' (for count); there are 'subject', 'start', 'stop', "
            "'count'; did you mean 'count'?",
        ),
        ({"exposure": "hours"}, "the table has no column 'hours' (for exposure); there are"),
        ({"count": "start"}, "column 'start' cannot be both start and count"),
        ({"missing": "ignore"}, "missing must be 'error' or 'drop'; found 'ignore'"),
        ({"origin": "2020-01-01"}, "origin is for times given as dates; found '2020-01-01'"),
    ],
)
def test_wrong_arguments(options, message):
    assert message in message_of(GOOD, **options)


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"subject": [], "start": [], "stop": [], "count": []},
        pd.DataFrame({"subject": []}),
        pd.DataFrame(),
    ],
)
def test_an_empty_table(table):
    assert message_of(table) == "the table is empty; it needs at least one row"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1, 2], "data must be a dataframe or a dict of arrays; found list"),
        (None, "found NoneType"),
        (np.ones((3, 4)), "found ndarray"),
        ({**GOOD, "count": [1]}, "columns must have the same length; found 'subject': 4, "),
        ({**GOOD, "count": 3}, "column 'count' must be an array or a list; found 3"),
        ({**GOOD, "count": np.ones((4, 2))}, "column 'count' is not one-dimensional"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column names must differ"),
        ({**GOOD, "subject": [[1], [1], [2], [2]]}, "'subject' must hold hashable labels"),
    ],
)
def test_what_is_not_a_table(data, message):
    assert message in message_of(data)


def test_rows_are_positions_even_if_the_index_says_otherwise():
    table = pd.DataFrame(with_cell("count", 2, -1), index=[10, 11, 12, 13])
    assert message_of(table).endswith("(row 2)")


def test_exposures():
    table = {**GOOD, "hours": [1.0, -2.0, 0.0, None]}
    assert message_of(table, exposure="hours").splitlines() == [
        "'hours' must not be negative; found -2 (row 1)",
        "'hours' must be positive where there are events; found 0 with 2 events (row 2)",
        "'hours' must be a number; the cell is missing (row 3)",
    ]


def test_zero_exposure_without_events_is_a_gap():
    panel = gp4c.PanelCounts.from_frame({**GOOD, "hours": [0.0, 1, 1, 1]}, exposure="hours")
    assert panel.n_intervals == 3
    assert panel.start.tolist() == [2.0, 0.0, 3.0]
    assert "1 interval with zero exposure left out, as a gap" in panel.notes
    with pytest.raises(PanelDataError, match="no interval with a positive exposure"):
        gp4c.PanelCounts.from_frame(
            {**GOOD, "count": [0] * 4, "hours": [0.0] * 4}, exposure="hours"
        )


def test_missing_counts_can_be_dropped_as_gaps():
    table = with_cell("count", 0, None)
    table["start"][0] = None  # a row that is left out breaks no rule
    panel = gp4c.PanelCounts.from_frame(table, missing="drop")
    assert panel.n_intervals == 3
    assert panel.notes == ("1 interval without a count left out, as a gap",)


def test_dropping_says_how_many_subjects_go_with_it():
    table = {**GOOD, "count": [1, 2, None, None]}
    panel = gp4c.PanelCounts.from_frame(table, missing="drop")
    assert panel.subjects.tolist() == [1]
    assert panel.notes == (
        "2 intervals without a count left out, as a gap, and with them 1 subject without any "
        "count: 2",
    )


def test_rows_keep_their_numbers_when_others_are_dropped():
    table = {**GOOD, "count": [None, 1, 1, -1]}
    assert message_of(table, missing="drop") == "'count' must not be negative; found -1 (row 3)"


def test_nothing_left_after_dropping():
    table = {**GOOD, "count": [None] * 4}
    assert message_of(table, missing="drop") == "'count' is missing in every row; nothing is left"


@pytest.mark.parametrize(
    "counts",
    [
        [0.0, 1.0, 2.0, 3.0],
        ["0", " 1", "2.0", "3e0"],
        [Decimal(0), Decimal(1), Decimal("2.0"), Decimal(3)],
        np.array([0, 1, 2, 3], dtype=np.uint8),
        pd.array([0, 1, 2, 3], dtype="Int64"),
        pd.Categorical(["0", "1", "2", "3"]),
        np.array([0, 1, 2, 3], dtype=np.uint64),
    ],
)
def test_whole_numbers_of_any_type_are_counts(counts):
    panel = gp4c.PanelCounts.from_frame({**GOOD, "count": counts})
    assert panel.count.tolist() == [0, 1, 2, 3]


def test_the_largest_count_is_exact():
    panel = gp4c.PanelCounts.from_frame(with_cell("count", 0, 2**53))
    assert panel.n_events == 2**53 + 6


def test_legal_shapes_keep_their_meaning():
    table = {
        "subject": ["gap", "gap", "late", "once", "tie", "silent"],
        "start": [0, 5, 3, 0, 0, 0],
        "stop": [2, 6, 4, 9, 9, 9],
        "count": [1, 0, 2, 0, 4, 0],
    }
    panel = gp4c.PanelCounts.from_frame(table)
    assert panel.n_intervals == 6
    gap = panel.where(subject="gap")
    assert list(zip(gap.start, gap.stop, strict=True)) == [(0.0, 2.0), (5.0, 6.0)]
    assert panel.where(subject="late").start.tolist() == [3.0]
    assert panel.where(subject="silent").n_events == 0
