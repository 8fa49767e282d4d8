"""Medians and intervals of weighted draws, against the quantiles of a known law."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import expon

from gp4c.estimators.interfaces.credible import credible_interval, equal_tails, medians

#: draws of a uniform law, weighted by the exponential density: an exponential sample
DRAWS = (np.arange(40_000) + 0.5) / 2000
WEIGHTS = np.exp(-DRAWS) / np.exp(-DRAWS).sum()


def test_an_interval_leaves_out_as_much_on_either_side():
    low, high = credible_interval(DRAWS, WEIGHTS, 0.9)
    assert_allclose([low, high], expon.ppf([0.05, 0.95]), atol=2e-3)
    assert_allclose(equal_tails(0.9), expon.cdf([low, high]), atol=2e-3)


def test_medians_are_those_of_each_parameter_alone():
    found = medians(np.array([DRAWS, -2 * DRAWS]), WEIGHTS)
    assert_allclose(found, np.log(2) * np.array([1, -2]), atol=2e-3)


def test_a_law_without_parameters_has_no_medians():
    assert medians(np.zeros((0, 5)), np.full(5, 0.2)).shape == (0,)
