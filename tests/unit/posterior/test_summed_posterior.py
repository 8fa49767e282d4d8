"""A sum of intensities: cumulants that add up, quantiles against draws, one part as itself."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from gp4c.posterior.sparse_posterior import Posterior
from gp4c.posterior.summed.summed_posterior import SummedPosterior
from tolerances import BIT_FOR_BIT, ROUNDING

TIMES = np.array([1.0, 4.0, 7.5])
LEVELS = np.array([0.025, 0.5, 0.975])


def part(seed: int, size: int = 7, level: float = 1.0) -> Posterior:
    rng = np.random.default_rng(seed)
    return Posterior(
        kernel="se", length_scale=0.2, variance=0.3, prior_mean=level,
        inducing=np.linspace(0.0, 1.0, size), mean=rng.normal(0.0, 0.8, size),
        root=0.3 * np.eye(size), window=(0.0, 10.0), rate=5.0,
    )  # fmt: skip


def test_means_of_the_sum_are_sums_of_means():
    one, two = part(0), part(1)
    both = SummedPosterior((one, two))
    assert_allclose(both.intensity(TIMES), one.intensity(TIMES) + two.intensity(TIMES), **ROUNDING)
    start, stop = np.zeros(3), TIMES
    expected = one.expected_integral(start, stop) + two.expected_integral(start, stop)
    assert_allclose(both.expected_integral(start, stop), expected, **ROUNDING)


def test_quantiles_of_the_sum_are_those_of_draws():
    both = SummedPosterior((part(0), part(1, level=0.7)))
    rng, start = np.random.default_rng(2), np.zeros(3)
    draws = both.sample_intensity(TIMES, 200_000, rng)
    assert_allclose(
        both.intensity_quantile(TIMES, LEVELS), np.quantile(draws, LEVELS, axis=0), rtol=0.02
    )
    integrals = both.sample_integrals(start, TIMES, 200_000, rng)
    assert_allclose(
        both.integral_quantile(start, TIMES, LEVELS), np.quantile(integrals, LEVELS, axis=0),
        rtol=0.01,
    )  # fmt: skip


def test_one_part_answers_for_itself():
    one = part(3)
    alone = SummedPosterior((one,))
    for ask in ("intensity_quantile", "intensity_lower"):
        assert_allclose(
            getattr(alone, ask)(TIMES, LEVELS), getattr(one, ask)(TIMES, LEVELS), **BIT_FOR_BIT
        )
    assert alone.long_run_rate == one.long_run_rate


def test_weights_multiply_parts():
    one, two = part(0), part(1)
    mixed = SummedPosterior((one, two)).weighted(np.array([2.0, 0.5]))
    expected = 2.0 * one.intensity(TIMES) + 0.5 * two.intensity(TIMES)
    assert_allclose(mixed.intensity(TIMES), expected, **ROUNDING)
