"""Joint draws for ArviZ: the curve, its integrals, hyper-parameters and parameters of the laws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.model.quadrature import IntervalIntegrals
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.sparse_posterior import Posterior

if TYPE_CHECKING:
    from gp4c.parts import GaussianProcessModel

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: chains that independent draws are split into; ArviZ's diagnostics ask for more than one
N_CHAINS = 4


@dataclass(frozen=True)
class Asked:
    """Where the draws are evaluated, in the user's time: f at times and events, ∫λ in between."""

    times: Floats
    events: Floats
    start: Floats
    stop: Floats


@dataclass(frozen=True)
class Draws:
    """Joint draws, all of the same curves, in the user's units: λ = f². Draws are columns.

    Attributes
    ----------
    f, at_events : (T, S), (E, S)
    integrals : (intervals, S)
    length_scale, variance, mean : (S,)
    params, beta : (P, S), (p, S)
        Parameters of the laws of effects and counts; coefficients.
    n_chains : int
    weight : (S,), optional
        Shares of the draws of a sampler.
    """

    f: Floats
    at_events: Floats
    integrals: Floats
    length_scale: Floats
    variance: Floats
    mean: Floats
    params: Floats
    beta: Floats
    n_chains: int
    weight: Floats | None = None


def joint_draws(
    model: GaussianProcessModel, asked: Asked, n_draws: int, rng: np.random.Generator
) -> Draws:
    """Draws of everything at once, so that f, its integrals and all parameters agree."""
    size = max(n_draws // N_CHAINS, 1) * N_CHAINS
    if isinstance(model.posterior_, CurveDraws):
        return _weighted_draws(model.posterior_, asked, size, rng)
    assert isinstance(model.posterior_, Posterior)
    return _variational_draws(model, model.posterior_, asked, size, rng)


def _weighted_draws(
    posterior: CurveDraws, asked: Asked, size: int, rng: np.random.Generator
) -> Draws:
    """Weighted draws, resampled to equal weights; those of a sampler as they are, by chain."""
    n_chains, weight = len(np.unique(posterior.chain)), None
    if n_chains > 1:
        who: Indices = rng.permutation(posterior.size)  # no order within a chain
        who = who[np.argsort(posterior.chain[who], kind="stable")]
        weight = posterior.weights[who]
    else:
        n_chains, who = N_CHAINS, posterior.choose(size, rng)
    return _in_user_units(
        posterior,
        asked,
        f=posterior.paths(np.concatenate([asked.times, asked.events]))[:, who],
        integrals=posterior.integrals_of(asked.start, asked.stop, who, rng),
        hyper=(posterior.length_scale[who], posterior.variance[who], posterior.prior_mean[who]),
        params=posterior.params[:, who],
        beta=posterior.coefficients[:, who],
        n_chains=n_chains,
        weight=weight,
    )


def _variational_draws(
    model: GaussianProcessModel,
    posterior: Posterior,
    asked: Asked,
    size: int,
    rng: np.random.Generator,
) -> Draws:
    """Independent draws of a variational posterior."""
    points = posterior.unit(np.concatenate([asked.times, asked.events]))
    low, high = posterior.unit(asked.start), posterior.unit(asked.stop)
    grid = posterior.grid(0.0, 1.0)
    f = posterior.draw(np.concatenate([points, grid.nodes]), size, rng)
    area = np.maximum(IntervalIntegrals(grid, low, high).apply(f[len(points) :] ** 2), 0.0)
    hyper = (posterior.length_scale, posterior.variance, posterior.prior_mean)
    return _in_user_units(
        posterior,
        asked,
        f=f[: len(points)],
        integrals=posterior.rate * area,
        hyper=tuple(np.full(size, value) for value in hyper),
        params=np.repeat(model._point_params(), size, axis=1),
        beta=np.zeros((0, size)),
        n_chains=N_CHAINS,
    )


def _in_user_units(
    posterior: CurveDraws | Posterior,
    asked: Asked,
    *,
    f: Floats,
    hyper: tuple[Floats, ...],
    **others: Any,
) -> Draws:
    """Unit time and unit rate to the data's units; the sign of f is free, and made positive.

    f and −f give the same intensity; a draw is shown with the sign that is positive on average.
    """
    length_scale, variance, mean = hyper
    n_times, root = len(asked.times), np.sqrt(posterior.scale)
    f = root * np.where(f[:n_times].mean(axis=0) < 0, -1.0, 1.0) * f
    return Draws(
        f=f[:n_times],
        at_events=f[n_times:],
        length_scale=length_scale * (posterior.window[1] - posterior.window[0]),
        variance=variance * posterior.scale,
        mean=mean * root,
        **others,
    )
