"""The level of f at fixed hyper-parameters: its distribution by importance sampling.

The level is what the data leave open longest where events are few or subjects differ, and there
its posterior is skewed and wider than a Gaussian around the optimum: a lower f has more patterns
of signs, and frailties trade with it. q keeps its law given the level t = dᵀv, a straight line
through draws; the law of t itself is found on a grid of its values, with the same draws of
everything else at each, so that their noise cancels (docs/maths.md, section 10).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from gp4c.inference.hyper import Optimum
from gp4c.inference.importance import (
    Curves,
    capped,
    draws_at_once,
    square_integrals,
    values_at_events,
    values_at_nodes,
)
from gp4c.inference.variational import Gaussian

Floats = NDArray[np.float64]

#: grid of the level, in standard deviations of q: the trapezoid rule errs by 2 exp(−2π²/step²)
GRID = 1.3 * np.arange(-3, 4)
#: draws that the parts of a mixture share, and the least for each: the parts' errors average
ALL_DRAWS, LEAST_DRAWS = 4096, 128
#: levels known to within this share of themselves are Gaussian enough
KNOWN = 0.05
#: mean share of the variance of f that v may leave open: draws of v do not show what is left
COARSE = 0.05


def with_level(at: Optimum, q: Gaussian, n_draws: int, seed: int) -> Gaussian:
    """q with the mean and the spread that the level has in the posterior."""
    loose = at.work.likelihood.count_term == "lemma2"  # its q is the paper's
    if loose or at.work.residual.mean() > COARSE:
        return q
    line = _line(at, q)
    if line is None:
        return q
    mean, deviation = level_moments(at, q, line, n_draws, seed)
    return q.rescaled(line, mean, deviation)


def level_moments(
    at: Optimum, q: Gaussian, line: Floats, n_draws: int, seed: int
) -> tuple[float, float]:
    """Mean and standard deviation of the level in the posterior, in units of q's.

    Parameters
    ----------
    line : (M,)
        Change of v per standard deviation of the level: dS/√(dᵀSd).
    """
    rng = np.random.default_rng(seed)
    inner = np.linalg.solve(q.root, line)  # of unit length: the level is inner · normals
    log_weight = []
    for size in _sizes(n_draws // 2, draws_at_once(at.work) // 2):
        half = rng.standard_normal((at.work.size, size))
        half -= np.outer(inner, inner @ half)
        rest = np.concatenate([half, -half], axis=1)
        v = q.mean[:, None] + q.root @ rest
        log_joint = _along(at, v, line)
        log_weight.append(log_joint + (rest**2).sum(axis=0) / 2)
    each = np.concatenate(log_weight, axis=1)
    of_draw = logsumexp(each, axis=0)
    density = softmax(logsumexp(each + capped(of_draw) - of_draw, axis=1))
    mean = float(density @ GRID)
    return mean, float(np.sqrt(density @ (GRID - mean) ** 2))


def _along(at: Optimum, v: Floats, line: Floats) -> Floats:
    """ln p(counts, v + t · line) for each t of the grid and column of v, up to a constant."""
    work, hyper = at.work, at.hyper
    f = values_at_nodes(work, hyper, v)
    start = Curves.of(work, hyper, f)
    slope = np.sqrt(hyper.variance) * (work.features @ line)[:, None]
    cross, square = square_integrals(work, f * slope), square_integrals(work, slope * slope)
    at_events = values_at_events(work, slope)
    found = []
    for t in GRID:
        # (f + tσ)² = f² + 2t fσ + t²σ²
        there = Curves(
            start.counted + 2 * t * cross[0] + t**2 * square[0],
            start.seen + 2 * t * cross[1] + t**2 * square[1],
            None if at_events is None else start.at_events + t * at_events,
        )
        log_prior = -((v + t * line[:, None]) ** 2).sum(axis=0) / 2
        found.append(there.log_likelihood(work, hyper) + log_prior)
    return np.array(found)


def _line(at: Optimum, q: Gaussian) -> Floats | None:
    """Change of v per standard deviation of the expected events; None where those are known."""
    evaluation, hyper = at.estep.evaluation, at.hyper
    weights = at.work.likelihood.exposure.base_weights
    expected = float(weights @ (evaluation.mean**2 + evaluation.variance))
    gradient = 2 * np.sqrt(hyper.variance) * (at.work.features.T @ (weights * evaluation.mean))
    along = q.covariance @ gradient
    deviation = float(np.sqrt(gradient @ along))
    return along / deviation if deviation > KNOWN * expected else None


def _sizes(n: int, most: int) -> list[int]:
    """n in parts of at most `most`, at least one."""
    most = max(most, 1)
    return [min(most, n - start) for start in range(0, n, most)]
