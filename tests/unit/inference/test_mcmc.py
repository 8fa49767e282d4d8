"""Slices, reweighting and tempering on targets whose answers are known in closed form."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import invgamma, kstest, multivariate_normal

from gp4c.design.kernels import KERNELS
from gp4c.inference.elliptical import Population, population_slice, prior_slice
from gp4c.inference.hyper import Problem
from gp4c.inference.mcmc import (
    MAX_SWEEPS,
    _decorrelate,
    draw_prior,
    next_beta,
    rescale,
    sample_posterior,
    temper,
)
from gp4c.inference.paths import path_model
from gp4c.inference.sampled import systematic
from gp4c.inference.sparse_prior import Hyper
from problems import observed, visits_panel
from tolerances import ROUNDING, STANDARD_ERRORS

HYPER = Hyper(length_scale=0.3, variance=0.4, mean=0.8)


def wide_prior(theta):
    """Independent normal priors; α is left out where it is infinite."""
    centre, spread = np.array([-1.2, -1.5, 1.0, 0.5]), np.array([0.6, 1.0, 0.4, 1.0])
    rows = np.isfinite(theta[:, 0])
    z = (theta[rows] - centre[rows, None]) / spread[rows, None]
    return -0.5 * (z**2).sum(axis=0)


@dataclass(frozen=True)
class LinearModel:
    """y = A v + noise: posterior and evidence are Gaussian algebra."""

    matrix: np.ndarray
    observed: np.ndarray
    noise: float = 0.5

    @property
    def size(self):
        return self.matrix.shape[1]

    def evaluate(self, x):
        error = self.observed[:, None] - self.matrix @ x
        n = len(self.observed)
        likelihood = -0.5 * (error**2).sum(axis=0) / self.noise**2
        likelihood -= n * np.log(self.noise) + n / 2 * np.log(2 * np.pi)
        return np.array([likelihood, np.zeros(x.shape[1])])

    def posterior(self, beta=1.0):
        precision = np.eye(self.size) + beta * self.matrix.T @ self.matrix / self.noise**2
        covariance = np.linalg.inv(precision)
        return covariance @ self.matrix.T @ self.observed * beta / self.noise**2, covariance

    def log_evidence(self):
        n = len(self.observed)
        covariance = self.matrix @ self.matrix.T + self.noise**2 * np.eye(n)
        return multivariate_normal(np.zeros(n), covariance).logpdf(self.observed)


def linear_model(d=4, seed=1):
    rng = np.random.default_rng(seed)
    return LinearModel(rng.normal(size=(6, d)), 2 * rng.normal(size=6))


def from_posterior(model, n, rng, beta=1.0):
    mean, covariance = model.posterior(beta)
    x = rng.multivariate_normal(mean, covariance, n).T
    return Population(x, model.evaluate(x))


def assert_moments(x, mean, covariance):
    """Mean and covariance of independent draws within 4 standard errors, entry by entry."""
    n = x.shape[1]
    error = STANDARD_ERRORS / np.sqrt(n)
    spread = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(x.mean(axis=1) - mean) < error * spread)
    by_entry = np.sqrt(covariance**2 + np.outer(spread, spread) ** 2)
    assert np.all(np.abs(np.cov(x) - covariance) < error * by_entry)


@pytest.mark.parametrize("update", [prior_slice, population_slice])
@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_slices_leave_the_target_invariant(update, beta, rng):
    model = linear_model()
    population = from_posterior(model, 20_000, rng, beta)
    for _ in range(5):
        moved = update(model, population, beta, rng)
        assert np.all(np.any(moved.x != population.x, axis=0))  # a slice always moves
        population = moved
    assert_moments(population.x, *model.posterior(beta))
    assert_allclose(population.terms, model.evaluate(population.x), **ROUNDING)
    assert population.updates == 5 * 20_000
    assert population.evaluations >= population.updates


@pytest.mark.parametrize(("update", "rounds"), [(prior_slice, 300), (population_slice, 40)])
def test_slices_reach_the_target_from_far_away(update, rounds, rng):
    model = linear_model()
    x = 5 + rng.standard_normal((4, 4000))
    population = Population(x, model.evaluate(x))
    for _ in range(rounds):
        population = update(model, population, 1.0, rng)
    assert_moments(population.x, *model.posterior())


def test_the_guide_of_the_other_half_does_not_contract_small_populations(rng):
    """The variance of 24 draws in 6 dimensions stays, on average over 200 populations."""
    model = linear_model(d=6)
    mean, covariance = model.posterior()
    root = np.linalg.cholesky(covariance)
    squares = []
    for _ in range(200):
        population = from_posterior(model, 24, rng)
        for _ in range(4):
            population = population_slice(model, population, 1.0, rng)
        whitened = np.linalg.solve(root, population.x - mean[:, None])
        squares.append((whitened**2).mean())
    error = np.std(squares) / np.sqrt(len(squares))
    assert abs(np.mean(squares) - 1) < STANDARD_ERRORS * error
    assert error < 0.02  # a guide made of the moved draws themselves contracts by 0.2


def test_systematic_draws_are_the_weights_rounded(rng):
    weights = rng.dirichlet(np.ones(7))
    for _ in range(50):
        counts = np.bincount(systematic(weights, 100, rng), minlength=7)
        assert np.all(np.abs(counts - 100 * weights) < 1)
        assert counts.sum() == 100


def test_systematic_draws_are_unbiased(rng):
    weights = np.array([0.013, 0.507, 0.48])
    counts = sum(np.bincount(systematic(weights, 10, rng), minlength=3) for _ in range(4000))
    # each count is ⌊10w⌋ plus a Bernoulli variable
    share = 10 * weights % 1
    error = np.sqrt(share * (1 - share) / 4000)
    assert np.all(np.abs(counts / 4000 - 10 * weights) < STANDARD_ERRORS * error)


def test_systematic_draws_with_equal_weights_take_each_once(rng):
    assert_array_equal(systematic(np.full(50, 0.02), 50, rng), np.arange(50))


def test_the_next_beta_keeps_the_share_asked_for(rng):
    gain = 30 * rng.standard_normal(500)
    beta = next_beta(gain, 0.01, 0.7)
    weights = np.exp((beta - 0.01) * (gain - gain.max()))
    assert_allclose(weights.sum() ** 2 / (weights**2).sum(), 0.7 * 500, rtol=1e-4)
    assert 0.01 < beta < 1
    assert next_beta(0.01 * gain, 0.2, 0.7) == 1.0
    with_lost = np.concatenate([gain, np.full(300, -np.inf)])
    assert_allclose(next_beta(with_lost, 0.01, 0.7), beta, rtol=1e-6)


def test_tempering_finds_the_evidence_and_the_posterior(rng):
    model = linear_model()

    def move(population, beta, generator):
        return population_slice(model, population, beta, generator)

    runs = []
    for _ in range(12):
        x = rng.standard_normal((4, 1000))
        runs.append(temper(Population(x, model.evaluate(x)), move, rng))
    evidence = np.array([run.log_evidence for run in runs])
    error = evidence.std(ddof=1) / np.sqrt(len(runs))
    assert error < 0.03
    assert abs(evidence.mean() - model.log_evidence()) < STANDARD_ERRORS * error
    mean, covariance = model.posterior()
    means = np.array([run.population.x.mean(axis=1) for run in runs])
    spread = means.std(axis=0, ddof=1) / np.sqrt(len(runs))
    assert np.all(np.abs(means.mean(axis=0) - mean) < STANDARD_ERRORS * spread)
    # 1,000 draws that have forgotten one another: means vary little more than independent ones
    assert np.all(means.std(axis=0, ddof=1) < 2 * np.sqrt(np.diag(covariance) / 1000))
    for run in runs:
        assert run.betas[0] == 0
        assert run.betas[-1] == 1
        assert np.all(np.diff(run.betas) > 0)


def small_problem(effect=None, size=6, level=2.0):
    data = observed(visits_panel(3, level=level))
    return Problem(data, KERNELS["se"], "exact", effect=effect, n_inducing=size)


def test_rescaling_samples_gamma_given_the_curve(rng):
    """With p(γ) inverse gamma, γ given w = √γ v is inverse gamma again."""
    shape, scale, m = 3.0, 0.8, 6

    def log_prior(theta):  # density of ln γ
        return invgamma.logpdf(np.exp(theta[1]), shape, scale=scale) + theta[1]

    model = path_model(
        small_problem(), HYPER, log_prior=log_prior, free=(False, True, False, False)
    )
    w = rng.standard_normal(m)
    log_gamma = np.full(4000, np.log(0.5))
    x = np.concatenate([w[:, None] / np.exp(log_gamma / 2), log_gamma[None]])
    population = Population(x, model.evaluate(x))
    for _ in range(15):
        population = rescale(model, population, model.log_variance_row, rng)
    gamma = np.exp(population.x[m])
    held = np.sqrt(gamma) * population.x[:m]
    assert_allclose(held, np.repeat(w[:, None], 4000, axis=1), **ROUNDING)
    assert_allclose(population.terms, model.evaluate(population.x), rtol=1e-9)
    posterior = invgamma(shape + m / 2, scale=scale + w @ w / 2)
    assert kstest(gamma, posterior.cdf).pvalue > 1e-3


def test_prior_draws_follow_the_prior(rng):
    """The box is far wider than the prior; draws must find it: Kolmogorov–Smirnov at 0.1%."""

    def log_prior(theta):
        return -0.5 * (((theta[1] + 1.0) / 0.3) ** 2 + ((theta[2] - 2.0) / 0.1) ** 2)

    model = path_model(small_problem(), HYPER, log_prior=log_prior, free=(False, True, True, False))
    x = draw_prior(model, 4000, rng).x
    for row, mean, spread in ((6, -1.0, 0.3), (7, 2.0, 0.1), (0, 0.0, 1.0)):
        assert kstest((x[row] - mean) / spread, "norm").pvalue > 1e-3


def test_the_same_seed_gives_the_same_draws():
    options = {"log_prior": wide_prior, "n_draws": 80, "n_chains": 2}
    first, report = sample_posterior(small_problem("gamma"), None, random_state=5, **options)
    again, same = sample_posterior(small_problem("gamma"), None, random_state=5, **options)
    other, _ = sample_posterior(small_problem("gamma"), None, random_state=6, **options)
    assert_array_equal(first.draws, again.draws)
    assert report.log_evidence == same.log_evidence
    assert not np.array_equal(first.draws, other.draws)


def test_the_report_covers_everything_sampled():
    posterior, report = sample_posterior(
        small_problem("gamma"), None, log_prior=wide_prior, n_draws=400, random_state=0
    )
    assert posterior.size == 400
    assert_allclose(posterior.weights.sum(), 1)
    assert report.names[:5] == ("λ(0.1)", "λ(0.3)", "λ(0.5)", "λ(0.7)", "λ(0.9)")
    assert report.names[-4:] == ("ln a", "ln γ", "g", "ln α")
    assert len(report.names) == len(report.r_hat) == len(report.ess) == 11
    assert len(report.run_log_evidences) == 4
    assert 0.1 < report.acceptance < 1
    assert np.all(report.r_hat < 1.2)
    assert np.all(np.isfinite(posterior.shape))
    # populations weigh as much as their evidence
    share = np.array([posterior.weights[posterior.chain == c].sum() for c in range(4)])
    relative = np.exp(report.run_log_evidences - report.run_log_evidences[0])
    assert_allclose(share / share[0], relative, rtol=1e-10)


def test_fixed_hyper_parameters_stay_fixed():
    posterior, _ = sample_posterior(small_problem(), HYPER, n_draws=40, random_state=0)
    assert_allclose(posterior.length_scale, HYPER.length_scale)
    assert_allclose(posterior.variance, HYPER.variance)
    assert_allclose(posterior.prior_mean, HYPER.mean)
    assert np.all(np.isinf(posterior.shape))


def test_a_fixed_mean_stays_fixed_while_the_rest_moves():
    posterior, report = sample_posterior(
        small_problem(), replace(HYPER, mean=0.0), log_prior=wide_prior,
        free=(True, True, False, False), n_draws=100, random_state=0,
    )  # fmt: skip
    assert np.all(posterior.prior_mean == 0)
    assert len(np.unique(posterior.variance)) > 50
    assert report.names[-2:] == ("ln a", "ln γ")


def test_no_events_give_a_finite_answer():
    posterior, report = sample_posterior(
        small_problem(level=0.0), HYPER, n_draws=400, random_state=0
    )
    assert report.log_evidence < 0
    expected = posterior.expected_integral(np.array([0.0]), np.array([1.0]))[0]
    prior = posterior.rate * (HYPER.mean**2 + HYPER.variance)
    assert 0 < expected < 0.8 * prior


def test_moves_go_on_until_the_start_is_forgotten(rng):
    start = Population(rng.standard_normal((3, 500)), np.zeros((2, 500)))

    def moves_needed(keep):
        """Sweeps of a move that keeps this share of the correlation with the start."""
        made = []

        def move(population, beta, generator):
            made.append(beta)
            fresh = generator.standard_normal(population.x.shape)
            x = keep * population.x + np.sqrt(1 - keep**2) * fresh
            return Population(x, population.terms)

        _decorrelate(start, 0.5, move, rng, 0.2)
        assert set(made) == {0.5}
        return len(made)

    assert moves_needed(0.0) == 1
    assert moves_needed(1.0) == MAX_SWEEPS
    assert 5 <= moves_needed(0.8) <= 11  # 0.8⁷ = 0.21
