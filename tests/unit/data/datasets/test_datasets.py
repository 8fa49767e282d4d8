"""The bundled data against the paper's table and against figures counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

import gp4c
from gp4c.data.datasets import bundled as datasets
from gp4c.exceptions import PanelDataError


def paper_group(name: str) -> gp4c.PanelCounts:
    """Nausea A, ..., Skin D, with the window that the paper uses."""
    study, group = name.split()
    if study != "Skin":
        return gp4c.load_dataset(study.lower()).where(group=group)
    event = "basal" if group in "AC" else "squamous"
    arm = "dfmo" if group in "AB" else "placebo"
    panel = gp4c.load_dataset("skin", event=event, unit="paper").where(treatment=arm)
    return panel.with_window((0, panel.stop.max()))


#: K, N-bar (distinct end points, 0 included), N (distinct intervals; the paper has 816 and 887
#: for Skin, see below), end of the window
TABLE = {
    "Nausea A": (65, 45, 109, 55),
    "Nausea B": (48, 38, 84, 55),
    "Bladder A": (38, 52, 176, 53),
    "Bladder B": (47, 52, 201, 53),
    "Skin A": (143, 751, 1102, 61.57),
    "Skin B": (143, 751, 1102, 61.57),
    "Skin C": (147, 808, 1210, 62.63),
    "Skin D": (147, 808, 1210, 62.63),
}


@pytest.mark.parametrize("name", TABLE)
def test_statistics_of_the_papers_table(name):
    panel = paper_group(name)
    subjects, end_points, intervals, end = TABLE[name]
    assert panel.n_subjects == subjects
    assert len(np.union1d(panel.start, panel.stop)) == end_points
    assert panel.summary()["distinct end points"] == end_points
    assert len(panel.distinct()) == intervals
    assert panel.window[0] == 0.0
    assert round(panel.window[1], 2) == end


@pytest.mark.parametrize(("name", "in_paper"), [("Skin A", 816), ("Skin C", 887)])
def test_the_papers_skin_values_come_from_rounded_keys(name, in_paper):
    # The published program counts keys (1 + T) start + stop as 32-bit integers. With times that
    # are fractions of 30 days they are rounded (half away from zero) and different intervals
    # coincide; for whole weeks and months, as in the other sets, they are exact.
    panel = paper_group(name)
    keys = np.floor((1 + panel.window[1]) * panel.start + panel.stop + 0.5)
    assert len(np.unique(keys)) == in_paper
    exact = {(a, b) for a, b in zip(panel.start.tolist(), panel.stop.tolist(), strict=True)}
    assert len(exact) == TABLE[name][2]


#: rows, rows without event, events, largest count, subjects without event
EVENTS = {
    "Nausea A": (358, 321, 312, 99, 41),
    "Nausea B": (247, 211, 243, 60, 27),
    "Bladder A": (513, 468, 119, 9, 20),
    "Bladder B": (407, 320, 283, 9, 18),
    "Skin A": (1198, 1067, 157, 3, 74),
    "Skin B": (1198, 1127, 96, 6, 102),
    "Skin C": (1292, 1107, 241, 4, 70),
    "Skin D": (1292, 1207, 102, 3, 99),
}


@pytest.mark.parametrize("name", EVENTS)
def test_events(name):
    panel = paper_group(name)
    totals = np.bincount(panel.subject_index, weights=panel.count)
    found = (
        panel.n_intervals,
        int(np.sum(panel.count == 0)),
        panel.n_events,
        int(panel.count.max()),
        int(np.sum(totals == 0)),
    )
    assert found == EVENTS[name]


def test_windows_and_units():
    shown = {
        name: (panel.window, panel.time_unit, panel.n_intervals)
        for name in gp4c.list_datasets()
        for panel in [gp4c.load_dataset(name)]
    }
    assert shown == {
        "nausea": ((0.0, 55.0), "weeks", 605),
        "bladder": ((0.0, 53.0), "months", 920),
        "skin": ((0.0, 1879.0), "days", 2490),
        "skin_full": ((0.0, 1879.0), "days", 2523),
        "cgd": ((0.0, 439.0), "days", 487),
    }


def test_the_granulomatous_disease_trial():
    panel = gp4c.load_dataset("cgd")
    arms = panel.covariates["treatment"].value_counts().to_dict()
    assert arms == {"placebo": 65, "interferon": 63}
    assert panel.covariates["centre"].nunique() == 13
    assert {arm: panel.where(treatment=arm).n_events for arm in arms} == {
        "placebo": 56, "interferon": 20,
    }  # fmt: skip
    totals = np.bincount(panel.subject_index, panel.count)
    assert (int((totals == 0).sum()), int(totals.max())) == (84, 7)


def test_the_complete_skin_record():
    full = {
        (arm, event): gp4c.load_dataset("skin_full", event=event).where(treatment=arm).n_events
        for arm in ("dfmo", "placebo")
        for event in ("basal", "all")
    }
    assert full == {
        ("dfmo", "basal"): 162,
        ("dfmo", "all"): 257,
        ("placebo", "basal"): 245,
        ("placebo", "all"): 361,
    }


def test_types_of_skin_cancer_add_up_and_units_scale():
    basal, squamous, both = (
        gp4c.load_dataset("skin", event=event) for event in ("basal", "squamous", "all")
    )
    assert np.array_equal(basal.count + squamous.count, both.count)
    types = gp4c.load_dataset("skin")
    assert types.event_types == ("basal", "squamous")
    assert (types.of_type("basal"), types.of_type("squamous")) == (basal, squamous)
    assert types.total() == both
    paper = gp4c.load_dataset("skin", event="all", unit="paper")
    assert np.allclose(paper.stop * 30, both.stop, rtol=1e-15)
    assert list(both.covariates.columns) == ["treatment", "prior_tumors", "age", "sex"]


def test_follow_up_has_no_gaps_and_starts_at_zero():
    for name in gp4c.list_datasets():
        summary = gp4c.load_dataset(name).summary()
        assert (summary["gaps"], summary["late entries"]) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("blader", {}), "no data set 'blader'; .* did you mean 'bladder'"),
        (("skin", {"event": "melanoma"}), "event must be 'all', 'basal' or 'squamous'"),
        (("skin", {"unit": "weeks"}), "unit must be 'days' or 'paper'; found 'weeks'"),
        (("bladder", {"unit": "paper"}), "unit is for the skin sets; found 'paper'"),
        (("nausea", {"event": "all"}), "event is for the skin sets"),
    ],
)
def test_wrong_names_are_explained(arguments, message):
    name, options = arguments
    with pytest.raises(PanelDataError, match=message):
        gp4c.load_dataset(name, **options)


def test_each_loader_says_where_its_data_are_from():
    for name in gp4c.list_datasets():
        loader = getattr(datasets, f"load_{name}")
        assert len(loader.__doc__) > 500
        assert loader() == gp4c.load_dataset(name)
