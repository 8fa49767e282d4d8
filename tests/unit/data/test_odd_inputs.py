"""Inputs at the edge of the rules of checks, formulas, thinning, time axes and visits."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.data.checks import check_window
from gp4c.data.formulas.covariate_rows import complete_rows
from gp4c.data.timeaxis import as_moment
from gp4c.exceptions import PanelDataError

FRAME = pd.DataFrame({
    "subject": list("aabbcd"), "start": [0, 2, 0, 1, 0, 0], "stop": [2, 3, 1, 4, 3, 2],
    "count": [1, 0, 2, 1, 0, 3], "age": [1.0, 1.0, 2.0, 2.0, 4.0, 8.0],
    "my arm": ["x", "x", "y", "y", "x", "y"],
})  # fmt: skip


@pytest.mark.parametrize("window", [(1, 2, 3), 5, ("a", "b"), (None, 2), (3, 3), (0, np.inf)])
def test_a_window_is_two_numbers(window):
    with pytest.raises(PanelDataError, match=r"window must|must be a number|are numbers"):
        gp4c.PanelCounts.from_frame(FRAME, window=window)
    with pytest.raises(PanelDataError, match="window must be"):
        check_window(window, 0.0, 4.0)


def test_moments_of_all_time_zones_are_utc():
    noon = np.datetime64("2026-01-01T11:00")
    assert as_moment("2026-01-01T12:00+01:00") == noon
    assert as_moment(dt.datetime(2026, 1, 1, 11, tzinfo=dt.UTC)) == noon
    assert as_moment("2026-01-01T11:00") == noon


def test_totals_without_a_gap_keep_every_visit():
    visits = pd.DataFrame({"id": [1, 1, 2], "month": [1, 2, 2], "n": [2, 2, 5]})
    panel = gp4c.PanelCounts.from_visits(
        visits, subject="id", time="month", count="n", cumulative=True, missing="drop"
    )
    assert panel.count.tolist() == [2, 0, 5]
    assert panel.notes == ()


# -- intensities to simulate from -------------------------------------------------------------


def test_a_constant_given_as_a_function_is_a_constant():
    constant, _ = gp4c.simulate_panel(lambda t: 2.0, window=(0, 9), n_subjects=4, random_state=1)
    array, _ = gp4c.simulate_panel(
        lambda t: np.full(len(t), 2.0), window=(0, 9), n_subjects=4, random_state=1
    )
    assert constant == array


def test_errors_of_an_intensity_that_are_already_clear_pass_through():
    def refuses(time):
        raise PanelDataError("this intensity ends at 3")

    with pytest.raises(PanelDataError, match=r"^this intensity ends at 3$"):
        gp4c.simulate_panel(refuses, window=(0, 9), n_subjects=2)


# -- formulas ----------------------------------------------------------------------------------


def fit(formula, frame=FRAME):
    panel = gp4c.PanelCounts.from_frame(frame)
    return gp4c.GP4C(formula=formula, effect=None, hyper="optimize", n_inducing=4).fit(panel)


def test_powers_of_a_column_are_arithmetic():
    squares = FRAME.assign(squared=FRAME["age"] ** 2)
    power, column = fit("I(age ** 2)"), fit("squared", squares)
    assert power.effects_["coefficient"].iloc[0] == pytest.approx(
        column.effects_["coefficient"].iloc[0]
    )


@pytest.mark.parametrize("formula", ["I(age ** age)", "I(2 ** 1000)", "I(age ** 99)"])
def test_powers_are_small_numbers(formula):
    with pytest.raises(PanelDataError, match=r"is not allowed|powers in a formula"):
        fit(formula)


def test_functions_of_columns_with_odd_names():
    plain, quoted = fit("C(arm)", FRAME.rename(columns={"my arm": "arm"})), fit("C(`my arm`)")
    assert quoted.effects_["coefficient"].iloc[0] == pytest.approx(
        plain.effects_["coefficient"].iloc[0]
    )


def test_what_cannot_be_evaluated_is_said_in_one_sentence():
    with pytest.raises(PanelDataError, match=r"^the formula .* cannot be evaluated: ") as caught:
        fit("bs(age, df=2)")
    assert "\n" not in str(caught.value)


def test_levels_of_several_kinds_are_put_in_order():
    frame = FRAME.assign(kind=pd.Series([1, 1, "b", "b", 1, "b"], dtype=object))
    assert len(fit("C(kind)", frame).effects_) == 1


def test_a_panel_that_lacks_nothing_is_kept_as_it_is():
    panel = gp4c.PanelCounts.from_frame(FRAME)
    assert complete_rows(panel, "age") is panel
