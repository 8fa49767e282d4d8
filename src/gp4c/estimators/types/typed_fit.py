"""From a panel with types to one posterior: each type by itself, then weighed together."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.types.typed_panel import TypedPanel
from gp4c.estimators.engine_fit import FEWEST_EFFECTIVE, store_draws
from gp4c.estimators.fit_warnings import MOST_K
from gp4c.estimators.types.typed_state import forget_fit
from gp4c.exceptions import ConvergenceWarning, PanelDataError
from gp4c.inference.types.coupling import Coupling, Dependence, Margin, couple
from gp4c.model.laws.effect_copula import NODES, score_laws
from gp4c.posterior.draws import CurveDraws, systematic
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.posterior.summed.summed_curves import SummedCurves

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp4c import GP4C
    from gp4c.estimators.types.typed_answers import TypedCurves

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: tuples of draws behind the effects of single subjects
_EFFECT_DRAWS = 200


def fit_types(
    model: GP4C, panel: TypedPanel, progress: Callable[[str], None] | None = None
) -> None:
    """Fit a curve to each type, weigh tuples of their draws, and store what was found."""
    if model._is_variational:
        raise PanelDataError(
            f"{type(model).__name__} with a count_term or free weights fits one type of event: "
            f"panel.of_type({panel.event_types[0]!r}), or panel.total() for all events together"
        )
    tell = progress or (lambda text: None)
    with model._whole_fit():
        fits = {}
        for name, part in zip(panel.event_types, panel.parts, strict=True):
            one = type(model)(**model.get_params())  # type: ignore[arg-type]
            fits[name] = one.fit(part, progress=_naming(name, tell))
        tell("joining the types")
        margins = [margin_of(panel, name, fit) for name, fit in fits.items()]
        coupling = couple(margins, panel.n_subjects, model._seed(None))
        _store(model, panel, fits, coupling)
        _store_effects(model, margins, coupling)
    if not model.converged_:
        warnings.warn(
            f"{type(model).__name__}: drawn curves of all types are worth "
            f"{model.effective_draws_:.0f} independent ones (their Pareto k is "
            f"{model.pareto_k_:.2f}, reliable below {MOST_K}): the types may not go together as "
            "one model; look at each with model.of_type(...)",
            ConvergenceWarning,
            stacklevel=3,
        )


def _naming(event: str, tell: Callable[[str], None]) -> Callable[[str], None]:
    """Tell with the name of the type."""
    return lambda text: tell(f"{event}: {text}")


def margin_of(panel: TypedPanel, name: str, fit: GP4C) -> Margin:
    """The posterior of a type, and the counts that it was fitted to."""
    e, rows = panel.event_types.index(name), panel.of_type(name)
    data, z = fit._engine_data, fit._covariates_of(rows)
    if data is not None and data.panel is not None and data.z is not None:
        assert data.scale is not None
        rows, z = data.panel, data.z / data.scale  # rows without a covariate may be left out
    posterior = fit.posterior_
    if type(posterior) is not CurveDraws:
        raise PanelDataError(
            "trend=, season= and over_time() do not go with event types: fit one type, "
            f"panel.of_type({name!r}), or all events together, panel.total()"
        )
    counts = SubjectCounts.of(rows, fit.count_law_, fit.effect_law_, z)
    return Margin(posterior, counts, _places(panel, e, rows))


def _places(panel: TypedPanel, e: int, rows: PanelCounts) -> Indices:
    """Position of each subject among those of the rows of a type."""
    if rows.n_subjects == panel.parts[e].n_subjects:
        return np.asarray(panel.place[e])
    position = {label: k for k, label in enumerate(rows.subjects.tolist())}
    return np.array([position.get(label, -1) for label in panel.subjects.tolist()], dtype=np.intp)


def _store(
    model: TypedCurves, panel: TypedPanel, fits: dict[str, GP4C], coupling: Coupling
) -> None:
    """Set the fitted attributes; the posterior of each type becomes that of the joint model."""
    keep = systematic(coupling.weights, 1, np.random.default_rng(0))  # a draw for certain
    used = coupling.weights > 1e-6 * coupling.weights[keep[0]]
    weights = coupling.weights[used] / coupling.weights[used].sum()
    who = coupling.who[:, used]
    parts, places = [], []
    for row, fit in zip(who, fits.values(), strict=True):
        assert isinstance(fit.posterior_, CurveDraws)
        own = np.asarray(np.bincount(row, weights, minlength=fit.posterior_.size), np.float64)
        draws, new = fit.posterior_.reweighted(own)
        store_draws(fit, draws)
        fit.effective_draws_ = min(fit.effective_draws_ or np.inf, float(1.0 / (own**2).sum()))
        parts.append(draws)
        places.append(new[row])
    forget_fit(model)
    model.window_ = panel.window
    model._keep_time_axis(panel)
    model.event_types_ = panel.event_types
    model.type_models_ = fits
    model.posterior_ = SummedCurves.of(parts, np.array(places), weights)
    model.loadings_ = coupling.loadings[:, used]
    model.log_evidence_gain_ = coupling.log_gain
    evidences = [fit.log_evidence_ for fit in fits.values()]
    model.log_evidence_ = model.objective_ = model.elbo_ = sum(evidences) + coupling.log_gain
    model.history_ = np.array([sum(evidences), model.log_evidence_])
    model.n_iter_ = sum(fit.n_iter_ for fit in fits.values())
    model.effective_draws_, model.pareto_k_ = coupling.effective, coupling.pareto_k
    few = coupling.effective < FEWEST_EFFECTIVE or coupling.pareto_k >= MOST_K
    model.converged_ = not few and all(fit.converged_ for fit in fits.values())
    model.subjects_ = np.asarray(panel.subjects, dtype=object)
    model.subject_totals_ = _totals(panel)
    first = next(iter(fits.values())).data_summary_
    model.data_summary_ = {
        **first, "n_subjects": panel.n_subjects, "n_intervals": panel.n_intervals,
        "n_events": panel.n_events,
    }  # fmt: skip


def _totals(panel: TypedPanel) -> Floats:
    totals = np.zeros(panel.n_subjects)
    for part, place in zip(panel.parts, panel.place, strict=True):
        own = np.bincount(part.subject_index, part.count, part.n_subjects)
        totals[place >= 0] += own[place[place >= 0]]
    return totals


def _store_effects(model: TypedCurves, margins: list[Margin], coupling: Coupling) -> None:
    """Effects of the subjects of each type given their counts of all types."""
    free = [e for e, margin in enumerate(margins) if margin.depends]
    if len(free) < 2:
        return
    n_subjects = len(model.subjects_)
    known = Dependence([margins[e] for e in free], n_subjects)
    chosen = systematic(coupling.weights, _EFFECT_DRAWS, np.random.default_rng(0))
    who, loadings = coupling.who[free][:, chosen], coupling.loadings[free][:, chosen]
    sums = [np.zeros(margins[e].counts.n_subjects) for e in free]
    for some, scores in known.scores(who):
        laws = score_laws(scores, known.places, loadings[:, some], n_subjects)
        for k, e in enumerate(free):
            psi, _ = margins[e].counts.likelihood.split(margins[e].draws.params[:, who[k, some]])
            effect = np.exp(margins[e].counts.effect.log_quantile(NODES, psi))
            sums[k] += np.einsum("sn,snk->k", effect, laws[k])
    names = list(model.type_models_)
    for k, e in enumerate(free):
        fit = model.type_models_[names[e]]
        mean, narrow = sums[k] / len(chosen), known.subjects[k].narrow
        if fit.subject_effects_ is not None and len(fit.subject_effects_) == len(mean):
            mean[narrow] = fit.subject_effects_[narrow]
            fit.subject_effects_ = mean
