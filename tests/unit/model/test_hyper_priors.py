"""Priors of the hyper-parameters: against draws, quadrature and SciPy's laws."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from gp4c.model.hyper_priors import LENGTH_SCALE, normal_log_density, soft_uniform_log_density
from tolerances import ROUNDING


def test_the_length_scale_is_a_uniform_plus_a_normal_variable() -> None:
    rng = np.random.default_rng(0)
    draws = rng.uniform(np.log(0.03), np.log(0.6), 400_000) + 0.3 * rng.standard_normal(400_000)
    counts, edges = np.histogram(draws, np.log([0.02, 0.03, 0.05, 0.3, 0.6, 0.9]))
    for count, low, high in zip(counts, edges[:-1], edges[1:], strict=True):
        expected = quad(lambda x: np.exp(soft_uniform_log_density(x, *LENGTH_SCALE)), low, high)[0]
        error = np.sqrt(expected / len(draws))
        assert abs(count / len(draws) - expected) < 4.5 * error + 1e-5


def test_it_integrates_to_one() -> None:
    mass = quad(lambda x: np.exp(soft_uniform_log_density(x, *LENGTH_SCALE)), -7, 3)[0]
    assert_allclose(mass, 1.0, rtol=1e-6)


def test_normal_densities_are_scipys() -> None:
    x = np.linspace(-3, 4, 9)
    assert_allclose(normal_log_density(x, 0.3, 1.7), norm.logpdf(x, 0.3, 1.7), **ROUNDING)


@pytest.mark.parametrize("softness", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("x", [-6.0, -1.0, 0.3, 2.0, 5.0])
def test_soft_ends_may_be_softer_than_the_uniform_is_wide(x: float, softness: float) -> None:
    def density(at: float) -> float:
        return quad(lambda u: norm.pdf(at - u, scale=softness) / 3.0, -1.0, 2.0, points=[0.0])[0]

    value = soft_uniform_log_density(x, -1.0, 2.0, softness)
    assert np.isfinite(value)
    if density(x) > 1e-12:  # what adaptive quadrature resolves
        assert_allclose(value, np.log(density(x)), rtol=1e-6, atol=1e-6)
