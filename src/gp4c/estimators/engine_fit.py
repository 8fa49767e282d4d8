"""The default fit: from a panel to weighted draws, and from these to fitted attributes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from gp4c.data.subject_histories import SubjectHistories
from gp4c.estimators.fit_warnings import MOST_K, MOST_R_HAT, warn_of_weights
from gp4c.estimators.fitting import describe_data, subject_labels
from gp4c.estimators.interfaces.credible import medians
from gp4c.inference.engine.posterior_fit import (
    EngineFit,
    Laws,
    Say,
    evidences,
    fit_posterior,
    richest_plausible,
)
from gp4c.model.cells import Cells
from gp4c.model.laws import EFFECTS, LAWS, CountLaw, SubjectEffect
from gp4c.model.laws.choice_words import choice_words
from gp4c.model.observed_cells import Modulated, observe_cells
from gp4c.posterior.draws import CurveDraws, systematic
from gp4c.posterior.quantiles import weighted_quantiles
from gp4c.posterior.subject_counts import SubjectCounts

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp_base import GaussianProcessModel
    from gp4c.estimators.interfaces.fitted_state import Compression
    from gp4c.inference.sampler.sampler_report import SamplerReport

Floats = NDArray[np.float64]

#: prior deviation of a coefficient, in deviations of its covariate: nearly flat
COEFFICIENT = 3.0
#: fewest and most draws behind the effects of single subjects, and draws times rows that all of
#: them allow: where rows are many, the curve is nearly known. Subjects treated at once
_EFFECT_DRAWS, _EFFECT_WORK, _AT_ONCE = (8, 400), 2e6, 5_000
#: rows up to which a panel is fitted as it is, whatever the laws
ORDINARY = 5_000
#: laws of counts that an answer to ``bursts=`` leaves open, the richest first
_LAWS_OF_BURSTS: dict[str | bool, list[str]] = {
    "auto": ["bursts", "poisson"],
    True: ["bursts"],
    False: ["poisson"],
}
#: effective draws below which a fit warns
FEWEST_EFFECTIVE = 100.0
#: share of effective draws from which on weights are so even that k̂ is of no consequence
EVEN = 0.6


class Sized(Protocol):
    """Anything with a largest count and a number of subjects."""

    @property
    def largest_count(self) -> int:
        """Most events in one interval."""
        ...

    @property
    def n_subjects(self) -> int:
        """All subjects."""
        ...


@dataclass(frozen=True)
class EngineData:
    """What a default fit is fitted to.

    Attributes
    ----------
    panel, events
        Counts, exact event times, or both.
    window : (t0, t1)
    z : (n_intervals, p)
        Covariates of the rows, in units of `scale`.
    scale : (p,)
        Coefficients in the user's units are those of the engine times this.
    modulated : (Modulation, (n_intervals, r)), optional
        Factors that change within intervals, and what the rows bring to them.
    """

    panel: PanelCounts | None
    events: RecurrentEvents | None
    window: tuple[float, float]
    z: Floats | None = None
    scale: Floats | None = None
    rate: float | None = None
    modulated: Modulated | None = None

    @classmethod
    def with_covariates(
        cls, panel: PanelCounts, rows: Floats, scale: Floats | None = None
    ) -> EngineData:
        """Rows of a regression: standardised, so that coefficients have one prior.

        Deviations are over time at risk: a visit more, at which nothing is new, changes nothing.
        A `scale` that is given is that of other subjects, whose prior these have too.
        """
        if scale is not None:
            return cls(panel, None, panel.window, rows * scale, scale)
        weight = panel.exposure * (panel.stop - panel.start)
        weight = weight / weight.sum()
        variance = weight @ (rows - weight @ rows) ** 2
        scale = COEFFICIENT / np.maximum(np.sqrt(variance), 1e-300)
        return cls(panel, None, panel.window, rows * scale, scale)

    @property
    def largest_count(self) -> int:
        """Most events in one interval, or at one time of one subject."""
        counted = 0 if self.panel is None else int(self.panel.count.max(initial=0))
        return counted if self.events is None else max(counted, _most_at_once(self.events))

    @property
    def n_subjects(self) -> int:
        """All subjects."""
        return int(sum(s.n_subjects for s in (self.panel, self.events) if s is not None))

    def cells(self, law: CountLaw, effect: SubjectEffect) -> Cells:
        """What the likelihood of these laws needs."""
        return observe_cells(
            self.panel, self.events, self.window, law, effect, self.z, self.rate, self.modulated
        )


def _most_at_once(events: RecurrentEvents) -> int:
    """The largest number of events of one subject at one time."""
    if not len(events.time):
        return 0
    same = (np.diff(events.subject_index) == 0) & (np.diff(events.time) == 0)
    ends = np.flatnonzero(np.append(~same, True))
    return int(np.diff(ends, prepend=-1).max())


def candidates(effect: str | None, bursts: str | bool, data: Sized) -> list[Laws]:
    """Laws to choose from; the richest first.

    "auto" takes the simpler law where the data cannot tell: one subject says nothing about
    differences between subjects, and counts of at most one say nothing about bursts.
    """
    counts = _LAWS_OF_BURSTS.get(bursts, [str(bursts)])
    effects = ["gamma", None] if effect == "auto" else [effect]
    if bursts == "auto" and data.largest_count < 2:
        counts = counts[-1:]
    if effect == "auto" and (data.n_subjects < 2 or data.largest_count == 0):
        effects = effects[-1:]
    return [(LAWS[law], EFFECTS[name]) for law in counts for name in effects]


def fit_engine(
    model: GaussianProcessModel, data: EngineData, laws: list[Laws], say: Say | None = None
) -> EngineFit:
    """Run the engine with a model's parameters."""
    return run_engine(model, data.cells, laws, say)


def run_engine(
    model: GaussianProcessModel,
    observe: Callable[[CountLaw, SubjectEffect], Cells],
    laws: list[Laws],
    say: Say | None = None,
) -> EngineFit:
    """The same for cells of any origin."""
    return fit_posterior(
        observe, laws, kernel=model.kernel, n_inducing=model.n_inducing, mean=given_mean(model),
        hyper=model.hyper, seed=model._seed(None), say=say,
    )  # fmt: skip


def given_mean(model: GaussianProcessModel) -> float | None:
    """The prior mean of f, if it is not learned."""
    return None if isinstance(model.mean, str) else float(model.mean)


def fit_and_store(
    model: GaussianProcessModel, data: EngineData, say: Say | None = None
) -> Compression | None:
    """Choose the laws, fit, and store what was found; what stands for the rows, if something."""
    laws, compression = candidates(model.effect, model.bursts, data), None
    if data.panel is None or data.panel.n_intervals <= ORDINARY:
        fit = fit_engine(model, data, laws, say)
    else:
        from gp4c.estimators.large_data.large_panels import (
            fit_panel,  # what only some fits need, they load
        )

        fit, compression = fit_panel(model, data, laws, say)
    store_engine(model, data, fit)
    kept = data.events is None and compression is None
    model._engine_data = data if kept else None
    return compression


def preferred_effect(model: GaussianProcessModel, data: EngineData) -> tuple[str | None, str]:
    """The effect that the evidence prefers where events come one by one, and why."""
    laws = candidates("auto", False, data)
    found = evidences(data.cells, laws, model.kernel, model.n_inducing)
    law, effect = richest_plausible({(LAWS[a], EFFECTS[b]): v for (a, b), v in found.items()})
    if len(found) == 1:
        return effect.name, "the data cannot tell whether subjects differ"
    return effect.name, choice_words((law.name, effect.name), found)


def store_engine(model: GaussianProcessModel, data: EngineData, fit: EngineFit) -> None:
    """Set the fitted attributes of a model, in the user's units."""
    draws = store_posterior(model, data.window, fit, data.scale)
    store_subjects(model, data, draws)
    warn_of_weights(model, fit.weighted.rough)


def store_posterior(
    model: GaussianProcessModel,
    window: tuple[float, float],
    fit: EngineFit,
    scale: Floats | None = None,
) -> CurveDraws:
    """Set the fitted attributes that belong to no single subject; return the draws."""
    law, effect = fit.laws
    draws, report = fit.draws(model.kernel, scale), None
    if model.method == "mcmc":
        draws, report = _sampled(model, fit, scale)
    model.window_ = window
    model.law_, model.effect_ = law.name, effect.name
    store_draws(model, draws)
    model._continuation = None
    model.log_evidence_ = model.objective_ = model.elbo_ = fit.weighted.log_evidence
    model.effective_draws_, model.pareto_k_ = fit.weighted.effective, fit.weighted.pareto_k
    model.effect_choice_ = choice_words((law.name, effect.name), fit.evidences)
    model.evidences_ = {law_words(key): value for key, value in fit.evidences.items()}
    best = fit.lattice.best.mode
    model.n_inducing_ = best.landscape.size
    model.n_iter_ = sum(point.mode.steps for point in fit.lattice.points)
    model.history_ = np.array([fit.lattice.log_evidence, fit.weighted.log_evidence])
    # draws that were carried from the prior have no weights, and so no tail of them
    model.converged_ = not fit.weighted.rough and reliable(
        fit.weighted.pareto_k, fit.weighted.effective, fit.weighted.size
    )
    model.terms_, model.sampler_ = None, report
    if report is not None:
        model.log_evidence_ = model.objective_ = model.elbo_ = report.log_evidence
        model.effective_draws_, model.pareto_k_ = report.curve_ess, float("nan")
        model.converged_ = report.curve_r_hat <= MOST_R_HAT
    return draws


def store_draws(model: GaussianProcessModel, draws: CurveDraws) -> None:
    """Set the posterior of a model whose laws are known, and the medians of its parameters."""
    law, effect = LAWS[model.law_], EFFECTS[model.effect_]
    model.posterior_ = draws
    both = medians(draws.params, draws.weights)
    psi, theta = both[: len(effect.parameters)], both[len(effect.parameters) :]
    variance = float(effect.variance(psi[:, None])[0])
    model.frailty_variance_ = variance
    model.frailty_shape_ = 1.0 / variance if variance > 0 else np.inf
    model.dispersion_ = float(law.dispersion(theta[:, None])[0])
    model.burst_size_ = law.burst_size(theta)
    _store_hyper(model, draws)


def reliable(k: float, effective: float, size: int) -> bool:
    """Whether the weights can be trusted; a heavy tail of nearly even weights weighs nothing."""
    return effective > FEWEST_EFFECTIVE and (not k >= MOST_K or effective > EVEN * size)


def _sampled(
    model: GaussianProcessModel, fit: EngineFit, scale: Floats | None
) -> tuple[CurveDraws, SamplerReport]:
    """Draws of the sampler with the laws of a fit, at its hyper-parameters or with all of them."""
    from gp4c.inference.sampler.judge import sample_posterior  # other fits need no sampler

    best, fixed = fit.lattice.best.mode, model.hyper == "optimize"
    found, report = sample_posterior(
        fit.task, length_scale=best.landscape.prior.length_scale if fixed else None,
        u=best.u if fixed else None, random_state=model._seed(None), n_jobs=model.n_jobs,
    )  # fmt: skip
    draws = found.curves(model.kernel)
    if scale is not None:
        draws = replace(draws, coefficients=draws.coefficients * scale[:, None])
    return draws, report


def _store_hyper(model: GaussianProcessModel, draws: CurveDraws) -> None:
    """Medians; of the curves that vary, if some do."""
    length = draws.window[1] - draws.window[0]
    half = np.array([0.5])
    each = np.stack([np.log(draws.length_scale), draws.variance, draws.prior_mean])
    some = varying(draws)
    log_scale, variance, mean = weighted_quantiles(each[:, some], draws.weights[some], half)[0]
    model.length_scale_ = float(np.exp(log_scale) * length)
    model.variance_ = float(variance * draws.scale)
    model.mean_ = float(mean * np.sqrt(draws.scale))


def varying(draws: CurveDraws) -> NDArray[np.bool_]:
    """Which curves vary beside a trend; all of them, where none does. Others have no scale."""
    return np.full(draws.size, True) if draws.steady.all() else ~draws.steady


def law_words(key: tuple[str, str | None]) -> str:
    """The names of a law of counts and of effects as one: ``bursts + gamma``."""
    law, effect = key
    return f"{law} + {effect}" if effect else law


def store_subjects(model: GaussianProcessModel, data: EngineData, draws: CurveDraws) -> None:
    """Labels, totals, expected numbers and effects of the subjects."""
    panel, events = data.panel, data.events
    model.subjects_ = subject_labels(panel, events)
    model.data_summary_ = describe_data(panel, events)
    seen = model._adjusted(panel) if panel is not None else None
    model._fitted_to = (seen, events)
    model.histories_ = SubjectHistories.of_all(seen, events)
    if data.modulated is not None and seen is not None and data.modulated[1].shape[1]:
        model.histories_ = SubjectHistories.of(seen, data.modulated[1])
    model.subject_totals_ = model.histories_.totals
    model.subject_effects_ = model.subject_expected_ = None
    effect = EFFECTS[model.effect_]
    if not effect.varies:
        return
    known = model.histories_
    n_rows = max(len(known.subjects), len(known.row_start))
    size = int(np.clip(_EFFECT_WORK / n_rows, *_EFFECT_DRAWS))
    who = systematic(draws.weights, size, np.random.default_rng(0))
    effects, expected = np.empty(len(known.subjects)), np.empty(len(known.subjects))
    for some in _runs(len(known.subjects)):
        counts = SubjectCounts.of_histories(known.take(some), LAWS[model.law_], effect)
        rng = np.random.default_rng(0)
        integrals = draws.integrals_of(counts.start, counts.stop, who, rng, counts.inputs)
        params = draws.params[:, who]
        if size == _EFFECT_DRAWS[0]:  # draws so alike that the mean of effects is that of the mean
            integrals, params = (x.mean(axis=1, keepdims=True) for x in (integrals, params))
        expected[some] = counts.expected(integrals).mean(axis=1)
        effects[some] = counts.effect_means(integrals, params).mean(axis=1)
    model.subject_expected_, model.subject_effects_ = expected, effects


def _runs(n_subjects: int) -> list[NDArray[np.intp]]:
    """Positions of subjects, some at a time."""
    firsts = range(0, n_subjects, _AT_ONCE)
    return [np.arange(first, min(first + _AT_ONCE, n_subjects)) for first in firsts]
