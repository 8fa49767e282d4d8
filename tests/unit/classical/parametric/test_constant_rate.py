"""Constant rate with frailty: maxima, exact and profile intervals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import chi2, nbinom, poisson

from gp4c.classical.parametric.constant_rate import (
    Totals,
    exact_interval,
    fit_rate_and_frailty,
    profile_interval,
)


def totals(seed, shape=0.8, n=40, equal=False):
    rng = np.random.default_rng(seed)
    time = np.full(n, 10.0) if equal else rng.uniform(1.0, 20.0, n)
    frailty = rng.gamma(shape, 1 / shape, n)
    return Totals(rng.poisson(0.4 * frailty * time).astype(float), time, np.ones(n))


def negative_binomial(data, rate, shape):
    """Log-likelihood of the totals by SciPy's negative binomial, with its constants."""
    mean = rate * data.time_at_risk
    return nbinom.logpmf(data.events, shape, shape / (shape + mean)).sum()


@pytest.mark.parametrize("seed", range(5))
def test_fit_is_the_negative_binomial_maximum(seed):
    data = totals(seed)
    fit = fit_rate_and_frailty(data)
    assert fit.residual <= 1e-10
    assert np.all(np.diff(fit.history) >= 0)
    best = negative_binomial(data, fit.rate, 1 / fit.variance)
    theirs = minimize(
        lambda x: -negative_binomial(data, np.exp(x[0]), np.exp(x[1])),
        [np.log(fit.rate) + 0.1, -np.log(fit.variance) - 0.1],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12},
    )
    assert_allclose(best, -theirs.fun, atol=1e-9)
    assert_allclose([np.log(fit.rate), -np.log(fit.variance)], theirs.x, atol=1e-4)
    # our log-likelihood leaves out what does not depend on the parameters
    other = negative_binomial(data, 2 * fit.rate, 0.5)
    ours = data.log_likelihood(fit.rate, fit.variance) - data.log_likelihood(2 * fit.rate, 2.0)
    assert_allclose(ours, best - other, rtol=1e-10)


def test_equal_follow_up_gives_the_pooled_rate():
    data = totals(1, equal=True)
    assert_allclose(fit_rate_and_frailty(data).rate, data.pooled_rate, rtol=1e-12)


def test_multiplicities_are_copies():
    data = totals(3, n=20)
    weights = np.random.default_rng(0).integers(0, 3, 20)
    copied = Totals(
        np.repeat(data.events, weights),
        np.repeat(data.time_at_risk, weights),
        np.ones(weights.sum()),
    )
    weighted = Totals(data.events, data.time_at_risk, weights.astype(float))
    one, two = fit_rate_and_frailty(copied), fit_rate_and_frailty(weighted)
    assert_allclose([one.rate, one.variance], [two.rate, two.variance], rtol=1e-9)


def test_no_overdispersion_and_no_events():
    even = Totals(np.array([3.0, 3.0, 3.0]), np.array([6.0, 6.0, 6.0]), np.ones(3))
    fit = fit_rate_and_frailty(even)
    assert fit.variance == 0.0
    assert_allclose(fit.rate, 0.5)
    none = Totals(np.zeros(3), np.ones(3), np.ones(3))
    fit = fit_rate_and_frailty(none)
    assert (fit.rate, fit.variance) == (0.0, 0.0)
    assert profile_interval(none, fit, 0.9) == exact_interval(0.0, 3.0, 0.9)
    assert none.log_likelihood(0.0, 0.0) == 0.0
    assert_allclose(none.log_likelihood(0.2, 0.0), -0.6)


@pytest.mark.parametrize("events", [0, 1, 7, 300])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_exact_interval_inverts_the_poisson_tests(events, level):
    low, high = exact_interval(events, 4.0, level)
    assert_allclose(poisson.cdf(events, 4.0 * high), (1 - level) / 2, rtol=1e-9)
    if events:
        assert_allclose(poisson.sf(events - 1, 4.0 * low), (1 - level) / 2, rtol=1e-9)
    else:
        assert low == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_profile_interval_ends_where_the_likelihood_ratio_says(seed):
    data = totals(seed, n=25)
    fit = fit_rate_and_frailty(data)
    best = negative_binomial(data, fit.rate, 1 / fit.variance)
    for level in (0.5, 0.95):
        for end in profile_interval(data, fit, level):
            profile = minimize(
                lambda x, end=end: -negative_binomial(data, end, np.exp(x[0])),
                [-np.log(fit.variance)],
                method="Nelder-Mead",
                options={"xatol": 1e-8, "fatol": 1e-12},
            )
            assert_allclose(2 * (best + profile.fun), chi2.ppf(level, 1), rtol=1e-6)


def test_profile_interval_covers_about_as_often_as_it_says():
    covered = 0
    for seed in range(60):
        data = totals(1000 + seed, n=40)
        low, high = profile_interval(data, fit_rate_and_frailty(data), 0.9)
        covered += low <= 0.4 <= high
    # 54 expected, standard deviation 2.3
    assert 47 <= covered <= 59


def test_profile_interval_where_rounding_exceeds_the_likelihood_ratio():
    """Log-likelihoods of 1e13 are known to 1e-3 only; found by the fuzz campaign."""
    data = Totals(np.array([1e12, 1.0]), np.array([2.0, 4.0]), np.ones(2))
    fit = fit_rate_and_frailty(data)
    ends = [profile_interval(data, fit, level) for level in (0.02, 0.1, 0.5, 0.95)]
    low, high = np.array(ends).T
    assert np.all(np.diff(low) < 0.0)
    assert np.all(np.diff(high) > 0.0)
    assert low[0] < fit.rate < high[0]
