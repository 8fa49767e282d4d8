"""Sign patterns of f: flipped sites, and the search over patterns against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.data.panel import PanelCounts
from gp4c.design.kernels import KERNELS
from gp4c.inference.estep import EStep, e_step
from gp4c.inference.hyper import Problem, positive_start
from gp4c.inference.signs import best_signs, crossings, flip, negated, sign_modes
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Workspace
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


def solved(count_term: str) -> tuple[Workspace, Workspace, EStep]:
    problem = Problem(observed(w_shaped_panel()), KERNELS["se"], count_term, n_inducing=12)
    work = problem.workspace(HYPER.length_scale)
    scout = work if count_term != "exact" else problem.scout().workspace(HYPER.length_scale)
    return work, scout, e_step(work, HYPER, positive_start(work, HYPER), 1e-9)


@pytest.mark.parametrize("count_term", ["pointwise", "exact"])
def test_flipping_everywhere_is_negation(count_term: str) -> None:
    work, _, estep = solved(count_term)
    sites = estep.evaluation.sites()
    everywhere = flip(work, sites, np.array([-1.0]))
    assert_allclose(everywhere.slope, negated(sites).slope, **ROUNDING)
    for (theta, slope), (theta2, slope2) in zip(
        everywhere.blocks, negated(sites).blocks, strict=True
    ):
        assert_allclose(theta, theta2, **ROUNDING)
        assert_allclose(slope, slope2, **ROUNDING)


def test_flipping_twice_changes_nothing() -> None:
    work, _, estep = solved("exact")
    sites = estep.evaluation.sites()
    again = flip(work, flip(work, sites, np.array([0.4])), np.array([0.4]))
    assert_allclose(again.slope, sites.slope, **ROUNDING)


@pytest.mark.parametrize("count_term", ["pointwise", "exact"])
def test_the_best_pattern_is_that_of_enumeration(count_term: str) -> None:
    work, scout, estep = solved(count_term)
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
    found = best_signs(work, scout, HYPER, estep, 1e-9).evaluation.bound.total
    assert found >= estep.evaluation.bound.total
    assert_allclose(found, max(values), **SAME_MAXIMUM)


def test_modes_are_distinct_optima_weighted_by_their_bound() -> None:
    work, scout, estep = solved("pointwise")
    best = best_signs(work, scout, HYPER, estep, 1e-9)
    modes, weights = sign_modes(work, scout, HYPER, best, 1e-9)
    values = np.array([mode.evaluation.bound.total for mode in modes])
    assert len(modes) > 1
    assert_allclose(weights.sum(), 1.0, **ROUNDING)
    assert_allclose(np.diff(np.log(weights)), np.diff(values), rtol=1e-9, atol=1e-9)
    patterns = {tuple(np.sign(mode.evaluation.mean[::6])) for mode in modes}
    assert len(patterns) > 1
