"""Sequential Monte Carlo from the prior to the posterior: one population of draws.

f² is symmetric in the sign of f, so the posterior of f may have many modes between which no
chain moves. A population of draws is therefore carried from the prior to the posterior through
the densities prior · likelihood^β, β from 0 to 1; the modes keep the weights they had where they
still overlapped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.sampler.elliptical import Population
from gp4c.posterior.draws import systematic

Floats = NDArray[np.float64]
Move = Callable[[Population, float, np.random.Generator], Population]

#: effective sample size, as a share of the population, that one step of β leaves
KEPT_SHARE = 0.8
#: draws are moved at each β until their mean correlation with where they were is below this
CORRELATION = 0.4
#: most sweeps at each β
MAX_SWEEPS = 40
#: fewest draws of a population that can guide its own moves
MIN_POPULATION = 20


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
        population = population.after(decorrelate(chosen, beta, move, rng, correlation))
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


def decorrelate(
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
