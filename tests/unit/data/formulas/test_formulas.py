"""Formulas: what they may say, what they learn, and what they refuse to run."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.formulas.covariate_rows import design_rows, learn_design
from gp4c.data.formulas.formula import readable_name
from gp4c.data.formulas.formula_text import parse_formula
from gp4c.data.panel import PanelCounts
from gp4c.exceptions import PanelDataError
from tolerances import ROUNDING

BLADDER = gp4c.load_dataset("bladder")


def small_panel(**columns):
    """Three subjects with two intervals each, of different lengths."""
    rows = {
        "subject": [1, 1, 2, 2, 3, 3],
        "start": [0.0, 1.0, 0.0, 2.0, 0.0, 3.0],
        "stop": [1.0, 4.0, 2.0, 4.0, 3.0, 4.0],
        "count": [1, 0, 2, 1, 0, 3],
    }
    return PanelCounts.from_frame(pd.DataFrame({**rows, **columns}))


# -- what a formula may not do -------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "{__import__('os')}",
        "open('x')",
        "eval('1')",
        "np.log(age)",
        "{age.values}",
        "age[0]",
        "{[x for x in (1, 2)]}",
        "{(lambda: 1)()}",
        "log(age, out=age)",
        "I(9 ** 9 ** 9)",
        "hashed(age)",
        "Q('age')",
        "{age if age else age}",
        "C(age, contr.__class__)",
        "log(*[age])",
        "log(**{'x': age})",
        "{'a' * 3}.format",
    ],
)
def test_nothing_but_listed_functions_of_columns_is_allowed(text):
    with pytest.raises(PanelDataError):
        parse_formula(text)


def test_a_formula_with_code_is_refused_before_it_runs(tmp_path):
    made = tmp_path / "made"
    code = f"{{__import__('pathlib').Path({str(made)!r}).touch()}}"
    with pytest.raises(PanelDataError, match="not allowed"):
        learn_design(BLADDER, f"treatment + {code}")
    assert not made.exists()
    # formulaic itself would have run it
    from formulaic import model_matrix

    model_matrix(code, BLADDER.covariates)
    assert made.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count ~ age", "no '~'"),
        ("age +", "cannot be understood"),
        ("0 + age", "intercept"),
        ("age - 1", "intercept"),
        ("1", "no covariate"),
        ("", "a formula is a text"),
        (3, "a formula is a text"),
        ("age ** 9", "powers in a formula are at most 6"),
        ("age + " * 100 + "age", "at most 500 characters"),
    ],
)
def test_what_is_wrong_with_a_formula_is_said(text, message):
    with pytest.raises(PanelDataError, match=message) as caught:
        parse_formula(text)
    assert "\n" not in str(caught.value)


def test_an_unknown_column_gets_a_list_of_those_there_are():
    with pytest.raises(PanelDataError, match=r"'initial_sizes'.*'initial_size'.*did you mean"):
        learn_design(BLADDER, "initial_sizes")


# -- columns -------------------------------------------------------------------------------------


def test_columns_are_named_after_levels_and_centred_over_subjects():
    design, panel = learn_design(BLADDER, "treatment + initial_number")
    assert design.names == ("treatment[thiotepa]", "initial_number")
    table = BLADDER.covariates
    assert_allclose(
        design.centre, [(table.treatment == "thiotepa").mean(), table.initial_number.mean()]
    )
    rows = design_rows(design, panel)
    first = np.flatnonzero(np.diff(panel.subject_index, prepend=-1))
    assert_allclose(rows[first].mean(axis=0), 0.0, atol=1e-12)


def test_a_column_that_varies_within_subjects_is_centred_by_time():
    dose = np.array([0.0, 2.0, 1.0, 1.0, 4.0, 0.0])
    design, panel = learn_design(small_panel(dose=dose), "dose")
    averages = [(0.0 * 1 + 2.0 * 3) / 4, 1.0, (4.0 * 3 + 0.0 * 1) / 4]
    assert_allclose(design.centre, [np.mean(averages)], **ROUNDING)
    assert_allclose(design_rows(design, panel)[:, 0], dose - np.mean(averages), **ROUNDING)


def test_splitting_an_interval_moves_no_average():
    # the dose is the same before and after the cut
    whole, _ = learn_design(small_panel(dose=[0.0, 2.0, 1.0, 1.0, 4.0, 0.0]), "dose")
    cut = PanelCounts.from_frame(
        {
            "subject": [1, 1, 1, 2, 2, 3, 3],
            "start": [0.0, 1.0, 2.5, 0.0, 2.0, 0.0, 3.0],
            "stop": [1.0, 2.5, 4.0, 2.0, 4.0, 3.0, 4.0],
            "count": [1, 0, 0, 2, 1, 0, 3],
            "dose": [0.0, 2.0, 2.0, 1.0, 1.0, 4.0, 0.0],
        }
    )
    assert_allclose(learn_design(cut, "dose")[0].centre, whole.centre, **ROUNDING)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("treatment[T.thiotepa]", "treatment[thiotepa]"),
        ("C(stage)[T.2]", "stage[2]"),
        ("C(arm, contr.treatment('b'))[T.a]", "arm[a]"),
        ("treatment[T.b]:age", "treatment[b]:age"),
        ("treatment[T.b]:C(stage)[T.2]", "treatment[b]:stage[2]"),
        ("log(age)", "log(age)"),
        ("bs(age, df=4)[2]", "bs(age, df=4)[2]"),
        ("site[T.a:b]", "site[a:b]"),
    ],
)
def test_names_are_readable(name, expected):
    assert readable_name(name) == expected


def test_the_reference_can_be_chosen():
    design, _ = learn_design(BLADDER, "C(treatment, contr.treatment('thiotepa'))")
    assert design.names == ("treatment[placebo]",)
    ordered = pd.Categorical(["b", "b", "a", "a", "c", "c"], categories=["c", "b", "a", "unused"])
    design, _ = learn_design(small_panel(arm=ordered), "arm")
    assert design.names == ("arm[b]", "arm[a]")


def test_numbers_as_categories_are_written_as_they_came():
    design, _ = learn_design(small_panel(stage=[1, 1, 2, 2, 4, 4]), "C(stage)")
    assert design.names == ("stage[2]", "stage[4]")
    assert_allclose(design.profile({"stage": 2.0}), [2 / 3, -1 / 3])


def test_transforms_remember_the_data_of_the_fit():
    design, _ = learn_design(BLADDER, "scale(initial_number) + poly(initial_size, 2)")
    one = BLADDER[[3]]
    whole = design_rows(design, BLADDER)
    rows = BLADDER.subject_index == 3
    assert_allclose(design_rows(design, one), whole[rows], **ROUNDING)


# -- profiles ------------------------------------------------------------------------------------


def test_a_profile_leaves_the_others_at_their_average():
    design, _ = learn_design(BLADDER, "treatment * log(initial_number) + initial_size")
    assert_allclose(design.profile({}), 0.0, atol=1e-12)
    table = BLADDER.covariates
    logs = np.log(table.initial_number).mean()
    raw = design.profile({"treatment": "thiotepa"}) + design.centre
    assert_allclose(raw, [1.0, logs, table.initial_size.mean(), logs])
    raw = design.profile({"treatment": "placebo", "initial_number": 3}) + design.centre
    assert_allclose(raw, [0.0, np.log(3), table.initial_size.mean(), 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("covariates", "message"),
    [
        ({"treatment": "surgery"}, "no level 'surgery' in the fit; its levels were 'placebo'"),
        ({"age": 3}, "no covariate 'age'"),
        ({"initial_number": "many"}, "was numeric in the fit; found 'many'"),
        ({"initial_number": [1, 2]}, "must be one value"),
        ({"initial_number": None}, "must be one value"),
        ({"initial_number": 0}, "not finite"),
    ],
)
def test_a_profile_that_cannot_be_is_an_error(covariates, message):
    design, _ = learn_design(BLADDER, "treatment + log(initial_number)")
    with pytest.raises(PanelDataError, match=message):
        design.profile(covariates)


def test_a_design_survives_pickling():
    design, _ = learn_design(BLADDER, "treatment + scale(initial_number)")
    design.profile({})
    copy = pickle.loads(pickle.dumps(design))
    assert np.array_equal(
        copy.profile({"initial_number": 2}), design.profile({"initial_number": 2})
    )


# -- columns that cannot be used -----------------------------------------------------------------


def test_constant_columns_are_named():
    with pytest.raises(PanelDataError, match="'site' is the same for everybody"):
        learn_design(small_panel(site=[7.0] * 6, age=[1, 1, 2, 2, 5, 5]), "age + site")


def test_a_category_of_one_level_is_named():
    with pytest.raises(PanelDataError, match="'site' has one level only, 'x': it has no effect"):
        learn_design(small_panel(site=["x"] * 6, age=[1, 1, 2, 2, 5, 5]), "age + site")


def test_collinear_columns_are_named_and_others_are_not():
    panel = BLADDER
    with pytest.raises(PanelDataError, match="collinear") as caught:
        learn_design(panel, "initial_number + treatment + group")
    assert "'treatment[thiotepa]'" in str(caught.value)
    assert "'group[B]'" in str(caught.value)
    assert "initial_number" not in str(caught.value)


def test_columns_of_very_different_size_are_not_collinear():
    panel = small_panel(big=[1e9, 1e9, 2e9, 2e9, 4e9, 4e9], small=[1e-9] * 4 + [2e-9] * 2)
    assert len(learn_design(panel, "big + small")[0].names) == 2


def test_more_columns_than_subjects_are_collinear():
    panel = small_panel(a=[1, 1, 2, 2, 5, 5], b=[2, 2, 7, 7, 1, 1], c=[3, 3, 1, 1, 1, 1])
    with pytest.raises(PanelDataError, match="collinear"):
        learn_design(panel, "a + b + c")


# -- missing values ------------------------------------------------------------------------------


def test_missing_covariates_name_the_subjects():
    panel = small_panel(age=[1, 1, np.nan, np.nan, 5, 5], arm=["a", "a", "b", "b", None, None])
    with pytest.raises(PanelDataError, match="'age' is missing for 1 subject: 2; missing="):
        learn_design(panel, "age")
    with pytest.raises(PanelDataError, match="'arm' is missing for 1 subject: 3"):
        learn_design(panel, "arm")


def test_subjects_without_a_covariate_can_be_dropped():
    panel = small_panel(age=[1, 1, np.nan, np.nan, 5, 5])
    design, kept = learn_design(panel, "age", "drop")
    assert kept.subjects.tolist() == [1, 3]
    assert kept.window == panel.window
    assert_allclose(design.centre, [3.0])
    expected = PanelCounts.from_frame(panel.to_frame().query("subject != 2"), window=panel.window)
    assert kept == expected


def test_intervals_without_a_covariate_become_gaps():
    panel = small_panel(dose=[1.0, np.nan, 0.0, 2.0, 1.0, 3.0])
    _, kept = learn_design(panel, "dose", "drop")
    assert kept.n_subjects == 3
    assert kept.n_intervals == 5
    assert_allclose(kept.start, [0.0, 0.0, 2.0, 0.0, 3.0])
    assert "1 interval without covariates left out, of 1 subject: 1" in kept.notes


def test_nobody_left_is_an_error():
    panel = small_panel(age=[np.nan] * 6)
    with pytest.raises(PanelDataError, match="no subject has all covariates"):
        learn_design(panel, "age", "drop")


def test_as_many_intervals_as_subjects_are_no_trouble():
    # one interval each: subjects and intervals have the same number of rows
    panel = PanelCounts.from_frame(
        {"subject": [1, 2, 3], "start": [0] * 3, "stop": [1] * 3, "count": [1] * 3, "x": [1, 2, 4]}
    )
    design, same = learn_design(panel, "x")
    assert_allclose(design_rows(design, same)[:, 0], np.array([1, 2, 4]) - 7 / 3)
