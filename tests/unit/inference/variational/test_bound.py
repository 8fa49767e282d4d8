"""The bound: the paper's Theorem 2 written out densely, identities, and every gradient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from gp4c.inference.variational.bound import Gaussian, theorem2
from gp4c.inference.variational.count_terms.lemma2 import LEMMA2_CONSTANT
from gp4c.inference.variational.estep import e_step
from gp4c.model.kernels import SquaredExponential
from gp4c.model.sparse_prior import JITTER, Hyper
from problems import (
    central_difference,
    gaussian,
    observed,
    random_q,
    symmetric_directions,
    visits_panel,
    workspace,
)
from tolerances import CLOSED_FORM, FINITE_DIFFERENCE, ROUNDING, STANDARD_ERRORS

COUNT_TERMS = ["lemma2", "pointwise", "exact"]
EFFECTS = [None, "weight", "gamma"]
HYPER = Hyper(0.3, 0.4, 0.8, 0.9)


# -- the paper's formulas, unwhitened ------------------------------------------------------------


class PaperBound:
    """Theorem 2 with g = 0, subject by subject: equations (9) and (17) and Appendix C.

    Everything is dense and in the paper's variables: K_RR, Φ of each interval, μ, Σ.
    """

    def __init__(self, z: np.ndarray, a: float, gamma: float, mu: np.ndarray, sigma: np.ndarray):
        self.z, self.a, self.gamma, self.mu, self.sigma = z, a, gamma, mu, sigma
        gap = z[:, None] - z
        self.K = gamma * (np.exp(-(gap**2) / (2 * a**2)) + JITTER * np.eye(len(z)))
        self.K_inverse = np.linalg.inv(self.K)

    def moments(self, low: float, high: float) -> tuple[float, float]:
        """∫ E²f and ∫ Var f over one interval."""
        ends = (np.array([low]), np.array([high]))
        phi = self.gamma**2 * SquaredExponential().overlap(self.z, *ends, self.a)[0]
        sandwich = self.K_inverse @ phi @ self.K_inverse
        mean_square = float(np.trace(sandwich @ np.outer(self.mu, self.mu)))
        variance = self.gamma * (high - low) - np.trace(self.K_inverse @ phi)
        return mean_square, float(variance + np.trace(sandwich @ self.sigma))

    def kl(self) -> float:
        """KL(N(μ, Σ) ‖ N(0, K_RR))."""
        trace = np.trace(self.K_inverse @ self.sigma) + self.mu @ self.K_inverse @ self.mu
        log_dets = np.linalg.slogdet(self.K)[1] - np.linalg.slogdet(self.sigma)[1]
        return float(trace - len(self.mu) + log_dets) / 2


@pytest.mark.parametrize("b", [0.0, 0.3, 1.0])
def test_theorem_2_written_out_with_the_papers_matrices(b: float) -> None:
    window = (2.0, 12.0)
    panel = visits_panel(11, 5, 4, window=window)
    data = observed(panel)
    work, q = workspace(data, b=b, size=5, length_scale=0.25), random_q(5, 8)
    hyper = Hyper(0.25, 0.7, 0.0)
    ours = theorem2(work, hyper, q).bound

    # the same in the user's units: f_user = √(rate/length) f, times stretched
    length = window[1] - window[0]
    scale = data.rate / length
    gamma = scale * hyper.variance
    root = np.sqrt(gamma) * work.prior.factor
    z = window[0] + length * work.prior.inducing
    paper = PaperBound(z, 0.25 * length, gamma, root @ q.mean, root @ q.covariance @ root.T)
    counts = exposure = 0.0
    for low, high, m in zip(panel.start, panel.stop, panel.count, strict=True):
        mean_square, variance = paper.moments(low, high)
        exposure += mean_square + variance
        counts += m * np.log(mean_square + b * variance) if m else 0.0
    expected = counts - exposure - paper.kl() - LEMMA2_CONSTANT * panel.n_events
    assert_allclose(ours.kl, paper.kl(), rtol=1e-9)
    assert_allclose(ours.exposure, exposure, rtol=1e-9)
    assert_allclose(ours.total, expected, rtol=1e-10)


def test_exposure_with_a_prior_mean_by_the_closed_forms() -> None:
    # ∫(E f)² = g²|I| + 2g√γ mᵀL⁻¹∫k + γ⟨Φ, L⁻ᵀmmᵀL⁻¹⟩ and ∫Var f, squared exponential
    data = observed(visits_panel(12, 5, 4))
    work, q = workspace(data, size=5, length_scale=0.25), random_q(5, 9)
    hyper, kernel, z = Hyper(0.25, 0.7, 1.3), SquaredExponential(), work.prior.inducing
    L_inverse = np.linalg.inv(work.prior.factor)
    single = kernel.integral(z, data.start, data.stop, 0.25) @ L_inverse.T
    double = L_inverse @ kernel.overlap(z, data.start, data.stop, 0.25) @ L_inverse.T
    length, g, gamma = data.stop - data.start, hyper.mean, hyper.variance
    second = q.covariance - np.eye(5) + np.outer(q.mean, q.mean)
    mass = (g**2 + gamma) * length + 2 * g * np.sqrt(gamma) * single @ q.mean
    mass += gamma * (double * second).sum(axis=(1, 2))
    assert_allclose(theorem2(work, hyper, q).bound.exposure, data.exposure @ mass, **CLOSED_FORM)


# -- identities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("count_term", COUNT_TERMS)
def test_terms_add_up(count_term: str) -> None:
    work = workspace(observed(visits_panel(1)), count_term=count_term)
    bound = theorem2(work, HYPER, random_q(6)).bound
    parts = bound.counts + bound.events - bound.exposure - bound.kl + bound.constant
    assert_allclose(bound.total, parts, **ROUNDING)


@pytest.mark.parametrize("kernel", ["se", "matern32", "matern52"])
def test_at_the_prior_nothing_is_learned(kernel: str) -> None:
    data = observed(visits_panel(1))
    work = workspace(data, kernel=kernel)
    bound = theorem2(work, HYPER, Gaussian.prior(6)).bound
    at_risk = data.exposure @ (data.stop - data.start)
    assert bound.kl == 0.0
    assert_allclose(bound.exposure, (HYPER.mean**2 + HYPER.variance) * at_risk, **CLOSED_FORM)


def test_kl_of_a_random_q_by_sampling(rng: np.random.Generator) -> None:
    q = random_q(4, 2)
    z = rng.normal(size=(4, 200_000))
    v = q.mean[:, None] + q.root @ z
    log_ratio = -0.5 * (z**2).sum(axis=0) - q.log_det / 2 + 0.5 * (v**2).sum(axis=0)
    error = log_ratio.std() / np.sqrt(log_ratio.size)
    assert abs(q.kl() - log_ratio.mean()) < STANDARD_ERRORS * error


@given(seed=st.integers(0, 10_000), size=st.integers(1, 6))
def test_natural_parameters_and_moments_are_the_same_gaussian(seed: int, size: int) -> None:
    q = random_q(size, seed)
    assert_allclose(q.precision @ q.covariance, np.eye(size), rtol=0, atol=1e-8)
    back = Gaussian.from_natural(q.precision, q.linear)
    assert back is not None
    assert_allclose(back.mean, q.mean, rtol=1e-8, atol=1e-8)
    assert_allclose(back.covariance, q.covariance, rtol=1e-8, atol=1e-8)
    assert_allclose(back.log_det, np.linalg.slogdet(q.covariance)[1], rtol=1e-8, atol=1e-8)


def test_natural_parameters_that_are_no_gaussian_are_refused() -> None:
    assert Gaussian.from_natural(np.diag([1.0, -1.0]), np.zeros(2)) is None
    assert Gaussian.from_natural(np.diag([1.0, np.nan]), np.zeros(2)) is None
    assert Gaussian.from_natural(np.eye(2), np.array([0.0, np.inf])) is None


# -- ordering of the count terms -----------------------------------------------------------------


@given(seed=st.integers(0, 10_000), b=st.floats(0.0, 1.0), spread=st.floats(0.01, 2.0))
def test_paper_bound_below_pointwise_below_exact(seed: int, b: float, spread: float) -> None:
    data = observed(visits_panel(seed, 3, 2))
    q = random_q(6, seed, spread=spread)
    loose, tight, exact = (
        theorem2(workspace(data, count_term=term, b=b), HYPER, q).bound.total
        for term in COUNT_TERMS
    )
    assert loose <= tight + 1e-9
    assert tight <= exact + 1e-9


def test_the_exact_bound_is_below_the_log_evidence() -> None:
    # evidence of a small problem by brute force: draws of v from the prior
    panel = visits_panel(21, 3, 2, level=1.0)
    data = observed(panel)
    work = workspace(data, count_term="exact", size=5, length_scale=0.8)
    hyper = Hyper(0.8, 0.3, 0.9)
    rng, kernel, z = np.random.default_rng(5), SquaredExponential(), work.prior.inducing
    L_inverse = np.linalg.inv(work.prior.factor)
    single = kernel.integral(z, data.start, data.stop, 0.8) @ L_inverse.T
    double = L_inverse @ kernel.overlap(z, data.start, data.stop, 0.8) @ L_inverse.T
    length, n = data.stop - data.start, 200_000
    v = rng.normal(size=(n, 5))
    # the residual process is left out of the draws: its variance is far below what matters
    assert work.residual.max() < 1e-5
    quadratic = np.einsum("ni,jik,nk->nj", v, double, v, optimize=True)
    mass = hyper.mean**2 * length + 2 * hyper.mean * np.sqrt(hyper.variance) * v @ single.T
    mass = np.maximum(mass + hyper.variance * quadratic, 1e-300)
    logs = np.log(mass) @ data.count - mass @ data.exposure + data.constant
    evidence = logsumexp(logs) - np.log(n)
    error = np.exp(logs - evidence).std() / np.sqrt(n)
    best = e_step(work, hyper, Gaussian.prior(5), 1e-10).evaluation.bound.total
    assert error < 0.01
    assert best < evidence + STANDARD_ERRORS * error
    assert best > evidence - 0.3  # and it is tight: DESIGN.md, section 5


# -- gradients -----------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("count_term", COUNT_TERMS)
def test_gradients_by_mean_and_covariance(count_term: str, effect: str | None) -> None:
    work = workspace(observed(visits_panel(3, 4, 3)), count_term=count_term, effect=effect, size=4)
    q = random_q(4, 3)

    def value(mean: np.ndarray, S: np.ndarray) -> float:
        here = gaussian(mean, S)
        return theorem2(work, HYPER, here).bound.total + here.kl()

    at = theorem2(work, HYPER, q)
    by_mean = central_difference(lambda m: value(m, q.covariance), q.mean)
    assert_allclose(at.grad_mean, by_mean, **FINITE_DIFFERENCE)
    for direction in symmetric_directions(4):
        slope = central_difference(
            lambda e, d=direction: value(q.mean, q.covariance + e[0] * d), np.zeros(1)
        )[0]
        assert_allclose((at.grad_covariance * direction).sum(), slope, **FINITE_DIFFERENCE)


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("kernel", ["se", "matern32"])
@pytest.mark.parametrize("count_term", COUNT_TERMS)
def test_gradient_by_hyper_parameters_at_fixed_q(
    count_term: str, kernel: str, effect: str | None
) -> None:
    data, q = observed(visits_panel(4, 4, 3)), random_q(5, 4)
    options = {"count_term": count_term, "effect": effect, "kernel": kernel, "size": 5}
    hyper = HYPER if effect == "gamma" else Hyper(0.3, 0.4, 0.8)

    def value(vector: np.ndarray) -> float:
        here = Hyper.from_vector(vector)
        return theorem2(
            workspace(data, length_scale=here.length_scale, **options), here, q
        ).bound.total

    work = workspace(data, length_scale=0.3, **options)
    ours = work.hyper_gradient(hyper, q, theorem2(work, hyper, q))
    free = 4 if effect == "gamma" else 3

    def partial(x: np.ndarray) -> float:
        return value(np.concatenate([x, hyper.to_vector()[free:]]))

    expected = central_difference(partial, hyper.to_vector()[:free], 1e-4)
    assert_allclose(ours[:free], expected, rtol=2e-6, atol=2e-6)
    assert np.all(ours[free:] == 0.0)


# -- sites ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("count_term", COUNT_TERMS)
def test_sites_give_one_full_natural_gradient_step(count_term: str) -> None:
    work, q = workspace(observed(visits_panel(5)), count_term=count_term), random_q(6, 5)
    at = theorem2(work, HYPER, q)
    sites = at.sites()
    assert work.accepts(sites)
    there = work.from_sites(HYPER, sites)
    precision = np.eye(6) - 2 * at.grad_covariance
    if there is None:  # the step leaves the cone: then so does the direct formula
        assert np.linalg.eigvalsh(precision).min() <= 0
        return
    assert_allclose(there.precision, precision, rtol=1e-9, atol=1e-9)
    linear = at.grad_mean - 2 * at.grad_covariance @ q.mean
    assert_allclose(there.linear, linear, rtol=1e-8, atol=1e-8)


def test_sites_of_another_grid_are_refused() -> None:
    data = observed(visits_panel(5))
    sites = theorem2(workspace(data, size=6), HYPER, random_q(6)).sites()
    assert not workspace(data, size=5).accepts(sites)
    assert not workspace(data, size=6, count_term="exact").accepts(sites)
