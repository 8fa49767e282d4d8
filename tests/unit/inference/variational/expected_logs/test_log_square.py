"""E ln y² of a Gaussian against arbitrary precision, series, sampling and differences."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.inference.variational.expected_logs.log_square import expected_log_square

ROUNDING = 2e-14  # a few units in the last place of numbers of order ten
PHI = [0.0, 1e-6, 1e-3, 0.3, 1.0, 2.7, 10.0, 60.0, 127.9, 128.1, 500.0, 1e6]  # mean²/variance


def by_integration(phi):
    """∫ ln y² N(y; √φ, 1) dy in 30 digits, the logarithm's pole at an end point."""
    with mpmath.workdps(30):
        mu = mpmath.sqrt(mpmath.mpf(phi))

        def integrand(y):
            return mpmath.log(y * y) * mpmath.npdf(y, mu)

        breaks = sorted({mu - 12, mu - 4, mpmath.mpf(0), mu, mu + 4, mu + 12})
        return float(mpmath.quad(integrand, breaks))


def by_poisson_mixture(phi):
    """The paper's Lemma 1: y² is χ² on 1 + 2k degrees of freedom, k ~ Poisson(φ/2)."""
    with mpmath.workdps(30):
        half = mpmath.mpf(phi) / 2
        last = int(half + 40 * mpmath.sqrt(half) + 80)
        terms = (
            mpmath.exp(k * mpmath.log(half) - half - mpmath.loggamma(k + 1))
            * mpmath.digamma(k + mpmath.mpf(1) / 2)
            for k in range(last)
        )
        return float(mpmath.log(2) + mpmath.fsum(terms))


@pytest.mark.parametrize("phi", PHI)
def test_agrees_with_integration_in_30_digits(phi):
    value, _, _ = expected_log_square(np.sqrt(phi), 1.0)
    assert_allclose(value, by_integration(phi), rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("phi", [1e-6, 0.3, 2.7, 60.0, 200.0])
def test_agrees_with_the_series_of_lemma_1(phi):
    value, _, _ = expected_log_square(-np.sqrt(phi), 1.0)
    assert_allclose(value, by_poisson_mixture(phi), rtol=0, atol=ROUNDING)


def test_agrees_with_sampling():
    mean, variance = np.array([0.0, 0.4, -1.5, 6.0]), np.array([2.0, 0.7, 1.0, 3.0])
    draws = np.random.default_rng(1).normal(mean, np.sqrt(variance), (1_000_000, 4))
    logs = np.log(draws**2)
    value, _, _ = expected_log_square(mean, variance)
    standard_error = logs.std(axis=0) / np.sqrt(len(logs))
    assert np.all(np.abs(logs.mean(axis=0) - value) < 4 * standard_error)


@pytest.mark.parametrize("phi", PHI)
def test_derivatives_agree_with_differences_in_30_digits(phi):
    def exact(mean, variance):
        x = mean**2 / (2 * variance)
        half = mpmath.mpf(1) / 2
        series = 2 * x * mpmath.hyp2f2(1, 1, 3 * half, 2, -x)
        return mpmath.log(2 * variance) + mpmath.digamma(half) + series

    variance = 0.37
    mean = np.sqrt(phi * variance)
    _, d_mean, d_variance = expected_log_square(mean, variance)
    with mpmath.workdps(40):
        at = mpmath.mpf(float(mean)), mpmath.mpf(variance)
        by_mean = mpmath.diff(lambda m: exact(m, at[1]), at[0]) if mean else 0
        by_variance = mpmath.diff(lambda v: exact(at[0], v), at[1])
    assert_allclose(d_mean, float(by_mean), rtol=1e-13)
    assert_allclose(d_variance, float(by_variance), rtol=1e-12, atol=1e-14)


def test_is_smooth_where_the_asymptotic_series_takes_over():
    mean = 8.0 * np.sqrt(2.0) * (1.0 + np.array([-1e-13, 1e-13]))
    for left, right in expected_log_square(mean, 1.0):
        assert_allclose(left, right, rtol=1e-12)


def test_no_variance_leaves_the_logarithm():
    value, d_mean, d_variance = expected_log_square([3.0, -1e-160], 0.0)
    assert_allclose(value, 2 * np.log([3.0, 1e-160]))
    assert_allclose(d_mean, [2 / 3, -2e160])
    assert_allclose(d_variance, [-1 / 9, -np.inf])


def test_nothing_at_all_gives_the_limits():
    value, d_mean, d_variance = expected_log_square(0.0, 0.0)
    assert (value, d_mean, d_variance) == (-np.inf, 0.0, np.inf)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_scales_as_a_logarithm_over_the_range_of_floats(scale):
    mean, variance = np.array([0.0, 1.0, 2.0, 1e3]), np.array([1.0, 0.1, 5.0, 1.0])
    ours = expected_log_square(scale * mean, scale**2 * variance)
    base = expected_log_square(mean, variance)
    assert_allclose(ours[0], base[0] + 2 * np.log(scale), rtol=1e-14)
    assert_allclose(ours[1] * scale, base[1], rtol=1e-12)
    assert_allclose(ours[2] * scale * scale, base[2], rtol=1e-12)


def test_an_overwhelming_mean_needs_no_square():
    value, d_mean, d_variance = expected_log_square(1e300, 1e-300)
    assert_allclose([value, d_mean], [600 * np.log(10), 2e-300])
    assert d_variance == 0.0


def test_shapes_broadcast():
    value, d_mean, d_variance = expected_log_square(np.ones((3, 1)), np.ones(2))
    assert value.shape == d_mean.shape == d_variance.shape == (3, 2)
    assert expected_log_square(1.0, 1.0)[0].shape == ()
    assert expected_log_square(np.ones(0), np.ones(0))[0].shape == (0,)


def test_lies_between_the_bounds_of_jensen_and_of_lemma_2():
    mean, variance = np.random.default_rng(0).lognormal(0, 2, (2, 1000))
    value, _, _ = expected_log_square(mean, variance)
    jensen = np.log(mean**2 + variance)
    assert np.all(value < jensen)
    assert np.all(value > jensen - np.euler_gamma - np.log(2))  # the paper's, at b = 1
