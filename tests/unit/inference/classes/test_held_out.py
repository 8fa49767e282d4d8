"""Leave-one-out by importance weights, where it has a closed form."""

from __future__ import annotations

import numpy as np
from scipy.stats import nbinom, poisson

from gp4c.inference.classes.held_out import leave_one_out


def test_of_poisson_counts_with_a_gamma_prior() -> None:
    counts, shape, rate = np.array([3, 5, 2, 9, 4, 4, 6, 1, 3, 5]), 2.0, 1.0
    n = len(counts)
    draws = np.random.default_rng(0).gamma(shape + counts.sum(), 1 / (rate + n), 40_000)
    found, tails = leave_one_out(poisson.logpmf(counts[:, None], draws), np.zeros(len(draws)))
    others_shape, others_rate = shape + counts.sum() - counts, rate + n - 1
    exact = nbinom.logpmf(counts, others_shape, others_rate / (others_rate + 1))
    np.testing.assert_allclose(found, exact, atol=0.01)
    assert tails.max() < 0.7
