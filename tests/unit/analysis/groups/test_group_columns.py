"""Columns of groups and strata: order, scores, and one clear sentence for what cannot be used."""

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.analysis.groups.group_columns import read_column, read_groups, read_strata, trend_scores
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.exceptions import PanelDataError


def panel_with(**columns):
    """Two rows of each subject; the first column has one value per subject, others may have two."""
    n_subjects = len(next(iter(columns.values())))
    frame = pd.DataFrame(
        {
            "subject": np.repeat(np.arange(n_subjects), 2),
            "start": np.tile([0.0, 2.0], n_subjects),
            "stop": np.tile([2.0, 5.0], n_subjects),
            "count": np.arange(2 * n_subjects) % 3,
        }
    )
    for name, values in columns.items():
        frame[name] = values if len(values) == 2 * n_subjects else np.repeat(values, 2)
    return gp4c.PanelCounts.from_frame(frame)


def test_groups_are_in_natural_order_and_the_reference_comes_first():
    panel = panel_with(dose=["10 mg", "5 mg", "2.5 mg", "10 mg", "placebo"])
    column = read_groups(panel, "dose")
    assert column.levels == ["2.5 mg", "5 mg", "10 mg", "placebo"]
    assert column.codes.tolist() == [2, 1, 0, 2, 3]
    turned = read_groups(panel, "dose", "placebo")
    assert turned.levels == ["placebo", "2.5 mg", "5 mg", "10 mg"]
    assert [turned.levels[c] for c in turned.codes] == [column.levels[c] for c in column.codes]


def test_scores_are_the_numbers_in_the_names():
    column = read_groups(panel_with(dose=["10 mg", "5 mg", "placebo", "5 mg"]), "dose", "placebo")
    assert trend_scores(column, None).tolist() == [0.0, 5.0, 10.0]
    assert trend_scores(column, {"placebo": 0, "5 mg": 1, "10 mg": 2}).tolist() == [0.0, 1.0, 2.0]
    numbers = read_groups(panel_with(stage=[3, 1, 2, 1]), "stage")
    assert trend_scores(numbers, None).tolist() == [1.0, 2.0, 3.0]


def test_an_ordered_category_has_its_own_order_and_ranks():
    values = pd.Categorical(["low", "high", "middle"], ["low", "middle", "high"], ordered=True)
    panel = panel_with(level=["low", "high", "middle"])
    told = panel._like(_covariates=pd.DataFrame({"level": values}))
    column = read_column(told, "level")
    assert column.levels == ["low", "middle", "high"]
    assert trend_scores(column, None).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("levels", "given", "message"),
    [
        (["low", "high"], None, "needs a number for each group of 'arm', and 'high' has none"),
        (["low", "high"], {"low": 1}, "group 'high' of 'arm' has no score"),
        (["low", "high"], {"low": 1, "hihg": 2}, "did you mean 'high'"),
        (["low", "high"], {"low": 1, "high": 1}, "must be numbers that differ"),
        (["low", "high"], {"low": 1, "high": float("nan")}, "must be numbers that differ"),
    ],
)
def test_scores_that_cannot_be_used_are_refused(levels, given, message):
    with pytest.raises(PanelDataError, match=message):
        trend_scores(read_groups(panel_with(arm=levels), "arm"), given)


ARMS = ["a", "b", "a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("centre", "message"),
    [
        (["x"] * 6, "'centre' has one level only, 'x': leave it out of the strata"),
        (["x", "x", "y", "y", "z", "y"],
         "stratum 'z' of 'centre' has one group only, 'arm' = 'a' \\(1 subject\\)"),
        (["x", "x", "y", "x", "y", "x"],
         "group 'b' of 'arm' is in one stratum only, 'centre' = 'x'"),
        (["x", "x", None, "y", "y", "y"], "'centre' is missing for 1 subject: 2; leave"),
    ],
)  # fmt: skip
def test_strata_that_say_nothing_are_refused_in_one_sentence(centre, message):
    panel = panel_with(arm=ARMS, centre=centre)
    with pytest.raises(PanelDataError, match=message):
        read_strata(panel, "centre", read_groups(panel, "arm"))


def test_a_column_that_varies_within_a_subject_is_named_with_its_rows():
    panel = panel_with(count_of_subjects=[1, 2, 3], arm=["a", "a", "b", "a", "b", "a"])
    with pytest.raises(PanelDataError) as caught:
        read_groups(panel, "arm")
    text = str(caught.value)
    assert "subject 1 has 'b' in (0, 2] and 'a' in (2, 5] (rows 3 and 4 of the panel" in text
    assert "1 other subject too" in text
    assert "\n" not in text


def test_one_level_and_unknown_columns():
    with pytest.raises(PanelDataError, match="'arm' has one level only, 'a': nothing to compare"):
        read_groups(panel_with(arm=["a", "a"]), "arm")
    with pytest.raises(PanelDataError, match="no covariate 'sex' of subjects; there are: arm"):
        read_groups(panel_with(arm=["a", "b"]), "sex")


def test_blocks_need_two_groups_somewhere():
    panel = panel_with(arm=ARMS, block=["p", "q", "p", "q", "p", "q"])
    with pytest.raises(PanelDataError, match="no block of 'block' has two groups of 'arm'"):
        PanelTest.of(panel, "arm", blocks="block")
    some = panel_with(arm=ARMS, block=["p", "p", "q", "q", "r", "s"])
    found = PanelTest.of(some, "arm", blocks="block").overall
    assert found.exact
    assert found.n_labellings == 4
