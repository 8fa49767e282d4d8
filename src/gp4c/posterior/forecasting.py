"""Counts in windows to come: draws of the rate's integral, and count laws given them.

Given the curve f the count of a subject in a window is Poisson with mean υ e ∫λ. A gamma effect
υ ~ Gamma(α, α) of a subject of whom m events were seen where R(f) were expected has the
conditional law Gamma(α + m, α + R(f)), for every f: drawing f first and υ given f keeps the
dependence between the two, and the shared f that between subjects.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, gammaincc

from gp4c.model.quadrature import IntervalIntegrals
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.sparse_posterior import Posterior

Floats = NDArray[np.float64]


# -- the rate's integral -----------------------------------------------------------------------


def integral_draws(
    posterior: Posterior | CurveDraws,
    start: Floats,
    stop: Floats,
    size: int,
    rng: np.random.Generator,
    beyond: str = "prior",
) -> Floats:
    """Joint draws of ∫λ over intervals inside or outside the window, shape (size, intervals).

    Parameters
    ----------
    posterior
        A :class:`~gp4c.posterior.sparse_posterior.Posterior`, or draws.
    beyond : {"prior", "hold"}
        Outside the window f returns to its prior; or λ stays as it is at the window's end.
    """
    if beyond != "hold":
        return np.asarray(posterior.sample_integrals(start, stop, size, rng))
    assert isinstance(posterior, Posterior)  # draws have a way of their own
    low, high = posterior.unit(start), posterior.unit(stop)
    before = np.maximum(np.minimum(high, 0.0) - low, 0.0)
    after = np.maximum(high - np.maximum(low, 1.0), 0.0)
    low, high = np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)
    grid = posterior.grid(0.0, 1.0)
    squares = posterior.draw(np.append(grid.nodes, [0.0, 1.0]), size, rng) ** 2
    inside = np.maximum(IntervalIntegrals(grid, low, high).apply(squares[:-2]), 0.0)
    beyond_it = np.outer(before, squares[-2]) + np.outer(after, squares[-1])
    return np.asarray(posterior.rate * (inside + beyond_it).T)


def expected_integrals(
    posterior: Posterior | CurveDraws, start: Floats, stop: Floats, beyond: str = "prior"
) -> Floats:
    """E ∫λ over intervals inside or outside the window, in closed form."""
    if beyond != "hold":
        return np.asarray(posterior.expected_integral(start, stop))
    return _held(posterior, start, stop, posterior.expected_integral, posterior.intensity)


def _held(
    posterior: Posterior | CurveDraws,
    start: Floats,
    stop: Floats,
    integral: Callable[[Floats, Floats], Floats],
    rate: Callable[[Floats], Floats],
) -> Floats:
    """Integrals in the window, and beyond it the rate at its nearer end; for one curve or many."""
    low, high = posterior.window
    inside = integral(np.clip(start, low, high), np.clip(stop, low, high))
    first, last = rate(np.array([low, high]))
    before = np.maximum(np.minimum(stop, low) - start, 0.0)
    after = np.maximum(stop - np.maximum(start, high), 0.0)
    return np.asarray(inside + np.multiply.outer(before, first) + np.multiply.outer(after, last))


def intensity_paths(
    posterior: Posterior | CurveDraws, times: Floats, size: int, seed: np.random.SeedSequence
) -> Floats:
    """Draws of λ at times in the window, (size, times); a draw is the same path in every call.

    The inducing values of a draw depend on the seed alone, so that answers at one time do not
    depend on which other times are asked for. The small residual is one number per draw.
    """
    if isinstance(posterior, CurveDraws):
        who = posterior.choose(size, np.random.default_rng(seed))
        return posterior.intensity_paths(times, who)
    rng, x = np.random.default_rng(seed), posterior.unit(times)
    mean, variance = posterior.moments(x)
    G = np.sqrt(posterior.variance) * (posterior.prior.features(x) @ posterior.root)
    rest = np.sqrt(np.maximum(variance - (G**2).sum(axis=1), 0.0))
    paths = mean[:, None] + G @ rng.standard_normal((G.shape[1], size))
    paths += np.outer(rest, rng.standard_normal(size))
    return np.asarray(posterior.scale * paths.T**2)


# -- counts given the integral -----------------------------------------------------------------


def count_cdf(
    count: Floats,
    mean: Floats,
    shape: float = np.inf,
    totals: Floats | float = 0.0,
    expected: Floats | float = 0.0,
) -> Floats:
    """P(N ≤ count) for a subject with an earlier history; 0 for negative counts.

    Poisson with mean `mean` if α is infinite; else negative binomial, the Poisson law with
    mean υ·`mean` averaged over υ ~ Gamma(α + totals, α + expected).
    """
    n = np.maximum(count, 0.0)
    if np.isfinite(shape):
        rate = shape + expected
        value = betainc(shape + totals, n + 1.0, rate / (rate + mean))
    else:
        value = gammaincc(n + 1.0, np.maximum(mean, 0.0))
    return np.asarray(np.where(np.asarray(count) < 0, 0.0, value))
