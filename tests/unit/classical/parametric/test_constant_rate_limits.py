"""A constant rate where the data say almost nothing: open intervals, far maxima, no rounds left."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom

from gp4c.classical.parametric.constant_rate import (
    Totals,
    _rate_given,
    fit_rate_and_frailty,
    profile_interval,
)


def test_one_event_of_one_subject_leaves_the_upper_end_open():
    # as the rate grows, p(1) at the best variance falls as 1/ln(rate): too slowly for 99.99%
    data = Totals(np.ones(1), np.ones(1), np.ones(1))
    fit = fit_rate_and_frailty(data)
    low, high = profile_interval(data, fit, 0.9999)
    assert 0 < low < 1e-3
    assert high == np.inf
    assert profile_interval(data, fit, 0.9)[1] < np.inf


def test_the_rate_is_found_far_from_the_pooled_one():
    # nearly all time at risk is one subject's, which the frailty discounts
    data = Totals(np.array([900.0, 1.0, 1.0, 2.0]), np.array([1e6, 1.0, 1.0, 1.0]), np.ones(4))
    for variance in (2.0, 50.0):
        found = _rate_given(data, variance)

        def cost(log_rate, shape=1 / variance):
            mean = np.exp(log_rate) * data.time_at_risk
            return -nbinom.logpmf(data.events, shape, shape / (shape + mean)).sum()

        best = minimize_scalar(cost, bounds=(-12, 6), method="bounded", options={"xatol": 1e-9})
        assert_allclose(np.log(found), best.x, atol=1e-5)
        assert found > 3 * data.pooled_rate


def test_the_rate_is_found_far_below_the_pooled_one():
    # sixty short follow-ups without events count for more than one long one full of them
    data = Totals(np.array([3000.0, *np.zeros(60)]), np.array([1e3, *np.ones(60)]), np.ones(61))
    found = _rate_given(data, 0.5)
    below, above = (_score(data, found * factor, 0.5) for factor in (0.999, 1.001))
    assert below > 0 > above
    assert found < data.pooled_rate / 3


def _score(data, rate, variance):
    """Slope in log rate of SciPy's negative binomial likelihood, by differences."""
    up, down = (
        nbinom.logpmf(
            data.events, 1 / variance, 1 / (1 + variance * rate * np.exp(s) * data.time_at_risk)
        ).sum()
        for s in (1e-6, -1e-6)
    )
    return (up - down) / 2e-6


def test_without_rounds_the_residual_says_that_nothing_was_found():
    data = Totals(np.array([3.0, 0.0, 9.0]), np.array([1.0, 5.0, 2.0]), np.ones(3))
    fit = fit_rate_and_frailty(data, max_iter=0)
    assert fit.residual == np.inf
    assert len(fit.history) == 1
