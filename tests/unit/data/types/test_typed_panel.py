"""Panels with several types of events: read, divided, joined, and never summed in silence."""

import io
import pickle

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c import PanelCounts
from gp4c.exceptions import PanelDataError

WIDE = pd.DataFrame(
    {
        "subject": ["b", "b", "a", "c"],
        "start": [0, 2, 0, 1],
        "stop": [2, 5, 3, 4],
        "basal": [1, 0, 2, 0],
        "squamous": [0, 3, 0, 1],
        "arm": ["x", "x", "y", "y"],
    }
)
LONG = WIDE.melt(["subject", "start", "stop", "arm"], var_name="kind", value_name="count")


@pytest.fixture
def panel():
    return PanelCounts.from_frame(WIDE, count=["basal", "squamous"])


def test_both_layouts_are_one_panel_in_any_order_of_rows(panel):
    assert panel.event_types == ("basal", "squamous")
    assert PanelCounts.from_frame(LONG, event="kind") == panel
    assert PanelCounts.from_frame(LONG.sample(frac=1, random_state=1), event="kind") == panel
    assert PanelCounts.from_frame(panel.to_frame(), event="event") == panel
    assert gp4c.read_panel(io.StringIO(WIDE.to_csv()), count=["basal", "squamous"]) == panel
    assert gp4c.read_panel(io.StringIO(LONG.to_csv(index=False)), event="kind") == panel


def test_a_type_is_the_panel_of_its_column(panel):
    plain = PanelCounts.from_frame(WIDE.drop(columns="basal"), count="squamous")
    assert panel.of_type("squamous") == plain
    both = WIDE.assign(count=WIDE.basal + WIDE.squamous).drop(columns=["basal", "squamous"])
    assert panel.total() == PanelCounts.from_frame(both)
    assert (panel.n_subjects, panel.n_intervals, panel.n_events) == (3, 4, 7)


def test_subsets_keep_types_subjects_and_window(panel):
    kept = panel.where(arm="y")
    assert list(kept.subjects) == ["a", "c"]
    assert kept.event_types == panel.event_types
    assert kept.window == panel.window
    assert kept.of_type("basal") == panel.of_type("basal").where(arm="y")
    assert panel[[0, 0, 2]].of_type("squamous") == panel.of_type("squamous")[[0, 0, 2]]
    train, test = panel.split(1, random_state=0)
    assert PanelCounts.concat([test, train]) == panel
    wider = panel.with_window((0, 9))
    assert wider.window == wider.of_type("basal").window == (0.0, 9.0)
    assert pickle.loads(pickle.dumps(panel)) == panel


def test_labels_do_not_decide_who_is_held_out(panel):
    skin = gp4c.load_dataset("skin").where(treatment="dfmo")
    frame = skin.to_frame()
    renamed = frame.assign(subject=1000 - frame.subject)
    other = PanelCounts.from_frame(renamed, event="event", time_unit="days")
    held_out = set(skin.split(random_state=3)[1].subjects)
    assert {1000 - k for k in other.split(random_state=3)[1].subjects} == held_out


@pytest.mark.parametrize("name", ["count", "start", "stop", "exposure", "subject_index"])
def test_rows_without_a_type_are_refused(panel, name):
    with pytest.raises(PanelDataError, match=r"panel\.of_type\('basal'\).*panel\.total\(\)"):
        getattr(panel, name)


@pytest.mark.parametrize(
    "use",
    [
        gp4c.LocalEM().fit,
        gp4c.NPMLE().fit,
        gp4c.HomogeneousPoisson().fit,
        gp4c.GP4CW().fit,
        gp4c.trend_test,
        lambda panel: panel.distinct(),
        lambda panel: gp4c.backtest({"a": gp4c.HomogeneousPoisson()}, panel, horizon=1),
    ],
)
def test_what_knows_no_types_says_so(panel, use):
    with pytest.raises(PanelDataError, match=r"panel\.of_type\('basal'\)"):
        use(panel)


def test_an_interval_without_a_type_is_a_gap_only_if_asked_for():
    with pytest.raises(PanelDataError, match=r"subject b has \(0, 2\] for 'squamous' but not"):
        PanelCounts.from_frame(LONG.drop(0), event="kind")
    panel = PanelCounts.from_frame(LONG.drop(0), event="kind", missing="drop")
    assert (panel.n_intervals, panel.of_type("basal").n_intervals) == (4, 3)
    with pytest.raises(PanelDataError, match="can be added only where all were counted"):
        panel.total()
    empty = WIDE.assign(basal=[1, None, 2, 0])
    same = PanelCounts.from_frame(empty, count=["basal", "squamous"], missing="drop")
    assert same.of_type("basal").n_intervals == 3


def test_a_subject_may_lack_a_type_altogether():
    panel = PanelCounts.from_frame(LONG.drop([3]), event="kind", missing="drop")
    assert list(panel.of_type("basal").subjects) == ["a", "b"]
    assert panel[2].event_types == ("squamous",)
    assert list(panel.covariates.arm) == ["y", "x", "y"]


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"count": ["basal", "basal"]}, "columns of counts must differ"),
        ({}, {"count": ["basal"], "event": "arm"}, "event='arm' goes with one column of counts"),
        ({}, {"count": ["basal", "melanoma"]}, "no column 'melanoma'"),
        ({"basal": [1, 0.5, 2, 0]}, {"count": ["basal", "squamous"]}, r"0\.5 \(row 1\)"),
        ({"start": [0, 1, 0, 1]}, {"count": ["basal", "squamous"]}, r"subject b \(basal\) has"),
        ({"arm": ["x", None, "y", "y"]}, {"count": "basal", "event": "arm"}, "must name the type"),
        ({"subject": ["b", None, "a", "c"]}, {"count": ["basal"]}, "must label the subject"),
    ],
)
def test_what_is_wrong_with_a_table_is_said(change, options, message):
    with pytest.raises(PanelDataError, match=message):
        PanelCounts.from_frame(WIDE.assign(**change), **options)


def test_visits_have_types_too():
    visits = pd.DataFrame({"subject": [1, 1, 2], "time": [2.0, 5.0, 3.0], "a": [1, 4, 2]})
    visits["b"] = [0, 1, 0]
    panel = PanelCounts.from_visits(visits, count=["a", "b"], cumulative=True)
    assert np.array_equal(panel.of_type("a").count, [1, 3, 2])
    assert np.array_equal(panel.of_type("b").count, [0, 1, 0])


def test_dates_have_one_origin():
    dates = LONG.assign(
        start=pd.to_datetime("2020-01-01") + pd.to_timedelta(LONG.start, "D"),
        stop=pd.to_datetime("2020-01-01") + pd.to_timedelta(LONG.stop, "D"),
    )
    panel = PanelCounts.from_frame(dates.drop([0, 2]), event="kind", missing="drop")
    assert panel.of_type("basal").start.min() == 1.0
    assert panel.of_type("squamous").start.min() == 0.0


def test_the_summary_counts_each_type(panel):
    summary = panel.summary()
    assert (summary["events"], summary["events, basal"], summary["events, squamous"]) == (7, 3, 4)
    assert "3 basal, 4 squamous" in repr(panel)
    assert "TypedPanel" in panel._repr_html_()


def test_the_table_of_groups_has_the_rows_of_each_type_and_of_all_together(panel):
    whole = {row[0]: row[1:] for row in panel.table().rows}
    alone = {row[0]: row[1:] for row in panel.total().table().rows}
    assert {name: whole[name] for name in alone} == alone
    for event in panel.event_types:
        for name, *cells in panel.of_type(event).table().rows:
            if "events" in name and "rate" not in name:
                quantity, _, detail = name.partition(", ")
                label = ", ".join(filter(None, (quantity, event, detail)))
                assert whole[label] == tuple(cells)


def test_a_remark_on_all_types_is_made_once():
    table = {"subject": list(range(6)), "start": [0] * 6, "stop": [9] * 5 + [90], "x": [1] * 6}
    panel = PanelCounts.from_frame({**table, "y": [0, 1] * 3}, count=["x", "y"])
    said = [remark for remark in panel.summary().remarks if "alone was observed" in remark]
    assert len(said) == 1
    assert said[0].startswith("subject 5 alone")


def test_a_plain_panel_has_no_types(panel):
    plain = panel.of_type("basal")
    assert plain.event_types == ()
    with pytest.raises(PanelDataError, match="has no event types"):
        plain.of_type("basal")
    with pytest.raises(PanelDataError, match=r"no event type 'bsal'.*did you mean 'basal'"):
        panel.of_type("bsal")
    with pytest.raises(PanelDataError, match="cannot be joined"):
        PanelCounts.concat([panel, plain])
