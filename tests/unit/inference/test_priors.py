"""Priors of the hyper-parameters: densities that integrate to one, gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import dblquad, quad
from scipy.stats import norm

from gp4c.inference.priors import _soft_uniform, weak_prior
from tolerances import FINITE_DIFFERENCE

POINT = np.array([np.log(0.2), -1.5, 0.8, np.inf])


@pytest.mark.parametrize("log_a", np.log([0.005, 0.03, 0.13, 0.6, 1.9]))
@pytest.mark.parametrize("mean", [0.05, 0.9])
def test_gradient(log_a: float, mean: float) -> None:
    at = np.array([log_a, -1.5, mean, 0.3])
    _, gradient = weak_prior(at)
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1e-5
        slope = (weak_prior(at + step)[0] - weak_prior(at - step)[0]) / 2e-5
        assert_allclose(gradient[i], slope, **FINITE_DIFFERENCE)


def test_the_density_of_the_variance_and_the_mean_integrates_to_one() -> None:
    length = quad(lambda x: np.exp(weak_prior(np.array([x, *POINT[1:]]))[0]), -7, 3)
    joint, _ = dblquad(
        lambda g, log_gamma: _variance_and_mean(log_gamma, g), -14, 6, 1.001e-3, 12, epsabs=1e-6
    )
    # the density is a product: p(ln a) · p(ln γ, g); its whole mass is one
    assert_allclose(length[0] / _variance_and_mean(POINT[1], POINT[2]) * joint, 1.0, atol=5e-3)


def _variance_and_mean(log_gamma: float, g: float) -> float:
    """p(ln γ, g) from the documented laws of ln(√γ/g) and ln(g² + γ), by change of variables."""
    from scipy.stats import norm

    variation = norm.pdf(log_gamma / 2 - np.log(g), np.log(0.3), 1.0)
    level = norm.pdf(np.log(g**2 + np.exp(log_gamma)), 0.0, 1.0)
    return float(variation * level / g)


def test_the_length_scale_is_a_uniform_plus_a_normal_variable() -> None:
    rng = np.random.default_rng(0)
    draws = rng.uniform(np.log(0.03), np.log(0.6), 400_000) + 0.3 * rng.standard_normal(400_000)
    counts, edges = np.histogram(draws, np.log([0.02, 0.03, 0.05, 0.3, 0.6, 0.9]))
    other = weak_prior(np.array([np.log(0.13), *POINT[1:]]))[0]
    peak = 1 / np.log(20)  # the height of the even part

    def density(x: float) -> float:
        return float(peak * np.exp(weak_prior(np.array([x, *POINT[1:]]))[0] - other))

    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        expected = quad(density, low, high)[0]
        error = np.sqrt(expected / len(draws))
        assert abs(count / len(draws) - expected) < 4.5 * error + 1e-5


def test_a_zero_mean_leaves_the_level_alone() -> None:
    value, gradient = weak_prior(np.array([np.log(0.2), 0.0, 0.0, np.inf]))
    assert np.isfinite(value)
    assert_allclose(gradient[1:], 0.0, atol=1e-12)  # γ = 1 is the mode of the level


@pytest.mark.parametrize("softness", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("x", [-6.0, -1.0, 0.3, 2.0, 5.0])
def test_soft_ends_may_be_softer_than_the_uniform_is_wide(x: float, softness: float) -> None:
    def density(at: float) -> float:
        return quad(lambda u: norm.pdf(at - u, scale=softness) / 3.0, -1.0, 2.0, points=[0.0])[0]

    value, slope = _soft_uniform(x, -1.0, 2.0, softness)
    if density(x) > 1e-12:  # what adaptive quadrature resolves
        assert_allclose(value, np.log(density(x)), rtol=1e-6, atol=1e-6)
    up, down = (_soft_uniform(x + step, -1.0, 2.0, softness)[0] for step in (1e-5, -1e-5))
    assert_allclose(slope, (up - down) / 2e-5, rtol=1e-5, atol=1e-5)
