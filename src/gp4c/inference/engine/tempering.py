"""The fall-back where Gaussians around modes fail: draws carried from the prior to the posterior.

A population goes through the densities prior · likelihood^β, β from 0 to 1 (sequential Monte
Carlo, Del Moral, Doucet and Jasra 2006). At every β draws are moved along gradients (Hamiltonian
Monte Carlo), in their hyper-parameters, and between patterns of signs
(:mod:`gp4c.inference.engine.surrogate`). The lattice of modes says which length-scales matter; the
rest starts at the prior, so that no mode need have been found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.engine.climb import Mode, Tilts
from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.lattice import LENGTHS, Lattice, Point
from gp4c.inference.engine.surrogate import Surrogate
from gp4c.inference.engine.terrain import Draws, Terrain
from gp4c.inference.engine.weigh import Sheaf, Weighted

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: draws that are carried; each is kept several times at the end, some rounds apart; fewest of them
#: where one is much work, and the multiplications of one likelihood of all of them: 8 seconds
POPULATION, _FEWEST, _BUDGET = 700, 250, 2.1e8
#: share of the draws that one step of β leaves effective; steps are shorter where draws are cheap,
#: with fewer multiplications than this for one likelihood (panels of some dozens of subjects)
KEPT, KEPT_CHEAPLY, _CHEAP = 0.6, 0.8, 1e5
#: rounds of moves at each β, rounds at β = 1 before draws are kept, and between keeping them
ROUNDS, SETTLING, BETWEEN = 2, 4, 2
#: moves of hyper-parameters and turns of signs in one round
SHIFTS, TURNS = 3, 2
#: length of a trajectory, in deviations; its steps start at the first length and adapt to the share
_TRAVEL, _FIRST_STEP, _ACCEPTED, _STEPS = 1.5, 0.5, 0.8, (0.05, 1.2)
#: longest trajectory in steps
_MOST_LEAPS = 8
#: how far beyond the lattice's points length-scales go, in ln a, and their widest step
_BEYOND, _WIDEST = 0.6, 0.2
#: while β < 1 the shares p of length-scales are kept at p to this power: those that fit only when
#: all data count are not lost before; shares below exp(−the second) of the largest count as this
_EVENED, _LEAST_SHARE = 0.25, 8.0
#: chance of a crossing from which other signs need tempering whatever the weights, and weights so
#: poor that they need it without any
_CROSSING, _FEW, _LARGE_K = 0.15, 200.0, 0.7
#: families from which the error is taken are followed back while there are so many
_LEAST_FAMILIES = 20.0
#: u on which the draws live: the prior's mass, and the step
_VARIATIONS, _VARIATION_STEP = (-4.5, 2.9), 0.2


def needs_tempering(weighted: Weighted, turned: bool) -> bool:
    """Whether weighted draws miss too much: few of them count, or f crosses zero in many ways.

    Weights cannot see a pattern of signs that no climb has found. Where f may cross zero, one other
    pattern that matters (`turned`) is a sign of more.
    """
    poor = weighted.effective < _FEW or weighted.pareto_k > _LARGE_K
    return bool(poor or (turned and crossing_share(weighted) > _CROSSING))


def affordable_population(lattice: Lattice) -> int:
    """Draws that can be carried within the budget; 0 if they would be too few."""
    population = _BUDGET / _terrain(lattice).work
    return 0 if population < _FEWEST else min(int(population), POPULATION)


def crossing_share(weighted: Weighted) -> float:
    """Posterior probability that f changes its sign somewhere, as far as the draws know."""
    crosses = []
    for sheaf in weighted.sheaves:
        h = sheaf.point.mode.landscape.curve(sheaf.x, np.full(sheaf.x.shape[1], sheaf.u))
        crosses.append(h.min(axis=0) * h.max(axis=0) < 0)
    return float(weighted.weights @ np.concatenate(crosses))


@dataclass
class _Stride:
    """The length of Hamiltonian steps, adapted to the share of trajectories accepted."""

    length: float = _FIRST_STEP

    @property
    def leaps(self) -> int:
        return int(np.clip(round(_TRAVEL / self.length), 1, _MOST_LEAPS))

    def adapt(self, accepted: float) -> None:
        self.length = float(np.clip(self.length * np.exp(accepted - _ACCEPTED), *_STEPS))


def temper(
    lattice: Lattice | Task,
    n_draws: int,
    rng: np.random.Generator,
    *,
    population: int = POPULATION,
) -> Weighted:
    """Draws of the posterior, all with the same weight.

    Parameters
    ----------
    lattice : Lattice or Task
        The lattice says how long length-scales may be; where there is none, as no mode was found,
        the task has them all.
    n_draws : int
        At least this many are returned, several of each member of the population.
    """
    with np.errstate(all="ignore"):  # trajectories that run away overflow, and are rejected
        return _tempered(_terrain(lattice), n_draws, population, rng)


def _tempered(
    terrain: Terrain, n_draws: int, population: int, rng: np.random.Generator
) -> Weighted:
    """From the prior to the posterior, and on until there are enough draws."""
    surrogate = Surrogate.of(terrain)
    start = terrain.from_prior(population, rng)
    draws, family, log_evidence, stride = _carry(surrogate, start, rng)
    kept, unbiased = [], np.zeros(len(terrain.landscapes))
    rounds = SETTLING + BETWEEN * max(1, -(-n_draws // population))
    for i in range(1, rounds + 1):
        draws = _round(surrogate, draws, 1.0, stride, rng, unbiased)
        if i > SETTLING and (i - SETTLING) % BETWEEN == 0:
            kept.append(draws)
    return _result(terrain, kept, family, log_evidence)


def _terrain(source: Lattice | Task) -> Terrain:
    """Length-scales from the shortest to somewhat beyond the lattice's, and all u of the prior."""
    longest, widest = LENGTHS[1], _WIDEST
    if isinstance(source, Task):
        task = source
    else:
        task = source.best.mode.landscape.task
        lengths = [point.mode.landscape.log_length for point in source.points]
        longest, widest = min(max(lengths) + _BEYOND, longest), min(source.steps[0], widest)
    low = max(LENGTHS[0], float(np.log(max(task.likelihood.cells.resolution, 1e-300))))
    high = max(longest, low)
    places = np.linspace(low, high, 1 + int(np.ceil((high - low) / widest)))
    u = np.arange(_VARIATIONS[0], _VARIATIONS[1], _VARIATION_STEP)
    return Terrain.over(task, places, u)


def _carry(
    surrogate: Surrogate, draws: Draws, rng: np.random.Generator
) -> tuple[Draws, Indices, float, _Stride]:
    """From the prior to the posterior: draws, their families, and the log evidence."""
    terrain, n, beta = surrogate.terrain, draws.size, 0.0
    log_evidence = float(logsumexp(terrain.log_prior_row) + logsumexp(terrain.log_prior_column))
    parents, stride = [], _Stride()
    kept = KEPT_CHEAPLY if terrain.work < _CHEAP else KEPT
    bias = np.zeros(len(terrain.landscapes))
    while beta < 1:
        after = _next(draws.value, beta, kept)
        log_weights = (after - beta) * draws.value
        old, bias = bias, _evened(log_weights - bias[draws.row], draws.row, len(bias))
        bias *= after < 1.0
        log_weights = log_weights + (bias - old)[draws.row]
        log_evidence += float(logsumexp(log_weights)) - np.log(n)
        chosen = _systematic(np.exp(log_weights - log_weights.max()), rng)
        chosen = chosen[np.argsort(draws.row[chosen], kind="stable")]  # neighbours share matrices
        parents.append(chosen)
        draws, beta = draws.take(chosen), after
        for _ in range(ROUNDS):
            draws = _round(surrogate, draws, beta, stride, rng, bias)
    return draws, _families(parents), log_evidence, stride


def _evened(log_weights: Floats, row: Indices, rows: int) -> Floats:
    """ln of what makes the shares p of length-scales p^_EVENED: those that pay later stay alive."""
    weights = np.bincount(row, np.exp(log_weights - log_weights.max()), rows)
    log_share = np.log(np.maximum(weights / weights.max(), np.exp(-_LEAST_SHARE)))
    return np.asarray((_EVENED - 1) * log_share)


def _next(value: Floats, beta: float, kept: float) -> float:
    """The largest β ≤ 1 that keeps enough draws effective; those with value −∞ do not count."""
    possible = value[np.isfinite(value)]
    enough = kept * len(possible)

    def effective(step: float) -> float:
        return float(np.exp(2 * logsumexp(step * possible) - logsumexp(2 * step * possible)))

    low, high = 0.0, 1.0 - beta
    if effective(high) >= enough:
        return 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if effective(middle) > enough else (low, middle)
    return beta + high


def _systematic(weights: Floats, rng: np.random.Generator) -> Indices:
    """Indices in proportion to weights, as many as there are weights."""
    n = len(weights)
    ends = np.cumsum(weights)
    chosen = np.searchsorted(ends, (np.arange(n) + rng.random()) / n * ends[-1])
    return np.asarray(np.minimum(chosen, n - 1), dtype=np.intp)


def _round(
    surrogate: Surrogate,
    draws: Draws,
    beta: float,
    stride: _Stride,
    rng: np.random.Generator,
    bias: Floats,
) -> Draws:
    """Moves of each kind; `bias` is added to the log prior of length-scales."""
    draws, accepted = glide(surrogate, draws, beta, stride.length, stride.leaps, rng)
    stride.adapt(accepted)
    for _ in range(SHIFTS):
        draws, _ = surrogate.shift(draws, beta, rng, bias)
    for _ in range(TURNS):
        draws, _ = surrogate.turn(draws, beta, rng)
    return draws


def glide(
    surrogate: Surrogate,
    draws: Draws,
    beta: float,
    length: float,
    leaps: int,
    rng: np.random.Generator,
) -> tuple[Draws, float]:
    """Hamiltonian Monte Carlo of (v, parameters, β) at fixed hyper-parameters and level.

    In y, the coordinates in which the surrogate's precision, and the population's of parameters
    and β, is 1. Also gives the accepted share.
    """
    t, m = surrogate.terrain, surrogate.terrain.size
    _, root = surrogate.widths(draws, beta)
    spread = np.maximum(draws.x[m + 1 :].std(axis=1, keepdims=True), 1e-3)
    scale = np.concatenate([1 / root, np.broadcast_to(spread, (len(spread), draws.size))])
    x = draws.x.copy()
    value, gradient = _force(surrogate, draws, x, beta)
    momentum = rng.standard_normal(scale.shape)
    before = beta * draws.value + _log_prior(t, x) - 0.5 * (momentum**2).sum(axis=0)
    step = length * rng.uniform(0.7, 1.3, draws.size)
    for _ in range(leaps):
        momentum = momentum + step / 2 * scale * gradient
        move = scale * step * momentum
        x[:m] += t.by_row(surrogate.right, draws.row, move[:m])
        x[m + 1 :] += move[m:]
        value, gradient = _force(surrogate, draws, x, beta)
        momentum = momentum + step / 2 * scale * gradient
    new = Draws(draws.row, draws.column, x, value)
    if len(t.task.likelihood.cells.hard):  # slopes integrate over effects by a rougher rule
        new = t.evaluated(draws.row, draws.column, x)
    after = beta * new.value + _log_prior(t, x) - 0.5 * (momentum**2).sum(axis=0)
    accepted = np.log(rng.random(draws.size)) < after - before
    return draws.accept(new, accepted), float(accepted.mean())


def _force(surrogate: Surrogate, draws: Draws, x: Floats, beta: float) -> tuple[Floats, Floats]:
    """Log likelihood at x, and the gradient of the log density in (Uᵀv, parameters, β)."""
    t, m = surrogate.terrain, surrogate.terrain.size
    value, slope = t.slopes(draws.row, draws.column, x)
    by_v = t.by_row(surrogate.right_t, draws.row, beta * slope[:m] - x[:m])
    pull = (x[m + 1 :] - t.centre[1:]) / t.scale[1:] ** 2
    return value, np.concatenate([by_v, beta * slope[m + 1 :] - pull])


def _log_prior(terrain: Terrain, x: Floats) -> Floats:
    """Of (v, parameters, β), but for a constant."""
    z = (x[terrain.size + 1 :] - terrain.centre[1:]) / terrain.scale[1:]
    return np.asarray(-0.5 * (x[: terrain.size] ** 2).sum(axis=0) - 0.5 * (z * z).sum(axis=0))


# -- what comes out -----------------------------------------------------------------------------


def _result(terrain: Terrain, kept: list[Draws], family: Indices, log_evidence: float) -> Weighted:
    """The kept draws in sheaves, one for each length-scale and u that occurs."""
    row, column = (np.concatenate([getattr(d, name) for d in kept]) for name in ("row", "column"))
    x = np.concatenate([d.x for d in kept], axis=1)
    value = np.concatenate([d.value for d in kept])
    total = len(row)
    key = row * len(terrain.u) + column
    sheaves = []
    for one in np.unique(key):
        who = np.flatnonzero(key == one)
        i, j = divmod(int(one), len(terrain.u))
        share = log_evidence + float(np.log(len(who) / total))
        sheaves.append(
            Sheaf(_point(terrain, i, j, x[:, who].mean(axis=1), share), 0.0, [],
                  np.array([float(len(who))]), x[:, who], value[who])
        )  # fmt: skip
    weights = np.full(total, 1.0 / total)
    return Weighted(sheaves, weights, log_evidence, _effective(terrain, kept, family), np.nan)


def _point(terrain: Terrain, i: int, j: int, x: Floats, log_evidence: float) -> Point:
    """A point of the grid, with the mean of its draws in the place of a mode."""
    d = len(x)
    mode = Mode(
        terrain.landscapes[i], float(terrain.u[j]), x, Tilts.none(terrain.size, 1), np.ones(d),
        np.eye(d), log_evidence, found=False,
    )  # fmt: skip
    return Point(i, j, mode)


def _families(parents: list[Indices]) -> Indices:
    """For each draw its ancestor, as long ago as there were still enough different ones."""
    family = np.arange(len(parents[-1]))
    for chosen in reversed(parents):
        older = chosen[family]
        if _effective_number(older) < _LEAST_FAMILIES:
            break
        family = older
    return family


def _effective_number(family: Indices) -> float:
    """Number of equally large families that would be as many."""
    return len(family) ** 2 / float((np.bincount(family).astype(float) ** 2).sum())


def _effective(terrain: Terrain, kept: list[Draws], family: Indices) -> float:
    """Effective draws of f² at the inducing inputs, from how far families disagree.

    The members of a family are alike as far as moves have not parted them (Lee and Whiteley 2018).
    """
    rates = [terrain.rates_at_inputs(draws) for draws in kept]
    mean = np.mean(rates, axis=0)  # of each member over the times it was kept
    away = mean - mean.mean(axis=1, keepdims=True)
    sums = np.array([np.bincount(family, one) for one in away])
    families = _effective_number(family)
    error = (sums**2).sum(axis=1) / len(family) ** 2 * families / (families - 1)
    ratio = np.var(rates, axis=(0, 2)) / np.maximum(error, 1e-300)
    return float(min(ratio.mean(), len(family) * len(kept)))
