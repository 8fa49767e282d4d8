"""Recurrent events: windows, rules, and the panels they censor to."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gp4c
from gp4c.exceptions import PanelDataError


def table(**changes):
    return {"id": [2, 1, 1, 2], "t": [7.0, 3.0, 1.0, 2.0], "arm": ["y", "x", "x", "y"], **changes}


def events_of(data, **options):
    return gp4c.RecurrentEvents.from_frame(data, subject="id", time="t", **options)


def message_of(data, **options) -> str:
    with pytest.raises(PanelDataError) as caught:
        events_of(data, **options)
    return str(caught.value)


def test_events_on_a_common_window():
    events = events_of(table(), window=(0, 10), subjects=[5, 1], time_unit="hours")
    assert events.subjects.tolist() == [1, 2, 5]
    assert events.subject_index.tolist() == [0, 0, 1, 1]
    assert events.time.tolist() == [1.0, 3.0, 2.0, 7.0]
    assert events.start.tolist() == [0, 0, 0]
    assert events.stop.tolist() == [10, 10, 10]
    assert events.window == (0.0, 10.0)
    assert (len(events), events.shape, events.n_events) == (3, (3,), 4)
    assert events.covariates["arm"].tolist()[:2] == ["x", "y"]
    assert events.covariates["arm"].isna().tolist() == [False, False, True]
    assert repr(events) == "<RecurrentEvents: 3 subjects, 4 events, window (0, 10) hours>"


def test_windows_by_subject_in_a_dict():
    events = events_of(table(), window={2: (1, 8), 1: (0, 4), "new": (2, 3)})
    assert events.subjects.tolist() == [1, 2, "new"]
    assert events.start.tolist() == [0, 1, 2]
    assert events.stop.tolist() == [4, 8, 3]
    assert events.window == (0.0, 8.0)


def test_windows_by_subject_in_columns():
    events = events_of(table(a=[1, 0, 0, 1], b=[8, 4, 4, 8]), start="a", stop="b")
    assert events.start.tolist() == [0, 1]
    assert events.stop.tolist() == [4, 8]
    assert list(events.covariates.columns) == ["arm"]


def test_a_row_without_a_time_is_a_subject_without_events():
    events = events_of({"id": [1, 2], "t": [None, 4.0], "age": [50, 60]}, window=(0, 5))
    assert events.subjects.tolist() == [1, 2]
    assert events.subject_index.tolist() == [1]
    assert events.covariates["age"].tolist() == [50, 60]


def test_marks_of_single_events_are_left_out_and_noted():
    events = events_of(table(kind=["p", "p", "q", "p"]), window=(0, 10))
    assert list(events.covariates.columns) == ["arm"]
    assert events.notes == ("columns that vary within subjects left out: 'kind'",)


def test_dates_share_an_axis_with_their_windows():
    days = ["2024-01-05", "2024-01-03", "2024-01-02", "2024-01-04"]
    events = events_of(table(t=days), window=("2024-01-01", "2024-01-31"), origin="2024-01-01")
    assert events.time.tolist() == [1, 2, 3, 4]
    assert events.window == (0.0, 30.0)
    assert events.time_unit == "days"


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {}, "say when subjects were observed"),
        ({}, {"start": "a"}, "say when subjects were observed"),
        (
            {},
            {"window": (0, 5)},
            "events must lie in their subject's observation window; subject 2 has one at "
            "7, outside (0, 5] (row 0)",
        ),
        ({}, {"window": (1, 9)}, "subject 1 has one at 1, outside (1, 9] (row 2)"),
        ({}, {"window": (9, 1)}, "t0 < t1"),
        ({}, {"window": {1: (0, 9)}}, "every subject needs a window; subject 2 has none"),
        (
            {"t": [7, 3, "x", 2]},
            {"window": (0, 9)},
            "'t' must be a number or a date; found 'x' (row 2)",
        ),
        (
            {"t": [7, 3, None, 2]},
            {"window": (0, 9)},
            "a row without a time stands for a subject without events; subject 1 has other "
            "rows (row 2)",
        ),
        ({"id": [1, None, 1, 1]}, {"window": (0, 9)}, "'id' must label the subject"),
        (
            {"a": [0, 0, 0, 1], "b": [9] * 4},
            {"start": "a", "stop": "b"},
            "'a' must be the same in all rows of a subject; subject 2 has 0 and 1 (row 3)",
        ),
        (
            {"a": [9] * 4, "b": [9] * 4},
            {"start": "a", "stop": "b"},
            "a subject's observation must end after it starts; subject 2 has (9, 9] (row 0)",
        ),
        (
            {"a": [0] * 4, "b": [9, 9, 9, None]},
            {"start": "a", "stop": "b"},
            "'b' must be a number or a date; the cell is missing (row 3)",
        ),
    ],
)
def test_rules_of_events(changes, options, message):
    assert message in message_of(table(**changes), **options)


def test_selection_and_windows_are_those_of_panels():
    events = events_of(table(), window=(0, 10), subjects=[5])
    assert events.where(arm="x").time.tolist() == [1.0, 3.0]
    assert events[[2, 0]].subjects.tolist() == [1, 5]
    assert events[2].n_events == 0
    assert events.with_window((-1, 11)).window == (-1.0, 11.0)
    with pytest.raises(PanelDataError, match="must contain"):
        events.with_window((0, 9))
    with pytest.raises(TypeError, match=r"RecurrentEvents\.from_frame"):
        gp4c.RecurrentEvents()
    train, test = events.split(test_size=1, random_state=0)
    assert len(train) + len(test) == 3


def test_content_order_does_not_look_at_labels():
    one = events_of({"id": [1, 2, 2, 3], "t": [5.0, 1.0, 2.0, 4.0]}, window=(0, 10))
    two = events_of({"id": [9, 4, 4, 7], "t": [5.0, 1.0, 2.0, 4.0]}, window=(0, 10))
    assert one.subjects[one.content_order()].tolist() == [3, 1, 2]
    assert two.subjects[two.content_order()].tolist() == [7, 9, 4]


def test_frames_and_pickles_round_trip():
    events = events_of(table(), window={1: (0, 4), 2: (1, 8), 3: (0, 2)})
    again = gp4c.RecurrentEvents.from_frame(events.to_frame(), start="start", stop="stop")
    assert again == events
    assert (
        gp4c.RecurrentEvents.from_frame(
            pl.from_pandas(events.to_frame()), start="start", stop="stop"
        )
        == events
    )
    assert pickle.loads(pickle.dumps(events)) == events


# --- panels ------------------------------------------------------------------------------------


def test_an_event_at_a_visit_belongs_to_the_interval_that_ends_there():
    panel = events_of(table(), window=(0, 10)).to_panel([1.0, 2.0, 5.0, 12.0])
    assert panel.start.tolist() == [0, 1, 2] * 2
    assert panel.stop.tolist() == [1, 2, 5] * 2
    assert panel.count.tolist() == [1, 0, 1, 0, 1, 0]
    assert panel.window == (0.0, 10.0)
    assert panel.covariates["arm"].tolist() == ["x", "y"]


def test_visits_by_subject():
    events = events_of(table(), window=(0, 10))
    panel = events.to_panel({1: [10.0], 2: [2.5, 8.0, 2.5]})
    assert panel.stop.tolist() == [10, 2.5, 8]
    assert panel.count.tolist() == [2, 1, 1]
    frame = pd.DataFrame({"subject": [1, 2, 2], "time": [10.0, 2.5, 8.0]})
    assert events.to_panel(frame) == panel


def test_subjects_without_visits_are_noted():
    panel = events_of(table(), window=(0, 10)).to_panel({1: [4.0]})
    assert panel.subjects.tolist() == [1]
    assert panel.notes[-1] == "1 subject without a visit left out"


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        ([], "no visit lies in"),
        ([11.0], "no visit lies in"),
        ([np.nan], "finite"),
        ({9: [1.0]}, "unknown subject 9"),
        ({1: [np.inf]}, "finite"),
        ({1: [11.0]}, r"subject 1 has one at 11, outside \(0, 10\]"),
    ],
)
def test_rules_of_visits(visits, message):
    with pytest.raises(PanelDataError, match=message):
        events_of(table(), window=(0, 10)).to_panel(visits)


@given(
    times=st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 20).map(lambda k: k / 2)),
        min_size=1,
        max_size=30,
    ),
    visits=st.sets(st.integers(1, 20).map(lambda k: k / 2), min_size=1, max_size=8),
)
def test_counts_agree_with_counting_one_by_one(times, visits):
    labels, moments = zip(*times, strict=True)
    events = gp4c.RecurrentEvents.from_frame(
        {"subject": labels, "time": moments}, window=(0, 10), subjects=range(5)
    )
    panel = events.to_panel(sorted(visits))
    for k in range(panel.n_intervals):
        label = panel.subjects[panel.subject_index[k]]
        inside = [t for who, t in times if who == label and panel.start[k] < t <= panel.stop[k]]
        assert panel.count[k] == len(inside)
    assert panel.n_intervals == 5 * len(visits)
