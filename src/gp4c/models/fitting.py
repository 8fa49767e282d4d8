"""Steps that the Gaussian-process estimators share between data and fitted attributes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.exceptions import ConvergenceWarning
from gp4c.inference.estep import e_step
from gp4c.inference.hyper import Optimum, Problem, flat_prior, free_coordinates, solve_q
from gp4c.inference.integrate import integrate
from gp4c.inference.parts import Weighted, gaussians, level_deviation
from gp4c.inference.patterns import with_sign_patterns
from gp4c.inference.posterior import Component, Posterior
from gp4c.inference.priors import weak_prior
from gp4c.inference.search import PATTERNS_ADD, finished, rough_climb, search
from gp4c.inference.shape import shape_laplace
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Gaussian
from gp4c.models.base import PanelEstimator

if TYPE_CHECKING:
    from gp4c.inference.mcmc import SamplerReport
    from gp4c.inference.sampled import SampledPosterior

#: prior used when no event was seen: f² has mean 1 (one event in the whole exposure), the curve
#: is smooth on the scale of the window
NO_EVENT_HYPER = Hyper(length_scale=0.5, variance=0.5, mean=0.5**0.5)
#: accuracy, in nats, of a mode that only places the design of an integral around it
DESIGN_TOL = 1e-2
#: the same of one from which a climb with full precision starts
NEAR_TOL = 1e-3
#: nats by which a common rate is behind when it need not be searched in full
CLEAR = 50.0
#: largest R̂ of a sampled curve that is not warned of
MOST_R_HAT = 1.05
#: most counted intervals for which the exact bound is evaluated after every fit
_EXACT_LIMIT = 20_000


def no_event_optimum(problem: Problem) -> Optimum:
    """A defined answer without events: fixed weak prior, posterior from the exposure alone."""
    work = problem.workspace(NO_EVENT_HYPER.length_scale)
    estep = solve_q(work, NO_EVENT_HYPER, None, problem.tol)
    value, _ = flat_prior(NO_EVENT_HYPER.to_vector())
    return Optimum(NO_EVENT_HYPER, work, estep, value, (), estep.converged)


def mixture(
    parts: list[Weighted], kernel: str, window: tuple[float, float], rate: float
) -> Posterior:
    """Posterior from weighted optima of the bound."""
    pairs = zip(parts, gaussians(parts), strict=True)
    return Posterior(tuple(_component(part, q, kernel) for part, q in pairs), window, rate)


def _component(part: Weighted, q: Gaussian, kernel: str) -> Component:
    optimum, hyper = part.optimum, part.optimum.hyper
    return Component(
        weight=float(part.weight),
        kernel=kernel,
        length_scale=hyper.length_scale,
        variance=hyper.variance,
        prior_mean=hyper.mean,
        inducing=optimum.work.prior.inducing,
        mean=q.mean,
        root=q.root,
    )


def bound_with(problem: Problem, optimum: Optimum, count_term: str) -> float:
    """The bound of the optimum's q with another count term.

    With very many different intervals the pointwise bound, a little lower, stands in for the
    exact one.
    """
    n_counted = len(optimum.work.likelihood.count)
    if count_term == "exact" != problem.count_term and n_counted > _EXACT_LIMIT:
        count_term = "pointwise"
    if problem.count_term == count_term or n_counted == 0:
        return optimum.estep.evaluation.bound.total
    judge = problem.variant(count_term=count_term)
    work = judge.workspace(optimum.hyper.length_scale, optimum.work.size)
    return work.evaluate(optimum.hyper, optimum.estep.q).bound.total


def warn_unless_converged(model: PanelEstimator, optimum: Optimum) -> None:
    """Say loudly that the optimiser or the sampler has not converged, and what to do."""
    report: SamplerReport | None = getattr(model, "sampler_", None)
    if report is not None and report.curve_r_hat > MOST_R_HAT:
        easier = ", or take hyper='optimize', which has less to sample"
        warnings.warn(
            f"the sampler's populations disagree about the curve (R̂ = {report.curve_r_hat:.2f}, "
            f"above {MOST_R_HAT}): fit with another random_state and compare"
            + (easier if getattr(model, "hyper", "optimize") == "integrate" else ""),
            ConvergenceWarning,
            stacklevel=3,
        )
    if not optimum.converged:
        warnings.warn(
            f"{type(model).__name__} stopped after {len(optimum.path)} steps before it converged: "
            "raise max_iter, or loosen tol",
            ConvergenceWarning,
            stacklevel=3,
        )


@dataclass(frozen=True)
class Fit:
    """What an optimiser found: the best optimum, the mixture around it, and its evidence."""

    best: Optimum
    parts: list[Weighted]
    log_evidence: float
    sampled: SampledPosterior | None = None
    report: SamplerReport | None = None


def unit_mean(problem: Problem, mean: str | float) -> float | None:
    """The prior mean of f in unit rate; None when it is learned."""
    if isinstance(mean, str):
        return None
    length = problem.data.window[1] - problem.data.window[0]
    return float(mean) / float(np.sqrt(problem.data.rate / length))


@dataclass(frozen=True)
class EffectChoice:
    """Log evidence of the cheap bound without and with gamma frailty, and which is preferred.

    `problem` is the problem with the kind preferred; it remembers the search.
    """

    without: float
    gamma: float
    problem: Problem

    @property
    def effect(self) -> str | None:
        """The kind preferred."""
        return "gamma" if self.gamma > self.without else None

    def __str__(self) -> str:
        gain = self.gamma - self.without
        if np.isinf(gain):  # a single subject, or no event
            return "no subject effects: the data cannot tell whether subjects differ"
        if gain > CLEAR:
            return f"gamma frailty: the evidence prefers it by about {gain:.0f} nats"
        if self.effect == "gamma":
            return f"gamma frailty: the evidence prefers it by {gain:.1f} nats"
        return f"no subject effects: the evidence prefers a common rate by {-gain:.1f} nats"


def choose_effect(problem: Problem, mean: str | float) -> EffectChoice:
    """Decide between no subject effects and a gamma frailty by the evidence of the cheap bound.

    Both are fitted with the pointwise count term under the weak priors; α is integrated by
    Laplace's method. One subject says nothing about variation between subjects. A common rate
    that is far behind at the length-scale which suits the frailty is not searched any further.
    """
    common, frail = problem.variant(effect=None), problem.variant(effect="gamma")
    if len(problem.data.totals) < 2 or problem.data.total == 0:
        return EffectChoice(0.0, -np.inf, common)
    fixed = unit_mean(problem, mean)

    def cheap(variant: Problem) -> Problem:
        exact = variant.count_term == "exact"
        return variant.scout() if exact else variant.variant(count_term="pointwise")

    def best(variant: Problem) -> Optimum:
        options: dict[str, Any] = {"tol": 1e-2, "n_climbs": 1, "signs": False}
        return search(cheap(variant), mean=fixed, log_prior=weak_prior, **options)[0]

    found = best(frail)
    gamma = found.value + shape_laplace(found, weak_prior)
    mask = np.array((False, *free_coordinates(common, fixed)[1:]))
    at = replace(found.hyper, shape=np.inf)
    without = rough_climb(cheap(common), at, None, mask, weak_prior).value
    if without > gamma - CLEAR:
        without = best(common).value
    return EffectChoice(without, gamma, frail if gamma > without else common)


def find_fit(problem: Problem, *, mean: str | float, hyper: str, tol: float, max_iter: int) -> Fit:
    """Maximise the bound over q, and maximise or integrate over the hyper-parameters."""
    if problem.data.total == 0:
        return single_fit(no_event_optimum(problem))
    fixed = unit_mean(problem, mean)
    free, sketch = free_coordinates(problem, fixed), problem.sketch()
    if hyper == "optimize":
        near = search(sketch, mean=fixed, tol=max(tol, NEAR_TOL), max_iter=max_iter)[0]
        best = finished(problem, near, free=free, tol=tol, max_iter=max_iter)
        return optimised_fit(problem, best, free[2])
    peaks = _probable_peaks(sketch, fixed, tol, max_iter)
    found = integrate(sketch, peaks, free=free, log_prior=weak_prior)
    return Fit(_refined(problem, peaks[0], tol), found.parts, found.log_evidence)


def most_probable_fit(problem: Problem, *, mean: str | float, tol: float, max_iter: int) -> Fit:
    """The single optimum at the most probable hyper-parameters under the weak priors."""
    peaks = _probable_peaks(problem.sketch(), unit_mean(problem, mean), tol, max_iter)
    return single_fit(_refined(problem, peaks[0], tol))


def _probable_peaks(
    sketch: Problem, mean: float | None, tol: float, max_iter: int
) -> list[Optimum]:
    """Local maxima of bound and weak prior, accurate enough to place a design around them."""
    return search(
        sketch, mean=mean, log_prior=weak_prior, tol=max(tol, DESIGN_TOL), max_iter=max_iter,
        patterns_add=PATTERNS_ADD,
    )  # fmt: skip


def _refined(problem: Problem, rough: Optimum, tol: float) -> Optimum:
    """The optimum over q at the same hyper-parameters with the problem's own precision."""
    work = problem.workspace(rough.hyper.length_scale, rough.work.size)
    estep = e_step(work, rough.hyper, rough.estep.q, tol)
    path = tuple(value + rough.log_prior for value in estep.path)  # of one precision throughout
    converged = rough.converged and estep.converged
    return replace(rough, work=work, estep=estep, path=path, converged=converged)


def sample_fit(
    problem: Problem,
    fit: Fit,
    *,
    mean: str | float,
    hyper: str,
    seed: int,
    n_jobs: int | None = None,
) -> Fit:
    """Replace the approximate posterior by draws of the exact one.

    Hyper-parameters stay at the fit's (``hyper="optimize"``) or are sampled under the weak
    priors; free weights stay at the fit's.
    """
    from gp4c.inference.mcmc import sample_posterior  # only here: other fits need no sampler

    weights, rate = None, problem.data.rate
    if problem.effect == "weight":  # on the scale of the fit's f; the rate takes their mean
        effects, rate = _subject_effects(problem, fit.parts)
        weights = effects * (rate / problem.data.rate)
    options: dict[str, Any] = {"random_state": seed, "weights": weights, "n_jobs": n_jobs}
    if hyper == "integrate":
        options["free"] = free_coordinates(problem, unit_mean(problem, mean))
        options["log_prior"] = _many_priors
    draws, report = sample_posterior(problem, fit.best.hyper, **options)
    draws = replace(draws, rate=rate)
    return replace(fit, sampled=draws, report=report, log_evidence=report.log_evidence)


def _many_priors(vectors: Any) -> Any:
    """The weak prior at the columns of a (4, S) array."""
    return np.array([weak_prior(vector)[0] for vector in vectors.T])


def single_fit(optimum: Optimum) -> Fit:
    """One optimum as the whole posterior."""
    return Fit(optimum, [Weighted(optimum, 1.0)], optimum.estep.evaluation.bound.total)


def optimised_fit(problem: Problem, optimum: Optimum, free_level: bool) -> Fit:
    """The best hyper-parameters as the only ones, with all signs of f that the data allow.

    A learned level keeps its spread: a flat curve would be sure of it otherwise.
    """
    fit = single_fit(optimum)
    if problem.count_term == "lemma2":  # the paper's: one Gaussian
        return fit
    part = Weighted(optimum, 1.0, level_deviation(optimum) if free_level else 0.0)
    return replace(fit, parts=with_sign_patterns(problem, part))


def store_fit(model: Any, problem: Problem, fit: Fit) -> None:
    """Set the fitted attributes of a model, in the user's units."""
    data, optimum = problem.data, fit.best
    evaluation, hyper = optimum.estep.evaluation, optimum.hyper
    effects, rate = _subject_effects(problem, fit.parts)
    expected = _expected_counts(problem, fit.parts)
    model.window_ = data.window
    model.effect_ = problem.effect
    model.frailty_shape_ = hyper.shape
    model.subject_effects_ = effects
    model.subject_totals_ = data.totals
    model.subject_expected_ = None if expected is None else expected * (rate / data.rate)
    model.posterior_ = fit.sampled or mixture(fit.parts, model.kernel, data.window, rate)
    model.sampler_ = fit.report
    scale = rate / (data.window[1] - data.window[0])
    model.length_scale_ = hyper.length_scale * (data.window[1] - data.window[0])
    model.variance_ = hyper.variance * scale
    model.mean_ = float(hyper.mean * np.sqrt(scale))
    model.terms_ = evaluation.bound
    model.objective_ = evaluation.bound.total
    for bound in ("elbo_", "paper_bound_"):
        vars(model).pop(bound, None)  # of an earlier fit; evaluated when asked for
    model._bound_with = partial(bound_with, problem.variant(), optimum)
    model.log_evidence_ = fit.log_evidence
    model.n_inducing_ = optimum.work.size
    # the best so far: a finer stage of the climb looks at the same place again
    model.history_ = np.maximum.accumulate([*optimum.path, optimum.value])
    model.n_iter_ = len(optimum.path)
    model.converged_ = optimum.converged


def describe_data(panel: Any, events: Any) -> dict[str, float]:
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


def subject_labels(panel: Any, events: Any) -> Any:
    """Labels of the subjects in the order of the per-subject attributes."""
    labels = [np.asarray(s.subjects, dtype=object) for s in (panel, events) if s is not None]
    return np.concatenate(labels)


def _expected_counts(problem: Problem, parts: list[Weighted]) -> Any:
    """Posterior mean of R_k, each subject's expected count at effect 1; None without effects."""
    if problem.effect is None:
        return None
    total = np.zeros(len(problem.data.totals))
    for part in parts:
        at = part.optimum.estep.evaluation
        exposure = part.optimum.work.likelihood.exposure
        total += part.weight * exposure.expected(at.mean**2 + at.variance)
    return total


def _subject_effects(problem: Problem, parts: list[Weighted]) -> tuple[Any, float]:
    """Effects of the subjects, and the rate that goes with them.

    f and free weights share a scale, which is fixed by a mean weight of 1.
    """
    if problem.effect is None:
        return None, problem.data.rate
    effects = np.zeros(len(problem.data.totals))
    for part in parts:
        o = part.optimum
        exposure, at = o.work.likelihood.exposure, o.estep.evaluation
        expected = exposure.expected(at.mean**2 + at.variance)
        assert exposure.subject_cost is not None
        effects += part.weight * exposure.subject_cost.weight(
            problem.data.totals, expected, o.hyper.shape
        )
    # pooled subjects have summed effects: the mean is over subjects, not over rows
    shared = float(effects.sum()) / problem.data.n_subjects if problem.effect == "weight" else 1.0
    return effects / shared, problem.data.rate * shared
