"""The posterior made of draws: against the Gaussian mixture it samples, quadrature, the prior."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import ncx2

from gp4c.design.kernels import KERNELS
from gp4c.inference.posterior import Component, Posterior
from gp4c.inference.sampled import SampledPosterior, weighted_quantiles
from gp4c.inference.sparse_prior import SparsePrior
from gp4c.models import persistence
from problems import random_q
from tolerances import BIT_FOR_BIT, STANDARD_ERRORS

WINDOW, RATE = (10.0, 60.0), 7.0
LENGTH = WINDOW[1] - WINDOW[0]
TIMES = np.linspace(*WINDOW, 9)
START, STOP = np.array([10.0, 10.0, 22.5, 30.0]), np.array([60.0, 30.0, 23.0, 55.0])
LEVELS = np.array([0.05, 0.5, 0.9])
#: draws in the comparisons with exact answers
MANY = 20_000
#: quantiles of n draws have standard error √(p(1 − p)/n)/density; this is ±4 of them in level
LEVEL_ERROR = STANDARD_ERRORS * 0.5 / np.sqrt(MANY)


def drawn(components, n=MANY, seed=0, weights=None):
    """Draws from a mixture of components, equally many from each."""
    rng = np.random.default_rng(seed)
    each = n // len(components)
    v = [c.mean[:, None] + c.root @ rng.standard_normal((len(c.mean), each)) for c in components]

    def per_draw(name):
        return np.repeat([getattr(c, name) for c in components], each)

    return SampledPosterior(
        kernel=components[0].kernel,
        inducing=components[0].inducing,
        draws=np.concatenate(v, axis=1),
        weights=np.full(each * len(components), 1 / (each * len(components)))
        if weights is None
        else np.repeat(np.array(weights) / each, each),
        length_scale=per_draw("length_scale"),
        variance=per_draw("variance"),
        prior_mean=per_draw("prior_mean"),
        shape=per_draw("variance") * 10,
        chain=np.repeat(np.arange(len(components)), each),
        window=WINDOW,
        rate=RATE,
    )


def component(seed=0, length_scale=0.25, weight=1.0, mean=0.9, size=9):
    q = random_q(size, seed, mean=0.5, spread=0.25)
    z = np.linspace(0, 1, size)
    return Component(weight, "se", length_scale, 0.3, mean, z, q.mean, q.root)


PARTS = (component(1, 0.25, 0.3), component(2, 0.4, 0.7, mean=-0.4))


@pytest.fixture(scope="module")
def pair():
    """A mixture of two Gaussian processes, and draws from it with the mixture's weights."""
    return Posterior(PARTS, WINDOW, RATE), drawn(PARTS, weights=[0.3, 0.7])


def test_mean_intensity_is_the_mixture_s(pair):
    exact, sampled = pair
    found = sampled.intensity(TIMES)
    error = np.sqrt((sampled.intensities(TIMES) - found[:, None]) ** 2 @ sampled.weights**2)
    assert np.all(np.abs(found - exact.intensity(TIMES)) < STANDARD_ERRORS * error)


def test_quantiles_are_the_mixture_s(pair):
    exact, sampled = pair
    found = sampled.intensity_quantile(TIMES, LEVELS)
    low = exact.intensity_quantile(TIMES, LEVELS - 1.5 * LEVEL_ERROR)  # unequal weights cost draws
    high = exact.intensity_quantile(TIMES, LEVELS + 1.5 * LEVEL_ERROR)
    assert found.shape == (3, 9)
    assert np.all((found > low) & (found < high))


def test_integrals_have_the_mixture_s_moments(pair):
    exact, sampled = pair
    mean, variance = sampled.expected_integral(START, STOP), sampled.integral_variance(START, STOP)
    error = np.sqrt(variance / MANY) * 1.2
    assert np.all(np.abs(mean - exact.expected_integral(START, STOP)) < STANDARD_ERRORS * error)
    assert_allclose(variance, exact.integral_variance(START, STOP), rtol=0.1)
    found = sampled.integral_quantile(START, STOP, LEVELS)
    assert found.shape == (3, 4)
    share = (sampled.integrals(START, STOP)[None] <= found[:, :, None]) @ sampled.weights
    assert_allclose(share, np.repeat(LEVELS[:, None], 4, axis=1), atol=1e-3)


def test_each_draw_s_integral_is_that_of_its_curve():
    sampled = drawn(PARTS, n=4)
    values = sampled.integrals(START, STOP)
    for s in range(4):
        prior = SparsePrior(KERNELS["se"], sampled.inducing, sampled.length_scale[s])

        def intensity(t, s=s, prior=prior):
            b = prior.features(np.array([(t - WINDOW[0]) / LENGTH]))[0]
            f = sampled.prior_mean[s] + np.sqrt(sampled.variance[s]) * (b @ sampled.draws[:, s])
            return RATE / LENGTH * f**2

        expected = [
            quad(intensity, a, b, epsabs=1e-11)[0] for a, b in zip(START, STOP, strict=True)
        ]
        assert_allclose(values[:, s], expected, rtol=1e-8)
        at = [intensity(t) for t in TIMES]
        assert_allclose(sampled.intensities(TIMES)[:, s], at, rtol=1e-10)


def test_samples_are_the_draws_each_as_often(pair):
    _, sampled = pair
    few = drawn(PARTS, n=50)
    sample = few.sample_intensity(TIMES, 50, np.random.default_rng(1))
    assert sample.shape == (50, 9)
    assert_allclose(np.sort(sample[:, 3]), np.sort(few.intensities(TIMES)[3]), rtol=1e-12)
    twice = few.sample_integrals(START, STOP, 100, np.random.default_rng(1))
    whole = np.repeat(few.integrals(START, STOP)[1], 2)
    assert_allclose(np.sort(twice[:, 1]), np.sort(whole), rtol=1e-12)
    # with unequal weights: 70% of the draws come from the second component
    tagged = replace(sampled, shape=sampled.chain.astype(float))
    _, tags = tagged.sample_integrals_and_shapes(START, STOP, 1000, np.random.default_rng(2))
    assert 699 <= tags.sum() <= 701


def test_shapes_belong_to_their_integrals():
    sampled = drawn(PARTS, n=40)
    tagged = replace(sampled, shape=sampled.integrals(START, STOP)[0] * 2)
    integrals, shapes = tagged.sample_integrals_and_shapes(
        START, STOP, 40, np.random.default_rng(0)
    )
    assert_allclose(shapes, 2 * integrals[:, 0], rtol=1e-12)


def test_far_outside_the_window_the_prior_returns():
    sampled = drawn((component(4),))
    far = np.array([-300.0, 400.0])
    scale, prior = RATE / LENGTH, 0.9**2 + 0.3
    assert_allclose(sampled.intensity(far), scale * prior, rtol=1e-9)
    law = ncx2(1, 0.9**2 / 0.3, scale=scale * 0.3)
    for found in (
        sampled.intensity_quantile(far, LEVELS),
        np.quantile(sampled.sample_intensity(far, MANY, np.random.default_rng(0)), LEVELS, axis=0),
    ):
        assert np.all(found > law.ppf(LEVELS - LEVEL_ERROR)[:, None])
        assert np.all(found < law.ppf(LEVELS + LEVEL_ERROR)[:, None])


def test_a_forecast_has_the_spread_of_the_process_beyond():
    """Var ∫ λ after the window from the process itself, drawn densely; 4 standard errors."""
    part = component(4)
    sampled = drawn((part,), n=4000)
    start, stop = np.array([60.0, 50.0]), np.array([85.0, 85.0])
    x = np.linspace(0.8, 1.5, 141)  # unit times of 50 to 85
    f = part.draw(x, 4000, np.random.default_rng(5))
    after = RATE * np.trapezoid(f[40:] ** 2, x[40:], axis=0)
    around = RATE * np.trapezoid(f**2, x, axis=0)
    for i, reference in enumerate((after, around)):
        values = sampled.integrals(start, stop)[i]
        error = np.sqrt((reference.var() + values.var()) / 4000)
        assert abs(values.mean() - reference.mean()) < STANDARD_ERRORS * error
        closed = sampled.expected_integral(start, stop)[i]
        assert abs(closed - reference.mean()) < STANDARD_ERRORS * error
        assert_allclose(values.std(), reference.std(), rtol=0.1)
        quantiles = sampled.integral_quantile(start, stop, LEVELS)[:, i]
        share = (reference[None] <= quantiles[:, None]).mean(axis=1)
        assert_allclose(share, LEVELS, atol=STANDARD_ERRORS * 0.5 * np.sqrt(2 / 4000))


def test_integrals_of_parts_add_up_to_the_whole():
    sampled = drawn(PARTS, n=30)
    start, stop = np.array([10.0, 24.0, 10.0]), np.array([24.0, 60.0, 60.0])
    first, second, whole = sampled.sample_integrals(start, stop, 30, np.random.default_rng(0)).T
    assert_allclose(first + second, whole, rtol=1e-10)


def test_weighted_quantiles_interpolate_between_weights():
    values = np.array([[3.0, 1.0, 2.0]])
    weights = np.array([0.5, 0.25, 0.25])
    # points (0.125, 1), (0.375, 2), (0.75, 3)
    found = weighted_quantiles(values, weights, np.array([0.125, 0.25, 0.375, 0.75, 0.99]))
    assert_allclose(found[:, 0], [1.0, 1.5, 2.0, 3.0, 3.0])
    rng = np.random.default_rng(0)
    many, levels = rng.standard_normal((3, 501)), np.array([0.1, 0.5, 0.8])
    equal = weighted_quantiles(many, np.full(501, 1 / 501), levels)
    assert_allclose(equal, np.quantile(many, levels, axis=1, method="hazen"), rtol=1e-9)


def test_empty_requests():
    sampled = drawn(PARTS, n=10)
    nothing = np.zeros(0)
    assert sampled.intensity(nothing).shape == (0,)
    assert sampled.intensity_quantile(nothing, LEVELS).shape == (3, 0)
    assert sampled.integral_quantile(nothing, nothing, LEVELS).shape == (3, 0)


def test_saved_draws_answer_the_same():
    sampled = drawn(PARTS, n=10)
    again = persistence._decode(json.loads(json.dumps(persistence._encode(sampled))))
    assert_allclose(again.intensity(TIMES), sampled.intensity(TIMES), **BIT_FOR_BIT)
    found = again.sample_integrals(START, STOP, 5, np.random.default_rng(0))
    expected = sampled.sample_integrals(START, STOP, 5, np.random.default_rng(0))
    assert_allclose(found, expected, **BIT_FOR_BIT)
