r"""Local EM (Fan, Stafford and Brown 2011) for several weightings of the same panel at once.

Cells J_l between the pooled visit times, masses M_l = ∫λ over them:

* E-step: expected events per cell, :math:`E_l = M_l \sum_{i \ni l} m_i / \sum_{k \in i} M_k`;
* S-step: :mod:`gp4c.classical.smoothed.smoothing`, then M_l ← ∫λ over the cell.

The columns of every matrix here are separate problems (folds of a cross-validation): they share
cells and kernel weights, so one matrix product serves them all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gp4c.classical.smoothed.smoothing import SmoothedExposure, Smoother
from gp4c.classical.visit_cells import Flags, Floats, Grid

#: previous steps that the extrapolation remembers
_MEMORY = 5


@dataclass(frozen=True, eq=False)
class LocalEMData:
    """Counts and exposure of F problems on one grid.

    Attributes
    ----------
    grid : Grid
        N distinct intervals on L cells.
    count, exposure : (N, F)
        Events and exposure of each interval in each problem.
    """

    grid: Grid
    count: Floats
    exposure: Floats

    @property
    def at_risk(self) -> Floats:
        """Y_l, (L, F)."""
        return self.grid.runs.cover(self.exposure)

    @property
    def length(self) -> Floats:
        """Lengths of the intervals, (N, 1)."""
        runs, points = self.grid.runs, self.grid.points
        return (points[runs.last] - points[runs.first])[:, None]

    @property
    def time_at_risk(self) -> Floats:
        """Exposure times length, summed, (F,)."""
        return np.asarray((self.exposure * self.length).sum(axis=0), dtype=np.float64)

    def log_likelihood(self, mass: Floats) -> Floats:
        """Σ c log μ − n μ of each problem, (F,); −inf if events meet no mass."""
        return held_out_score(mass, self, np.zeros((1, 1)))


@dataclass(frozen=True, eq=False)
class LocalEMFit:
    """Result for F problems.

    Attributes
    ----------
    mass : (L, F)
        ∫λ over each cell.
    density : (L, F)
        E_l / |J_l| of the last E-step; λ(x) follows from it, and `mass` is its integral.
    residual : (F,)
        Σ|S(M) − M| / ΣM, the distance from the fixed point.
    n_iter : int
    trace : (n_iter, F)
        Residual of every iteration.
    """

    mass: Floats
    density: Floats
    residual: Floats
    n_iter: int
    trace: Floats


class EMSteps:
    """The E- and S-step of some problems at one bandwidth."""

    def __init__(self, data: LocalEMData, smoother: Smoother) -> None:
        seen = np.any(data.count > 0, axis=1)
        self._seen = data.grid.runs.take(seen)
        self._count = data.count[seen]
        self._width = data.grid.width[:, None]
        self._at_risk = data.at_risk
        self._smoother = smoother
        self._exposure: SmoothedExposure = smoother.exposure(self._at_risk)

    def density(self, mass: Floats) -> Floats:
        """E-step: expected events per unit time in each cell, (L, F)."""
        inside = self._seen.sums(mass)
        share = np.where(inside > 0.0, self._count / np.where(inside > 0.0, inside, 1.0), 0.0)
        return mass * self._seen.cover(share) / self._width

    def smooth(self, density: Floats) -> Floats:
        """S-step: new masses, (L, F)."""
        return self._smoother.masses(self._exposure.rates(density))

    def step(self, mass: Floats) -> Floats:
        """One iteration."""
        return self.smooth(self.density(mass))

    def constant_start(self) -> Floats:
        """Masses of the constant rate: all events over all exposure, (L, F)."""
        time_at_risk = (self._at_risk * self._width).sum(axis=0)
        events = self._count.sum(axis=0)
        rate = events / np.where(time_at_risk > 0.0, time_at_risk, 1.0)
        return np.asarray(self._width * rate, dtype=np.float64)

    def published_start(self) -> Floats:
        """Masses Σ m / Y over the intervals on each cell: every event counted in each, (L, F)."""
        covering = self._seen.cover(self._count)
        return np.where(self._at_risk > 0.0, covering / np.maximum(self._at_risk, 1e-300), 0.0)


def fixed_point(
    steps: EMSteps, start: Floats, tol: float = 1e-9, max_iter: int = 2000
) -> LocalEMFit:
    """Iterate to the fixed point of the E- and S-step, with Anderson's extrapolation.

    An extrapolated step is kept only while it brings the residual down; otherwise the plain
    iteration goes on from the best point.

    Parameters
    ----------
    steps : EMSteps
    start : (L, F)
        Positive masses wherever events are possible.
    tol : float
        Bound on the relative residual Σ|S(M) − M| / ΣM of every problem.
    max_iter : int
    """
    mass, image = start, steps.step(start)
    residual = _relative(image, mass)
    trace = [residual]
    memory: list[tuple[Floats, Floats]] = []
    while len(trace) < max_iter and np.any(residual > tol):
        memory = [*memory[-_MEMORY:], (mass, image)]
        proposal = _anderson(memory, image)
        new_image = steps.step(proposal)
        new_residual = _relative(new_image, proposal)
        worse = new_residual > 2.0 * residual
        if np.any(worse):  # there, back to the plain iteration
            proposal = np.where(worse, image, proposal)
            new_image = steps.step(proposal)
            new_residual = _relative(new_image, proposal)
            memory = []
        mass, image, residual = proposal, new_image, new_residual
        trace.append(residual)
    return LocalEMFit(image, steps.density(mass), residual, len(trace), np.asarray(trace))


def published_iteration(
    steps: EMSteps, start: Floats, squared_change: float = 1e-8, max_iter: int = 2000
) -> LocalEMFit:
    """Plain iteration that stops each problem when Σ(M_new − M)² falls to `squared_change`.

    This is the published rule; it stops after a few steps, short of the fixed point, and depends
    on nothing but the expected numbers of events.
    """
    mass, density = start, steps.density(start)
    running = np.ones(start.shape[1], dtype=np.bool_)
    trace: list[Floats] = []
    while len(trace) < max_iter and np.any(running):
        density = np.where(running, steps.density(mass), density)
        image = steps.smooth(density)
        trace.append(_relative(image, mass))
        change = ((image - mass) ** 2).sum(axis=0)
        mass = np.where(running, image, mass)
        running = running & (change > squared_change)
    residual = _relative(steps.step(mass), mass)
    return LocalEMFit(mass, density, residual, len(trace), np.asarray(trace))


def held_out_score(mass: Floats, held_out: LocalEMData, floor: Floats) -> Floats:
    """Σ c log μ − n μ of each problem's held-out intervals, (F,), with μ from masses (L, F).

    `floor` (N, F) bounds μ from below on intervals with events; with a floor of 0 an interval
    with events and no mass makes the score −inf.
    """
    inside = held_out.grid.runs.sums(mass)
    seen: Flags = held_out.count > 0
    bounded = np.where(seen, np.maximum(inside, floor), inside)
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(seen, bounded, 1.0))
    terms = np.where(seen, held_out.count * logs, 0.0) - held_out.exposure * bounded
    return np.asarray(terms.sum(axis=0), dtype=np.float64)


def _relative(image: Floats, mass: Floats) -> Floats:
    total = np.maximum(image.sum(axis=0), 1e-300)
    return np.asarray(np.abs(image - mass).sum(axis=0) / total, dtype=np.float64)


def _anderson(memory: list[tuple[Floats, Floats]], image: Floats) -> Floats:
    """Combine the last images so that their residuals cancel best, column by column.

    A column whose combination has a negative mass keeps the plain image.
    """
    if len(memory) < 2:
        return image
    proposal = image.copy()
    masses = np.stack([m for m, _ in memory])
    images = np.stack([g for _, g in memory])
    residuals = images - masses
    for f in range(image.shape[1]):
        r, g = residuals[:, :, f], images[:, :, f]
        change = np.diff(r, axis=0).T
        weights, *_ = np.linalg.lstsq(change, r[-1], rcond=1e-10)
        combined = g[-1] - np.diff(g, axis=0).T @ weights
        if np.all(combined >= 0.0):
            proposal[:, f] = combined
    return proposal
