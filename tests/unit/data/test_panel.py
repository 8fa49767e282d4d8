"""PanelCounts as a value: order, selection, windows, joining, copying, showing."""

from __future__ import annotations

import math
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.exceptions import PanelDataError


def small_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "subject": ["b", "a", "b", "a", "c"],
            "start": [2.0, 0.0, 0.0, 3.0, 1.0],
            "stop": [5.0, 2.0, 2.0, 4.0, 9.0],
            "count": [3, 0, 1, 2, 0],
            "arm": ["x", "y", "x", "y", "x"],
            "dose": [1.0, 2.0, 1.5, 2.0, 1.0],
        }
    )


@pytest.fixture
def panel() -> gp4c.PanelCounts:
    return gp4c.PanelCounts.from_frame(small_table(), time_unit="months")


def test_rows_are_sorted_by_subject_then_start(panel):
    assert panel.subjects.tolist() == ["a", "b", "c"]
    assert panel.subject_index.tolist() == [0, 0, 1, 1, 2]
    assert panel.start.tolist() == [0.0, 3.0, 0.0, 2.0, 1.0]
    assert panel.stop.tolist() == [2.0, 4.0, 2.0, 5.0, 9.0]
    assert panel.count.tolist() == [0, 2, 1, 3, 0]


def test_sizes_and_types(panel):
    assert (panel.n_subjects, panel.n_intervals, panel.n_events) == (3, 5, 6)
    assert len(panel) == 3
    assert panel.shape == (3,)
    assert panel.count.dtype == np.int64
    assert panel.start.dtype == panel.stop.dtype == panel.exposure.dtype == np.float64
    assert panel.exposure.tolist() == [1.0] * 5


def test_log_factorials_are_the_sum_of_ln_m_factorial(panel):
    expected = math.log(math.factorial(2)) + math.log(math.factorial(3))
    assert panel.log_factorials == pytest.approx(expected, rel=1e-14)


def test_nothing_can_be_changed(panel):
    for name in ("start", "stop", "count", "exposure", "subject_index", "subjects"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(panel, name)[0] = 1
    with pytest.raises(AttributeError, match="immutable"):
        panel.window = (0.0, 1.0)
    with pytest.raises(AttributeError, match="immutable"):
        del panel.count
    covariates = panel.covariates
    covariates["arm"] = "z"
    assert panel.covariates["arm"].tolist() == ["y", "x", "x"]


def test_the_input_stays_as_it_is_and_later_changes_do_not_reach_the_panel():
    table = {"subject": np.array([1]), "start": np.zeros(1), "stop": np.ones(1), "count": [2]}
    panel = gp4c.PanelCounts.from_frame(table)
    table["stop"][0] = 7.0
    assert table["stop"].flags.writeable
    assert panel.stop.tolist() == [1.0]


def test_there_is_no_public_constructor():
    with pytest.raises(TypeError, match=r"PanelCounts\.from_frame"):
        gp4c.PanelCounts()


def test_covariates_are_one_row_per_subject_and_varying_columns_per_interval(panel):
    assert panel.covariates.index.tolist() == ["a", "b", "c"]
    assert panel.covariates.index.name == "subject"
    assert panel.covariates["arm"].tolist() == ["y", "x", "x"]
    assert list(panel.covariates.columns) == ["arm"]
    assert panel.interval_covariates["dose"].tolist() == [2.0, 2.0, 1.5, 1.0, 1.0]
    assert any(
        note.startswith("column 'dose' varies within subjects, such as 1.5, then 1.0 (rows")
        for note in panel.notes
    )


def test_a_missing_covariate_is_a_value_of_its_own():
    table = small_table().assign(site=[None, "s", None, "s", "t"], age=[1.0, np.nan, 1.0, 2.0, 3.0])
    panel = gp4c.PanelCounts.from_frame(table)
    assert panel.covariates["site"].isna().tolist() == [False, True, False]
    assert list(panel.interval_covariates.columns) == ["dose", "age"]


def test_a_panel_without_other_columns_has_empty_covariate_frames(panel):
    bare = gp4c.PanelCounts.from_frame(small_table()[["subject", "start", "stop", "count"]])
    assert bare.covariates.shape == (3, 0)
    assert bare.interval_covariates.shape == (5, 0)


def test_columns_with_reserved_names_are_kept_under_another_name():
    table = small_table().rename(columns={"count": "n", "arm": "count"})
    panel = gp4c.PanelCounts.from_frame(table, count="n")
    assert panel.covariates["count_column"].tolist() == ["y", "x", "x"]
    assert gp4c.PanelCounts.from_frame(panel.to_frame()) == panel


# --- windows -----------------------------------------------------------------------------------


def test_the_window_defaults_to_the_range_of_the_data(panel):
    assert panel.window == (0.0, 9.0)


def test_subsets_inherit_the_window(panel):
    train, test = panel.split(test_size=1, random_state=0)
    for subset in (panel[0], panel[[1]], panel.where(arm="y"), train, test):
        assert subset.window == (0.0, 9.0)


def test_with_window_changes_only_the_window(panel):
    wider = panel.with_window((-1, 10))
    assert wider.window == (-1.0, 10.0)
    assert panel.window == (0.0, 9.0)
    assert wider != panel
    assert wider.with_window((0, 9)) == panel


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ((1, 9), r"must contain every interval; found \(1, 9\) while .* from 0 to 9"),
        ((0, 8.5), r"must contain every interval; found \(0, 8\.5\)"),
        ((9, 0), "t0 < t1"),
        ((0, math.inf), "finite"),
        ((0, math.nan), "finite"),
        ((0, 1, 2), "two times"),
        (5, "two times"),
        (("2020-01-01", "2021-01-01"), "numbers, not dates"),
        ((None, 9), "must be a number or a date; found None"),
    ],
)
def test_a_window_that_cannot_be_is_an_error(panel, window, message):
    with pytest.raises(PanelDataError, match=message):
        panel.with_window(window)
    with pytest.raises(PanelDataError, match=message):
        gp4c.PanelCounts.from_frame(small_table(), window=window)


# --- selection ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (0, ["a"]),
        (-1, ["c"]),
        (slice(1, None), ["b", "c"]),
        ([2, 0], ["a", "c"]),
        (np.array([1]), ["b"]),
        (np.array([True, False, True]), ["a", "c"]),
        ([True, False, False], ["a"]),
        (pd.Series([False, True, False]), ["b"]),
        (range(2), ["a", "b"]),
        ((np.array([0, 2]), ...), ["a", "c"]),
        ([0, 0, 1], ["a", "a", "b"]),
    ],
)
def test_indexing_selects_subjects(panel, key, expected):
    chosen = panel[key]
    assert chosen.subjects.tolist() == expected
    whole = panel.to_frame()
    rows = [whole[whole["subject"] == label] for label in expected]
    got = chosen.to_frame().reset_index(drop=True)
    pd.testing.assert_frame_equal(got, pd.concat(rows, ignore_index=True))


def test_iteration_gives_subjects(panel):
    assert [one.subjects.tolist() for one in panel] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize("key", [3, [0, 7], (0, 1), np.array([True, False])])
def test_indices_outside_are_index_errors(panel, key):
    with pytest.raises(IndexError):
        panel[key]


@pytest.mark.parametrize("key", [[], slice(0, 0), np.zeros(3, dtype=bool)])
def test_an_empty_selection_is_an_error(panel, key):
    with pytest.raises(PanelDataError, match="no subject"):
        panel[key]


def test_where_takes_values_collections_functions_and_labels(panel):
    assert panel.where(arm="x").subjects.tolist() == ["b", "c"]
    assert panel.where(arm=["x", "y"]).subjects.tolist() == ["a", "b", "c"]
    assert panel.where(arm=lambda arm: arm != "x").subjects.tolist() == ["a"]
    assert panel.where(subject={"a", "b"}, arm="x").subjects.tolist() == ["b"]


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ({"am": "x"}, r"no covariate 'am'; there are 'arm'; did you mean 'arm'\?"),
        ({"arm": "z"}, "no subject has arm='z'; arm is 'x', 'y'"),
        ({"arm": "x", "subject": "a"}, "no subject meets all of arm='x', subject='a'"),
        ({"dose": 1.0}, "'dose' varies within subjects, so it cannot select them"),
    ],
)
def test_where_explains_what_it_cannot_find(panel, conditions, message):
    with pytest.raises(PanelDataError, match=message):
        panel.where(**conditions)


def test_split_is_by_subject_and_reproducible():
    panel = gp4c.load_dataset("bladder")
    train, test = panel.split(test_size=1 / 3, random_state=0)
    assert (len(train), len(test)) == (57, 28)
    assert set(train.subjects) | set(test.subjects) == set(panel.subjects)
    again, _ = panel.split(test_size=1 / 3, random_state=np.random.default_rng(0))
    assert again == train
    assert panel.split(random_state=1)[0] != train
    assert len(panel.split(test_size=10, random_state=0)[1]) == 10


@pytest.mark.parametrize("test_size", [0, 3, -1, 3.5])
def test_split_needs_subjects_on_both_sides(panel, test_size):
    with pytest.raises(ValueError, match="at least one of 3 subjects"):
        panel.split(test_size=test_size)


def test_split_does_not_depend_on_labels_or_on_the_order_of_rows():
    table = gp4c.load_dataset("nausea").to_frame()
    labels = np.random.default_rng(1).permutation(1000)
    relabelled = table.assign(subject=labels[table["subject"]]).sample(frac=1, random_state=2)
    for seed in range(3):
        one = gp4c.PanelCounts.from_frame(table).split(random_state=seed)[1]
        two = gp4c.PanelCounts.from_frame(relabelled).split(random_state=seed)[1]
        assert _content(one) == _content(two)


def _content(panel: gp4c.PanelCounts) -> list[tuple[tuple[object, ...], ...]]:
    """What each subject's rows hold; subjects equal in all but the label are the same."""
    subjects = panel.to_frame().groupby("subject")
    return sorted(
        tuple(rows.drop(columns="subject").itertuples(index=False, name=None))
        for _, rows in subjects
    )


def test_covariates_break_ties_in_the_content_order():
    table = {"start": [0, 0, 0], "stop": [1, 1, 1], "count": [0, 0, 0], "arm": ["z", "x", "y"]}
    for labels in ([1, 2, 3], [3, 1, 2], ["c", 1, (2, 3)]):
        panel = gp4c.PanelCounts.from_frame({"subject": labels, **table})
        assert panel.covariates["arm"].iloc[panel.content_order()].tolist() == ["x", "y", "z"]


def test_the_content_order_compares_rows_from_the_first_on():
    rows = [
        ("long", 0, 1, 0), ("long", 1, 2, 0), ("late", 0, 1, 0), ("late", 1, 3, 0),
        ("busy", 0, 1, 1), ("busy", 1, 2, 0), ("short", 5, 6, 9),
    ]  # fmt: skip
    columns = dict(zip(("subject", "start", "stop", "count"), zip(*rows, strict=True), strict=True))
    panel = gp4c.PanelCounts.from_frame(columns)
    assert panel.subjects[panel.content_order()].tolist() == ["short", "long", "late", "busy"]


# --- joining and copying -----------------------------------------------------------------------


def test_concat_undoes_split(panel):
    assert gp4c.PanelCounts.concat(panel.split(random_state=3)) == panel


def test_concat_joins_intervals_of_the_same_subject():
    one = gp4c.PanelCounts.from_frame({"subject": [1], "start": [0], "stop": [2], "count": [1]})
    two = gp4c.PanelCounts.from_frame(
        {"subject": [1], "start": [2], "stop": [3], "count": [4], "w": [2.5]}, exposure="w"
    )
    both = gp4c.PanelCounts.concat([one, two])
    assert both.n_subjects == 1
    assert both.stop.tolist() == [2.0, 3.0]
    assert both.exposure.tolist() == [1.0, 2.5]
    assert both.window == (0.0, 3.0)


def test_concat_refuses_what_does_not_fit_together(panel):
    with pytest.raises(PanelDataError, match="no panel"):
        gp4c.PanelCounts.concat([])
    other = gp4c.PanelCounts.from_frame(small_table(), time_unit="weeks")
    with pytest.raises(PanelDataError, match="agree in time unit and origin; found 'months'"):
        gp4c.PanelCounts.concat([panel, other])
    with pytest.raises(PanelDataError, match="duplicate rows must be left out; subject a has"):
        gp4c.PanelCounts.concat([panel, panel])


def test_equality_is_of_content(panel):
    shuffled = small_table().sample(frac=1, random_state=0)[::-1]
    assert gp4c.PanelCounts.from_frame(shuffled, time_unit="months") == panel
    for change in ({"count": [3, 0, 1, 2, 1]}, {"arm": ["x", "y", "x", "y", "y"]}):
        other = gp4c.PanelCounts.from_frame(small_table().assign(**change), time_unit="months")
        assert other != panel
    assert gp4c.PanelCounts.from_frame(small_table()) != panel
    assert panel != "a panel"
    assert panel[[0]] != panel


def test_pickled_copies_are_equal_and_still_read_only(panel):
    panel.distinct()
    other = pickle.loads(pickle.dumps(panel))
    assert other == panel
    assert other.notes == panel.notes
    assert not other.start.flags.writeable
    assert np.array_equal(other.distinct().count, panel.distinct().count)


def test_panels_travel_through_joblib(panel, tmp_path):
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(len)(one) for one in panel) == [1, 1, 1]
    joblib.dump(panel, tmp_path / "panel.joblib")
    assert joblib.load(tmp_path / "panel.joblib") == panel


def test_to_frame_round_trip_with_exposure():
    table = small_table().assign(hours=[1.5, 2.0, 3.0, 4.0, 1.0])
    panel = gp4c.PanelCounts.from_frame(table, exposure="hours")
    assert panel.exposure.tolist() == [2.0, 4.0, 3.0, 1.5, 1.0]
    assert gp4c.PanelCounts.from_frame(panel.to_frame(), exposure="exposure") == panel


# --- showing -----------------------------------------------------------------------------------


def test_repr_says_what_is_there(panel):
    assert repr(panel) == ("<PanelCounts: 3 subjects, 5 intervals, 6 events, window (0, 9) months>")
    assert repr(panel[2]) == (
        "<PanelCounts: 1 subject, 1 interval, 0 events, window (0, 9) months>"
    )


def test_html_is_escaped():
    table = small_table().assign(arm="<script>alert('&')</script>")
    html = gp4c.PanelCounts.from_frame(table)._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)" in html
    assert html.count("<tr>") == 6


def test_trusted_constructor_sorts_subjects_and_rows():
    covariates = pd.DataFrame({"arm": ["of b", "of a"]})
    panel = gp4c.PanelCounts._from_arrays(
        subjects=["b", "a"],
        subject_index=[0, 1, 0],
        start=[3.0, 0.0, 1.0],
        stop=[4.0, 1.0, 3.0],
        count=[1, 2, 3],
        exposure=[0.5, 1.0, 2.0],
        window=(0, 5),
        covariates=covariates,
        interval_covariates=pd.DataFrame({"note": ["x", "y", "z"]}),
    )
    assert panel.subjects.tolist() == ["a", "b"]
    assert panel.count.tolist() == [2, 3, 1]
    assert panel.exposure.tolist() == [1.0, 2.0, 0.5]
    assert panel.covariates["arm"].tolist() == ["of a", "of b"]
    assert panel.interval_covariates["note"].tolist() == ["y", "z", "x"]
