"""Coefficients and curve together: the bound maximised over β, (a, γ, g, α) and q.

With q at its optimum for β the slope of the bound in β is the score of the regression (envelope
theorem), and the efficient information is nearly its curvature, so that Newton steps in β with
warm-started E-steps need few of them. Steps in β and climbs over the hyper-parameters take turns;
a step that does not raise the objective is not taken, so it never decreases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gp4c.design.observations import Observations
from gp4c.design.quadrature import IntervalIntegrals
from gp4c.inference.covariates import (
    Collapsed,
    Efficient,
    Nuisance,
    RegressionRows,
    collapsed,
    efficient,
    reweighted,
)
from gp4c.inference.hyper import Climb, LogPrior, Optimum, Problem, solve_q

Floats = NDArray[np.float64]

#: turns of β and hyper-parameters
MOST_TURNS = 30
#: most Newton steps of one turn, and halvings of one step
_STEPS, _HALVINGS = 20, 12


@dataclass(frozen=True)
class RegressionProblem:
    """A problem whose exposure depends on coefficients.

    Attributes
    ----------
    base : Problem
        With the observations as they are without covariates.
    rows : RegressionRows
    rate : float
        The unit rate, the same for all β, so that objectives and priors compare.
    """

    base: Problem
    rows: RegressionRows
    rate: float

    def at(self, beta: Floats) -> Problem:
        """The problem with exp(βᵀz) in the exposure."""
        return self.base.variant(data=self.data(beta))

    def data(self, beta: Floats) -> Observations:
        """Observations with exp(βᵀz) in the exposure."""
        return reweighted(self.base.data, self.rows, beta, self.rate)

    def cheap(self) -> RegressionProblem:
        """The same with the pointwise count term."""
        return self.changed(count_term="pointwise")

    def changed(self, **changes: Any) -> RegressionProblem:
        """The same with another effect or count term."""
        return replace(self, base=self.base.variant(**changes))

    def integrals(self, at: Optimum) -> IntervalIntegrals:
        """Integrals over the distinct intervals on the optimum's grid."""
        return IntervalIntegrals(at.work.likelihood.grid, self.base.data.start, self.base.data.stop)

    def collapse(self, at: Optimum, beta: Floats) -> Collapsed:
        """The regression with the curve of an optimum."""
        second_moment = at.estep.evaluation.mean**2 + at.estep.evaluation.variance
        mass = np.maximum(self.integrals(at).apply(second_moment), 1e-300)
        return collapsed(self.rows, beta, self.rate * mass, at.hyper.shape)

    def nuisance(self, at: Optimum, free_level: bool) -> Nuisance:
        """Slopes of ln ∫f² by the level of f and by the whitened inducing variables."""
        evaluation, integrals = at.estep.evaluation, self.integrals(at)
        second_moment = evaluation.mean**2 + evaluation.variance
        mass = np.maximum(integrals.apply(second_moment), 1e-300)
        inside = integrals.apply(evaluation.mean[:, None] * at.work.features)
        slopes = 2 * np.sqrt(at.hyper.variance) * inside / mass[:, None]
        penalty = np.ones(slopes.shape[1])
        if free_level:
            slopes = np.column_stack([np.ones(len(slopes)), slopes])
            penalty = np.concatenate([[0.0], penalty])
        return Nuisance(slopes, penalty)

    def efficient(self, at: Optimum, beta: Floats, free_level: bool) -> Efficient:
        """Information about β with the curve re-estimated."""
        there = self.collapse(at, beta)
        return efficient(self.rows, there, self.nuisance(at, free_level), at.hyper.shape)


@dataclass(frozen=True)
class RegressionOptimum:
    """Coefficients with their optimum over hyper-parameters and q."""

    beta: Floats
    optimum: Optimum
    converged: bool


def climb_with_coefficients(
    problem: RegressionProblem,
    start: Optimum,
    beta: Floats,
    *,
    free: tuple[bool, bool, bool, bool],
    log_prior: LogPrior,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> RegressionOptimum:
    """Maximise over β, the free ones of (a, γ, g, α), and q, from an optimum at `beta`.

    Converged when another turn of both is predicted to gain fewer nats than `tol`.
    """
    best, path, converged = start, start.path, False
    for _ in range(MOST_TURNS):
        best, beta, before = _newton_in_beta(problem, best, beta, free[2], tol)
        here = problem.at(beta)
        route = Climb(
            here, best.hyper, free=free, log_prior=log_prior, near=best.estep, size=best.work.size
        )
        climbed = route.to(tol, max_iter)
        gained = climbed.value - best.value
        if gained > 0:
            best = climbed
        path += (best.value,)
        if before < tol and gained < 10 * tol:
            converged = climbed.converged
            break
    return RegressionOptimum(beta, replace(best, path=path, converged=converged), converged)


def _newton_in_beta(
    problem: RegressionProblem, best: Optimum, beta: Floats, free_level: bool, tol: float
) -> tuple[Optimum, Floats, float]:
    """Newton steps in β with q re-optimised; also the gain that was predicted at the start."""
    first = np.nan
    for _ in range(_STEPS):
        score = problem.collapse(best, beta).score
        information = problem.efficient(best, beta, free_level).information
        step = np.asarray(np.linalg.solve(information, score), dtype=np.float64)
        gain = float(score @ step) / 2
        first = gain if np.isnan(first) else first
        if gain < tol:
            break
        found = _step(problem, best, beta, step, tol)
        if found is None:
            break
        best, beta = found
    return best, beta, first


def _step(
    problem: RegressionProblem, best: Optimum, beta: Floats, step: Floats, tol: float
) -> tuple[Optimum, Floats] | None:
    """The step, halved until the objective rises; None if it does not."""
    for k in range(_HALVINGS):
        new = beta + step / 2**k
        work = problem.at(new).workspace(best.hyper.length_scale, best.work.size)
        estep = solve_q(work, best.hyper, best.estep, tol / 10)
        there = replace(best, work=work, estep=estep)
        if there.value > best.value:
            return there, new
    return None
