"""Inversion of distribution functions, and the shifted gamma approximation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from tolerances import QUANTILE

from gp4c.inference.quantiles import shifted_gamma_cdf, solve_quantiles

LEVELS = np.array([1e-6, 0.005, 0.25, 0.5, 0.9, 0.999])


@pytest.mark.parametrize(
    "law",
    [stats.expon(scale=3.0), stats.gamma(0.4), stats.ncx2(1, 7.0), stats.lognorm(1.5), stats.beta(2, 5)],
    ids=["exponential", "gamma", "noncentral-chi2", "lognormal", "beta"],
)
def test_quantiles_are_scipys(law: stats.rv_continuous) -> None:
    top = np.array([law.ppf(1 - 1e-13) * 1.5])
    ours = solve_quantiles(lambda x: law.cdf(x), np.zeros(1), top, LEVELS)[:, 0]
    assert_allclose(ours, law.ppf(LEVELS), **QUANTILE)


@given(
    shape=st.floats(0.2, 50.0),
    scale=st.floats(1e-6, 1e6),
    level=st.floats(1e-4, 1 - 1e-4),
)
def test_a_quantile_solves_its_equation(shape: float, scale: float, level: float) -> None:
    law = stats.gamma(shape, scale=scale)
    top = np.array([law.mean() + 60 * law.std()])
    x = solve_quantiles(lambda x: law.cdf(x), np.zeros(1), top, np.array([level]))
    assert_allclose(law.cdf(x), level, rtol=1e-9)


def test_many_points_at_once_are_the_points_one_by_one() -> None:
    means = np.array([0.5, 2.0, 40.0])
    top, levels = means * 60.0, np.array([0.1, 0.8])
    together = solve_quantiles(lambda x: stats.expon.cdf(x / means), np.zeros(3), top, levels)
    assert_allclose(together, -np.log1p(-levels[:, None]) * means, **QUANTILE)


def test_a_level_below_the_mass_at_the_bracket_gives_its_end() -> None:
    law = stats.norm(1.0, 1.0)
    found = solve_quantiles(law.cdf, np.zeros(1), np.array([60.0]), np.array([0.01]))
    assert_allclose(found, 0.0, atol=1e-12)


@given(shape=st.floats(0.3, 500.0), scale=st.floats(0.01, 100.0), shift=st.floats(0.0, 10.0))
def test_a_shifted_gamma_variable_is_its_own_approximation(
    shape: float, scale: float, shift: float
) -> None:
    law = stats.gamma(shape, loc=shift, scale=scale)
    cumulants = (shift + shape * scale, shape * scale**2, 2 * shape * scale**3)
    x = law.ppf(np.array([0.01, 0.3, 0.77, 0.99]))
    ours = shifted_gamma_cdf(x, *(np.array(k) for k in cumulants))
    assert_allclose(ours, law.cdf(x), rtol=1e-7, atol=1e-9)


def test_without_skewness_it_is_normal() -> None:
    x = np.linspace(-3.0, 5.0, 9)
    ours = shifted_gamma_cdf(x, np.array(1.0), np.array(4.0), np.array(0.0))
    assert_allclose(ours, stats.norm.cdf(x, 1.0, 2.0), rtol=1e-12)
    # and there is no jump where the formula changes over, at a skewness of 1e-4
    below, above = (
        shifted_gamma_cdf(x, np.array(1.0), np.array(4.0), np.array(skew * 8.0))
        for skew in (0.99e-4, 1.01e-4)
    )
    assert_allclose(below, above, atol=2e-5)


def test_a_central_chi_square_variable_is_exact() -> None:
    x = np.array([0.01, 0.5, 2.0, 9.0])
    for k in (1, 3, 10):
        ours = shifted_gamma_cdf(x, np.array(1.0 * k), np.array(2.0 * k), np.array(8.0 * k))
        assert_allclose(ours, stats.chi2.cdf(x, k), rtol=1e-10, atol=1e-12)
