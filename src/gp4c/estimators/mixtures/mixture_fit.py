"""From a panel to the fitted attributes of a mixture of bases."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.subject_histories import SubjectHistories
from gp4c.estimators.fit_warnings import look_back, warn_of_misfit
from gp4c.estimators.fitting import (
    describe_data,
    find_optimum,
    gaussian_posterior,
    subject_labels,
    unit_mean,
)
from gp4c.estimators.mixtures.mixture_rows import MixtureRows, event_rows
from gp4c.exceptions import ConvergenceWarning, PanelDataError
from gp4c.inference.variational.bases.basis_em import Bases, fit_bases
from gp4c.inference.variational.bases.reported_terms import bases_bound
from gp4c.inference.variational.hyper import Problem
from gp4c.model.kernels import KERNELS
from gp4c.model.observations import observe
from gp4c.posterior.summed.summed_posterior import SummedPosterior

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.mixtures.gp4c_mixture import GP4CMixture

Floats = NDArray[np.float64]

#: precision of the fit with one basis, from which several begin
_FIRST_TOL = 1e-6


def fit_and_store(model: GP4CMixture, panel: PanelCounts, say: Callable[[str], None]) -> None:
    """Find the bases, and set all that a fitted mixture has."""
    _check_events(model, panel)
    data = observe(panel, None, panel.window)
    problem = Problem(
        data, KERNELS[model.kernel], str(model.count_term), model.b, model.effect, model.n_inducing
    )
    rows = event_rows(panel, data.count != 0)
    say("one basis")
    first = find_optimum(problem, mean=model.mean, tol=_FIRST_TOL, max_iter=200)
    found = fit_bases(
        problem, rows, first, model.n_bases, mean=unit_mean(problem, model.mean), tol=model.tol,
        max_iter=model.max_iter, n_starts=model.n_starts,
        rng=np.random.default_rng(model.random_state or 0), say=say,
    )  # fmt: skip
    found = in_order(found)
    _store_curves(model, problem, found)
    _store_fit(model, found)
    model._bound_with = partial(bases_bound, problem, rows, found)
    model._fitted_to = (panel, None)
    model.subjects_ = subject_labels(panel, None)
    model.data_summary_ = describe_data(panel, None)
    model.histories_ = SubjectHistories.of_all(panel, None)
    law = MixtureRows(panel, model.posterior_).weight_law(model.weights_)
    model.law_weights_, model.law_masses_ = law.weights, law.masses
    model.fit_check_ = look_back(model, model._adjusted(panel))
    _warn(model)


def in_order(found: Bases) -> Bases:
    """The basis with most events first."""
    events = (found.shared.weights * found.expected).sum(axis=0)
    order = np.argsort(-events, kind="stable")
    shared = replace(
        found.shared, weights=found.shared.weights[:, order], shares=found.shared.shares[:, order]
    )
    return replace(found, bases=tuple(found.bases[k] for k in order), shared=shared)


def _check_events(model: GP4CMixture, panel: PanelCounts) -> None:
    """Refuse more bases than subjects with events: nothing would tell them apart."""
    totals = np.bincount(panel.subject_index, panel.count, panel.n_subjects)
    with_events = int((totals > 0).sum())
    if with_events < model.n_bases:
        raise PanelDataError(
            f"n_bases={model.n_bases} needs at least as many subjects with events; found "
            f"{with_events}: take fewer bases, or GP4C"
        )


def _store_curves(model: GP4CMixture, problem: Problem, found: Bases) -> None:
    """Bases and weights in the user's units, each basis with a mean weight of 1."""
    data, weights, expected = problem.data, found.shared.weights, found.expected
    length, scale = data.window[1] - data.window[0], weights.mean(axis=0)
    model.window_ = data.window
    model.weights_, model.basis_expected_ = weights / scale, expected * scale
    events = (weights * expected).sum(axis=0)
    model.shares_ = events / events.sum()
    model.subject_expected_ = model.basis_expected_.sum(axis=1)
    own = (model.weights_ * model.basis_expected_).sum(axis=1)
    model.subject_effects_ = own / model.subject_expected_
    model.subject_totals_ = data.totals
    model.posterior_ = SummedPosterior(
        tuple(
            gaussian_posterior(one, model.kernel, data.window, data.rate * float(s))
            for one, s in zip(found.bases, scale, strict=True)
        )
    )
    parts = model.posterior_.parts
    model.length_scales_ = np.array([part.length_scale * length for part in parts])
    model.length_scale_ = float(model.length_scales_.min())  # on which their sum varies
    model.variance_ = float(sum(part.scale * part.variance for part in parts))
    model.mean_ = float(np.sqrt(sum(part.scale * part.prior_mean**2 for part in parts)))
    model.n_inducing_ = max(len(part.inducing) for part in parts)


def _store_fit(model: GP4CMixture, found: Bases) -> None:
    """The laws, the bound and how it was reached."""
    model.effect_, model.law_, model.effect_choice_ = model.effect, "poisson", "as asked"
    model.frailty_shape_, model.frailty_variance_ = np.inf, 0.0
    model.dispersion_ = model.burst_size_ = 1.0
    model.sampler_ = model._engine_data = None
    for bound in ("elbo_", "paper_bound_", "evidences_", "effective_draws_", "pareto_k_"):
        vars(model).pop(bound, None)  # of an earlier fit; evaluated when asked for
    model.terms_ = found.bound
    model.objective_ = model.log_evidence_ = found.bound.total
    model.history_ = np.maximum.accumulate(found.path)
    model.n_iter_, model.converged_ = len(found.path) - 1, found.converged
    model.starts_ = np.array(found.ends or (found.bound.total,))


def _warn(model: GP4CMixture) -> None:
    if not model.converged_:
        warnings.warn(
            f"GP4CMixture stopped after {model.n_iter_} cycles before it converged: raise "
            "max_iter, or loosen tol",
            ConvergenceWarning,
            stacklevel=4,
        )
    warn_of_misfit(model)
