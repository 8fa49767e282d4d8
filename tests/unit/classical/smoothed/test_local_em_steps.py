"""Local EM against a transcription cell by cell, and its limits."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm, poisson

from classical_panels import random_panel, toy
from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.smoothed.local_em_rows import UnitRows
from gp4c.classical.smoothed.local_em_steps import (
    EMSteps,
    fixed_point,
    held_out_score,
    published_iteration,
)
from gp4c.classical.smoothed.smoothing import Smoother, intensity_at

GAUSS, WEIGHTS = np.polynomial.legendre.leggauss(40)


def problem_of(panel):
    return UnitRows.of(PanelRows.of(panel))


def steps_of(panel, share):
    problem = problem_of(panel)
    return EMSteps(problem.data(np.ones(panel.n_subjects)), problem.smoother(share))


def one_iteration(panel, mass, bandwidth):
    """E- and S-step of the panel in its own units, row by row and cell by cell."""
    points = np.unique(np.concatenate([panel.start, panel.stop]))
    left, right = points[:-1], points[1:]
    expected, at_risk = np.zeros(len(left)), np.zeros(len(left))
    for start, stop, count, exposure in zip(
        panel.start, panel.stop, panel.count, panel.exposure, strict=True
    ):
        inside = (start <= left) & (right <= stop)
        at_risk += exposure * inside
        if count:
            expected += count * inside * mass / mass[inside].sum()
    new = np.empty(len(left))
    for cell, (a, b) in enumerate(zip(left, right, strict=True)):
        # forty points per quarter of a cell: far finer than the cells' own scale
        cuts = np.linspace(a, b, 5)
        total = 0.0
        for low, high in itertools.pairwise(cuts):
            x = (low + high) / 2 + (high - low) / 2 * GAUSS
            kernel = norm.cdf((right - x[:, None]) / bandwidth) - norm.cdf(
                (left - x[:, None]) / bandwidth
            )
            rate = kernel @ (expected / (right - left)) / (kernel @ at_risk)
            total += (high - low) / 2 * (WEIGHTS @ rate)
        new[cell] = total
    return new, expected


def test_toy_from_the_notes():
    panel = toy()
    steps = steps_of(panel, 1.0 / 3.0)
    fit = fixed_point(steps, steps.constant_start(), tol=1e-12)
    assert_allclose(fit.mass[:, 0], [0.740989, 0.754683, 0.991867], atol=1e-6)
    expected = steps.density(fit.mass)[:, 0] / 3.0
    assert_allclose(expected, [3.0, 0.432099, 3.567901], atol=1e-6)
    times = np.array([0, 0.5, 1, 1.5, 2, 2.5, 3]) / 3.0
    at_risk = np.array([3.0, 3.0, 2.0])[:, None]
    rates = intensity_at(times, np.array([0, 1, 2, 3]) / 3.0, 1 / 3, fit.density, at_risk)
    wanted = [0.786079, 0.736498, 0.714014, 0.743659, 0.838565, 0.987834, 1.161270]
    assert_allclose(rates[:, 0] / 3.0, wanted, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"exposure": True}, {"gaps": True, "exposure": True}])
@pytest.mark.parametrize("bandwidth", [1.0, 3.0, 12.0])
def test_one_iteration_is_the_transcription(options, bandwidth):
    panel = random_panel(5, **options)
    length = panel.window[1] - panel.window[0]
    steps = steps_of(panel, bandwidth / length)
    mass = steps.constant_start()
    for _ in range(3):
        wanted, expected = one_iteration(panel, mass[:, 0], bandwidth)
        width = np.diff(np.unique(np.concatenate([panel.start, panel.stop])))
        assert_allclose(steps.density(mass)[:, 0] / length * width, expected, rtol=1e-9)
        mass = steps.step(mass)
        assert_allclose(mass[:, 0], wanted, rtol=2e-8)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_fixed_point_against_the_plain_iteration(seed, share):
    panel = random_panel(seed, gaps=seed == 1, exposure=seed == 2)
    steps = steps_of(panel, share)
    fit = fixed_point(steps, steps.constant_start(), tol=1e-11, max_iter=5000)
    assert fit.residual[0] <= 1e-11
    assert_allclose(steps.step(fit.mass), fit.mass, atol=1e-9)
    plain = steps.constant_start()
    for _ in range(4000):
        plain = steps.step(plain)
    assert_allclose(fit.mass, plain, atol=1e-8)
    # events are spread, none lost
    assert_allclose((steps.density(fit.mass)[:, 0] * _width(panel)).sum(), panel.n_events)


def _width(panel):
    points = np.unique(np.concatenate([panel.start, panel.stop]))
    return np.diff(points) / (panel.window[1] - panel.window[0])


def test_a_narrow_kernel_is_the_em_of_the_step_function():
    panel = random_panel(4)
    steps = steps_of(panel, 1e-7)
    mass = steps.constant_start()
    expected = steps.density(mass)[:, 0] * _width(panel)
    at_risk = problem_of(panel).data(np.ones(panel.n_subjects)).at_risk[:, 0]
    assert_allclose(steps.step(mass)[:, 0], expected / at_risk, rtol=1e-4)


def test_a_wide_kernel_is_a_constant_rate():
    panel = random_panel(4, exposure=True)
    steps = steps_of(panel, 1e5)
    fit = fixed_point(steps, steps.constant_start() * np.linspace(0.5, 2, 1)[None], tol=1e-11)
    time_at_risk = (panel.exposure * (panel.stop - panel.start)).sum()
    points = np.unique(np.concatenate([panel.start, panel.stop]))
    assert_allclose(fit.mass[:, 0], panel.n_events / time_at_risk * np.diff(points), rtol=1e-8)


def test_folds_together_equal_folds_alone():
    panel = random_panel(6, n_subjects=15)
    problem = problem_of(panel)
    fold = np.arange(15) % 3
    weights = np.random.default_rng(0).integers(0, 3, 15).astype(float)
    train, held_out = problem.folds(fold, weights)
    smoother = problem.smoother(0.1)
    together = EMSteps(train, smoother)
    fit = fixed_point(together, together.constant_start(), tol=1e-11)
    for k in range(3):
        alone = EMSteps(problem.data(weights * (fold != k)), smoother)
        one = fixed_point(alone, alone.constant_start(), tol=1e-11)
        assert_allclose(fit.mass[:, k], one.mass[:, 0], atol=1e-9)
        rest = problem.data(weights * (fold == k))
        assert_allclose(held_out.count[:, k], rest.count[:, 0])
        assert_allclose(held_out.exposure[:, k], rest.exposure[:, 0])


def test_published_start_and_stop():
    panel = toy()
    steps = steps_of(panel, 1.0 / 3.0)
    start = steps.published_start()
    # events of all intervals on a cell over those at risk: (1+2)/3, (1)/3, (1+3)/2
    assert_allclose(start[:, 0], [1.0, 1 / 3, 2.0])
    fit = published_iteration(steps, start)
    mass, n_steps = start, 0
    while True:
        new = steps.step(mass)
        n_steps += 1
        change = ((new - mass) ** 2).sum()
        mass = new
        if change <= 1e-8:
            break
    assert fit.n_iter == n_steps
    assert_allclose(fit.mass, mass, rtol=1e-12)
    assert_allclose(steps.smooth(fit.density), fit.mass, rtol=1e-12)


def test_held_out_score_is_the_poisson_likelihood():
    panel = random_panel(8, exposure=True)
    problem = problem_of(panel)
    rng = np.random.default_rng(0)
    mass = rng.uniform(0.1, 1.0, (problem.grid.runs.size, 1))
    data = problem.data(np.ones(panel.n_subjects))
    inside = problem.grid.runs.sums(mass)[:, 0]
    count, exposure = data.count[:, 0], data.exposure[:, 0]
    wanted = poisson.logpmf(count, exposure * inside)
    wanted = wanted + np.array([np.log(np.arange(1, c + 1)).sum() for c in count])
    wanted = wanted - count * np.log(exposure)
    none = np.zeros((1, 1))
    assert_allclose(held_out_score(mass, data, none)[0], wanted.sum(), rtol=1e-11)
    assert held_out_score(0 * mass, data, none)[0] == -np.inf
    floor = np.full((1, 1), 0.01)
    seen = count > 0
    floored = (count * np.log(0.01))[seen].sum() - 0.01 * exposure[seen].sum()
    assert_allclose(held_out_score(0 * mass, data, floor)[0], floored)


def test_no_events_no_intensity():
    panel = random_panel(2, level=0.0)
    assert panel.n_events == 0
    steps = steps_of(panel, 0.1)
    for fit in (
        fixed_point(steps, steps.constant_start()),
        published_iteration(steps, steps.published_start()),
    ):
        assert np.all(fit.mass == 0.0)
        assert fit.residual[0] == 0.0


def test_smoother_is_shared_by_bandwidth_only():
    problem = problem_of(toy())
    smoother = problem.smoother(0.2)
    assert isinstance(smoother, Smoother)
    assert smoother.bandwidth == 0.2
