"""From a panel to fitted classes: the laws, the number of classes, what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.formulas.covariate_rows import last_rows, learn_design
from gp4c.estimators.engine_fit import (
    EngineData,
    candidates,
    fit_engine,
    law_words,
    reliable,
    store_draws,
    store_posterior,
    store_subjects,
)
from gp4c.estimators.mixtures.classes.class_choice import ClassChoice
from gp4c.exceptions import PanelDataError
from gp4c.inference.classes.class_draws import ClassDraws
from gp4c.inference.classes.class_fit import ClassFit, class_draws, single_class
from gp4c.inference.classes.class_landscape import ClassData
from gp4c.inference.classes.class_laws import ClassLaws
from gp4c.inference.engine.posterior_fit import EngineFit
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.laws.choice_words import choice_words
from gp4c.model.observed_cells import by_content, merged_spans, panel_rows
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.own_check import check_rows, compared_by
from gp4c.posterior.subject_counts import SubjectCounts

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.mixtures.classes.gp4c_classes import GP4CClasses

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Say = Callable[[str], None]

#: subjects per class below which a fit is refused
_FEWEST_SUBJECTS = 2
#: nats that a class must have gained before another one is tried
_WORTH_ANOTHER = 1.0
#: draws behind the effects and expected numbers of the subjects
_EFFECT_DRAWS = 200


def fit_and_store_classes(model: GP4CClasses, panel: PanelCounts, say: Say) -> None:
    """Fit one class, then more of them, and keep the number asked for or chosen."""
    _check_size(model, panel)
    engine_data = EngineData(panel, None, panel.window)
    design = _learn_membership(model, panel)
    laws = candidates(model.effect, model.bursts, engine_data)
    engine = fit_engine(model, engine_data, laws, say)
    one = store_posterior(model, panel.window, engine)
    data, place = _class_data(panel, engine, one, design)
    fits = [single_class(engine, one, data)]
    more = ClassLaws.after(
        engine.lattice, data, laws, kernel=model.kernel, n_inducing=model.n_inducing,
        seed=model._seed(None), say=say,
    )  # fmt: skip
    while _goes_on(model, panel, fits):
        fits.append(more.fit())
    model.choice_ = ClassChoice.of(fits)
    number = model.choice_.chosen if model.n_classes == "auto" else int(model.n_classes)
    found = fits[number - 1]
    model.n_classes_ = number
    model._engine_data = engine_data if number == 1 else None
    if found.weighted is None:
        _store_one(model, engine_data, panel, one)
        return
    order = _by_level(found, data, model.kernel)
    _store_laws(model, found)
    _store_draws(model, found, class_draws(found.weighted, data, model.kernel, order))
    model.membership_ = found.weighted.membership[place][:, order]
    model.stability_ = more.fitters[found.laws].agreement(found, model.n_refits)
    assert found.lattice is not None
    model.starts_ = (found.lattice.n_agreeing, found.lattice.n_starts)
    _store_class_subjects(model, engine_data, panel)


def _check_size(model: GP4CClasses, panel: PanelCounts) -> None:
    """Refuse more classes than subjects can fill."""
    if isinstance(model.n_classes, int):
        needed = _FEWEST_SUBJECTS * model.n_classes
        if model.n_classes > 1 and panel.n_subjects < needed:
            raise PanelDataError(
                f"{model.n_classes} classes need at least {needed} subjects; there are "
                f"{panel.n_subjects}"
            )


def _goes_on(model: GP4CClasses, panel: PanelCounts, fits: list[ClassFit]) -> bool:
    """Whether one class more is fitted: up to the number asked for, or while evidence rises."""
    n = len(fits)
    if panel.count.sum() == 0:
        if model.n_classes in ("auto", 1):
            return False
        raise PanelDataError("there are no events, so that no classes can be told: n_classes=1")
    if model.n_classes != "auto":
        return n < int(model.n_classes)
    room = n < model.max_classes and panel.n_subjects >= _FEWEST_SUBJECTS * (n + 1)
    gained = fits[-1].support - max(f.support for f in fits[:-1]) if n > 1 else np.inf
    return room and gained > _WORTH_ANOTHER


def _learn_membership(model: GP4CClasses, panel: PanelCounts) -> Floats:
    """Covariates of membership, (K, q): a one, then standardised columns."""
    model.membership_design_ = None
    model.membership_scale_ = np.ones(1)
    if model.membership is None:
        model.subject_design_ = np.ones((panel.n_subjects, 1))
        return model.subject_design_
    found, _ = learn_design(panel, model.membership)
    from gp4c.data.formulas.covariate_rows import design_rows

    rows = design_rows(found, panel)
    if (rows != rows[last_rows(panel)][panel.subject_index]).any():
        raise PanelDataError("covariates of membership must be the same at all visits of a subject")
    own = rows[last_rows(panel)]
    model.membership_design_ = found
    model.membership_scale_ = np.append(1.0, 1.0 / np.maximum(own.std(axis=0), 1e-300))
    model.subject_design_ = np.column_stack([np.ones(len(own)), own * model.membership_scale_[1:]])
    return model.subject_design_


def _class_data(
    panel: PanelCounts, engine: EngineFit, one: CurveDraws, design: Floats
) -> tuple[ClassData, Indices]:
    """Rows in the units of the engine, subjects sorted by what was seen; their places there."""
    rows, n = panel_rows(panel, panel.window, design[panel.subject_index])
    place = by_content(rows, rows, n)
    sorted_design = np.empty_like(design)
    sorted_design[place] = design
    plain, _ = panel_rows(panel, panel.window, None)
    plain = plain.take(np.lexsort((plain.start, place[plain.subject])))
    plain.subject[:] = place[plain.subject]
    law, effect = engine.laws
    data = ClassData.of(
        plain, merged_spans(plain), law, effect, window=panel.window, rate=one.rate,
        design=sorted_design,
    )  # fmt: skip
    return data, place


def _by_level(found: ClassFit, data: ClassData, kernel: str) -> Indices:
    """Classes by their mean number of events over the window, the lowest first."""
    assert found.weighted is not None
    draws = class_draws(found.weighted, data, kernel, np.arange(found.n_classes))
    ends = (np.array([edge]) for edge in data.window)
    start, stop = ends
    means = [draws.of_class(c).expected_integral(start, stop)[0] for c in range(found.n_classes)]
    return np.argsort(means, kind="stable")


# -- what is stored -------------------------------------------------------------------------------


def _store_one(model: GP4CClasses, data: EngineData, panel: PanelCounts, draws: CurveDraws) -> None:
    """One class: what the default engine found."""
    from gp4c.estimators.fit_warnings import look_back

    model.shares_, model.membership_ = np.ones(1), np.ones((panel.n_subjects, 1))
    model.stability_, model.starts_ = np.zeros(0), (1, 1)
    store_subjects(model, data, draws)
    model.fit_check_ = look_back(model, panel)


def _store_laws(model: GP4CClasses, found: ClassFit) -> None:
    """The laws within the classes, and what speaks for them."""
    model.law_, model.effect_ = found.laws
    model.effect_choice_ = choice_words(found.laws, found.evidences)
    model.evidences_ = {law_words(names): value for names, value in found.evidences.items()}


def _store_draws(model: GP4CClasses, found: ClassFit, draws: ClassDraws) -> None:
    """The posterior of several classes in place of that of one."""
    store_draws(model, draws)
    model.log_evidence_ = model.objective_ = model.elbo_ = found.log_evidence
    model.effective_draws_, model.pareto_k_ = found.effective, found.pareto_k
    assert found.lattice is not None
    assert found.weighted is not None
    model.converged_ = reliable(found.pareto_k, found.effective, len(found.weighted.weights))
    model.n_inducing_ = found.lattice.best.space.size
    model.n_iter_ = sum(m.steps for point in found.lattice.points for m in point.modes)
    model.history_ = np.array([found.lattice.log_evidence, found.log_evidence])
    weights = draws.parent_weights
    model.shares_ = np.array([weights @ draws.share[m] for m in draws.members]) / weights.sum()


def _store_class_subjects(model: GP4CClasses, data: EngineData, panel: PanelCounts) -> None:
    """Labels, totals, effects within classes, and the check against the rows."""
    draws = model.posterior_
    assert isinstance(draws, ClassDraws)
    store_subjects(model, data, draws)
    law, effect = LAWS[model.law_], EFFECTS[model.effect_]
    known = model.histories_
    assert known is not None
    counts = SubjectCounts.of_histories(known, law, effect)
    rng = np.random.default_rng(0)
    parents = draws.choose_parents(_EFFECT_DRAWS, rng)
    effects, expected = np.zeros(panel.n_subjects), np.zeros(panel.n_subjects)
    for c, m in enumerate(draws.members):
        integrals = draws.integrals_of(counts.start, counts.stop, m[parents], rng)
        share, params = model.membership_[:, c], draws.params[:, m[parents]]
        expected += share * counts.expected(integrals).mean(axis=1)
        if effect.varies:
            effects += share * counts.effect_means(integrals, params).mean(axis=1)
    if effect.varies:
        model.subject_expected_, model.subject_effects_ = expected, effects
    model.fit_check_ = check_rows(
        panel, _expected_rows(model, panel), _mean_by(model, panel), model.dispersion_ - 1.0,
        model.subject_effects_,
    )  # fmt: skip


def _expected_rows(model: GP4CClasses, panel: PanelCounts) -> Floats:
    """Expected numbers of the rows at effect 1: class curves weighed by membership."""
    times, inverse = np.unique(np.concatenate([panel.start, panel.stop]), return_inverse=True)
    total = np.zeros(panel.n_intervals)
    for c in range(model.n_classes_):
        first, last = np.split(np.asarray(model.cumulative(times, label=c))[inverse], 2)
        total += model.membership_[panel.subject_index, c] * np.maximum(last - first, 0.0)
    return np.asarray(panel.exposure * total)


def _mean_by(model: GP4CClasses, panel: PanelCounts) -> tuple[float, float]:
    time = compared_by(panel)
    return time, float(model.cumulative(time))
