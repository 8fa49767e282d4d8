"""The law of new subjects' weights: the optimality condition of its masses, and mixtures."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import poisson

from gp4c.posterior.weight_law import WeightLaw
from tolerances import ROUNDING


def test_masses_meet_the_condition_of_the_maximum():
    # Lindsay (1983): at the maximum the mean of p(d | w_a) / p(d) is 1 on the support, at most 1
    # elsewhere
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.choice([0.5, 6.0], 80))
    points = np.linspace(0.1, 12.0, 40)[:, None]
    logs = poisson.logpmf(counts, points)
    law = WeightLaw.fitted(points, logs)
    whole = law.mixed(poisson.logpmf(counts, law.weights))
    assert np.exp(logs - whole).mean(axis=1).max() < 1.01
    assert len(law.masses) < len(points) / 2
    assert_allclose(law.masses.sum(), 1.0, **ROUNDING)


def test_the_law_gives_back_two_levels():
    rng = np.random.default_rng(1)
    truth = rng.choice([1.0, 9.0], 400, p=[0.7, 0.3])
    counts = rng.poisson(truth)
    points = np.array([[1.0], [3.0], [9.0]])
    law = WeightLaw.fitted(points, poisson.logpmf(counts, points))
    low = law.masses[law.weights[:, 0] == 1.0].sum()
    assert abs(low - 0.7) < 0.1
    assert_allclose(law.mean, [law.masses @ law.weights[:, 0]], **ROUNDING)


def test_probabilities_given_counts_are_bayes_rule():
    law = WeightLaw(np.array([[1.0], [4.0]]), np.array([0.25, 0.75]))
    counts = np.array([0, 2, 7])
    likelihood = poisson.pmf(counts, law.weights)
    expected = law.masses[:, None] * likelihood
    assert_allclose(law.given(np.log(likelihood)), expected / expected.sum(axis=0), rtol=1e-12)
    assert_allclose(law.mixed(np.log(likelihood)), np.log(expected.sum(axis=0)), rtol=1e-12)
