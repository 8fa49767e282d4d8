"""Forecasts of several types of events, drawn jointly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.ordering import positions
from gp4c.estimators.forecasts.count_forecast import Planned, Subjects, planned
from gp4c.estimators.forecasts.forecast_inputs import ForecastOptions
from gp4c.estimators.forecasts.forecast_result import Forecast
from gp4c.estimators.forecasts.joint_counts import JointCounts
from gp4c.inference.types.coupling import Dependence, Margin
from gp4c.model.laws.effect_copula import NODES, draw_scores, effects_at
from gp4c.posterior.fitted_counts import coefficient_deviations
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.posterior.summed.summed_curves import SummedCurves
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.estimators.gp4c import GP4C
    from gp4c.estimators.types.typed_answers import TypedCurves

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Counts = NDArray[np.int64]
_Drawn = tuple[Floats, Floats, Floats, Floats, Floats]

#: draws of a forecast of types
DRAWS = 4000
#: laws of effects that one forecast computes, and fewest draws of the curves
_DEAR, _FEWEST = 150_000, 500
#: draws of the curves at once
_AT_ONCE = 500


def forecast_types(
    model: TypedCurves,
    start: ArrayLike,
    stop: ArrayLike,
    subjects: Subjects,
    **options: Unpack[ForecastOptions],
) -> Forecast:
    """All events together, with the types in ``by_type``: the same draws of everything."""
    plans = {
        name: planned(fit, start, stop, subjects, **options)
        for name, fit in model.type_models_.items()
    }
    first = next(iter(plans.values()))
    with one_blas_thread():
        found = _Joint(model, plans).draw(first.size, np.random.default_rng(first.seed))
    by_type = {
        name: plan.answer(mean, draws)
        for (name, plan), (mean, draws) in zip(plans.items(), found, strict=True)
    }
    whole = next(iter(by_type.values()))
    return replace(
        whole,
        mean=sum(one.mean for one in by_type.values()),
        draws=np.sum([one.draws for one in by_type.values()], axis=0),
        by_type=by_type,
        note=_note({name: one.note for name, one in by_type.items()}),
    )


def _note(notes: dict[str, str]) -> str:
    """What to keep in mind: once if it is the same for all types."""
    if len(set(notes.values())) == 1:
        return next(iter(notes.values()))
    return " ".join(f"{name}: {note}" for name, note in notes.items() if note)


@dataclass(frozen=True)
class _Type:
    """One type in a forecast."""

    fit: GP4C
    plan: Planned
    counts: SubjectCounts
    joint: JointCounts

    @classmethod
    def of(cls, fit: GP4C, plan: Planned) -> _Type:
        joint = plan.counts
        return cls(fit, plan, joint.seen_counts(), joint)

    @property
    def labels(self) -> list[object]:
        known = self.joint.known
        return [] if known is None else list(known.subjects.tolist())


class _Joint:
    """Joint draws of the counts of all types."""

    def __init__(self, model: TypedCurves, plans: dict[str, Planned]) -> None:
        posterior = model.posterior_
        assert isinstance(posterior, SummedCurves)
        self.posterior, self.loadings = posterior, model.loadings_
        self.types = [_Type.of(model.type_models_[name], plan) for name, plan in plans.items()]
        self.free = [e for e, one in enumerate(self.types) if one.counts.effect.varies]
        self.labels = list(dict.fromkeys(label for one in self.types for label in one.labels))
        self.places = [positions(self.labels, one.labels) for one in self.types]
        self.known = self._dependence()

    def _dependence(self) -> Dependence | None:
        if len(self.free) < 2 or not self.labels:
            return None
        margins = [
            Margin(self.posterior.parts[e], self.types[e].counts, self.places[e]) for e in self.free
        ]
        return Dependence(margins, len(self.labels))

    def draw(self, size: int, rng: np.random.Generator) -> list[tuple[Floats, Counts]]:
        """Mean (cells,) and draws (cells, size) of each type."""
        curves = min(size, max(_DEAR // max(len(self.labels), 1), _FEWEST))
        times = -(-size // curves)
        chosen = self.posterior.choose(curves, rng)
        found: list[list[tuple[Floats, Counts]]] = [[] for _ in self.types]
        for first in range(0, curves, _AT_ONCE):
            for part, some in zip(
                found, self._some(chosen[first : first + _AT_ONCE], times, rng), strict=True
            ):
                part.append(some)
        together = []
        for parts in found:
            means = np.concatenate([mean for mean, _ in parts], axis=1)
            counts = np.concatenate([count for _, count in parts], axis=1)
            together.append((means.mean(axis=1), counts[:, :size]))
        return together

    def _some(
        self, chosen: Indices, times: int, rng: np.random.Generator
    ) -> list[tuple[Floats, Counts]]:
        """Means given curves and effects, and counts, of each type: `times` for each curve."""
        curves = [self._curves(e, chosen, rng) for e in range(len(self.types))]
        effects = self._effects(curves, self.loadings[:, chosen], times, rng)
        found = []
        for one, (_, _, inside, params, beta), effect in zip(
            self.types, curves, effects, strict=True
        ):
            if one.joint.covariates is not None:
                effect = effect * np.tile(np.exp(one.joint.covariates @ beta), times)
            mean = one.plan.plan.asked.means(effect, np.tile(inside, times))
            theta = np.tile(one.joint.theta(params), times)
            found.append((mean, one.fit.count_law_.draw(mean, theta, rng)))
        return found

    def _curves(self, e: int, chosen: Indices, rng: np.random.Generator) -> _Drawn:
        """r, R, integrals over the windows, the laws' parameters and deviations of β."""
        one, part, who = self.types[e], self.posterior.parts[e], self.posterior.who[e, chosen]
        first, last, _ = one.plan.plan.asked.windows
        start = np.concatenate([one.counts.start, first])
        stop = np.concatenate([one.counts.stop, last])
        integrals = part.beyond_integrals(start, stop, who, rng, one.joint.beyond)
        seen, inside = np.split(integrals, [len(one.counts.start)])
        beta = coefficient_deviations(one.fit, part.coefficients[:, who])
        row, owner = one.counts.expected_rows(seen, beta if one.counts.seen.z.shape[1] else None)
        return row, owner, inside, part.params[:, who], beta

    def _effects(
        self, curves: list[_Drawn], loadings: Floats, times: int, rng: np.random.Generator
    ) -> list[Floats]:
        """υ of known subjects, then of new ones, of each type, (K, S · times)."""
        size = loadings.shape[1]
        known = [np.ones((times, len(one.labels), size)) for one in self.types]
        if self.known is not None:
            self._draw_known(known, curves, loadings, rng)
        elif self.labels:
            for e in self.free:
                row, owner, _, params, _ = curves[e]
                drawn = self.types[e].counts.likelihood.effect_draws(row, owner, params, rng, times)
                known[e] = drawn.reshape(len(drawn), size, times).transpose(2, 0, 1)
        new = self._draw_new(curves, loadings, times, rng)
        both = (np.concatenate(pair, axis=1) for pair in zip(known, new, strict=True))
        return [np.concatenate(list(each), axis=1) for each in both]

    def _draw_known(
        self,
        known: list[Floats],
        curves: list[_Drawn],
        loadings: Floats,
        rng: np.random.Generator,
    ) -> None:
        assert self.known is not None
        laws = [(curves[e][0], curves[e][1], curves[e][3]) for e in self.free]
        for some, scores in self.known.scores_of(laws):
            each = draw_scores(
                scores, self.known.places, loadings[self.free][:, some], len(self.labels), rng,
                times=len(known[0]),
            )  # fmt: skip
            quantiles = [
                self._quantiles(e, law[2][:, some]) for e, law in zip(self.free, laws, strict=True)
            ]
            for k, drawn in enumerate(each):
                for e, y, z in zip(self.free, quantiles, drawn, strict=True):
                    known[e][k][:, some] = effects_at(y, z)

    def _draw_new(
        self, curves: list[_Drawn], loadings: Floats, times: int, rng: np.random.Generator
    ) -> list[Floats]:
        """Effects of subjects of whom nothing is known: scores share their factor."""
        n_new, size = self.types[0].plan.plan.asked.n_new, loadings.shape[1]
        shared = rng.standard_normal((times, n_new, size))
        found = [np.ones((times, n_new, size)) for _ in self.types]
        for e in self.free if n_new else []:
            own = rng.standard_normal((times, n_new, size))
            z = loadings[e] * shared + np.sqrt(1 - loadings[e] ** 2) * own
            y = self._quantiles(e, curves[e][3])
            found[e] = np.array([effects_at(y, one) for one in z])
        return found

    def _quantiles(self, e: int, params: Floats) -> Floats:
        """ln υ at the nodes, (S, N)."""
        psi, _ = self.types[e].counts.likelihood.split(params)
        return self.types[e].counts.effect.log_quantile(NODES, psi)
