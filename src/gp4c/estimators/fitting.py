"""Steps that the Gaussian-process estimators share between data and fitted attributes."""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from gp4c.estimators.base import PanelEstimator
from gp4c.estimators.interfaces.fitted_window import Floats
from gp4c.exceptions import ConvergenceWarning
from gp4c.inference.variational.bound import theorem2
from gp4c.inference.variational.count_terms import count_term
from gp4c.inference.variational.exposure import subject_cost
from gp4c.inference.variational.hyper import Optimum, Problem, free_coordinates, solve_q
from gp4c.inference.variational.search import finished, search
from gp4c.model.sparse_prior import Hyper
from gp4c.posterior.sparse_posterior import Posterior

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subjects import LabelArray
    from gp4c.estimators.gp_base import GaussianProcessModel

#: prior used when no event was seen: f² has mean 1 (one event in the whole exposure), the curve
#: is smooth on the scale of the window
NO_EVENT_HYPER = Hyper(length_scale=0.5, variance=0.5, mean=0.5**0.5)
#: accuracy, in nats, of an optimum from which a climb with full precision starts
NEAR_TOL = 1e-3


def no_event_optimum(problem: Problem) -> Optimum:
    """A defined answer without events: fixed weak prior, posterior from the exposure alone."""
    work = problem.workspace(NO_EVENT_HYPER.length_scale)
    estep = solve_q(work, NO_EVENT_HYPER, None, problem.tol)
    return Optimum(NO_EVENT_HYPER, work, estep, (), estep.converged)


def gaussian_posterior(
    optimum: Optimum, kernel: str, window: tuple[float, float], rate: float
) -> Posterior:
    """The posterior that an optimum of the bound stands for."""
    hyper, q = optimum.hyper, optimum.estep.q
    return Posterior(
        kernel=kernel,
        length_scale=hyper.length_scale,
        variance=hyper.variance,
        prior_mean=hyper.mean,
        inducing=optimum.work.prior.inducing,
        mean=q.mean,
        root=q.root,
        window=window,
        rate=rate,
    )


def bound_with(problem: Problem, optimum: Optimum, name: str) -> float:
    """The bound of the optimum's q with the count term of that name.

    Its cheaper stand-in takes its place where there are very many different intervals.
    """
    n_counted, term = len(optimum.work.likelihood.count), count_term(name)
    if problem.count_term == name or n_counted == 0:
        return optimum.value
    if term.stand_in is not None and n_counted > term.most_intervals:
        return bound_with(problem, optimum, term.stand_in)
    judge = problem.variant(count_term=name)
    work = judge.workspace(optimum.hyper.length_scale, optimum.work.size)
    return theorem2(work, optimum.hyper, optimum.estep.q).bound.total


def warn_unless_converged(model: PanelEstimator, optimum: Optimum) -> None:
    """Say loudly that the optimiser has not converged, and what to do."""
    if not optimum.converged:
        warnings.warn(
            f"{type(model).__name__} stopped after {len(optimum.path)} steps before it converged: "
            "raise max_iter, or loosen tol",
            ConvergenceWarning,
            stacklevel=3,
        )


def unit_mean(problem: Problem, mean: str | float) -> float | None:
    """The prior mean of f in unit rate; None when it is learned."""
    if isinstance(mean, str):
        return None
    length = problem.data.window[1] - problem.data.window[0]
    return float(mean) / float(np.sqrt(problem.data.rate / length))


def find_optimum(problem: Problem, *, mean: str | float, tol: float, max_iter: int) -> Optimum:
    """Maximise the bound over q and the hyper-parameters."""
    if problem.data.total == 0:
        return no_event_optimum(problem)
    fixed = unit_mean(problem, mean)
    near = search(problem.sketch(), mean=fixed, tol=max(tol, NEAR_TOL), max_iter=max_iter)
    free = free_coordinates(problem, fixed)
    return finished(problem, near, free=free, tol=tol, max_iter=max_iter)


def store_fit(model: GaussianProcessModel, problem: Problem, optimum: Optimum) -> None:
    """Set the fitted attributes of a model, in the user's units."""
    data = problem.data
    evaluation, hyper = optimum.estep.evaluation, optimum.hyper
    effects, rate = _subject_effects(problem, optimum)
    expected = _expected_counts(problem, optimum)
    model.window_ = data.window
    model.effect_, model.law_ = problem.effect, "poisson"
    model.frailty_shape_ = hyper.shape
    model.frailty_variance_ = 1.0 / hyper.shape
    model.dispersion_ = model.burst_size_ = 1.0
    model.subject_effects_ = effects
    model.subject_totals_ = data.totals
    model.subject_expected_ = None if expected is None else expected * (rate / data.rate)
    model.posterior_ = gaussian_posterior(optimum, model.kernel, data.window, rate)
    model.sampler_ = None
    model._engine_data = None
    scale = rate / (data.window[1] - data.window[0])
    model.length_scale_ = hyper.length_scale * (data.window[1] - data.window[0])
    model.variance_ = hyper.variance * scale
    model.mean_ = float(hyper.mean * np.sqrt(scale))
    model.terms_ = evaluation.bound
    model.objective_ = evaluation.bound.total
    for bound in ("elbo_", "paper_bound_", "evidences_", "effective_draws_", "pareto_k_"):
        vars(model).pop(bound, None)  # of an earlier fit; evaluated when asked for
    model._bound_with = partial(bound_with, problem.variant(), optimum)
    model.log_evidence_ = evaluation.bound.total
    model.n_inducing_ = optimum.work.size
    # the best so far: a finer stage of the climb looks at the same place again
    model.history_ = np.maximum.accumulate([*optimum.path, optimum.value])
    model.n_iter_ = len(optimum.path)
    model.converged_ = optimum.converged


def describe_data(panel: PanelCounts | None, events: RecurrentEvents | None) -> dict[str, float]:
    """Sizes of the data behind a fit, for summaries."""
    sources = [source for source in (panel, events) if source is not None]
    spans, times = [], []
    if panel is not None:
        spans.append(float(panel.exposure @ (panel.stop - panel.start)))
        times.append(float((panel.stop - panel.start).sum()))
    if events is not None:
        spans.append(float((events.stop - events.start).sum()))
        times.append(spans[-1])
    return {
        "n_subjects": sum(source.n_subjects for source in sources),
        "n_intervals": panel.n_intervals if panel is not None else 0,
        "n_events": sum(source.n_events for source in sources),
        "exposure_time": sum(spans),
        "observed_time": sum(times),
    }


def subject_labels(panel: PanelCounts | None, events: RecurrentEvents | None) -> LabelArray:
    """Labels of the subjects in the order of the per-subject attributes."""
    labels = [np.asarray(s.subjects, dtype=object) for s in (panel, events) if s is not None]
    return np.concatenate(labels)


def _expected_counts(problem: Problem, optimum: Optimum) -> Floats | None:
    """Posterior mean of R_k, each subject's expected count at effect 1; None without effects."""
    if problem.effect is None:
        return None
    at = optimum.estep.evaluation
    return optimum.work.likelihood.exposure.expected(at.mean**2 + at.variance)


def _subject_effects(problem: Problem, optimum: Optimum) -> tuple[Floats | None, float]:
    """Effects of the subjects, and the rate that goes with them.

    Where f and the effects share a scale, a mean effect of 1 fixes it.
    """
    rate, expected = problem.data.rate, _expected_counts(problem, optimum)
    if problem.effect is None or expected is None:
        return None, rate
    effects = subject_cost(problem.effect).weight(
        problem.data.totals, expected, optimum.hyper.shape
    )
    shared = float(effects.mean()) if problem.shares_scale else 1.0
    return effects / shared, rate * shared
