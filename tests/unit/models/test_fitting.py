"""Steps of a fit, one by one: the choice of an effect, units, what an optimised fit keeps."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Problem
from gp4c.inference.priors import weak_prior
from gp4c.inference.search import search
from gp4c.models.fitting import choose_effect
from problems import log_integral_over_shape, observed, visits_panel


def task(frailty: float | None, n_subjects: int = 25) -> Problem:
    data = observed(visits_panel(5, n_subjects, 3, level=3.0, frailty=frailty))
    return Problem(data, KERNELS["se"], "pointwise", n_inducing=6)


def test_frailty_counts_with_its_shape_integrated_out() -> None:
    problem = task(0.7, 60)
    found = choose_effect(problem, "learn")
    gamma = problem.variant(effect="gamma")
    best = search(gamma, log_prior=weak_prior, tol=1e-2, n_climbs=1, signs=False)[0]
    over_shapes = log_integral_over_shape(best, weak_prior)
    assert abs(over_shapes) > 0.2
    assert abs(found.gamma - best.value - over_shapes) < 0.15
    assert found.effect == "gamma"
    assert f"by about {found.gamma - found.without:.0f} nats" in str(found)


def test_without_differences_the_evidence_is_for_a_common_rate() -> None:
    found = choose_effect(task(None), "learn")
    assert found.effect is None
    assert found.problem.effect is None
    assert -np.inf < found.gamma < found.without


def test_one_subject_or_no_event_says_nothing_of_differences() -> None:
    alone = Problem(observed(visits_panel(5, 1, 3, level=3.0)), KERNELS["se"], "pointwise")
    silent = Problem(observed(visits_panel(5, 6, 3, level=0.0)), KERNELS["se"], "pointwise")
    for problem in (alone, silent):
        found = choose_effect(problem, "learn")
        assert (found.without, found.gamma, found.effect) == (0.0, -np.inf, None)


@pytest.mark.parametrize("origin", [0.0, 50.0])
def test_hyper_parameters_are_in_the_units_of_the_data(origin: float) -> None:
    """λ = f² has units 1/time: variance and mean² of f too, the length-scale those of time."""
    options = {"effect": None, "hyper": "optimize", "count_term": "pointwise", "n_inducing": 6}
    unit = gp4c.GP4C(**options).fit(visits_panel(5, 12, 3, level=3.0))
    weeks = gp4c.GP4C(**options).fit(
        visits_panel(5, 12, 3, level=3.0, window=(origin, origin + 20.0))
    )
    assert_allclose(weeks.variance_ * 20.0, unit.variance_, rtol=1e-5)
    assert_allclose(weeks.mean_**2 * 20.0, unit.mean_**2, rtol=1e-5)
    assert_allclose(weeks.length_scale_ / 20.0, unit.length_scale_, rtol=1e-5)


def test_an_optimised_level_keeps_its_spread_except_in_the_paper_s_bound() -> None:
    # a constant rate, whose level is known to 1/√N
    panel = gp4c.simulate_panel(2.0, window=(0, 5), n_subjects=10, n_intervals=2, random_state=1)[0]
    low, high = (
        gp4c.GP4C(effect=None, hyper="optimize", count_term="pointwise")
        .fit(panel)
        .cumulative_band(5.0)
    )
    spread = np.log(high / low) / (2 * 1.96)
    assert_allclose(spread, panel.n_events**-0.5, rtol=0.25)
    paper = gp4c.GP4C(effect=None, hyper="optimize", count_term="lemma2").fit(panel)
    assert len(paper.posterior_.components) == 1


@pytest.mark.parametrize("counts", [[0, 0], [3]])
def test_where_nothing_is_known_of_differences_that_is_said(counts: list[int]) -> None:
    who = np.arange(len(counts))
    panel = gp4c.PanelCounts.from_frame(
        {"subject": who, "start": 0.0 * who, "stop": 1.0 + who, "count": counts}
    )
    choice = gp4c.GP4C(count_term="pointwise", hyper="optimize").fit(panel).effect_choice_
    assert choice == "no subject effects: the data cannot tell whether subjects differ"
