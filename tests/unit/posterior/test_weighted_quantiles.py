"""Quantiles of weighted draws against plain sorting."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.posterior.quantiles import weighted_quantiles

LEVELS = np.array([0.0, 0.001, 0.025, 0.3, 0.5, 0.975, 1.0])


def sorted_quantile(row, weights, level):
    """The definition, from all draws in order."""
    pairs = sorted(zip(row, weights, strict=True))
    values, steps = np.array(pairs).T
    positions = (np.cumsum(steps) - steps / 2) / steps.sum()
    return np.interp(level, positions, values)


@pytest.mark.parametrize("size", [1, 2, 50, 4000, 9000])
@pytest.mark.parametrize("power", [0.0, 1.0, 6.0])
def test_they_are_those_of_sorted_draws(size, power):
    rng = np.random.default_rng([size, int(power)])
    values = rng.standard_normal((6, size)) ** 2
    if power == 0:  # the order of equal draws says nothing where their weights are equal
        values[1] = values[1].round(1)
    values[2] = 3.0
    weights = rng.exponential(size=size) ** power
    ours = weighted_quantiles(values, weights, LEVELS)
    plain = [[sorted_quantile(row, weights, level) for row in values] for level in LEVELS]
    assert_allclose(ours, plain, rtol=1e-9, atol=1e-12)


def test_a_sample_that_misleads_is_not_trusted():
    """All sampled draws are large: they carry the weight, and draws between them are below."""
    values = np.tile(np.arange(8000.0), (2, 1))
    values[1, 1::2] = -values[1, 1::2]
    weights = np.where(np.arange(8000) % 2, 1e-12, 1.0)
    ours = weighted_quantiles(values, weights, LEVELS)
    plain = [[sorted_quantile(row, weights, level) for row in values] for level in LEVELS]
    assert_allclose(ours, plain, rtol=1e-9)


def test_no_rows_and_no_levels():
    weights = np.ones(3000)
    assert weighted_quantiles(np.ones((0, 3000)), weights, LEVELS).shape == (len(LEVELS), 0)
    assert weighted_quantiles(np.ones((2, 3000)), weights, np.zeros(0)).shape == (0, 2)


def test_means_are_averages_over_the_draws(bladder_draws):
    """Means as quadratic forms, against the draws one by one; inside the window and outside."""
    draws, times = bladder_draws, np.linspace(-10.0, 80.0, 40)
    assert_allclose(draws.intensity(times), draws.intensities(times) @ draws.weights, rtol=1e-9)
    inside = np.linspace(0.0, 53.0, 40)
    start = np.zeros_like(inside)
    plain = draws.integrals(start, inside) @ draws.weights
    assert_allclose(draws.expected_integral(start, inside), plain, rtol=1e-9)
    low, high = draws.intensity_edges(inside, LEVELS[2:3], LEVELS[5:6])[:, 0]
    each = draws.intensities(inside)
    plain = [
        [sorted_quantile(row, draws.weights, level) for row in each] for level in LEVELS[[2, 5]]
    ]
    assert_allclose([low, high], plain, rtol=1e-9)


@pytest.fixture(scope="module")
def bladder_draws():
    panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    return gp4c.GP4C(random_state=1).fit(panel).posterior_
