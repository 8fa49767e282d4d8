"""The small bounded maximiser: known maxima, bounds, noise, and no step down."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from gp4c.inference.variational.ascent import maximise

WIDE = np.array([[-10.0, 10.0]] * 3)


def quadratic(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A positive definite matrix and a centre."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3))
    return root @ root.T + 0.5 * np.eye(3), rng.uniform(-2, 2, 3)


@given(seed=st.integers(0, 10_000))
def test_quadratics_are_maximised(seed: int) -> None:
    H, centre = quadratic(seed)

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        d = x - centre
        return float(-d @ H @ d / 2), -H @ d

    result = maximise(function, np.zeros(3), WIDE, tol=1e-10, max_iter=200)
    assert result.converged
    assert_allclose(result.x, centre, atol=1e-4)
    assert np.all(np.diff(result.path) >= 0)


@given(seed=st.integers(0, 10_000))
@example(seed=9758)  # a step that a bound cuts off leads downhill
@example(seed=2554)  # at two bounds, steps of the whole inverse go to and fro
def test_bounds_hold_and_the_corner_is_scipys(seed: int) -> None:
    H, centre = quadratic(seed)
    bounds = np.array([[-0.5, 0.5], [-3.0, 0.1], [0.0, 3.0]])

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        assert np.all((x >= bounds[:, 0]) & (x <= bounds[:, 1]))
        d = x - centre
        return float(-d @ H @ d / 2), -H @ d

    result = maximise(function, np.array([0.1, 0.0, 1.0]), bounds, tol=1e-10, max_iter=500)
    other = minimize(
        lambda x: -function(np.clip(x, *bounds.T))[0], [0.1, 0.0, 1.0], bounds=bounds, tol=1e-14
    )
    assert result.converged
    assert_allclose(result.path[-1], -other.fun, atol=1e-6)


def rosenbrock(x: np.ndarray) -> tuple[float, np.ndarray]:
    gap = x[1] - x[0] ** 2
    gradient = np.array([-400.0 * x[0] * gap - 2.0 * (1 - x[0]), 200.0 * gap])
    return -float(100.0 * gap**2 + (1 - x[0]) ** 2), -gradient


def test_a_curved_ridge_is_followed() -> None:
    result = maximise(rosenbrock, np.array([-1.2, 1.0]), WIDE[:2], tol=1e-12, max_iter=500)
    assert result.converged
    assert_allclose(result.x, [1.0, 1.0], atol=1e-5)


def test_steps_are_never_longer_than_the_radius() -> None:
    seen: list[float] = []

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        seen.append(float(x[0]))
        return -(abs(float(x[0]) - 5.0) ** 1.5), np.array([1.5 * np.sqrt(abs(5.0 - x[0]))])

    maximise(function, np.zeros(1), WIDE[:1], tol=1e-3, max_iter=5, radius=0.25)
    assert np.abs(np.diff(seen)).max() <= 0.25 + 1e-12


def test_noise_below_the_tolerance_does_not_stop_convergence() -> None:
    rng = np.random.default_rng(1)
    H, centre = quadratic(1)

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        d = x - centre
        return float(-d @ H @ d / 2 + 1e-8 * rng.uniform(-1, 1)), -H @ d

    result = maximise(function, np.zeros(3), WIDE, tol=1e-6, max_iter=200)
    assert result.converged
    assert_allclose(result.x, centre, atol=2e-3)


def test_an_exhausted_budget_is_not_convergence() -> None:
    result = maximise(rosenbrock, np.array([-1.2, 1.0]), WIDE[:2], tol=1e-12, max_iter=3)
    assert not result.converged


def test_a_gradient_that_lies_is_not_convergence() -> None:
    def liar(x: np.ndarray) -> tuple[float, np.ndarray]:
        return -float(x @ x), 5.0 + 2.0 * x

    result = maximise(liar, np.ones(2), WIDE[:2], tol=1e-6, max_iter=50)
    assert not result.converged


@pytest.mark.parametrize("hole", [np.nan, -np.inf])
def test_points_without_a_value_are_stepped_back_from(hole: float) -> None:
    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        if x[0] > 1.1:
            return hole, np.zeros(1)
        return -float((x[0] - 1.0) ** 2), -2.0 * (x - 1.0)

    result = maximise(function, np.array([-3.0]), WIDE[:1], tol=1e-10, max_iter=100)
    assert_allclose(result.x, 1.0, atol=1e-4)
