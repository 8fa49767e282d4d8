"""Groups that share hyper-parameters: one smoothness and frailty, a curve and a level for each.

Length-scale a, relative variation s = ln(√γ/g) and frailty α are those of a fit to everybody; if
they were integrated out, the pooled posterior's length-scales are kept, each with its mean s, and
weighted anew by what the groups say together,

    w_i ∝ (weight in the pooled posterior) · Π_g V_g(i) / V_pooled(i),

V the evidence at (a_i, s_i, α) with the level c of the group's own rate integrated out (Laplace):
importance sampling from the pooled posterior. The mean of the ratios is the Bayes factor of one
curve per group against one for all. The level's uncertainty enters the curves through three
points of Gauss and Hermite's rule in ln c.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.data.subject_histories import SubjectHistories
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference.estep import EStep
from gp4c.inference.hyper import Optimum, Problem, solve_q
from gp4c.inference.parts import Weighted
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.threads import one_blas_thread
from gp4c.inference.variational import Workspace
from gp4c.models.fitting import Fit, describe_data, store_fit, subject_labels

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: length-scales lighter than this share of the heaviest are left out
LIGHT = 0.02
#: weights of the middle and the two sides of Gauss and Hermite's rule with three points
THREE_POINTS = (2 / 3, 1 / 6, 1 / 6)
#: most Newton steps to a level, and the step in ln c behind its curvature
MOST_STEPS, _SECANT = 8, 0.02
#: accuracy of q at each point, in nats
_E_TOL = 1e-4


@dataclass(frozen=True)
class SharedFits:
    """Fitted models of the groups, and the log Bayes factor of their curves against one."""

    models: dict[Any, Any]
    log_bayes_factor: float


@dataclass(frozen=True)
class _Support:
    """Points (a, γ, g, α) at unit level, inducing inputs, and weights in the pooled posterior."""

    hypers: list[Hyper]
    sizes: list[int]
    weights: Floats


@dataclass(frozen=True)
class _Level:
    """A group at one point: its curve at three levels, and the evidence with levels averaged."""

    optima: list[Optimum]
    log_evidence: float


def fit_shared(pooled: Any, panel: PanelCounts, groups: Mapping[Any, PanelCounts]) -> SharedFits:
    """Fit each group at the hyper-parameters of a model fitted to everybody.

    Parameters
    ----------
    pooled : fitted GP4C
        Without covariates; variational.
    panel : PanelCounts
        Everybody.
    groups : dict
        Name to the group's panel.
    """
    _check(pooled)
    support = _support(pooled)
    with one_blas_thread():
        _, together = _solve(pooled, panel, support)
        found = {name: _solve(pooled, part, support) for name, part in groups.items()}
        logs = np.log(support.weights) - _evidence(together)
        logs = logs + sum(_evidence(levels) for _, levels in found.values())
        factor = float(logsumexp(logs))
        models = {
            name: _model(pooled, groups[name], problem, levels, np.exp(logs - factor))
            for name, (problem, levels) in found.items()
        }
    integrated = pooled.hyper == "integrate"
    return SharedFits(models, factor if integrated else float("nan"))


def _check(pooled: Any) -> None:
    usable = hasattr(getattr(pooled, "posterior_", None), "components")
    if not usable or getattr(pooled, "coefficients_", None) is not None:
        raise ValueError(
            "share='hyper' needs a variational GP4C without covariates; for effects of covariates "
            "that differ between groups write an interaction into formula="
        )


def _support(pooled: Any) -> _Support:
    """Length-scales of the pooled posterior, each with its mean relative variation."""
    found: dict[float, list[tuple[float, float, int]]] = {}
    for c in pooled.posterior_.components:
        variation = np.log(max(c.prior_mean, 1e-3)) - np.log(c.variance) / 2
        found.setdefault(c.length_scale, []).append((c.weight, -variation, len(c.inducing)))
    hypers, sizes, weights = [], [], []
    for length_scale, some in found.items():
        weight, variation, size = (np.array(column) for column in zip(*some, strict=True))
        square = float(np.exp(2 * np.average(variation, weights=weight)))  # γ/g²
        mean = (1.0 + square) ** -0.5
        hypers.append(Hyper(length_scale, square * mean**2, mean, pooled.frailty_shape_))
        sizes.append(int(size.max()))
        weights.append(float(weight.sum()))
    keep = np.array(weights) > LIGHT * max(weights)
    chosen = np.array(weights)[keep]
    return _Support(
        [h for h, k in zip(hypers, keep, strict=True) if k],
        [n for n, k in zip(sizes, keep, strict=True) if k],
        chosen / chosen.sum(),
    )


def _solve(pooled: Any, panel: PanelCounts, support: _Support) -> tuple[Problem, list[_Level]]:
    """A group at every point."""
    data = observe(panel, None, panel.window)
    problem = Problem(
        data, KERNELS[pooled.kernel], pooled.count_term, pooled.b, pooled.effect_, pooled.n_inducing
    )
    levels: list[_Level] = []
    for hyper, size in zip(support.hypers, support.sizes, strict=True):
        work = problem.workspace(hyper.length_scale, size)
        near = levels[-1].optima[0].estep if levels else None
        levels.append(_with_levels(work, hyper, near))
    return problem, levels


def _with_levels(work: Workspace, hyper: Hyper, near: EStep | None) -> _Level:
    """Newton steps in t = ln c, (g, √γ) ↦ c (g, √γ), with the slope's secant as curvature."""

    def at(t: float, close: EStep | None) -> tuple[Optimum, float]:
        moved = replace(hyper, variance=hyper.variance * np.exp(2 * t), mean=hyper.mean * np.exp(t))
        estep = solve_q(work, moved, close, _E_TOL)
        slope = work.hyper_gradient(moved, estep.q, estep.evaluation, with_length_scale=False)
        # ln(g² + γ) = 2t has the weak prior N(0, 1) of the level
        here = Optimum(moved, work, estep, -2 * t**2, (), estep.converged)
        return here, float(2 * slope[1] + moved.mean * slope[2] - 4 * t)

    t = 0.0
    best, slope = at(t, near)
    curvature = 4.0
    for _ in range(MOST_STEPS):
        _, above = at(t + _SECANT, best.estep)
        curvature = max((slope - above) / _SECANT, 1.0)
        step = float(np.clip(slope / curvature, -1.0, 1.0))
        t += step
        best, slope = at(t, best.estep)
        if abs(step) < _SECANT:
            break
    reach = np.sqrt(3.0 / curvature)
    sides = [at(t + sign * reach, best.estep)[0] for sign in (1.0, -1.0)]
    # ∫ exp(value) dl, l = 2t, by Laplace; N(0, 1) has its constant
    evidence = best.value + np.log(2.0) - 0.5 * np.log(curvature)
    return _Level([best, *sides], float(evidence))


def _evidence(levels: list[_Level]) -> Floats:
    return np.array([level.log_evidence for level in levels])


def _model(
    pooled: Any, panel: PanelCounts, problem: Problem, levels: list[_Level], weights: Floats
) -> Any:
    """A fitted model of the pooled one's class and parameters."""
    parts = [
        Weighted(optimum, float(weight * share))
        for level, weight in zip(levels, weights, strict=True)
        for optimum, share in zip(level.optima, THREE_POINTS, strict=True)
    ]
    best = max(parts, key=lambda part: part.weight).optimum
    model = type(pooled)(**pooled.get_params())
    store_fit(model, problem, Fit(best, parts, float("nan")))
    model.effect_choice_ = f"as for all groups together: {pooled.effect_choice_}"
    model.coefficients_, model.compression_ = None, None
    model._fitted_to = (panel, None)
    model._keep_time_axis(panel)
    model.subjects_ = subject_labels(panel, None)
    model.data_summary_ = describe_data(panel, None)
    model.histories_ = SubjectHistories.of_all(panel, None)
    return model
