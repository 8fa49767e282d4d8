"""Sign patterns of f: flipped sites, and the search over patterns against enumeration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.data.panel import PanelCounts
from gp4c.design.kernels import KERNELS
from gp4c.inference.estep import EStep, e_step
from gp4c.inference.hyper import Problem, positive_start
from gp4c.inference.signs import (
    NEGLIGIBLE,
    ROUGH,
    Pattern,
    best_signs,
    competing,
    crosses,
    distinct,
    flip,
    halves_to_turn,
    negated,
    places_to_turn,
)
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Gaussian, Workspace
from problems import observed
from tolerances import ROUNDING, SAME_MAXIMUM

HYPER = Hyper(0.3, 1.0, 0.1)


def w_shaped_panel() -> PanelCounts:
    """Counts whose rate nearly vanishes at 0.35 and 0.7: f = cos-like with two zeros."""
    rng = np.random.default_rng(4)
    cuts = np.linspace(0.0, 1.0, 13)
    middle = (cuts[1:] + cuts[:-1]) / 2
    mean = 1.2 * ((middle - 0.35) * (middle - 0.7) * 8) ** 2
    n = 6
    return PanelCounts.from_frame(
        {
            "subject": np.repeat(np.arange(n), 12),
            "start": np.tile(cuts[:-1], n),
            "stop": np.tile(cuts[1:], n),
            "count": rng.poisson(np.tile(mean, n)),
        }
    )


def solved(count_term: str) -> tuple[Workspace, EStep]:
    problem = Problem(observed(w_shaped_panel()), KERNELS["se"], count_term, n_inducing=12)
    work = problem.workspace(HYPER.length_scale)
    return work, e_step(work, HYPER, positive_start(work, HYPER), 1e-9)


@pytest.mark.parametrize("count_term", ["pointwise", "exact"])
def test_flipping_everywhere_is_negation(count_term: str) -> None:
    work, estep = solved(count_term)
    sites = estep.evaluation.sites()
    everywhere = flip(work, sites, np.array([-1.0]))
    assert_allclose(everywhere.slope, negated(sites).slope, **ROUNDING)
    for (theta, slope), (theta2, slope2) in zip(
        everywhere.blocks, negated(sites).blocks, strict=True
    ):
        assert_allclose(theta, theta2, **ROUNDING)
        assert_allclose(slope, slope2, **ROUNDING)


def test_flipping_twice_changes_nothing() -> None:
    work, estep = solved("exact")
    sites = estep.evaluation.sites()
    again = flip(work, flip(work, sites, np.array([0.4])), np.array([0.4]))
    assert_allclose(again.slope, sites.slope, **ROUNDING)


@pytest.mark.parametrize("count_term", ["pointwise", "exact"])
def test_the_best_pattern_is_that_of_enumeration(count_term: str) -> None:
    work, estep = solved(count_term)
    places = places_to_turn(work, HYPER, estep.evaluation)
    assert len(places) >= 2
    values = []
    for chosen in product([False, True], repeat=len(places)):
        for sign in (lambda s: s, negated):
            start = work.from_sites(
                HYPER, sign(flip(work, estep.evaluation.sites(), places[np.array(chosen)]))
            )
            if start is not None:
                values.append(e_step(work, HYPER, start, 1e-9).evaluation.bound.total)
    found = best_signs(work, HYPER, estep, 1e-9).evaluation.bound.total
    assert found >= estep.evaluation.bound.total
    assert_allclose(found, max(values), **SAME_MAXIMUM)


def test_competing_patterns_are_distinct_optima_near_the_best() -> None:
    work, estep = solved("pointwise")
    best = best_signs(work, HYPER, estep, 1e-9)
    modes = [best, *(pattern.estep for pattern in competing(work, HYPER, best))]
    values = [mode.evaluation.bound.total for mode in modes]
    assert len(modes) > 1
    assert min(values) > values[0] - NEGLIGIBLE
    patterns = {tuple(np.sign(mode.evaluation.mean[::6])) for mode in modes}
    assert len(patterns) == len(modes)
    for mode in modes:  # each is an optimum: going on gains nothing worth mentioning
        onwards = e_step(work, HYPER, mode.q, 1e-9).evaluation.bound.total
        assert onwards - mode.evaluation.bound.total < 2 * ROUGH


def test_a_cheap_first_look_finds_the_same_patterns() -> None:
    work, estep = solved("exact")
    scout, _ = solved("pointwise")
    best = best_signs(work, HYPER, estep, 1e-9)

    def values(scout: Workspace | None) -> list[float]:
        found = competing(work, HYPER, best, scout)
        return sorted(pattern.estep.evaluation.bound.total for pattern in found)

    assert len(values(None)) > 0
    assert_allclose(values(scout), values(None), rtol=0, atol=2 * ROUGH)


def test_one_mode_is_counted_once() -> None:
    work, estep = solved("exact")
    best = best_signs(work, HYPER, estep, 1e-9)
    nearby = EStep(
        Gaussian(best.q.mean + 0.5 * best.q.root[:, 0], best.q.root, best.q.log_det),
        best.evaluation, (), True,
    )  # fmt: skip
    assert not distinct([Pattern(nearby, (0.5,))], best, NEGLIGIBLE)


def test_signs_that_are_clear_tell_crossing_from_touching() -> None:
    deviation = np.full(4, 0.5)
    for mean, expected in (
        ([2.0, 1.5, 3.0, 2.0], False),
        ([2.0, -0.8, 3.0, 2.0], False),  # 1.6 deviations below zero prove nothing
        ([2.0, -1.2, 3.0, 2.0], True),
        ([-2.0, -1.2, -3.0, -2.0], False),
    ):
        at = SimpleNamespace(mean=np.array(mean), variance=deviation**2)
        assert crosses(at) is expected  # type: ignore[arg-type]


def test_a_crossing_between_visits_is_found_where_the_present_pattern_is_sure() -> None:
    """f = cos(3πx) seen in few wide intervals: |f| is nearly even on them, far from 0."""
    cuts = np.linspace(0.0, 1.0, 8)
    x = np.linspace(0.0, 1.0, 7001)
    f = np.cos(3 * np.pi * x)
    mean = np.array([
        np.trapezoid(60 * f[i * 1000 : (i + 1) * 1000 + 1] ** 2, dx=x[1]) for i in range(7)
    ])  # fmt: skip
    panel = PanelCounts.from_frame(
        {"subject": np.zeros(7), "start": cuts[:-1], "stop": cuts[1:], "count": np.round(mean)}
    )
    problem = Problem(observed(panel), KERNELS["se"], "exact", n_inducing=16)
    hyper = Hyper(0.15, 1.0, 0.0)
    work = problem.workspace(hyper.length_scale)
    positive = e_step(work, hyper, positive_start(work, Hyper(0.15, 1.0, 0.5)), 1e-6)
    best = best_signs(work, hyper, positive, 1e-6)
    assert best.evaluation.bound.total > positive.evaluation.bound.total + 0.5
    signs = np.sign(best.evaluation.mean[np.abs(best.evaluation.mean) > 0.3])
    assert 2 <= (np.diff(signs) != 0).sum() <= 4


def test_f_may_cross_zero_where_it_has_a_minimum_near_it() -> None:
    """Near zero for what is known of it, or for how much it varies; at an end of the window too."""
    nodes = np.linspace(0.0, 1.0, 9)
    mean = np.array([1.0, 0.9, 1.2, -1.1, 1.6, 1.3, 2.5, 2.0, 0.4])
    deviation = np.array([0.5, 0.01, 0.5, 0.1, 0.5, 1.0, 0.5, 0.5, 0.01])
    work = SimpleNamespace(likelihood=SimpleNamespace(grid=SimpleNamespace(nodes=nodes)))
    at = SimpleNamespace(mean=mean, variance=deviation**2)

    def places(prior_deviation: float, prior_mean: float) -> list[float]:
        hyper = Hyper(0.2, prior_deviation**2, prior_mean)
        return places_to_turn(work, hyper, at).tolist()  # type: ignore[arg-type]

    # minima: 0.9 at node 1, 1.1 at node 3 (11 deviations), 1.3 at node 5 (1.3 of them), the end
    assert places(1.0, 1.5) == [nodes[1], nodes[5], nodes[8]]
    assert places(0.5, 1.5) == [nodes[5], nodes[8]]
    assert places(0.1, 1.5) == [nodes[5]]
    assert places(1.0, 0.5) == [nodes[1], nodes[3], nodes[5], nodes[8]]  # crosses anywhere


def test_bumps_are_halved_where_they_are_small_and_unsure() -> None:
    nodes = np.linspace(0.05, 0.95, 10)
    mean = np.array([0.5, 1.0, 0.3, -1.5, 0.2, 3.0, 1.0, 2.5, 1.0, 2.0])
    deviation = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 0.5, 0.1, 0.5, 0.5])
    work = SimpleNamespace(likelihood=SimpleNamespace(grid=SimpleNamespace(nodes=nodes)))
    at = SimpleNamespace(mean=mean, variance=deviation**2)

    def halves(prior_deviation: float) -> list[tuple[float, float]]:
        hyper = Hyper(0.2, prior_deviation**2, 1.0)
        return halves_to_turn(work, hyper, at)  # type: ignore[arg-type]

    # tops at nodes 1, 3, 5 and 7 (25 deviations: sure); feet at 2, 4, 6, 8 and both ends
    first = [(0.0, nodes[1]), (nodes[2], nodes[3]), (nodes[1], nodes[2]), (nodes[3], nodes[4])]
    fifth = [(nodes[4], nodes[5]), (nodes[5], nodes[6])]
    assert sorted(halves(1.0)) == sorted(first)
    assert sorted(halves(1.6)) == sorted(first + fifth)


@pytest.mark.parametrize(
    "shape",
    [
        lambda x: 1 - 1.7 * np.exp(-((x - 0.5) ** 2) / (2 * 0.12**2)),
        lambda x: 1.5 * np.tanh((0.6213 - x) / 0.25),
        lambda x: 1.3 - 2.0 * np.exp(-((x - 0.97) ** 2) / (2 * 0.15**2)),
    ],
    ids=["dips below zero", "goes to the other side", "is below zero at the end"],
)
def test_signs_are_found_where_an_f_kept_positive_is_sure_of_itself(
    shape: Callable[[np.ndarray], np.ndarray],
) -> None:
    """The prior mean is positive and 8 to 21 posterior deviations keep f from zero."""
    cuts, x = np.linspace(0.0, 1.0, 31), np.linspace(0.0, 1.0, 6001)
    truth = shape(x)
    mean = np.array(
        [np.trapezoid(truth[200 * i : 200 * (i + 1) + 1] ** 2, dx=x[1]) for i in range(30)]
    )
    count = np.round(3000 * mean / mean.sum())
    panel = PanelCounts.from_frame(
        {"subject": np.zeros(30), "start": cuts[:-1], "stop": cuts[1:], "count": count}
    )
    hyper = Hyper(0.2, 0.5, 0.8)
    work = Problem(observed(panel), KERNELS["se"], "exact").workspace(hyper.length_scale)
    positive = e_step(work, hyper, positive_start(work, hyper), 1e-6)
    turned = flip(work, positive.evaluation.sites(), x[1:][np.diff(np.sign(truth)) != 0])
    start = work.from_sites(hyper, turned)
    assert start is not None
    with_true_signs = e_step(work, hyper, start, 1e-6).evaluation.bound.total
    assert with_true_signs > positive.evaluation.bound.total + 3  # what there is to find
    found = best_signs(work, hyper, positive, 1e-6).evaluation.bound.total
    assert found > with_true_signs - 0.01
