"""Climbs over the hyper-parameters (a, γ, g, α) with q at its optimum for each of them.

The gradient of the maximised bound is the partial gradient at the optimal q (envelope theorem).
A climb finds one of its several optima; :mod:`gp4c.inference.variational.search` finds the
best.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.ascent import Ascent, maximise
from gp4c.inference.variational.bound import Gaussian, Sites, Workspace
from gp4c.inference.variational.count_terms import count_term
from gp4c.inference.variational.curvature import expected_curvature
from gp4c.inference.variational.estep import Anderson, EStep, e_step
from gp4c.inference.variational.exposure import subject_cost
from gp4c.inference.variational.likelihood import Likelihood
from gp4c.model.kernels import Kernel
from gp4c.model.observations import Observations
from gp4c.model.quadrature import Grid
from gp4c.model.sparse_prior import Hyper, SparsePrior

Floats = NDArray[np.float64]

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
#: nats; a climb first goes this far with rough E-steps, whose tolerance is the second number
SKETCH, SKETCH_E_STEP = 0.02, 1e-3
#: nodes per gap between inducing inputs: integrals to 1e-11 at spacings up to 0.8 and 1.5
FINE_ORDER, COARSE_ORDER = 11, 14
#: relative precision of integrals that only rank hyper-parameters or place a design, and the
#: nodes that it takes
SKETCH_PRECISION, FINE_SKETCH, COARSE_SKETCH = 1e-5, 7, 10


class Changes(TypedDict, total=False):
    """What another version of a problem may have of its own; see :class:`Problem`."""

    count_term: str
    n_inducing: int | None
    tol: float


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

    @property
    def first_shape(self) -> float:
        """α from which a search begins; infinite where there is none to learn."""
        return np.inf if self.effect is None else subject_cost(self.effect).first_shape

    @property
    def shares_scale(self) -> bool:
        """Whether effects of subjects and f share a scale that the data leave open."""
        return self.effect is not None and subject_cost(self.effect).shares_scale

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
            rough = self.tol >= SKETCH_PRECISION
            fine, coarse = (FINE_SKETCH, COARSE_SKETCH) if rough else (FINE_ORDER, COARSE_ORDER)
            order = fine if self.n_inducing is None else coarse
            grid = Grid.on(np.linspace(0.0, 1.0, max(size, 2)), order)
            self._likelihoods[size] = Likelihood.of(
                self.data, grid, self.count_term, self.b, self.effect
            )
        return self._likelihoods[size]

    def variant(self, **changes: Unpack[Changes]) -> Problem:
        """The problem with something changed, and nothing remembered."""
        return replace(self, _likelihoods={}, **changes)

    def with_counts(self, count: Floats, totals: Floats) -> Problem:
        """The problem with other numbers of events in its counted intervals and of its subjects."""
        everywhere = np.zeros_like(self.data.count)
        everywhere[self.data.count != 0] = count
        data = replace(self.data, count=everywhere, totals=totals)
        known = {size: one.with_counts(count, totals) for size, one in self._likelihoods.items()}
        return replace(self, data=data, _likelihoods=known)

    def scout(self) -> Problem:
        """The same problem with a cheap count term, for first looks."""
        cheap = count_term(self.count_term).stand_in
        if cheap is None:
            return self
        return self.variant(count_term=cheap, tol=max(self.tol, SKETCH_PRECISION))

    def sketch(self) -> Problem:
        """The same problem with integrals of lower precision."""
        return self.variant(tol=max(self.tol, SKETCH_PRECISION))

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
    path: tuple[float, ...]
    converged: bool

    @property
    def value(self) -> float:
        """The bound there."""
        return self.estep.evaluation.bound.total


def positive_start(work: Workspace, hyper: Hyper) -> Gaussian:
    """Start with f near +1, the square root of the unit rate, everywhere.

    The precision is the exact optimum of the b = 0 bound; the mean is the ridge fit of f = 1.
    """
    weights = work.likelihood.exposure.base_weights
    none = [(np.zeros_like(b.residual), np.zeros_like(b.nodes)) for b in work.blocks]
    sites = Sites(weights, 2 * weights, tuple(none))
    return work.from_sites(hyper, sites) or Gaussian.prior(work.size)


def solve_q(
    work: Workspace,
    hyper: Hyper,
    near: EStep | None,
    tol: float,
    max_iter: int = 500,
    memory: Anderson | None = None,
) -> EStep:
    """Optimal q at `hyper`, started from a neighbour's optimum where there is one.

    The neighbour's sites carry over if they give a distribution here, else its q itself.
    """
    start = None
    if near is not None and len(near.q.mean) == work.size:
        sites = near.evaluation.sites()
        start = (work.from_sites(hyper, sites) if work.accepts(sites) else None) or near.q
    return e_step(work, hyper, start or positive_start(work, hyper), tol, max_iter, memory)


def limits(problem: Problem, start: Hyper, size: int | None = None) -> Floats:
    """Limits of (ln a, ln γ, g, ln α), wide enough for the start."""
    shortest = min(problem.smallest_length_scale(size or problem.n_inducing), start.length_scale)
    shape = np.log(SHAPE_BOUNDS) if np.isfinite(start.shape) else (np.inf, np.inf)
    length = np.log((shortest, MAX_LENGTH_SCALE))
    return np.array([length, np.log(VARIANCE_BOUNDS), MEAN_BOUNDS, shape])


class Climb:
    """One maximisation over the free ones of (ln a, ln γ, g, ln α), which can be continued.

    Each E-step starts from the best optimum so far and inherits the last one's secant pairs; the
    first step has the scale of the expected curvature.
    """

    def __init__(
        self,
        problem: Problem,
        start: Hyper,
        *,
        free: tuple[bool, bool, bool, bool],
        near: EStep | None = None,
        size: int | None = None,
    ):
        self.problem, self.mask = problem, np.array(free)
        self.size = size or problem.size_for(start.length_scale)
        self.here, self.near = start, near
        self.best: Optimum | None = None
        self.path: tuple[float, ...] = ()
        self._work: Workspace | None = None
        self._memory, self._e_tol = Anderson(self.size), SKETCH_E_STEP
        self._inverse: Floats | None = None
        if near is not None and len(near.q.mean) == self.size:
            work = self._workspace(start.length_scale)
            curvature = expected_curvature(work, start, near.q)[np.ix_(self.mask, self.mask)]
            self._inverse = np.linalg.inv(curvature)

    def to(self, tol: float, max_iter: int = 200) -> Optimum:
        """Go on until the predicted gain is below `tol` nats; return the best point reached.

        A fine tolerance is approached in two stages, the first with rough E-steps.
        """
        if self.best is None and tol < SKETCH:
            self.to(SKETCH, max_iter)
        self._e_tol = SKETCH_E_STEP if tol >= SKETCH else tol / 10
        ascent = self._ascend(tol, max_iter)
        best = self.best
        assert best is not None  # an ascent evaluates at least once
        self.here, self._inverse = best.hyper, ascent.inverse
        self.path += ascent.path
        converged = ascent.converged and best.estep.converged
        return replace(best, path=self.path, converged=converged)

    def _workspace(self, length_scale: float) -> Workspace:
        if self._work is None or self._work.prior.length_scale != length_scale:
            self._work = self.problem.workspace(length_scale, self.size)
        return self._work

    def _at(self, hyper: Hyper) -> Optimum:
        """Solve for q at these hyper-parameters and remember the best for the next."""
        work = self._workspace(hyper.length_scale)
        estep = solve_q(work, hyper, self.near, self._e_tol, memory=self._memory)
        here = Optimum(hyper, work, estep, (), estep.converged)
        if self.best is None or here.value >= self.best.value:
            self.best, self.near = here, estep
        return here

    def _ascend(self, tol: float, max_iter: int) -> Ascent:
        full = self.here.to_vector()
        bounds = limits(self.problem, self.here, self.size)

        def value_and_gradient(free: Floats) -> tuple[float, Floats]:
            vector = full.copy()
            vector[self.mask] = free
            hyper = Hyper.from_vector(vector)
            here = self._at(hyper)
            gradient = here.work.hyper_gradient(
                hyper, here.estep.q, here.estep.evaluation, bool(self.mask[0])
            )
            return here.value, gradient[self.mask]

        return maximise(
            value_and_gradient, full[self.mask], bounds[self.mask], tol=tol, max_iter=max_iter,
            inverse=self._inverse,
        )  # fmt: skip


def free_coordinates(problem: Problem, mean: float | None) -> tuple[bool, bool, bool, bool]:
    """Which of (a, γ, g, α) are learned.

    Effects that leave the scale of f open fix g, and γ/g² is learned through γ.
    """
    learn_mean = mean is None and not problem.shares_scale
    return True, True, learn_mean, bool(np.isfinite(problem.first_shape))
