"""The level of f at fixed hyper-parameters: its law by importance sampling.

The level is what the data leave open longest where events are few or subjects differ, and there
its posterior is not that of a Gaussian around the optimum: a lower f has more patterns of signs,
and frailties trade with it. What counts is the expected number N of events in all that was seen.
q is moved and stretched along its direction of N until N has the mean and the standard deviation
that it has in the posterior. Those come from draws of q with a grid of places along the direction
for each, so that their noise nearly cancels (docs/maths.md, section 10).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.exposure import PaperWeights
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

#: places along the direction, in standard deviations of q: the trapezoid rule errs by
#: 2 exp(−2π²/step²)
GRID = 1.3 * np.arange(-3, 4)
#: draws that the parts of a mixture share, and the least for each: the parts' errors average
ALL_DRAWS, LEAST_DRAWS = 4096, 128
#: levels known to within this share of themselves are Gaussian enough
KNOWN = 0.05
#: mean share of the variance of f that v may leave open: draws of v do not show what is left
COARSE = 0.05
#: least standard deviation along the direction, as a share of q's own
LEAST_SPREAD = 0.2


def with_level(at: Optimum, q: Gaussian, n_draws: int, seed: int) -> Gaussian:
    """q with the mean and the spread that the expected events have in the posterior."""
    likelihood = at.work.likelihood
    loose = likelihood.count_term == "lemma2"  # its q is the paper's
    # weights that follow every draw would leave the level to the prior
    free = isinstance(likelihood.exposure.subject_cost, PaperWeights)
    if loose or free or at.work.residual.mean() > COARSE:
        return q
    direction = _direction(at, q)
    if direction is None:
        return q
    line, slope, bend = direction
    (mean, deviation), (plain, spread) = event_moments(at, q, line, n_draws, seed)
    return q.rescaled(line, *shift_and_stretch(mean - plain, deviation, spread, slope, bend))


def shift_and_stretch(
    gain: float, deviation: float, spread: float, slope: float, bend: float
) -> tuple[float, float]:
    """Mean and standard deviation of t, N(0, 1) under q, that give N its law.

    N = slope·t + bend·t² + what does not depend on t. Its mean has to rise by `gain`, its standard
    deviation from `spread` to `deviation`; the variance that t has no part in stays. Where no law
    of t gives both, the mean goes first.
    """
    least, most = LEAST_SPREAD**2, np.inf
    if bend > 0:  # t at the vertex of the parabola: N has no lower mean, t no wider law
        gain = max(gain, -(slope**2) / (4 * bend) - bend + bend * least)
        most = (slope**2 + 4 * bend * (gain + bend)) / (4 * bend**2)
    # with y = m·slope + m²·bend and u the variance of t: y + bend·u = gain + bend and
    # (slope² + 4·bend·y) u + 2·bend²·u² = along
    along = max(deviation**2 - spread**2 + slope**2 + 2 * bend**2, 0.0)
    total = slope**2 + 4 * bend * (gain + bend)
    u = 2 * along / (total + np.sqrt(max(total**2 - 8 * bend**2 * along, 0.0)))
    u = min(max(u, least), most)
    y = gain + bend - bend * u
    shift = 2 * y / (slope + np.sqrt(max(slope**2 + 4 * bend * y, 0.0)))
    return float(shift), float(np.sqrt(u))


def event_moments(
    at: Optimum, q: Gaussian, line: Floats, n_draws: int, seed: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and standard deviation of the expected events: in the posterior, and under q.

    Both from the same draws.

    Parameters
    ----------
    line : (M,)
        Change of v per standard deviation of the direction.
    """
    rng = np.random.default_rng(seed)
    inner = np.linalg.solve(q.root, line)  # of unit length: the place is inner · normals
    log_weight, events = [], []
    for size in _sizes(n_draws // 2, draws_at_once(at.work) // 2):
        half = rng.standard_normal((at.work.size, size))
        half -= np.outer(inner, inner @ half)
        rest = np.concatenate([half, -half], axis=1)
        log_joint, expected = _along(at, q.mean[:, None] + q.root @ rest, line)
        log_weight.append(log_joint + (rest**2).sum(axis=0) / 2)
        events.append(expected)
    each, expected = np.concatenate(log_weight, axis=1), np.concatenate(events, axis=1)
    of_draw = logsumexp(each, axis=0)
    plain = np.broadcast_to(-(GRID[:, None] ** 2) / 2, each.shape)
    return _moments(each + capped(of_draw) - of_draw, expected), _moments(plain, expected)


def _moments(log_weight: Floats, values: Floats) -> tuple[float, float]:
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = float((weight * values).sum())
    return mean, float(np.sqrt((weight * (values - mean) ** 2).sum()))


def _along(at: Optimum, v: Floats, line: Floats) -> tuple[Floats, Floats]:
    """ln p(counts, v + t · line), up to a constant, and expected events: (grid, draws) each."""
    work, hyper = at.work, at.hyper
    f = values_at_nodes(work, hyper, v)
    start = Curves.of(work, hyper, f)
    change = np.sqrt(hyper.variance) * (work.features @ line)[:, None]
    cross, square = square_integrals(work, f * change), square_integrals(work, change * change)
    at_events = values_at_events(work, change)
    weights = work.likelihood.exposure.base_weights
    seen = weights @ (f * f + hyper.variance * work.residual[:, None])
    seen_cross, seen_square = weights @ (f * change), weights @ (change * change)
    log_joint, events = [], []
    for t in GRID:
        # (f + tσ)² = f² + 2t fσ + t²σ²
        there = Curves(
            start.counted + 2 * t * cross[0] + t**2 * square[0],
            start.seen + 2 * t * cross[1] + t**2 * square[1],
            None if at_events is None else start.at_events + t * at_events,
        )
        log_prior = -((v + t * line[:, None]) ** 2).sum(axis=0) / 2
        log_joint.append(there.log_likelihood(work, hyper) + log_prior)
        events.append(seen + 2 * t * seen_cross + t**2 * seen_square)
    return np.array(log_joint), np.array(events)


def _direction(at: Optimum, q: Gaussian) -> tuple[Floats, float, float] | None:
    """Change of v per standard deviation of the expected events, whose slope and bend it is.

    None where the events are known well, or have no direction (a mean of f that is zero).
    """
    evaluation, hyper = at.estep.evaluation, at.hyper
    weights = at.work.likelihood.exposure.base_weights
    expected = float(weights @ (evaluation.mean**2 + evaluation.variance))
    gradient = 2 * np.sqrt(hyper.variance) * (at.work.features.T @ (weights * evaluation.mean))
    along = q.covariance @ gradient
    deviation = float(np.sqrt(gradient @ along))
    if deviation <= KNOWN * expected:
        return None
    line = along / deviation
    bend = hyper.variance * float(weights @ (at.work.features @ line) ** 2)
    return line, deviation, bend


def _sizes(n: int, most: int) -> list[int]:
    """n in parts of at most `most`, at least one."""
    most = max(most, 1)
    return [min(most, n - start) for start in range(0, n, most)]
