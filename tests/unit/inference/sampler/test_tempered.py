"""Slices, reweighting and tempering on targets whose answers are known in closed form."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from gp4c.inference.sampler.elliptical import Population, population_slice
from gp4c.inference.sampler.tempered import MAX_SWEEPS, decorrelate, next_beta, temper
from gp4c.posterior.draws import systematic
from tolerances import ROUNDING, STANDARD_ERRORS


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


@pytest.mark.parametrize("beta", [0.3, 1.0])
def test_slices_leave_the_target_invariant(beta, rng):
    model = linear_model()
    population = from_posterior(model, 20_000, rng, beta)
    for _ in range(5):
        moved = population_slice(model, population, beta, rng)
        assert np.all(np.any(moved.x != population.x, axis=0))  # a slice always moves
        population = moved
    assert_moments(population.x, *model.posterior(beta))
    assert_allclose(population.terms, model.evaluate(population.x), **ROUNDING)
    assert population.updates == 5 * 20_000
    assert population.evaluations >= population.updates


def test_slices_reach_the_target_from_far_away(rng):
    model = linear_model()
    x = 5 + rng.standard_normal((4, 4000))
    population = Population(x, model.evaluate(x))
    for _ in range(40):
        population = population_slice(model, population, 1.0, rng)
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

        decorrelate(start, 0.5, move, rng, 0.2)
        assert set(made) == {0.5}
        return len(made)

    assert moves_needed(0.0) == 1
    assert moves_needed(1.0) == MAX_SWEEPS
    assert 5 <= moves_needed(0.8) <= 11  # 0.8⁷ = 0.21
