"""Counts to come: nodes of effects against closed forms, probabilities against SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from gp4c.model.cells import CountedRows
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.effect_given import EffectNodes, effect_given
from gp4c.posterior.subject_counts import SubjectCounts

COUNTS = np.arange(60.0)


def subject(law, effect, count):
    """One subject with one visit."""
    one, nobody = np.ones(1), np.zeros(1, dtype=np.intp)
    rows = CountedRows(0 * one, one, count * one, one, nobody, np.zeros((1, 0)))
    return SubjectCounts(rows.take(rows.count > 0), rows, 1, LAWS[law], EFFECTS[effect])


@pytest.mark.parametrize("shape", [0.1, 0.5, 3.0, 100.0])
@pytest.mark.parametrize(("count", "expected"), [(0, 3.0), (1, 3.0), (50, 10.0), (1000, 900.0)])
def test_nodes_agree_with_the_negative_binomial_law(shape, count, expected):
    counts = subject("poisson", "gamma", count)
    params = np.log(np.full((1, 2), shape))
    integrals = np.full((len(counts.start), 2), expected)
    exact = effect_given(counts, integrals, params)
    nodes = EffectNodes(
        *counts.effect_nodes(integrals, params), LAWS["poisson"], np.zeros((0, 2))
    )  # fmt: skip
    means = np.full((len(COUNTS), 2), 4.0)
    rate = shape + expected
    law = stats.nbinom(shape + count, rate / (rate + 4.0))
    assert_allclose(exact.cdf(COUNTS, means), law.cdf(COUNTS), atol=1e-12)
    assert_allclose(nodes.cdf(COUNTS, means), law.cdf(COUNTS), atol=1e-6)
    assert_allclose(nodes.probability(COUNTS, means), law.pmf(COUNTS), atol=1e-6)
    assert_allclose(nodes.mean(), exact.mean(), rtol=1e-5)


def test_of_nobody_the_prior_is_known():
    nobody = SubjectCounts.of_nobody(LAWS["bursts"], EFFECTS["gamma"])
    params = np.log(np.array([[0.3], [2.0]]))
    found = effect_given(nobody, np.zeros((0, 1)), params)
    assert_allclose(found.mean(), 1.0, rtol=1e-5)
    prior = stats.gamma(0.3, scale=1 / 0.3)
    direct = prior.expect(lambda v: stats.nbinom(v * 4.0 / 2.0, 1 / 3).cdf(2))
    assert_allclose(found.cdf(np.array([2.0]), np.full((1, 1), 4.0)), direct, atol=1e-5)


@pytest.mark.parametrize("phi", [0.01, 1.0, 30.0])
def test_probabilities_of_bursts_are_negative_binomial(phi):
    rng = np.random.default_rng(2)
    count, mean = rng.integers(0, 60, 40).astype(float), rng.gamma(1.0, 5.0, (40, 3))
    found = LAWS["bursts"].log_probability(count, mean, np.log(np.full((1, 3), phi)))
    theirs = stats.nbinom(mean / phi, 1 / (1 + phi)).logpmf(count[:, None])
    assert_allclose(found, theirs, atol=2e-5)


def test_probabilities_of_single_events_are_poisson():
    count, mean = np.array([3.0, 0.0, 7.0]), np.array([[2.0], [0.5], [9.0]])
    found = LAWS["poisson"].log_probability(count, mean, np.zeros((0, 1)))
    assert_allclose(found, stats.poisson(mean).logpmf(count[:, None]), rtol=1e-12)
