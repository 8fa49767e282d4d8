"""The level of a group, integrated out at hyper-parameters that groups share."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Problem, solve_q
from gp4c.inference.sparse_prior import Hyper
from gp4c.models.sharing import THREE_POINTS, _with_levels
from problems import observed, visits_panel


@pytest.fixture(scope="module")
def levels():
    """Levels l = ln(g² + γ) on a fine grid, and the log density that they have with the data."""
    data = observed(visits_panel(8, 10, 4, level=3.0))
    task = Problem(data, KERNELS["se"], "pointwise", n_inducing=8)
    hyper = Hyper(0.3, 0.2 / 1.2, (1 / 1.2) ** 0.5)  # level 0
    work = task.workspace(hyper.length_scale)
    grid = np.linspace(-2.0, 2.0, 161)
    values, near = [], None
    for level in grid:
        scale = float(np.exp(level / 2))
        moved = Hyper(0.3, hyper.variance * scale**2, hyper.mean * scale)
        near = solve_q(work, moved, near, 1e-7)
        values.append(near.evaluation.bound.total + norm.logpdf(level))
    return work, hyper, grid, np.array(values)


def test_the_evidence_is_the_integral_over_levels(levels):
    work, hyper, grid, values = levels
    brute = logsumexp(values) + np.log(grid[1] - grid[0])
    found = _with_levels(work, hyper, None)
    assert_allclose(found.log_evidence, brute, atol=0.02)  # Laplace's approximation


def test_three_levels_stand_around_the_mode_with_the_spread_of_all(levels):
    work, hyper, grid, values = levels
    weights = np.exp(values - logsumexp(values))
    mean = weights @ grid
    spread = np.sqrt(weights @ (grid - mean) ** 2)
    three = np.array(
        [np.log(o.hyper.mean**2 + o.hyper.variance) for o in _with_levels(work, hyper, None).optima]
    )
    # the rule is that of a normal around the mode: the skewness of the level is left out
    assert_allclose(THREE_POINTS @ three, three[0], atol=1e-9)
    assert_allclose(np.sqrt(THREE_POINTS @ (three - THREE_POINTS @ three) ** 2), spread, rtol=0.1)
    assert_allclose(three[0], grid[np.argmax(values)], atol=0.1 * spread)
