"""Sampling the posterior itself, and the log evidence: the judge of every approximation.

f² is symmetric in the sign of f, so the posterior of f may have many modes between which no
chain moves. A population of draws is therefore carried from the prior to the posterior through
the densities prior · likelihood^β, β from 0 to 1 (sequential Monte Carlo); the modes keep the
weights they had where they still overlapped. Hyper-parameters are fixed or sampled too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.design.kernels import KERNELS
from gp4c.inference.elliptical import Population, Target, population_slice
from gp4c.inference.hyper import Problem
from gp4c.inference.mcmc_diagnostics import bulk_ess, rank_r_hat
from gp4c.inference.paths import LogDensity, PathModel, path_model
from gp4c.inference.sampled import SampledPosterior, systematic
from gp4c.inference.scoring import log_mean_exp
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.threads import one_blas_thread

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Move = Callable[[Population, float, np.random.Generator], Population]

#: effective sample size, as a share of the population, that one step of β leaves
KEPT_SHARE = 0.8
#: draws are moved at each β until their mean correlation with where they were is below this
CORRELATION = 0.4
#: most sweeps at each β
MAX_SWEEPS = 40
#: fewest draws of a population that can guide its own moves
MIN_POPULATION = 20
#: proposals for γ given √γ v in each sweep; they need no likelihood
SCALE_STEPS = 4


# -- one population ---------------------------------------------------------------------------


@dataclass(frozen=True)
class TemperedRun:
    """Draws of one population at β = 1, and its estimate of the log normalising constant."""

    population: Population
    log_evidence: float
    betas: tuple[float, ...]


def temper(
    start: Population,
    move: Move,
    rng: np.random.Generator,
    *,
    kept: float = KEPT_SHARE,
    correlation: float = CORRELATION,
) -> TemperedRun:
    """Carry draws of exp(terms[1])·N(v) to draws of exp(terms[0] + terms[1])·N(v).

    The estimate of the constant between the two is unbiased (on its own scale, not the log's)
    up to the choice of the β from the draws themselves.

    Parameters
    ----------
    kept : float
        Share of the population that reweighting from one β to the next leaves effective.
    correlation : float
        Moves at each β stop when the draws' mean correlation with their start is below it.
    """
    population, n = start, start.x.shape[1]
    log_evidence, betas = 0.0, [0.0]
    while betas[-1] < 1:
        gain = population.terms[0]
        beta = next_beta(gain, betas[-1], kept)
        log_weights = (beta - betas[-1]) * gain
        log_evidence += float(logsumexp(log_weights)) - np.log(n)
        weights = np.exp(log_weights - log_weights.max())
        chosen = population.take(systematic(weights, n, rng))
        population = population.after(_decorrelate(chosen, beta, move, rng, correlation))
        betas.append(beta)
    return TemperedRun(population, log_evidence, tuple(betas))


def next_beta(gain: Floats, beta: float, kept: float) -> float:
    """The largest β ≤ 1 whose weights exp((β − β₀)·gain) keep this share of the draws effective.

    Draws outside the support (gain −∞) are lost at any β and do not count.
    """
    possible = gain[np.isfinite(gain)]

    def excess(step: float) -> float:
        effective = 2 * logsumexp(step * possible) - logsumexp(2 * step * possible)
        return float(effective - np.log(kept * len(possible)))

    if excess(1 - beta) >= 0:
        return 1.0
    from scipy.optimize import brentq  # loads slowly, and fits without a sampler need none of it

    return float(beta + brentq(excess, 0.0, 1 - beta, xtol=1e-12, rtol=1e-6))


def _decorrelate(
    population: Population, beta: float, move: Move, rng: np.random.Generator, correlation: float
) -> Population:
    """Move the draws until they have forgotten where they were, or `MAX_SWEEPS` times."""
    origin = _standardised(population.x)
    for _ in range(MAX_SWEEPS):
        population = move(population, beta, rng)
        agreement = (origin * _standardised(population.x)).mean(axis=1)
        if agreement.mean() < correlation:
            break
    return population


def _standardised(x: Floats) -> Floats:
    deviation = x.std(axis=1, keepdims=True)
    return np.asarray((x - x.mean(axis=1, keepdims=True)) / np.maximum(deviation, 1e-300))


# -- paths and hyper-parameters ---------------------------------------------------------------


@dataclass(frozen=True)
class _HyperPrior:
    """The hyper-parameters' prior as a tempered target: uniform in the box at β = 0."""

    model: PathModel
    size: int = 0

    def start(self, n: int, rng: np.random.Generator) -> Population:
        low, high = self.model.box[:, :1], self.model.box[:, 1:]
        x = low + (high - low) * rng.random((len(low), n))
        return Population(x, self.evaluate(x))

    def evaluate(self, x: Floats) -> Floats:
        box = self.model.box
        outside = np.any((x < box[:, :1]) | (x > box[:, 1:]), axis=0)
        blank = np.zeros((self.model.size, x.shape[1]))
        density = self.model.log_density(np.concatenate([blank, x]))
        # outside the box terms[1] alone decides; 0 keeps β·terms[0] defined
        return np.array([np.where(outside, 0.0, density), np.where(outside, -np.inf, 0.0)])


def draw_prior(model: PathModel, n: int, rng: np.random.Generator) -> Population:
    """Draws of v and of the free hyper-parameters from their prior."""
    theta = np.zeros((0, n))
    if len(model.free):
        prior = _HyperPrior(model)
        move = _mover(prior)
        theta = temper(prior.start(n, rng), move, rng, correlation=0.1).population.x
        theta = theta[:, rng.permutation(n)]
    x = np.concatenate([rng.standard_normal((model.size, n)), theta])
    return Population(x, model.evaluate(x), evaluations=n)


def _mover(target: Target) -> Move:
    def move(population: Population, beta: float, rng: np.random.Generator) -> Population:
        return population_slice(target, population, beta, rng)

    return move


def path_mover(model: PathModel) -> Move:
    """Moves of paths: slices along the population's ellipse, then γ along constant f − g."""
    row = model.log_variance_row

    def move(population: Population, beta: float, rng: np.random.Generator) -> Population:
        population = population_slice(model, population, beta, rng)
        if row is None:
            return population
        return rescale(model, population, row, rng)

    return move


def rescale(
    model: PathModel, population: Population, row: int, rng: np.random.Generator
) -> Population:
    """Update γ with w = √γ v, hence f and the likelihood, held fixed.

    Its density is p(γ) γ^{−M/2} exp(−|w|²/2γ) in ln γ; Metropolis steps of the width of the
    last two factors.
    """
    x, terms, m = population.x.copy(), population.terms.copy(), model.size
    square = (x[:m] ** 2).sum(axis=0) * np.exp(x[row])

    def log_density(log_variance: Floats, prior: Floats) -> Floats:
        return np.asarray(prior - 0.5 * square * np.exp(-log_variance) - m / 2 * log_variance)

    for _ in range(SCALE_STEPS):
        proposal = x.copy()
        proposal[row] += 2.4 * np.sqrt(2 / m) * rng.standard_normal(x.shape[1])
        proposal[:m] *= np.exp((x[row] - proposal[row]) / 2)
        prior = model.log_density(proposal)
        ratio = log_density(proposal[row], prior) - log_density(x[row], terms[1])
        accepted = np.log1p(-rng.random(x.shape[1])) < ratio
        x[:, accepted], terms[1, accepted] = proposal[:, accepted], prior[accepted]
    return Population(x, terms, population.evaluations, population.updates)


def sample_paths(
    model: PathModel, n: int, rng: np.random.Generator, *, correlation: float = CORRELATION
) -> TemperedRun:
    """One tempered population of n paths, from the prior to the posterior.

    The log evidence leaves out Σ ln m! only; the prior of free hyper-parameters is normalised
    over its box.
    """
    return temper(draw_prior(model, n, rng), path_mover(model), rng, correlation=correlation)


# -- the posterior of a problem ---------------------------------------------------------------


@dataclass(frozen=True)
class SamplerReport:
    """How far the draws may be trusted.

    Attributes
    ----------
    log_evidence, log_evidence_error : float
        ln p(counts), Σ ln m! left out, and its Monte-Carlo standard error from the spread of
        independent populations (not a number for one).
    run_log_evidences : (n_chains,)
        One estimate each.
    names : (P,)
        λ at five times, Λ, the log-likelihood and the free hyper-parameters.
    r_hat, ess : (P,)
        Rank-normalised split R̂ between populations, and effective sample size, of each.
    acceptance : float
        Accepted share of all slice proposals.
    n_steps : (n_chains,)
        Steps from the prior to the posterior.
    unexplained : float
        Largest share of the prior variance that the inducing inputs leave out.
    """

    log_evidence: float
    log_evidence_error: float
    run_log_evidences: Floats
    names: tuple[str, ...]
    r_hat: Floats
    ess: Floats
    acceptance: float
    n_steps: Indices
    unexplained: float

    @property
    def curve_r_hat(self) -> float:
        """Largest R̂ of the curve: of λ and Λ."""
        return float(np.max(np.nan_to_num(self.r_hat[self._curve()], nan=1.0)))

    @property
    def curve_ess(self) -> float:
        """Smallest effective sample size of the curve."""
        return float(np.min(self.ess[self._curve()]))

    def _curve(self) -> list[bool]:
        return [name.startswith(("λ", "Λ")) for name in self.names]


def sample_posterior(
    problem: Problem,
    hyper: Hyper | None,
    *,
    log_prior: LogDensity | None = None,
    free: tuple[bool, bool, bool, bool] | None = None,
    weights: Floats | None = None,
    size: int | None = None,
    n_draws: int = 2000,
    n_chains: int = 4,
    correlation: float = CORRELATION,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> tuple[SampledPosterior, SamplerReport]:
    """Draws of the exact posterior from independent tempered populations.

    Parameters
    ----------
    problem : Problem
        Its count term plays no part: the likelihood is exact.
    hyper, log_prior, free, weights, size
        See :func:`gp4c.inference.paths.path_model`.
    n_draws, n_chains : int
        Draws in all, and the populations they are split between.
    correlation : float
        Smaller values move the draws longer.
    n_jobs : int, optional
        Processes of joblib for the populations; the draws do not depend on it.
    """
    from joblib import Parallel, delayed  # only here: other fits need no sampler

    children = np.random.SeedSequence(random_state).spawn(n_chains)
    each = max(int(np.ceil(n_draws / n_chains)), MIN_POPULATION)
    with one_blas_thread():
        model = path_model(
            problem, hyper, log_prior=log_prior, free=free, weights=weights, size=size
        )
        runs = Parallel(n_jobs=n_jobs)(
            delayed(_population)(model, each, child, correlation) for child in children
        )
        posterior = _posterior(problem, model, runs)
        return posterior, _report(model, posterior, runs)


def _population(
    model: PathModel, n: int, seed: np.random.SeedSequence, correlation: float
) -> TemperedRun:
    with one_blas_thread():  # in whatever process joblib chose
        return sample_paths(model, n, np.random.default_rng(seed), correlation=correlation)


def _posterior(problem: Problem, model: PathModel, runs: list[TemperedRun]) -> SampledPosterior:
    """All draws; those of a population share its weight, which is its estimated evidence."""
    x = np.concatenate([run.population.x for run in runs], axis=1)
    log_a, log_gamma, g, log_alpha = model.hyper(x)
    evidence = np.array([run.log_evidence for run in runs])
    share = np.exp(evidence - logsumexp(evidence))
    each = x.shape[1] // len(runs)
    return SampledPosterior(
        kernel=next(name for name, kernel in KERNELS.items() if kernel == problem.kernel),
        inducing=model.inducing,
        draws=x[: model.size],
        weights=np.repeat(share / each, each),
        length_scale=np.exp(log_a),
        variance=np.exp(log_gamma),
        prior_mean=g,
        shape=np.exp(log_alpha),
        chain=np.repeat(np.arange(len(runs)), each),
        window=problem.data.window,
        rate=problem.data.rate,
    )


def _report(
    model: PathModel, posterior: SampledPosterior, runs: list[TemperedRun]
) -> SamplerReport:
    window = posterior.window
    times = window[0] + (window[1] - window[0]) * np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    whole = posterior.integrals(np.array(window[:1]), np.array(window[1:]))
    likelihood = np.concatenate([run.population.terms[:1] for run in runs], axis=1)
    theta = np.concatenate([run.population.x[model.size :] for run in runs], axis=1)
    values = np.concatenate([posterior.intensities(times), whole, likelihood, theta])
    hyper_names = [("ln a", "ln γ", "g", "ln α")[i] for i in model.free]
    names = [f"λ({t:g})" for t in times] + ["Λ", "log-likelihood", *hyper_names]
    chains = values.reshape(len(values), len(runs), -1)
    evidence = np.array([run.log_evidence for run in runs])
    pooled, error = log_mean_exp(evidence)
    work = [run.population for run in runs]
    return SamplerReport(
        log_evidence=float(pooled),
        log_evidence_error=float(error),
        run_log_evidences=evidence,
        names=tuple(names),
        r_hat=np.array([rank_r_hat(c) for c in chains]),
        ess=np.array([bulk_ess(c) for c in chains]),
        acceptance=sum(w.updates for w in work) / sum(w.evaluations for w in work),
        n_steps=np.array([len(run.betas) - 1 for run in runs]),
        unexplained=model.unexplained(),
    )
