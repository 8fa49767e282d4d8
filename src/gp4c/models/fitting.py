"""Steps that the Gaussian-process estimators share between data and fitted attributes."""

from __future__ import annotations

import warnings
from dataclasses import replace

from gp4c.exceptions import ConvergenceWarning
from gp4c.inference.hyper import Optimum, Problem, flat_prior, solve_q
from gp4c.inference.posterior import Component, Posterior
from gp4c.inference.sparse_prior import Hyper
from gp4c.models.base import PanelEstimator

#: prior used when no event was seen: f² has mean 1 (one event in the whole exposure), the curve
#: is smooth on the scale of the window
NO_EVENT_HYPER = Hyper(length_scale=0.5, variance=0.5, mean=0.5**0.5)
#: most counted intervals for which the exact bound is evaluated after every fit
_EXACT_LIMIT = 20_000


def no_event_optimum(problem: Problem) -> Optimum:
    """A defined answer without events: fixed weak prior, posterior from the exposure alone."""
    work = problem.workspace(NO_EVENT_HYPER.length_scale)
    estep = solve_q(work, NO_EVENT_HYPER, None, problem.tol)
    value, _ = flat_prior(NO_EVENT_HYPER.to_vector())
    return Optimum(NO_EVENT_HYPER, work, estep, value, (), estep.converged)


def mixture(
    optima: list[Optimum],
    weights: list[float],
    kernel: str,
    window: tuple[float, float],
    rate: float,
) -> Posterior:
    """Posterior from optima of the bound."""
    components = tuple(
        Component(
            weight=weight,
            kernel=kernel,
            length_scale=o.hyper.length_scale,
            variance=o.hyper.variance,
            prior_mean=o.hyper.mean,
            inducing=o.work.prior.inducing,
            mean=o.estep.q.mean,
            root=o.estep.q.root,
        )
        for o, weight in zip(optima, weights, strict=True)
    )
    return Posterior(components, window, rate)


def exact_bound(problem: Problem, optimum: Optimum) -> float:
    """The bound of the optimum's q with the exact count term.

    With very many different intervals the pointwise bound, a little lower, stands in.
    """
    bound = optimum.estep.evaluation.bound
    if problem.count_term == "exact" or not len(optimum.work.likelihood.count):
        return bound.total
    term = "exact" if len(optimum.work.likelihood.count) <= _EXACT_LIMIT else "pointwise"
    judge = replace(problem, count_term=term, _likelihoods={})
    work = judge.workspace(optimum.hyper.length_scale, optimum.work.size)
    return work.evaluate(optimum.hyper, optimum.estep.q).bound.total


def warn_unless_converged(model: PanelEstimator, optimum: Optimum) -> None:
    """Say loudly that the optimiser stopped early, and what to do."""
    if not optimum.converged:
        warnings.warn(
            f"{type(model).__name__} stopped after {len(optimum.path)} steps before it converged: "
            "raise max_iter, or loosen tol",
            ConvergenceWarning,
            stacklevel=3,
        )
