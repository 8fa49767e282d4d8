"""Which factors a fit has, and the fit with those that the evidence prefers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.engine_fit import EngineData, candidates, fit_engine, store_engine
from gp4c.estimators.regression.factors.calendar import own_phases, season_over
from gp4c.inference.engine.posterior_fit import EngineFit, Laws, Say
from gp4c.inference.engine.single import steady_evidence
from gp4c.model.modulation import TRENDS, Modulation, Modulator, Trend
from gp4c.plain import odds

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.regression.factors.factor_model import FactorModel

Floats = NDArray[np.float64]

#: what the evidence of a fit without a trend is called
NO_TREND = "none"


@dataclass(frozen=True)
class Factors:
    """Parts of a modulation, and what the rows of a panel bring to them, (n, r)."""

    parts: tuple[Modulator, ...]
    inputs: Floats

    @classmethod
    def none(cls, panel: PanelCounts) -> Factors:
        """No part at all."""
        return cls((), np.zeros((panel.n_intervals, 0)))

    def joined(self, other: Factors) -> Factors:
        """These parts, then others."""
        both = np.concatenate([self.inputs, other.inputs], axis=1)
        return Factors((*self.parts, *other.parts), both)


def fit_with_factors(
    model: FactorModel, panel: PanelCounts, events: RecurrentEvents | None, say: Say | None
) -> None:
    """Fit curve, laws and factors together, and store all of it."""
    if events is not None:
        raise ValueError(
            "trend= and season= are for counts alone: leave out events=, or count the events "
            "(events.to_panel(visits))"
        )
    data = EngineData(panel, None, panel.window)
    laws = candidates(model.effect, model.bursts, data)
    data, fit = best_fit(model, data, laws, season_factors(model.season, panel), say)
    store_engine(model, data, fit)
    model._engine_data = data


def season_factors(season: float | str | None, panel: PanelCounts) -> Factors:
    """The season asked for, and the phases that the rows of a panel bring to it."""
    if season is None:
        return Factors.none(panel)
    part = season_over(panel, season)
    if not part.is_own:
        return Factors((part,), np.zeros((panel.n_intervals, 0)))
    return Factors((part,), own_phases(panel, part))


def best_fit(
    model: FactorModel,
    data: EngineData,
    laws: list[Laws],
    more: Factors,
    say: Say | None = None,
) -> tuple[EngineData, EngineFit]:
    """The fit with the trend that has most evidence of those left open, and what it is fitted to.

    The laws are chosen with the first of them.
    """
    found: list[tuple[EngineData, EngineFit, str]] = []
    for trend in open_trends(model.trend, data.window):
        parts = more.parts if trend is None else (trend, *more.parts)
        factors = (Modulation(parts), more.inputs) if parts else None
        own = replace(data, modulated=factors)
        if say is not None and trend is not None:
            say(f"fitting a {trend.title}")
        fit = fit_engine(model, own, laws, say)
        laws = [fit.laws]
        found.append((own, fit, NO_TREND if trend is None else trend.name))
    evidences = {name: fit.weighted.log_evidence for _, fit, name in found}
    if len(found) > 1 and any(fit.task.steady for _, fit, _ in found):
        evidences[NO_TREND] = _evidence_of_none(found[0][1], model._seed(None))
    model.trend_evidences_ = evidences
    best = max(found, key=lambda one: evidences[one[2]])
    return best[0], best[1]


def _evidence_of_none(fit: EngineFit, seed: int) -> float:
    """The log evidence of no trend, under the prior that fits with a trend have.

    With a trend the curve is constant with a probability. The comparison grants the same to the
    fit without one; else it would be a comparison of two priors of the curve.
    """
    share = Trend.alone
    constant = steady_evidence(fit.task, seed) + np.log(share)
    return float(np.logaddexp(constant, fit.weighted.log_evidence + np.log1p(-share)))


def open_trends(choice: str | None, window: tuple[float, float]) -> Sequence[Trend | None]:
    """Trends that ``trend=`` leaves open; "auto" takes all that the window allows, and none."""
    if choice is None:
        return [None]
    if choice != "auto":
        trend = TRENDS[choice](window)
        trend.check()
        return [trend]
    return [None, *(one for one in (kind(window) for kind in TRENDS.values()) if one.suits)]


def choice_words(evidences: dict[str, float], chosen: str) -> str:
    """Why a trend was chosen, in part of a sentence; empty where there was no choice."""
    if len(evidences) < 2:
        return ""
    top = evidences[chosen]
    name, value = max(((n, v) for n, v in evidences.items() if n != chosen), key=lambda one: one[1])
    title = "no trend" if name == NO_TREND else f"a {TRENDS[name].title}"
    return f"chosen by the evidence, {odds(top - value)} against {title}"
