"""Sign patterns of f: flipped sites, and the search over patterns against enumeration."""

from __future__ import annotations

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
    crossings,
    distinct,
    flip,
    negated,
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
    places = crossings(work, estep.evaluation, 10.0)
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


def test_f_crosses_zero_where_it_is_few_deviations_away() -> None:
    """Nearest in standard deviations, not in units: a wide place before a narrow, smaller one."""
    nodes = np.linspace(0.0, 1.0, 9)
    mean = np.array([1.0, 0.3, 1.0, 0.9, 0.8, 1.0, -2.5, 3.0, 3.0])
    deviation = np.array([0.5, 0.1, 0.5, 0.5, 2.0, 0.5, 0.5, 0.5, 0.5])
    work = SimpleNamespace(likelihood=SimpleNamespace(grid=SimpleNamespace(nodes=nodes)))
    at = SimpleNamespace(mean=mean, variance=deviation**2)
    # 0.8/2, 1/0.5 at its neighbour, 2.5/0.5 and 0.3/0.1
    assert_allclose(crossings(work, at, 4.0), [nodes[4]])  # type: ignore[arg-type]
    assert_allclose(crossings(work, at, 10.0), [nodes[4]])  # type: ignore[arg-type]
    mean[1] = 0.1
    assert_allclose(crossings(work, at, 2.0), [nodes[4], nodes[1]])  # type: ignore[arg-type]
    assert_allclose(crossings(work, at, 0.7), [nodes[4]])  # type: ignore[arg-type]
