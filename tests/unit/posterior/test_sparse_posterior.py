"""The posterior: SciPy's noncentral chi-square, dense covariances, sampling, the prior."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import ncx2, norm

from gp4c.model.kernels import KERNELS
from gp4c.model.quadrature import gauss_legendre
from gp4c.model.sparse_prior import JITTER
from gp4c.posterior.sparse_posterior import Posterior
from problems import random_q
from tolerances import CLOSED_FORM, QUANTILE, STANDARD_ERRORS

WINDOW, RATE = (10.0, 60.0), 7.0
LENGTH = WINDOW[1] - WINDOW[0]
TIMES = np.linspace(*WINDOW, 9)
START, STOP = np.array([10.0, 10.0, 22.5, 30.0]), np.array([60.0, 30.0, 23.0, 55.0])


def single(
    seed: int = 0, kernel: str = "se", size: int = 9, length_scale: float = 0.25,
    mean: float = 0.9,
) -> Posterior:  # fmt: skip
    q = random_q(size, seed, mean=0.5, spread=0.25)
    z = np.linspace(0, 1, size)
    return Posterior(kernel, length_scale, 0.3, mean, z, q.mean, q.root, WINDOW, RATE)


def dense_moments(c: Posterior, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and full covariance of f at unit times, unwhitened: μ_u = √γ L m, Σ_u = γ L S Lᵀ."""
    kernel, z, gamma = KERNELS[c.kernel], c.inducing, c.variance

    def k(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return gamma * kernel(np.abs(a[:, None] - b), c.length_scale)

    K = k(z, z) + gamma * JITTER * np.eye(len(z))
    L = np.linalg.cholesky(K)
    A = np.linalg.solve(K, k(z, x)).T
    sigma_u = L @ c.root @ c.root.T @ L.T
    return c.prior_mean + A @ (L @ c.mean), k(x, x) - A @ k(z, x) + A @ sigma_u @ A.T


def quadratic_form(c: Posterior, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """d and A with ∫ f² = |d + A^½ ξ|² in unit time, on panels that end at inducing inputs."""
    inside = c.inducing[(c.inducing > low) & (c.inducing < high)]
    edges = np.array([low, *inside, high])
    x, w = gauss_legendre(12)
    half = np.diff(edges)[:, None] / 2
    nodes = ((edges[1:] + edges[:-1])[:, None] / 2 + half * x).ravel()
    root = np.sqrt((half * w).ravel())
    mean, covariance = dense_moments(c, nodes)
    return root * mean, root[:, None] * covariance * root


# -- moments and quantiles of the intensity ------------------------------------------------------


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_moments_are_those_of_the_unwhitened_process(kernel: str) -> None:
    c, x = single(3, kernel), np.linspace(-0.3, 1.3, 21)
    mean, covariance = dense_moments(c, x)
    ours = c.moments(x)
    assert_allclose(ours[0], mean, rtol=1e-8, atol=1e-8)
    assert_allclose(ours[1], np.diag(covariance), rtol=1e-7, atol=1e-8)
    again, G, residual = c.spread(x)
    assert_allclose(again, ours[0], rtol=1e-12)
    assert_allclose((G**2).sum(axis=1) + residual, ours[1], rtol=1e-12)


@pytest.mark.parametrize("level", [1e-3, 0.025, 0.25, 0.5, 0.9, 0.999])
def test_quantiles_of_the_intensity_are_noncentral_chi_square(level: float) -> None:
    posterior = single(seed=4)
    mean, variance = posterior.moments(posterior.unit(TIMES))
    expected = ncx2.ppf(level, 1, mean**2 / variance) * variance * RATE / LENGTH
    ours = posterior.intensity_quantile(TIMES, np.array([level]))[0]
    assert_allclose(ours, expected, **QUANTILE)


@pytest.mark.parametrize("level", [0.025, 0.125, 0.4])
def test_lower_edges_are_quantiles_of_f_up_to_its_sign(level: float) -> None:
    posterior = single(seed=2, kernel="matern52", mean=-0.4)
    mean, variance = posterior.moments(posterior.unit(TIMES))
    expected = posterior.scale * np.maximum(norm(abs(mean), variance**0.5).ppf(level), 0.0) ** 2
    ours = posterior.intensity_lower(TIMES, np.array([level]))[0]
    assert_allclose(ours, expected, rtol=1e-9, atol=1e-13)
    assert np.all(ours <= posterior.intensity_quantile(TIMES, np.array([level]))[0])


def test_a_rate_that_may_be_zero_has_a_band_that_begins_at_zero() -> None:
    posterior = replace(single(5), mean=np.zeros(9), prior_mean=0.01)
    levels = np.array([0.025, 0.25])
    assert np.all(posterior.intensity_lower(TIMES, levels) == 0.0)
    assert np.all(posterior.intensity_quantile(TIMES, levels) > 0.0)
    far = replace(posterior, prior_mean=30.0)
    edges = far.intensity_lower(TIMES, levels)
    assert_allclose(edges, far.intensity_quantile(TIMES, levels), rtol=1e-9)


def test_a_certain_intensity_has_itself_as_quantiles() -> None:
    posterior = replace(single(5), root=np.zeros((9, 9)), variance=1e-30)
    ours = posterior.intensity_quantile(TIMES, np.array([0.025, 0.975]))
    assert_allclose(ours, np.broadcast_to(0.81 * RATE / LENGTH, ours.shape), rtol=1e-9)


def test_draws_have_the_mean_and_quantiles_that_are_stated() -> None:
    posterior, n = single(1), 40_000
    draws = posterior.sample_intensity(TIMES, n, np.random.default_rng(6))
    assert draws.shape == (n, len(TIMES))
    error = draws.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(draws.mean(axis=0) - posterior.intensity(TIMES)) < STANDARD_ERRORS * error)
    for level in (0.1, 0.5, 0.95):
        share = (draws <= posterior.intensity_quantile(TIMES, np.array([level]))[0]).mean(axis=0)
        assert_allclose(share, level, atol=STANDARD_ERRORS * np.sqrt(level * (1 - level) / n))


@pytest.mark.parametrize("kernel", ["se", "matern32"])
def test_draws_of_f_have_the_covariance_of_the_process(kernel: str) -> None:
    # few inducing inputs: the residual process must be drawn as well
    c, x, n = single(7, kernel, size=4, length_scale=0.15), np.linspace(0.0, 1.0, 7), 40_000
    draws = c.draw(x, n, np.random.default_rng(7))
    mean, covariance = dense_moments(c, x)
    deviation = np.sqrt(np.diag(covariance))
    assert_allclose(draws.mean(axis=1), mean, atol=STANDARD_ERRORS * deviation.max() / np.sqrt(n))
    spread = np.sqrt((covariance**2 + np.outer(deviation, deviation) ** 2) / n)
    assert np.all(np.abs(np.cov(draws) - covariance) < (STANDARD_ERRORS + 1) * spread)


def test_draws_of_a_smooth_process_are_smooth() -> None:
    # default spacing; f(x + δ) − f(x) has variance 2(C(x, x) − C(x, x + δ)), here about 1e-6
    c, x = single(17, size=7), np.array([0.4, 0.4005])
    draws = c.draw(x, 4000, np.random.default_rng(17))
    _, covariance = dense_moments(c, x)
    expected = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert_allclose((draws[1] - draws[0]).var(), expected, rtol=0.15)


# -- integrals -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_expected_integrals_are_integrals_of_the_expected_intensity(kernel: str) -> None:
    posterior = single(seed=8, kernel=kernel)
    knots = WINDOW[0] + LENGTH * posterior.inducing

    def intensity(t: float) -> float:
        return float(posterior.intensity(np.array([t]))[0])

    for low, high in zip(START, STOP, strict=True):
        edges = [low, *knots[(knots > low) & (knots < high)], high]
        expected = sum(
            quad(intensity, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pairwise(edges)
        )
        ours = posterior.expected_integral(np.array([low]), np.array([high]))[0]
        assert_allclose(ours, expected, **CLOSED_FORM)


def test_cumulants_are_those_of_the_quadratic_form_in_node_space() -> None:
    # κ₂ = 2 tr A² + 4 dᵀAd and κ₃ = 8 tr A³ + 24 dᵀA²d of the dense process, residual included
    posterior = single(seed=9)
    ours = posterior._integral_cumulants(START, STOP)
    for j, (low, high) in enumerate(zip(posterior.unit(START), posterior.unit(STOP), strict=True)):
        d, A = quadratic_form(posterior, low, high)
        first = d @ d + np.trace(A)
        second = 2 * np.sum(A * A) + 4 * d @ A @ d
        third = 8 * np.trace(A @ A @ A) + 24 * d @ A @ A @ d
        assert_allclose([k[j] for k in ours], [first, second, third], rtol=2e-5)


def variance_ratio(posterior: Posterior, low: float, high: float) -> float:
    """Our variance of ∫λ relative to that of the dense process."""
    d, A = quadratic_form(posterior, *posterior.unit(np.array([low, high])))
    expected = RATE**2 * (2 * np.sum(A * A) + 4 * d @ A @ d)
    _, variance, _ = posterior._integral_cumulants(np.array([low]), np.array([high]))
    return float(RATE**2 * variance[0] / expected)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_variance_at_the_default_spacing_of_inducing_inputs(kernel: str) -> None:
    size = int(np.ceil(1 / (KERNELS[kernel].spacing * 0.25))) + 1
    posterior = single(seed=9, kernel=kernel, size=size)
    # the residual process is left out; Matérn-3/2 keeps the most of it
    assert_allclose(variance_ratio(posterior, 10.0, 60.0), 1.0, atol=2e-3)
    assert_allclose(variance_ratio(posterior, 30.0, 34.0), 1.0, atol=3e-2)


def test_variance_with_few_inducing_inputs() -> None:
    posterior = single(seed=9, size=4, length_scale=0.15)
    assert_allclose(variance_ratio(posterior, 22.0, 30.0), 1.0, atol=0.02)


@pytest.mark.xfail(
    strict=True,
    reason="residual variance below SMALL_RESIDUAL·γ is treated as independent from node to node "
    "and left out of κ₂ and κ₃; beside a posterior deviation of 3% of √γ it is not small",
)
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_variance_where_data_have_determined_f_well(kernel: str) -> None:
    # posterior deviations of 3% of the prior's, as after some thousand events; default spacing
    size = int(np.ceil(1 / (KERNELS[kernel].spacing * 0.25))) + 1
    tight = replace(single(9, kernel, size=size), root=0.03 * np.eye(size))
    assert_allclose(variance_ratio(tight, 30.0, 30.5), 1.0, atol=0.02)


def test_variance_outside_the_window() -> None:
    # far from the data f is the prior: Var ∫f² = ∫∫ 2C² + 4g²C
    assert_allclose(variance_ratio(single(seed=9), 70.0, 110.0), 1.0, atol=0.05)


def test_variance_and_mean_by_sampling() -> None:
    posterior, n = single(1), 40_000
    draws = posterior.sample_integrals(START, STOP, n, np.random.default_rng(10))
    error = draws.std(axis=0) / np.sqrt(n)
    mean = posterior.expected_integral(START, STOP)
    assert np.all(np.abs(draws.mean(axis=0) - mean) < STANDARD_ERRORS * error)
    centred = (draws - mean) ** 2
    error = centred.std(axis=0) / np.sqrt(n)
    ours = RATE**2 * posterior._integral_cumulants(START, STOP)[1]
    assert np.all(np.abs(centred.mean(axis=0) - ours) < STANDARD_ERRORS * error)


def test_draws_of_short_integrals_are_positive() -> None:
    start = np.linspace(10.0, 59.0, 300)
    draws = single(seed=18, size=7).sample_integrals(
        start, start + 0.02, 500, np.random.default_rng(18)
    )
    assert draws.min() > 0.0


def test_draws_of_integrals_add_up() -> None:
    ends = np.array([10.0, 18.0, 41.0, 60.0])
    start, stop = np.append(ends[:-1], 10.0), np.append(ends[1:], 60.0)
    draws = single(1).sample_integrals(start, stop, 50, np.random.default_rng(11))
    assert_allclose(draws[:, :3].sum(axis=1), draws[:, 3], rtol=1e-9)
    assert draws.min() >= 0.0


# -- quantiles of integrals: Jensen and Solomon's law is an approximation ------------------------

LEVELS = np.array([0.025, 0.25, 0.5, 0.75, 0.975])


def quantile_errors(spread: float, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of variation of three integrals, and P(∫λ ≤ stated quantile) − level."""
    q = random_q(9, 12, mean=0.3 if mean else 0.0, spread=spread)
    z, n = np.linspace(0, 1, 9), 60_000
    posterior = Posterior("se", 0.25, 1.0, mean, z, q.mean, 0.5 * q.root, WINDOW, RATE)
    start, stop = np.array([10.0, 20.0, 30.0]), np.array([60.0, 40.0, 33.0])
    draws = posterior.sample_integrals(start, stop, n, np.random.default_rng(12))
    quantiles = posterior.integral_quantile(start, stop, LEVELS)
    shares = (draws[None] <= quantiles[:, None, :]).mean(axis=1)
    return draws.std(axis=0) / draws.mean(axis=0), shares - LEVELS[:, None]


def test_quantiles_of_well_determined_integrals() -> None:
    variation, errors = quantile_errors(0.2, 1.0)
    assert variation.max() < 0.4
    assert np.abs(errors).max() < 0.002 + STANDARD_ERRORS * 0.5 / np.sqrt(60_000)


def test_upper_quantiles_of_diffuse_integrals() -> None:
    variation, errors = quantile_errors(1.0, 0.0)
    assert variation.max() > 0.7
    assert np.abs(errors[3:]).max() < 0.01


@pytest.mark.xfail(
    strict=True,
    reason="Jensen and Solomon's law puts the 2.5% quantile of a diffuse integral (coefficient of "
    "variation above 0.7) at nearly 0; a saddlepoint (r*) inversion is within 0.3 points there",
)
def test_lower_quantiles_of_diffuse_integrals() -> None:
    _, errors = quantile_errors(1.0, 0.0)
    assert np.abs(errors[0]).max() < 0.01


# -- outside the window --------------------------------------------------------------------------


def test_far_outside_the_model_is_its_prior() -> None:
    posterior = single(seed=13)
    c = posterior
    far = np.array([-300.0, 400.0])
    level = posterior.scale * (c.prior_mean**2 + c.variance)
    assert_allclose(posterior.intensity(far), level, rtol=1e-9)
    ours = posterior.expected_integral(np.array([200.0, -600.0]), np.array([700.0, -500.0]))
    assert_allclose(ours, level * np.array([500.0, 100.0]), rtol=1e-9)


@pytest.mark.parametrize("ends", [(55.0, 75.0), (-5.0, 12.0), (20.0, 900.0), (-400.0, 500.0)])
def test_integrals_across_the_windows_end(ends: tuple[float, float]) -> None:
    posterior = single(seed=13)
    a = LENGTH * posterior.length_scale

    def intensity(t: float) -> float:
        return float(posterior.intensity(np.array([t]))[0])

    edges = np.linspace(*ends, int(np.ceil((ends[1] - ends[0]) / a)) + 2)
    expected = sum(
        quad(intensity, low, high, epsabs=1e-12, epsrel=1e-12)[0] for low, high in pairwise(edges)
    )
    ours = posterior.expected_integral(np.array([ends[0]]), np.array([ends[1]]))[0]
    assert_allclose(ours, expected, rtol=1e-9)


def test_draws_just_outside_have_the_dense_variance() -> None:
    posterior, n = single(seed=14), 20_000
    d, A = quadratic_form(posterior, *posterior.unit(np.array([62.0, 85.0])))
    expected = RATE**2 * (2 * np.sum(A * A) + 4 * d @ A @ d)
    draws = posterior.sample_integrals(
        np.array([62.0]), np.array([85.0]), n, np.random.default_rng(14)
    )[:, 0]
    centred = (draws - draws.mean()) ** 2
    assert abs(centred.mean() - expected) < STANDARD_ERRORS * centred.std() / np.sqrt(n)


def test_draws_far_outside_have_the_variance_of_the_prior() -> None:
    posterior, n = single(seed=14), 4_000
    c = posterior
    low, high = 60.0 + 12 * LENGTH * c.length_scale, 60.0 + 100 * LENGTH * c.length_scale
    draws = posterior.sample_integrals(
        np.array([low]), np.array([high]), n, np.random.default_rng(15)
    )[:, 0]
    # Var ∫f² = ∫∫ 2γ²k² + 4g²γk, with ∫k = √(2π) a and ∫k² = √π a on a long interval
    g, gamma, a = c.prior_mean, c.variance, c.length_scale
    length = (high - low) / LENGTH
    per_length = 2 * gamma**2 * np.sqrt(np.pi) * a + 4 * g**2 * gamma * np.sqrt(2 * np.pi) * a
    assert_allclose(draws.var(), RATE**2 * per_length * length, rtol=0.15)


# -- symmetry and seeds ---------------------------------------------------------------------------


def test_the_sign_of_f_does_not_matter() -> None:
    one = single(16)
    other = replace(one, mean=-one.mean, prior_mean=-one.prior_mean)
    levels = np.array([0.1, 0.9])
    assert_allclose(one.intensity(TIMES), other.intensity(TIMES), rtol=1e-12)
    for method, args in [("intensity_quantile", (TIMES,)), ("integral_quantile", (START, STOP))]:
        mine, theirs = (getattr(p, method)(*args, levels) for p in (one, other))
        assert_allclose(mine, theirs, rtol=1e-9)


def test_the_same_seed_gives_the_same_draws() -> None:
    first, second = (
        single(1).sample_integrals(START, STOP, 20, np.random.default_rng(3)) for _ in range(2)
    )
    assert np.array_equal(first, second)
