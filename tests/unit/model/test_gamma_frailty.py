"""The gamma frailty integrated out, against integration, many digits and another optimiser."""

import itertools

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.stats import gamma as gamma_law

from gp4c.model.gamma_frailty import (
    best_variance,
    frailty_mean,
    log_marginal,
    refine_variance,
    variance_score,
)
from gp4c.model.laws import EFFECTS


def one(value):
    return np.array([float(value)])


def by_integration(variance, events, exposure, power=0):
    """E γ^(N + power) e^{-γL} by adaptive quadrature over the frailty."""
    law = gamma_law(1.0 / variance, scale=variance)
    middle = (1.0 / variance + events) / (1.0 / variance + exposure)
    pieces = [0.0, middle / 4, middle, 4 * middle, 20 * middle, 200 * middle]
    return sum(
        quad(
            lambda g: g ** (events + power) * np.exp(-g * exposure) * law.pdf(g),
            low,
            high,
            epsabs=0.0,
            epsrel=1e-11,
            limit=200,
        )[0]
        for low, high in itertools.pairwise(pieces)
    )


@pytest.mark.parametrize("variance", [0.05, 0.5, 0.9])
@pytest.mark.parametrize(("events", "exposure"), [(0, 0.4), (1, 2.0), (7, 3.0), (12, 20.0)])
def test_marginal_and_posterior_mean_agree_with_integration(variance, events, exposure):
    integral = by_integration(variance, events, exposure)
    ours = log_marginal(variance, one(events), one(exposure))[0]
    assert_allclose(ours, np.log(integral), rtol=1e-8, atol=1e-8)
    mean = by_integration(variance, events, exposure, power=1) / integral
    assert_allclose(frailty_mean(variance, one(events), one(exposure))[0], mean, rtol=1e-8)


@pytest.mark.parametrize("variance", [0.05, 0.7, 20.0])
def test_the_law_of_effects_has_the_same_integral(variance):
    """Two routes: one α and exact digits as v → 0 here, many α and pooled subjects there."""
    events, exposure = np.array([0.0, 1.0, 9.0, 300.0]), np.array([0.4, 3.0, 2.0, 120.0])
    psi = np.full((1, 1), -np.log(variance))
    theirs = EFFECTS["gamma"].closed_form_each(events, exposure[:, None], psi)[:, 0]
    assert_allclose(log_marginal(variance, events, exposure), theirs, rtol=1e-11)
    assert_allclose(
        frailty_mean(variance, events, exposure), EFFECTS["gamma"].mean(psi[:, 0], events, exposure)
    )


def exact_marginal(variance, events, exposure):
    v = mpmath.mpf(variance)
    a = 1 / v
    return (
        mpmath.loggamma(a + events)
        - mpmath.loggamma(a)
        + events * mpmath.log(v)
        - (a + events) * mpmath.log(1 + v * mpmath.mpf(exposure))
    )


@pytest.mark.parametrize("variance", [1e-13, 1e-8, 1e-4, 0.033, 0.034, 0.7, 40.0, 1e5])
@pytest.mark.parametrize("events", [0, 1, 2, 30, 10**6])
@pytest.mark.parametrize("exposure", [0.02, 4.0, 1e6])
def test_every_digit_is_kept_for_any_variance(variance, events, exposure):
    with mpmath.workdps(60):
        value = exact_marginal(variance, events, exposure)
        slope = mpmath.diff(lambda v: exact_marginal(v, events, exposure), mpmath.mpf(variance))
    ours = log_marginal(variance, one(events), one(exposure))[0]
    assert_allclose(ours, float(value), rtol=1e-13, atol=1e-13)
    # the score is a sum of terms of this size, which cancel near its root
    size = max(events, exposure) ** 2 / (1 + variance * max(events, exposure))
    score = variance_score(variance, one(events), one(exposure))[0]
    assert_allclose(score, float(slope), rtol=1e-11, atol=1e-15 * size)


def test_without_variance_it_is_poisson():
    events, exposure = np.array([0.0, 3.0, 8.0]), np.array([1.5, 2.0, 9.0])
    assert_allclose(log_marginal(0.0, events, exposure), -exposure)
    assert_allclose(frailty_mean(0.0, events, exposure), 1.0)
    assert_allclose(variance_score(0.0, events, exposure), ((events - exposure) ** 2 - events) / 2)


def simulated(seed, shape, n=90):
    rng = np.random.default_rng(seed)
    exposure = rng.uniform(0.5, 6.0, n)
    frailty = rng.gamma(shape, 1.0 / shape, n) if np.isfinite(shape) else np.ones(n)
    return rng.poisson(frailty * exposure).astype(float), exposure, rng.integers(0, 3, n) * 1.0


@pytest.mark.parametrize("shape", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("seed", range(4))
def test_best_variance_is_the_maximum(seed, shape):
    events, exposure, weights = simulated(seed, shape)
    best = best_variance(events, exposure, weights)
    theirs = minimize_scalar(
        lambda u: -float(weights @ log_marginal(np.exp(u), events, exposure)),
        bounds=(-12.0, 8.0),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert_allclose(np.log(best), theirs.x, atol=1e-5)
    assert abs(float(weights @ variance_score(best, events, exposure))) * best < 1e-9
    assert_allclose(refine_variance(best * 1.3, events, exposure, weights), best, rtol=1e-12)
    assert_allclose(refine_variance(best / 50, events, exposure, weights), best, rtol=1e-12)
    assert_allclose(refine_variance(0.0, events, exposure, weights), best, rtol=1e-12)


def test_no_overdispersion_gives_exactly_zero():
    exposure = np.array([3.0, 5.0, 2.0, 7.0])
    assert best_variance(exposure.copy(), exposure, np.ones(4)) == 0.0
    assert best_variance(np.zeros(3), np.zeros(3), np.ones(3)) == 0.0


def test_a_tiny_overdispersion_of_huge_counts_is_found():
    exposure = np.full(4, 1e10)
    events = exposure * (1.0 + 1e-4 * np.array([-1.0, 1.0, -1.0, 1.0]))
    # for large counts the marginal is normal with variance L + v L²
    assert_allclose(best_variance(events, exposure, np.ones(4)), 1e-8 - 1e-10, rtol=1e-3)
