"""Scores of new subjects under a fit to several types of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.ordering import positions
from gp4c.data.types.typed_panel import TypedPanel
from gp4c.estimators.interfaces.joined_fit import joined_data, joined_fit
from gp4c.inference.types.coupling import Dependence, Margin, couple
from gp4c.posterior.scoring import log_mean_exp
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.posterior.summed.summed_curves import SummedCurves
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.estimators.types.typed_answers import TypedCurves

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: numbers held at once
_CHUNK = 10_000_000


def typed_score(
    model: TypedCurves, panel: TypedPanel, joint: bool, n_draws: int
) -> tuple[float, float]:
    """Log-likelihood of the counts of all types of new subjects, and its error.

    Jointly by two evidences, as for one type: ln p(new | fitted) = ln p(all) − ln p(fitted), with
    the gain of dependent effects in both. Where an evidence comes from tempering, and for sums of
    subjects' own scores, by averages over draws.
    """
    if joint:
        found = _by_evidence(model, panel)
        if found is not None:
            return found
    values = _log_likelihoods(model, panel, n_draws)
    if joint:
        value, error = log_mean_exp(values.sum(axis=1))
        return float(value), float(error)
    each, errors = log_mean_exp(values)
    return float(each.sum()), float(np.sqrt((errors**2).sum()))


def typed_subject_scores(model: TypedCurves, panel: TypedPanel, n_draws: int) -> Floats:
    """Log-likelihood of each subject's counts of all types."""
    return log_mean_exp(_log_likelihoods(model, panel, n_draws))[0]


def _by_evidence(model: TypedCurves, panel: TypedPanel) -> tuple[float, float] | None:
    """The difference of two joint evidences; None where one type has none by weights."""
    margins, total, doubt = [], 0.0, 0.0
    if panel.event_types != model.event_types_:
        return None  # the gain of all types is known, not that of some
    n_fitted, size = len(model.subjects_), len(model.subjects_) + panel.n_subjects
    for e, (name, part) in enumerate(zip(panel.event_types, panel.parts, strict=True)):
        fit = model.type_models_[name]
        data, z = fit._engine_data, fit._covariates_of(part)
        if data is None or data.panel is None:
            return None
        with one_blas_thread():
            found = joined_fit(fit, data, part, z)
        if found is None:
            return None
        total += found.weighted.log_evidence - fit.log_evidence_
        doubt += 1.0 / found.weighted.effective + 1.0 / (fit.effective_draws_ or np.inf)
        rows = joined_data(fit, data, part, z)
        units = None if rows.z is None or rows.scale is None else rows.z / rows.scale
        counts = SubjectCounts.of(rows.panel, fit.count_law_, fit.effect_law_, units)  # type: ignore[arg-type]
        old = _labelled(model.subjects_.tolist(), data.panel.subjects.tolist())
        new = np.where(panel.place[e] >= 0, panel.place[e] + data.panel.n_subjects, -1)
        draws = found.draws(model.kernel, data.scale)
        margins.append(Margin(draws, counts, np.concatenate([old, new])))
    with one_blas_thread():
        both = couple(margins, size, model._seed(None))
    doubt += 1.0 / both.effective + 1.0 / (model.effective_draws_ or np.inf)
    assert len(margins[0].place) == n_fitted + panel.n_subjects
    return total + both.log_gain - model.log_evidence_gain_, float(np.sqrt(doubt))


def _labelled(labels: list[object], known: list[object]) -> Indices:
    """Position of each label among the known ones, -1 for others; equal labels in order."""
    if len(labels) == len(known):
        return np.arange(len(known))
    return positions(labels, known)


def _log_likelihoods(model: TypedCurves, panel: TypedPanel, n_draws: int) -> Floats:
    """ln p(counts of all types of subject k | joint draw s), (draws, subjects)."""
    posterior = model.posterior_
    assert isinstance(posterior, SummedCurves)
    chosen = posterior.choose(n_draws, np.random.default_rng(model._seed(None)))
    margins, rows = [], []
    for e, name in enumerate(panel.event_types):
        fit, part = model.type_models_[name], panel.of_type(name)
        fit._inside([part.start.min(), part.stop.max()], extrapolate=False)
        z = fit._covariates_of(part)
        counts = SubjectCounts.of(part, fit.count_law_, fit.effect_law_, z)
        f = model.event_types_.index(name)
        margins.append(Margin(posterior.parts[f], counts, panel.place[e]))
        rows.append(f)
    total = np.zeros((n_draws, panel.n_subjects))
    step = max(1, _CHUNK // max(panel.n_intervals, 1))
    with one_blas_thread():
        for first in range(0, n_draws, step):
            some = chosen[first : first + step]
            who = posterior.who[rows][:, some]
            total[first : first + step] = _given(margins, who, model.loadings_[rows][:, some])
    return total


def _given(margins: list[Margin], who: Indices, loadings: Floats) -> Floats:
    """The same for chosen draws: types by themselves, then what their dependence adds."""
    n_subjects = len(margins[0].place)
    total = np.zeros((who.shape[1], n_subjects))
    for margin, row in zip(margins, who, strict=True):
        counts, draws, rng = margin.counts, margin.draws, np.random.default_rng(0)
        integrals = draws.integrals_of(counts.start, counts.stop, row, rng)
        beta = draws.coefficients[:, row] if counts.seen.z.shape[1] else None
        own = counts.log_likelihoods(integrals, draws.params[:, row], beta)
        seen = margin.place >= 0
        total[:, seen] += own[margin.place[seen]].T
    free = [e for e, margin in enumerate(margins) if margin.depends]
    if len(free) > 1:
        known = Dependence([margins[e] for e in free], n_subjects)
        total += known.log_ratios(who[free], loadings[free]).T
    return total
