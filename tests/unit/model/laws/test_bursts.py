"""The law with bursts: against SciPy's negative binomial, its own limits, and differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gammaln

from gp4c.model.laws import LAWS, CountLaw
from gp4c.model.laws.bursts import log_rising, mean_burst, rising_terms

BURSTS, POISSON = LAWS["bursts"], LAWS["poisson"]


def log_probability(law, count, mean, theta):
    """ln p(m) from the parts of a law, υ = 1."""
    one, c = np.ones(1), law.hazard(theta)[0]
    total = law.power(count) * np.log(mean) - c * mean
    rows = np.flatnonzero(law.has_remainder(count))
    rows = rows[np.argsort(-count[rows], kind="stable")]
    if len(rows):
        total[rows] += law.remainder_value(mean[rows], count[rows], theta)
    for k, m in enumerate(count):
        if m > 0:
            total[k] += law.static(np.array([m]), one, theta)[0]
    return total - gammaln(count + 1)


@pytest.mark.parametrize("phi", [0.01, 0.5, 4.0, 30.0])
def test_parts_add_up_to_the_negative_binomial(phi):
    count = np.array([0.0, 1, 2, 3, 8, 9, 10, 11, 40, 99, 1000])
    mean = np.array([0.3, 0.2, 5.0, 0.01, 8.0, 2.0, 30.0, 11.0, 4.0, 60.0, 900.0])
    ours = log_probability(BURSTS, count, mean, np.log([phi]))
    theirs = stats.nbinom.logpmf(count, mean / phi, 1 / (1 + phi))
    assert_allclose(ours, theirs, atol=2e-6, rtol=1e-9)  # Euler and Maclaurin from the third term


def test_without_bursts_it_is_poisson():
    count, mean = np.array([0.0, 1, 2, 7, 30]), np.array([0.4, 1.0, 3.0, 5.0, 33.0])
    tiny = log_probability(BURSTS, count, mean, np.log([1e-9]))
    assert_allclose(tiny, stats.poisson.logpmf(count, mean), atol=1e-6)
    assert_allclose(
        log_probability(POISSON, count, mean, np.zeros(0)), stats.poisson.logpmf(count, mean)
    )


def test_cutting_an_interval_in_two_changes_nothing():
    theta, counts = np.log([1.7]), np.arange(60.0)
    parts = [np.exp(log_probability(BURSTS, counts, np.full(60, r), theta)) for r in (0.8, 2.5)]
    whole = np.exp(log_probability(BURSTS, counts, np.full(60, 3.3), theta))
    assert_allclose(np.convolve(*parts)[:60], whole, atol=1e-7)


@pytest.mark.parametrize("x", [1e-8, 0.3, 7.0, 1e6])
def test_rising_sums_agree_with_gamma_functions(x):
    count = np.array([20000.0, 300, 15, 10, 9, 8, 3, 2])
    rows = np.full(len(count), x)
    expected = gammaln(x + count) - gammaln(x + 1)
    assert_allclose(log_rising(rows, count), expected, rtol=1e-9, atol=3e-6)
    value, slope, curve = rising_terms(rows, count)
    assert_allclose(value, expected, rtol=1e-9, atol=3e-6)
    i = [np.arange(1, m) for m in count]
    first = np.array([x * (1 / (x + k)).sum() for k in i])
    second = np.array([(x**2 / (x + k) ** 2).sum() for k in i])
    assert_allclose(slope, first, rtol=1e-5)
    assert_allclose(curve, first - second, rtol=1e-4, atol=1e-5 * max(1.0, first.max()))


def test_derivatives_agree_with_the_differences_of_the_base_class():
    rng = np.random.default_rng(0)
    count = np.array([40.0, 12, 5, 2, 2])
    mean, theta = rng.gamma(2.0, 1.0, (5, 3)), rng.standard_normal((1, 3))
    exact, rough = (
        BURSTS.remainder(mean, count, theta),
        CountLaw.remainder(BURSTS, mean, count, theta),
    )
    for name in ("value", "slope", "theta"):
        assert_allclose(getattr(exact, name), getattr(rough, name), rtol=1e-5, atol=1e-6)
    for name in ("curve", "cross", "theta_theta"):
        assert_allclose(getattr(exact, name), getattr(rough, name), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["hazard", "static"])
def test_parameter_derivatives_agree_with_differences(name):
    count, weight, h = np.array([1.0, 2, 9]), np.array([3.0, 1, 2]), 1e-4

    def at(t):
        theta = np.array([[t]])
        return BURSTS.hazard(theta) if name == "hazard" else BURSTS.static(count, weight, theta)

    for t in (-3.0, 0.2, 2.0):
        value, first, second = at(t)
        up, down = at(t + h)[0], at(t - h)[0]
        assert_allclose(first[0], (up - down) / (2 * h), rtol=1e-6)
        assert_allclose(second[0, 0], (up - 2 * value + down) / h**2, rtol=1e-4, atol=1e-6)


def test_draws_have_the_moments_and_the_cdf_of_the_law():
    rng, theta = np.random.default_rng(3), np.log([2.0])
    draws = BURSTS.draw(np.full(200_000, 1.5), theta[:, None], rng)
    assert_allclose(draws.mean(), 1.5, atol=4 * np.sqrt(4.5 / 200_000))
    assert_allclose(draws.var(), 1.5 * BURSTS.dispersion(theta), rtol=0.03)
    for m in (-1.0, 0.0, 2.0, 9.0):
        assert_allclose(
            BURSTS.cdf(np.array(m), np.array(1.5), theta), (draws <= m).mean(), atol=0.005
        )


def test_mean_burst_size_is_that_of_the_logarithmic_law():
    for phi in (0.1, 1.0, 6.0):
        p = phi / (1 + phi)
        assert_allclose(mean_burst(phi), stats.logser.mean(p))
    assert mean_burst(0.0) == 1.0


def test_words_say_size_and_dispersion():
    words = BURSTS.words(np.log([[3.8]]))
    assert words == "events come in bursts of 2.4 on average (variance 4.8 times the mean)"
