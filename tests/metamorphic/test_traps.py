"""Errors seen in other tools for panel counts: none of our estimators makes them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from relations import CASES, QUICK, TIMES, WINDOW, baseline, names, panel_of, study

import gp4c
from gp4c.data.panel import PanelCounts
from tolerances import BIT_FOR_BIT

PANEL_CASES = [name for name, case in CASES.items() if not case.events]
BLADDER = gp4c.load_dataset("bladder")


def plain_fit(name: str, table: pd.DataFrame, window: tuple[float, float] = WINDOW) -> Any:
    """Fitted without the bootstrap, covariates ignored."""
    model = CASES[name].make()
    if getattr(model, "formula", None) is not None:
        table = table.assign(group=np.where(np.arange(len(table)) % 2, "a", "b"))
    return model.fit(panel_of(table, window))


# -- the R packages of issue 10 ----------------------------------------------------------------


def treatment_effects(panel: PanelCounts) -> np.ndarray:
    model = gp4c.GP4C(formula="treatment")
    return model.fit(panel).effects_[["coefficient", "robust_se"]].to_numpy()


def test_unsorted_rows_do_not_flip_the_sign_of_a_treatment() -> None:
    """One R package matches covariates to subjects by position after sorting only one of them."""
    frame = BLADDER.to_frame()
    expected = treatment_effects(BLADDER)
    assert expected[0, 0] < -0.2  # thiotepa prevents recurrences
    orders = {
        "shuffled": frame.sample(frac=1.0, random_state=5),
        "backwards": frame[::-1],
        "thiotepa first": frame.sort_values("treatment", ascending=False, kind="stable"),
        "by visit": frame.sort_values("start", kind="stable"),
    }
    for rows in orders.values():
        told = gp4c.read_panel(io.StringIO(rows.to_csv(index=False)), window=BLADDER.window)
        assert_allclose(treatment_effects(told), expected, **BIT_FOR_BIT)


def test_unsorted_rows_do_not_flip_a_comparison() -> None:
    quick = gp4c.GP4C(count_term="pointwise", effect=None, **QUICK)
    frame = BLADDER.to_frame().sort_values("count", ascending=False)
    told = PanelCounts.from_frame(frame, window=BLADDER.window)
    one, two = (
        gp4c.compare(panel, "treatment", quick, n_permutations=99) for panel in (BLADDER, told)
    )
    assert one.ratio(40.0, curve="cumulative") < 0.8
    assert two.ratio(40.0, curve="cumulative") == one.ratio(40.0, curve="cumulative")
    assert two.p_value == one.p_value


@pytest.mark.parametrize("name", [n for n in PANEL_CASES if "Homogeneous" not in n])
def test_events_before_the_first_visit_are_not_lost(name: str) -> None:
    """Another R package starts its splines at the first visit: what happened before is lost.

    (A constant rate has no beginning that could be lost.)
    """
    rows = [(f"s{k:02d}", 0.0, 2.0, 2 + k % 3) for k in range(12)]
    rows += [(f"s{k:02d}", 2.0, 8.0 + k % 4, k % 2) for k in range(12)]
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count"])
    model = plain_fit(name, table, (0.0, 11.0))
    # 3 per subject before the first visit of all, 0.5 after it
    assert_allclose(model.cumulative(2.0), 3.0, rtol=0.2)
    assert_allclose(model.cumulative(11.0), 3.5, rtol=0.2)


@pytest.mark.parametrize("name", PANEL_CASES)
def test_zero_counts_are_accepted_and_count(name: str) -> None:
    """A third tool rejects zero counts; leaving them out makes a curve that is far too high."""
    with_zeros = plain_fit(name, study())
    table = study()
    # subjects who never had an event are data above all
    seen = table.groupby("subject")["count"].transform("sum") > 0
    without = plain_fit(name, table[seen])
    end = TIMES[-1]
    assert with_zeros.cumulative(end) < 0.92 * without.cumulative(end)


@pytest.mark.parametrize(
    "name", [n for n in PANEL_CASES if "formula" not in n and n in names("no events")]
)
def test_a_study_without_events_has_an_answer(name: str) -> None:
    model = plain_fit(name, study().assign(count=0))
    curve = model.cumulative(TIMES)
    assert np.all(np.isfinite(curve))
    assert np.all(np.diff(curve) >= 0.0)
    assert curve[-1] < 0.2  # not one event in 176 years at risk
    if not hasattr(model, "times_"):
        assert np.all(np.isfinite(model.intensity(TIMES)))


# -- section 6 of the notes on classical estimators ---------------------------------------------


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_an_effect_that_is_not_there_leaves_the_curve_alone(effect: str | None) -> None:
    """Every subject is in both groups, so the posterior of the effect is symmetric around zero.

    Draws come in pairs around each mode, so that the mean is zero but for the weights; at average
    covariates the curve is that of a fit without covariates, but for the draws of two fits: with
    about 500 effective ones each a mean is known to 1/√250 = 6% of a deviation.
    """
    table = study()
    both = pd.concat(
        [table.assign(group=g, subject=table["subject"] + g) for g in "ab"], ignore_index=True
    )
    panel = panel_of(both)
    plain = gp4c.GP4C(effect=effect, bursts=False).fit(panel)
    model = gp4c.GP4C(formula="group", effect=effect, bursts=False).fit(panel)
    coefficient, error = model.effects_.loc[0, ["coefficient", "se"]]
    assert abs(coefficient) < 0.2 * error
    deviation = np.diff(plain.cumulative_band(TIMES, 0.68), axis=0)[0] / 2
    assert np.all(np.abs(model.cumulative(TIMES) - plain.cumulative(TIMES)) <= 0.2 * deviation)


@pytest.mark.parametrize("name", ["NPMPLE", "NPMLE", "NPMLE gamma", "NPMPLGF", "LocalEM"])
def test_fits_stop_at_the_optimum(name: str) -> None:
    """Convergence is a statement about optimality: a hundred times stricter moves nothing."""
    model = baseline(name)
    assert model.converged_
    stricter = CASES[name].make()
    if "tol" in stricter.get_params():
        stricter.set_params(tol=stricter.tol / 100.0)
    if name == "LocalEM":
        stricter.set_params(bandwidth=model.bandwidth_)
    again = stricter.fit(panel_of(study()))
    assert_allclose(again.cumulative(TIMES), model.cumulative(TIMES), rtol=1e-6, atol=1e-9)
    assert_allclose(again.objective_, model.objective_, rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_uncertainty_is_a_curve_not_a_number(name: str) -> None:
    """The standard error of a baseline is a vector: it grows as Λ does.

    For Poisson counts with its root, and Λ grows to more than twice its value.
    """
    low, high = baseline(name).cumulative_band(TIMES.reshape(2, 5))
    assert low.shape == high.shape == (2, 5)
    width = (high - low).ravel()
    assert width[0] == 0.0  # nothing has happened yet
    assert width[-1] > 1.4 * width[3] > 0.0


def test_events_weigh_their_logarithms() -> None:
    """A likelihood, and any criterion made of it, has m ln(mean), not ln(mean).

    Multiplying counts and rate by ten multiplies the difference of two likelihoods by ten.
    """
    few, many = study(), study().assign(count=lambda t: 10 * t["count"])
    gains = []
    for table in (few, many):
        panel = panel_of(table)
        flat, steps = (
            model.fit(panel).score(panel) for model in (gp4c.HomogeneousPoisson(), gp4c.NPMLE())
        )
        gains.append(steps - flat)
    assert gains[0] > 1.0
    assert_allclose(gains[1], 10.0 * gains[0], rtol=1e-8)
