"""The level of a group, integrated out at hyper-parameters that groups share."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Problem, solve_q
from gp4c.inference.sparse_prior import Hyper
from gp4c.models.sharing import THREE_POINTS, _support, _with_levels
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


def test_the_groups_start_at_unit_level_with_the_pooled_variation():
    def part(weight, length_scale, variance, mean):
        return SimpleNamespace(
            weight=weight, length_scale=length_scale, variance=variance, prior_mean=mean,
            inducing=np.zeros(7),
        )  # fmt: skip

    parts = [part(0.5, 0.3, 0.9, 1.5), part(0.2, 0.3, 0.1, 0.5), part(0.299, 0.6, 0.4, 2.0),
             part(0.001, 0.9, 0.4, 2.0)]  # fmt: skip
    pooled = SimpleNamespace(posterior_=SimpleNamespace(components=parts), frailty_shape_=1.7)
    found = _support(pooled)
    assert [hyper.length_scale for hyper in found.hypers] == [0.3, 0.6]  # the third is light
    assert found.sizes == [7, 7]
    assert_allclose(found.weights, np.array([0.7, 0.299]) / 0.999)
    for hyper in found.hypers:
        assert_allclose(hyper.mean**2 + hyper.variance, 1.0)
        assert hyper.shape == 1.7
    assert_allclose(found.hypers[1].variance / found.hypers[1].mean ** 2, 0.1)
    mixed = (0.5 * np.log(0.9 / 1.5**2) + 0.2 * np.log(0.1 / 0.5**2)) / 0.7
    assert_allclose(np.log(found.hypers[0].variance / found.hypers[0].mean ** 2), mixed)
