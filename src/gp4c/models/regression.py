"""Fits with covariates: from a formula's columns to coefficients, curve and their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.covariate_rows import design_rows, last_rows
from gp4c.exceptions import PanelDataError
from gp4c.inference.covariates import NO_INFORMATION, RegressionRows, pooled_start, weakest
from gp4c.inference.hyper import Optimum, Problem, flat_prior, free_coordinates
from gp4c.inference.integrate import integrate
from gp4c.inference.priors import weak_prior
from gp4c.inference.regression import (
    RegressionOptimum,
    RegressionProblem,
    climb_with_coefficients,
)
from gp4c.inference.search import search
from gp4c.inference.signs import crosses
from gp4c.models.effects import CovariateEffects
from gp4c.models.fitting import (
    Fit,
    choose_effect,
    optimised_fit,
    sample_fit,
    single_fit,
    unit_mean,
)

if TYPE_CHECKING:
    from gp4c.data.formulas import FormulaDesign
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: nats to which coefficients are placed by the cheap bound before the exact one takes over
_PLACED = 1e-2


@dataclass(frozen=True)
class Settings:
    """How to fit: the estimator's parameters of the same names."""

    effect: str | None
    mean: str | float
    hyper: str
    method: str
    tol: float
    max_iter: int
    seed: int
    n_jobs: int | None


@dataclass(frozen=True)
class RegressionFit:
    """A fit with covariates: the problem at the coefficients found, and what was found."""

    problem: Problem
    fit: Fit
    effects: CovariateEffects
    effect_choice: str


def fit_regression(
    problem: Problem, panel: PanelCounts, design: FormulaDesign, settings: Settings
) -> RegressionFit:
    """Fit coefficients and curve together, then integrate or sample at the coefficients."""
    rows = _rows(panel, design)
    length = problem.data.stop - problem.data.start
    beta, rate = pooled_start(rows, length)
    _check_finite(rows, rows.multiplied(beta) * length[rows.interval], design)
    task = RegressionProblem(problem, rows, rate)
    choice = "as asked"
    if settings.effect == "auto":
        chosen = choose_effect(task.at(beta), settings.mean)
        choice, task = str(chosen), task.changed(effect=chosen.effect)
    if problem.count_term == "exact":
        beta = _found(task.cheap(), beta, settings, _PLACED, 1)[0].beta
    best, others = _found(task, beta, settings, settings.tol, 3)
    effects = _effects(task, best, panel, design, settings)
    final = task.at(best.beta)
    return RegressionFit(final, _finish(final, best.optimum, others, settings), effects, choice)


def _rows(panel: PanelCounts, design: FormulaDesign) -> RegressionRows:
    if panel.n_events == 0:
        raise PanelDataError("there are no events, so covariates have no effect to estimate")
    return RegressionRows(
        design_rows(design, panel), panel.count.astype(np.float64), panel.exposure,
        panel.subject_index, panel.distinct().inverse, panel.n_subjects,
    )  # fmt: skip


def _check_finite(rows: RegressionRows, mean: Floats, design: FormulaDesign) -> None:
    """Refuse coefficients that run off to infinity, as those of groups without events do."""
    least, which = weakest(rows, mean)
    if not least > NO_INFORMATION:
        raise PanelDataError(
            f"the effect of {design.names[which]!r} has no finite estimate: events occur only on "
            "one side of it (a group without events?); leave it out or join groups"
        )


def _prior(settings: Settings) -> Any:
    return weak_prior if settings.hyper == "integrate" else flat_prior


def _found(
    task: RegressionProblem, beta: Floats, settings: Settings, tol: float, n_climbs: int
) -> tuple[RegressionOptimum, list[Optimum]]:
    """Search at fixed coefficients, then climb with them; also the other peaks of the search."""
    here = task.at(beta)
    mean, prior = unit_mean(here, settings.mean), _prior(settings)
    peaks = search(
        here, mean=mean, log_prior=prior, tol=tol, max_iter=settings.max_iter, n_climbs=n_climbs
    )
    best = climb_with_coefficients(
        task, peaks[0], beta, free=free_coordinates(here, mean), log_prior=prior, tol=tol,
        max_iter=settings.max_iter,
    )  # fmt: skip
    return best, peaks[1:]


def _effects(
    task: RegressionProblem,
    best: RegressionOptimum,
    panel: PanelCounts,
    design: FormulaDesign,
    settings: Settings,
) -> CovariateEffects:
    found = task.efficient(best.optimum, best.beta, isinstance(settings.mean, str))
    return CovariateEffects(
        design,
        best.beta,
        found.covariance,
        found.robust_covariance,
        found.jackknife_covariance,
        task.rows.design[last_rows(panel)],
    )


def _finish(problem: Problem, best: Optimum, others: list[Optimum], settings: Settings) -> Fit:
    """Integrate over the hyper-parameters, or sample, at the coefficients found."""
    if settings.method == "mcmc":
        return sample_fit(
            problem, single_fit(best), mean=settings.mean, hyper=settings.hyper,
            seed=settings.seed, n_jobs=settings.n_jobs,
        )  # fmt: skip
    if settings.hyper == "optimize":
        return optimised_fit(problem, best, isinstance(settings.mean, str))
    mean = unit_mean(problem, settings.mean)
    # the other peaks, of nearly the same coefficients, only say how far the grid must reach
    side = crosses(best.estep.evaluation)
    lower = [p for p in others if p.value < best.value and crosses(p.estep.evaluation) == side]
    found = integrate(
        problem, [best, *lower], free=free_coordinates(problem, mean), log_prior=weak_prior
    )
    return Fit(best, found.parts, found.log_evidence)
