"""Inversion of distribution functions, the law of a quadratic form, simultaneous levels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from gp4c.posterior.quantiles import quadratic_form_cdf, simultaneous_level, solve_quantiles
from tolerances import QUANTILE

LEVELS = np.array([1e-6, 0.005, 0.25, 0.5, 0.9, 0.999])


@pytest.mark.parametrize(
    "law",
    [
        stats.expon(scale=3.0),
        stats.gamma(0.4),
        stats.ncx2(1, 7.0),
        stats.lognorm(1.5),
        stats.beta(2, 5),
    ],
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


# -- Jensen and Solomon's law of a quadratic form ------------------------------------------------


def form_cdf(x: np.ndarray, weights: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """Our distribution function of Σ w_i (z_i + √φ_i)², from its cumulants."""
    first = np.sum(weights * (1 + phi))
    second = 2 * np.sum(weights**2 * (1 + 2 * phi))
    third = 8 * np.sum(weights**3 * (1 + 3 * phi))
    return quadratic_form_cdf(x, np.array(first), np.array(second), np.array(third))


@pytest.mark.parametrize(("df", "allowed"), [(1, 0.055), (2, 0.013), (5, 0.003), (50, 3e-4)])
def test_central_chi_square_variables(df: int, allowed: float) -> None:
    # the cube root of Wilson and Hilferty: best with many degrees of freedom
    x = stats.chi2.ppf(np.linspace(0.002, 0.998, 300), df)
    ours = form_cdf(x, np.ones(df), np.zeros(df))
    assert np.abs(ours - stats.chi2.cdf(x, df)).max() < allowed


@pytest.mark.parametrize(
    ("df", "phi", "allowed"), [(1, 100.0, 8e-4), (1, 25.0, 4e-3), (3, 10.0, 7e-3), (1, 4.0, 0.025)]
)
def test_noncentral_chi_square_variables(df: int, phi: float, allowed: float) -> None:
    x = stats.ncx2.ppf(np.linspace(0.002, 0.998, 300), df, phi)
    each = np.zeros(df)
    each[0] = phi
    ours = form_cdf(x, np.ones(df), each)
    assert np.abs(ours - stats.ncx2.cdf(x, df, phi)).max() < allowed


@given(
    decay=st.floats(0.1, 0.9),
    size=st.integers(1, 8),
    phi=st.floats(0.0, 200.0),
    scale=st.floats(1e-12, 1e12),
)
def test_the_law_is_a_distribution_on_positive_numbers(
    decay: float, size: int, phi: float, scale: float
) -> None:
    weights = scale * decay ** np.arange(size)
    x = scale * np.concatenate([[0.0], np.logspace(-8, 5, 60)])
    values = form_cdf(x, weights, np.full(size, phi))
    assert np.all((values >= 0) & (values <= 1))
    assert np.all(np.diff(values) >= -1e-12)
    assert values[-1] > 1 - 1e-9


def test_a_form_without_spread_is_its_mean() -> None:
    x = np.array([0.5, 0.999, 1.001, 2.0])
    ours = quadratic_form_cdf(x, np.array(1.0), np.array(0.0), np.array(0.0))
    assert_allclose(ours, [0.0, 0.0, 1.0, 1.0], atol=1e-12)


def test_an_empty_form_is_zero() -> None:
    nothing = np.array(0.0)
    ours = quadratic_form_cdf(np.array([0.0, 1.0]), nothing, nothing, nothing)
    assert np.all(np.isfinite(ours))
    assert ours[1] == 1.0


# -- simultaneous bands --------------------------------------------------------------------------


def test_one_point_needs_no_widening() -> None:
    draws = np.random.default_rng(1).normal(size=(4000, 1))
    assert_allclose(simultaneous_level(draws, 0.9), 0.9, atol=1e-3)


def test_independent_points_need_bonferronis_level() -> None:
    # all of ten independent points inside with probability 0.9: each with 0.9^(1/10)
    draws = np.random.default_rng(2).normal(size=(20_000, 10))
    assert_allclose(simultaneous_level(draws, 0.9), 0.9**0.1, atol=3e-3)


def test_a_curve_that_moves_as_a_whole_needs_no_widening() -> None:
    level = np.random.default_rng(3).normal(size=(4000, 1))
    draws = level + np.linspace(0.0, 1.0, 30)
    assert_allclose(simultaneous_level(draws, 0.8), 0.8, atol=1e-3)
