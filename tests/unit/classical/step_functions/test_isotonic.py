"""Isotonic regression against the max-min formula and scikit-learn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.isotonic import IsotonicRegression

from gp4c.classical.step_functions.isotonic import fenchel_residual, nondecreasing_fit


def max_min(values, weights):
    """max over a ≤ l of min over b ≥ l of the weighted mean from a to b, written out."""
    n = len(values)
    fitted = np.empty(n)
    for place in range(n):
        fitted[place] = max(
            min(np.average(values[a : b + 1], weights=weights[a : b + 1]) for b in range(place, n))
            for a in range(place + 1)
        )
    return fitted


@pytest.mark.parametrize("seed", range(20))
def test_agrees_with_max_min_and_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    values = rng.integers(0, 9, n) / rng.integers(1, 4, n) + np.arange(n) * rng.choice([0, 0.3])
    weights = rng.uniform(0.2, 5.0, n)
    fitted = nondecreasing_fit(values, weights)
    assert_allclose(fitted, max_min(values, weights), rtol=1e-12, atol=1e-12)
    theirs = IsotonicRegression().fit_transform(np.arange(n), values, sample_weight=weights)
    assert_allclose(fitted, theirs, rtol=1e-12, atol=1e-12)


def test_nothing_to_fit():
    assert nondecreasing_fit(np.zeros(0), np.zeros(0)).shape == (0,)


def test_fenchel_residual_tells_the_maximum_from_other_points():
    values, weights = np.array([1.5, 1.0, 2.5]), np.array([2.0, 2.0, 2.0])

    def residual(level):
        gradient = weights * (values / level - 1.0)
        return fenchel_residual(gradient, level, float(weights @ values))

    assert residual(np.array([1.25, 1.25, 2.5])) < 1e-15
    assert residual(np.array([1.2, 1.3, 2.5])) > 1e-3
    assert residual(np.array([1.25, 1.25, 2.4])) > 1e-3
    assert residual(np.array([1.26, 1.26, 2.5])) > 1e-3
    assert fenchel_residual(np.zeros(0), np.zeros(0), 0.0) == 0.0
