"""Pooled frailties: the same likelihood as subject by subject."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from scipy.stats import nbinom

from gp4c.design.observations import PooledSubjects
from gp4c.inference.pooled import PooledGamma

# two spans with three and two subjects, whose totals are these
NUMBER, TOTALS = np.array([3.0, 2.0]), ([0.0, 2.0, 5.0], [0.0, 1.0])
EVENTS, EXPECTED = np.array([7.0, 1.0]), np.array([1.7, 0.6])
POOLED = PooledGamma(PooledSubjects(NUMBER, np.array([0.0, 1.0, 2.0, 5.0]), np.array([2, 1, 1, 1])))


@pytest.mark.parametrize("shape", [0.3, 4.0, 1e4])
def test_the_cost_is_the_negative_binomial_likelihood_of_every_subject(shape):
    log_likelihood = 0.0
    for totals, expected in zip(TOTALS, EXPECTED, strict=True):
        m = np.array(totals)
        # without Σ m ln R − Σ ln m!, which the cost leaves to other terms
        log_likelihood += nbinom.logpmf(m, shape, shape / (shape + expected)).sum()
        log_likelihood += gammaln(m + 1).sum() - m.sum() * np.log(expected)
    assert_allclose(-POOLED.cost(EVENTS, EXPECTED, shape).sum(), log_likelihood, rtol=1e-9)


def test_the_weights_are_the_slopes_of_the_cost():
    step = 1e-6
    for place in range(2):
        shift = step * np.eye(2)[place]
        up, down = (POOLED.cost(EVENTS, EXPECTED + s, 0.8).sum() for s in (shift, -shift))
        found = POOLED.weight(EVENTS, EXPECTED, 0.8)[place]
        assert_allclose(found, (up - down) / (2 * step), rtol=1e-7)


def test_the_gradient_in_the_shape_is_the_slope_of_the_cost():
    up, down = (-POOLED.cost(EVENTS, EXPECTED, 0.8 * np.exp(s)).sum() for s in (1e-5, -1e-5))
    assert_allclose(POOLED.shape_gradient(EVENTS, EXPECTED, 0.8), (up - down) / 2e-5, rtol=1e-7)


def test_without_frailty_the_cost_is_the_expected_number():
    far = POOLED.cost(EVENTS, EXPECTED, 1e6).sum()
    assert_allclose(POOLED.cost(EVENTS, EXPECTED, np.inf).sum(), far, rtol=1e-5)
    assert_allclose(POOLED.weight(EVENTS, EXPECTED, np.inf), NUMBER)
    assert_allclose(POOLED.weight(EVENTS, EXPECTED, 1e6), NUMBER, rtol=1e-5)


@pytest.mark.parametrize("shape", [0.8, np.inf])
def test_many_curves_are_columns(shape):
    curves = np.stack([EXPECTED, 2 * EXPECTED], axis=1)
    together = POOLED.cost(EVENTS[:, None], curves, shape).sum(axis=0)
    apart = [POOLED.cost(EVENTS, column, shape).sum() for column in curves.T]
    assert_allclose(together, apart)
