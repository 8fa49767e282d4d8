"""Search over the hyper-parameters (a, γ, g, α) with q at its optimum for each of them.

The gradient of the maximised bound is the partial gradient at the optimal q (envelope theorem).
The bound has several optima, in the length-scale and in the signs of f, so the search first
profiles a grid of length-scales, then climbs from the best few, then tries sign changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.design.kernels import Kernel
from gp4c.design.observations import Observations
from gp4c.design.quadrature import Grid
from gp4c.inference.ascent import Ascent, maximise
from gp4c.inference.estep import EStep, e_step
from gp4c.inference.likelihood import Likelihood
from gp4c.inference.signs import best_signs, crossings, flip
from gp4c.inference.sparse_prior import Hyper, SparsePrior
from gp4c.inference.variational import Gaussian, Sites, Workspace

Floats = NDArray[np.float64]
LogPrior = Callable[[Floats], tuple[float, Floats]]

MIN_INDUCING, MAX_INDUCING = 8, 128
#: longest length-scale, in windows: beyond it every curve is a parabola and a is not identified
MAX_LENGTH_SCALE = 2.0
#: how far a climb may go below the length-scale its inducing inputs were chosen for
STRETCH = 1.2
#: widest spacing of inducing inputs, in length-scales, that a given n_inducing may leave
MAX_SPACING = 1.5
VARIANCE_BOUNDS = (1e-8, 1e2)
MEAN_BOUNDS = (2e-3, 10.0)  # a learned mean stays above what the prior counts as zero
SHAPE_BOUNDS = (1e-3, 1e6)
#: standard deviations from zero within which an f kept positive may stand for one that crosses
MAY_CROSS = 6.0
#: nats behind the best at which an f that crosses zero is still worth a climb
COMPETES = 3.0
#: tolerance of first looks, and the gap behind the best at which a length-scale is given up (nats)
ROUGH, HOPELESS = 3e-2, 20.0
#: nodes per gap between inducing inputs: integrals to 1e-11 at spacings up to 0.8 and 1.5
FINE_ORDER, COARSE_ORDER = 12, 16


@dataclass
class Problem:
    """Observations, kernel and count term; makes workspaces for length-scales."""

    data: Observations
    kernel: Kernel
    count_term: str = "lemma2"
    b: float = 0.3
    effect: str | None = None
    n_inducing: int | None = None
    tol: float = 1e-8
    _likelihoods: dict[int, Likelihood] = field(default_factory=dict)
    _scout: Problem | None = None

    def size_for(self, length_scale: float) -> int:
        """Inducing inputs that resolve the kernel at this length-scale, or the number given."""
        if self.n_inducing is not None:
            return self.n_inducing
        needed = int(np.ceil(1.0 / (self.kernel.spacing * length_scale))) + 1
        return int(np.clip(needed, MIN_INDUCING, MAX_INDUCING))

    def smallest_length_scale(self, size: int | None = None) -> float:
        """Shortest length-scale that `size` inducing inputs (or the most allowed) can carry.

        A number that the user chose may be stretched further than one chosen here.
        """
        if self.n_inducing is not None:
            spacing = MAX_SPACING
        else:
            spacing = self.kernel.spacing * (1.0 if size is None else STRETCH)
        return 1.0 / (spacing * max((size or MAX_INDUCING) - 1, 1))

    def likelihood(self, size: int) -> Likelihood:
        """The data on the grid whose panels are the gaps between `size` inducing inputs."""
        if size not in self._likelihoods:
            order = FINE_ORDER if self.n_inducing is None else COARSE_ORDER
            grid = Grid.on(np.linspace(0.0, 1.0, max(size, 2)), order)
            self._likelihoods[size] = Likelihood.of(
                self.data, grid, self.count_term, self.b, self.effect
            )
        return self._likelihoods[size]

    def scout(self) -> Problem:
        """The same problem with a cheap count term, for first looks."""
        if self.count_term != "exact":
            return self
        if self._scout is None:
            self._scout = replace(self, count_term="pointwise", _likelihoods={})
        return self._scout

    def workspace(self, length_scale: float, size: int | None = None) -> Workspace:
        """Features for one length-scale; `size` overrides the number of inducing inputs."""
        size = size or self.size_for(length_scale)
        inducing = np.linspace(0.0, 1.0, size) if size > 1 else np.array([0.5])
        prior = SparsePrior(self.kernel, inducing, length_scale)
        return Workspace(self.likelihood(size), prior, self.tol)


@dataclass(frozen=True)
class Optimum:
    """Hyper-parameters with their optimal q, and how they were reached."""

    hyper: Hyper
    work: Workspace
    estep: EStep
    log_prior: float
    path: tuple[float, ...]
    converged: bool

    @property
    def value(self) -> float:
        """Objective (bound plus log prior of the hyper-parameters)."""
        return self.estep.evaluation.bound.total + self.log_prior


def flat_prior(vector: Floats) -> tuple[float, Floats]:
    """No prior: the hyper-parameters maximise the bound itself."""
    return 0.0, np.zeros_like(vector)


def positive_start(work: Workspace, hyper: Hyper) -> Gaussian:
    """Start with f near +1, the square root of the unit rate, everywhere.

    The precision is the exact optimum of the b = 0 bound; the mean is the ridge fit of f = 1.
    """
    weights = work.likelihood.exposure.base_weights
    sites = Sites(weights, 2 * weights, tuple(_empty_sites(work)))
    return work.from_sites(hyper, sites) or Gaussian.prior(work.size)


def _empty_sites(work: Workspace) -> list[tuple[Floats, Floats]]:
    return [(np.zeros_like(b.residual), np.zeros_like(b.nodes)) for b in work.blocks]


def solve_q(
    work: Workspace, hyper: Hyper, near: EStep | None, tol: float, max_iter: int = 500
) -> EStep:
    """Optimal q at `hyper`, started from a neighbour's optimum where there is one.

    The neighbour's sites carry over if they give a distribution here, else its q itself.
    """
    start = None
    if near is not None and len(near.q.mean) == work.size:
        sites = near.evaluation.sites()
        start = (work.from_sites(hyper, sites) if work.accepts(sites) else None) or near.q
    return e_step(work, hyper, start or positive_start(work, hyper), tol, max_iter)


class _Climb:
    """One maximisation over free coordinates of (ln a, ln γ, g, ln α), warm-started throughout."""

    def __init__(self, problem: Problem, size: int, log_prior: LogPrior, e_tol: float):
        self.problem, self.size, self.log_prior, self.e_tol = problem, size, log_prior, e_tol
        self.near: EStep | None = None
        self.work: Workspace | None = None
        self.best: Optimum | None = None

    def workspace(self, length_scale: float) -> Workspace:
        if self.work is None or self.work.prior.length_scale != length_scale:
            self.work = self.problem.workspace(length_scale, self.size)
        return self.work

    def at(self, hyper: Hyper) -> Optimum:
        """Solve for q at these hyper-parameters and remember the best for the next."""
        work = self.workspace(hyper.length_scale)
        estep = solve_q(work, hyper, self.near, self.e_tol)
        value, _ = self.log_prior(hyper.to_vector())
        here = Optimum(hyper, work, estep, value, (), estep.converged)
        if self.best is None or here.value > self.best.value:
            self.best, self.near = here, estep
        return here

    def run(self, start: Hyper, mask: NDArray[np.bool_], max_iter: int, tol: float) -> Ascent:
        """Climb over the coordinates in `mask`."""
        full = start.to_vector()
        shortest = min(self.problem.smallest_length_scale(self.size), start.length_scale)
        bounds = np.array(
            [
                np.log((shortest, MAX_LENGTH_SCALE)),
                np.log(VARIANCE_BOUNDS),
                MEAN_BOUNDS,
                np.log(SHAPE_BOUNDS),
            ]
        )

        def value_and_gradient(free: Floats) -> tuple[float, Floats]:
            vector = full.copy()
            vector[mask] = free
            hyper = Hyper.from_vector(vector)
            here = self.at(hyper)
            gradient = here.work.hyper_gradient(
                hyper, here.estep.q, here.estep.evaluation, bool(mask[0])
            )
            return here.value, (gradient + self.log_prior(vector)[1])[mask]

        return maximise(value_and_gradient, full[mask], bounds[mask], tol=tol, max_iter=max_iter)


def climb(
    problem: Problem,
    start: Hyper,
    *,
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior = flat_prior,
    near: EStep | None = None,
    size: int | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> Optimum:
    """Maximise over the free ones of (a, γ, g, α) from one start.

    Parameters
    ----------
    tol : float
        Stop when the predicted gain is below this many nats.
    """
    mask = np.array(free)
    climber = _Climb(problem, size or problem.size_for(start.length_scale), log_prior, tol / 10)
    climber.near = near
    ascent = climber.run(start, mask, max_iter, tol)
    best = climber.best
    assert best is not None  # run() evaluates at least once
    converged = ascent.converged and best.estep.converged
    return replace(best, path=ascent.path, converged=converged)


def length_scale_grid(problem: Problem, ratio: float = 1.6) -> tuple[list[float], list[float]]:
    """Length-scales to profile: from a tenth of the window downwards, and upwards from there."""
    lowest = problem.smallest_length_scale(problem.n_inducing)
    middle = max(0.1, lowest)
    down = [middle]
    while down[-1] > lowest * 1.05:
        down.append(max(down[-1] / ratio, lowest))
    up = [middle * ratio]
    while up[-1] * ratio < MAX_LENGTH_SCALE / 1.2:
        up.append(up[-1] * ratio)
    return down, up


def search(
    problem: Problem,
    *,
    mean: float | None = None,
    log_prior: LogPrior = flat_prior,
    tol: float = 1e-6,
    max_iter: int = 200,
    n_climbs: int = 2,
) -> list[Optimum]:
    """Profile the length-scale, climb from its best local maxima, then settle the signs of f.

    Parameters
    ----------
    mean : float, optional
        Fix g at this value; None learns it.

    Returns
    -------
    list of Optimum
        The local maxima found, best first.
    """
    free = free_coordinates(problem, mean)
    profile = _profile(problem, free, mean, log_prior)

    def from_(start: Optimum, estep: EStep) -> Optimum:
        size = start.work.size
        while True:
            found = climb(
                problem, start.hyper, free=free, log_prior=log_prior, near=estep, size=size,
                tol=tol, max_iter=max_iter,
            )  # fmt: skip
            needed = problem.size_for(found.hyper.length_scale)
            if needed <= size:
                return found
            start, estep, size = found, found.estep, needed  # it climbed beyond its resolution

    peaks = [
        climb(
            problem, peak.hyper, free=free, log_prior=log_prior, near=peak.estep,
            size=peak.work.size, tol=ROUGH, max_iter=max_iter,
        )
        for peak in _local_maxima(profile)[:n_climbs]
    ]  # fmt: skip
    peaks.sort(key=lambda o: -o.value)
    found = [from_(p, p.estep) for p in peaks if p.value > peaks[0].value - COMPETES]
    best = _best(found)
    found = [best, *(o for o in found if o is not best)]
    settled = best_signs(best.work, scout_workspace(problem, best), best.hyper, best.estep, tol)
    if settled is not best.estep:
        found[0] = best = from_(best, settled)
    if free[2]:
        crossing = _crossing(problem, best, free, log_prior)
        if crossing is not None:
            found.append(from_(crossing, crossing.estep))
    return sorted(found, key=lambda o: -o.value)


def _crossing(
    problem: Problem, best: Optimum, free: tuple[bool, bool, bool, bool], log_prior: LogPrior
) -> Optimum | None:
    """An optimum whose f crosses zero, if the cheap bound finds one that competes.

    An f that crosses zero goes with a small prior mean and a longer length-scale, so it must be
    judged at hyper-parameters of its own: start from a zero-mean prior of the same level with a
    crossing wherever λ comes close to zero.
    """
    places = crossings(best.work, best.estep.evaluation, MAY_CROSS)
    if len(places) == 0:
        return None
    work, scout = scout_workspace(problem, best), problem.scout()
    base = solve_q(work, best.hyper, best.estep, 1e-2)
    level = best.hyper.variance + best.hyper.mean**2
    hyper = replace(best.hyper, variance=level, mean=0.1 * float(np.sqrt(level)))
    sites = flip(work, base.evaluation.sites(), places)
    start = work.from_sites(hyper, sites)
    if start is None:
        return None
    estep = best_signs(work, work, hyper, e_step(work, hyper, start, 1e-2), 1e-2)

    def rough(at: Hyper, near: EStep) -> Optimum:
        return climb(
            scout, at, free=free, log_prior=log_prior, near=near, size=work.size, tol=3e-2,
            max_iter=15,
        )  # fmt: skip

    rival, present = rough(hyper, estep), rough(best.hyper, base)
    return rival if rival.value > present.value - COMPETES else None


def free_coordinates(problem: Problem, mean: float | None) -> tuple[bool, bool, bool, bool]:
    """Which of (a, γ, g, α) are learned.

    Free weights leave the scale of f open; a fixed g settles it and γ/g² is learned through γ.
    """
    return True, True, mean is None and problem.effect != "weight", problem.effect == "gamma"


def scout_workspace(problem: Problem, at: Optimum) -> Workspace:
    """The cheap problem's workspace at an optimum; the optimum's own where that is cheap."""
    scout = problem.scout()
    if scout is problem:
        return at.work
    return scout.workspace(at.hyper.length_scale, at.work.size)


def _profile(
    problem: Problem, free: tuple[bool, bool, bool, bool], mean: float | None, log_prior: LogPrior
) -> list[Optimum]:
    """Rough optima over (γ, g, α) along a grid of length-scales.

    For the exact count term the cheap pointwise bound finds (γ, g, α); the exact bound ranks.
    """
    scout = problem.scout()
    down, up = length_scale_grid(problem)
    first = Hyper(down[0], 0.1, 0.95 if mean is None else mean, 1.0 if free[3] else np.inf)
    profile: dict[float, Optimum] = {}
    for side in (down, up):
        guess, near, behind = first, None, 0
        for length_scale in side:
            rough = climb(
                scout, guess.with_length_scale(length_scale), free=(False, *free[1:]),
                log_prior=log_prior, near=near, tol=0.1, max_iter=3,
            )  # fmt: skip
            near, found = rough.estep, rough if scout is problem else _judged(problem, rough)
            profile[length_scale] = found
            variance = float(np.clip(rough.hyper.variance, 0.05, 0.5))
            guess = replace(guess, variance=variance, shape=rough.hyper.shape)
            # far from the best there is nothing to find, and short length-scales cost most
            behind = behind + 1 if found.value < _best(profile.values()).value - HOPELESS else 0
            if behind == 2:
                break
    return [profile[length_scale] for length_scale in sorted(profile)]


def _best(optima: Iterable[Optimum]) -> Optimum:
    return max(optima, key=lambda o: o.value)


def _judged(problem: Problem, rough: Optimum) -> Optimum:
    """The scout's find with a few steps of the problem's own bound."""
    work = problem.workspace(rough.hyper.length_scale, rough.work.size)
    estep = e_step(work, rough.hyper, rough.estep.q, 0.1, 5)
    return replace(rough, work=work, estep=estep)


def _local_maxima(profile: list[Optimum]) -> list[Optimum]:
    """Points of the profile not below their neighbours, best first."""
    values = np.array([-np.inf, *(p.value for p in profile), -np.inf])
    peak = (values[1:-1] >= values[:-2]) & (values[1:-1] >= values[2:])
    return sorted(
        (p for p, keep in zip(profile, peak, strict=True) if keep), key=lambda p: -p.value
    )
