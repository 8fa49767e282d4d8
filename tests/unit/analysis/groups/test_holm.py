"""Holm's adjustment against statsmodels, and levels that agree with it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.analysis.groups.holm import holm, holm_levels


def random_p_values(seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(0, rng.choice([0.03, 0.1, 1.0]), rng.integers(1, 7))


def test_adjusted_p_values_are_those_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for seed in range(20):
        p = random_p_values(seed)
        assert_allclose(holm(p), multitest.multipletests(p, method="holm")[1])


def test_an_interval_leaves_out_the_hypothesis_if_the_adjusted_p_value_is_small():
    # an interval at level q leaves it out if and only if p ≤ 1 − q
    for seed in range(200):
        p = random_p_values(seed)
        outside = p <= (1 - holm_levels(p, 0.05)) * (1 + 1e-9)
        assert np.array_equal(outside, holm(p) <= 0.05)
