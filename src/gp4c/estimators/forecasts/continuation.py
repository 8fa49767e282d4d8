"""How the rate goes on beyond the data: the way that would have forecast their last part best.

What comes after the data is not in them, so no evidence about the past decides how to go on. What
can be asked is which way would have served so far: the fit is repeated without the last quarter of
the window, at the length-scale of the whole fit, and each way forecasts the counts of that quarter,

    ln p(late counts | early counts, way) = ln Σ_s weight_s Π_k p(late_k | early_k, draw s, way) .

The model's own way is kept unless another is ahead by odds of 20 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.engine.posterior_fit import CLEARLY_AGAINST, EngineFit, task_for
from gp4c.inference.engine.single import modes_at
from gp4c.inference.engine.weigh import weigh
from gp4c.model.cells import CountedRows
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import merged_spans, reduce_cells
from gp4c.posterior.draws import HOLD, PRIOR, TREND, CurveDraws
from gp4c.posterior.modulated_draws import ModulatedDraws
from gp4c.posterior.subject_counts import SubjectCounts

if TYPE_CHECKING:
    from gp4c.estimators.gp_base import GaussianProcessModel
    from gp4c.model.modulation import Modulation

Floats = NDArray[np.float64]

#: share of the window that is forecast from the rest, and fewest events on either side
LATE, _FEWEST = 0.25, 20
#: draws of the early fit
_DRAWS = 600
#: subjects beyond which the question is not asked: it would take longer than the forecast
_MOST_SUBJECTS = 3000
#: subjects times draws whose effects are integrated at once: what a processor's cache has room for
_AT_ONCE = 20_000


@dataclass(frozen=True)
class Continuation:
    """The way chosen, and the log probability of the late counts under each way.

    `scores` is empty where the data could not be asked.
    """

    way: str
    own: str
    scores: dict[str, float]


def own_way(model: GaussianProcessModel) -> str:
    """How the model itself goes on: with its trend, or back to its level."""
    return TREND if model.has_trend else PRIOR


def choose_continuation(model: GaussianProcessModel) -> Continuation:
    """The model's own way, unless another would have forecast the late counts clearly better."""
    own = own_way(model)
    scores = late_scores(model)
    if not scores:
        return Continuation(own, own, {})
    best = max(scores, key=lambda way: scores[way])
    way = best if scores[best] > scores[own] + CLEARLY_AGAINST else own
    return Continuation(way, own, scores)


def late_scores(model: GaussianProcessModel) -> dict[str, float]:
    """ln p(late counts | early counts) of every way; empty where there is too little to say."""
    posterior, known = model.posterior_, model.histories_
    if not isinstance(posterior, CurveDraws) or known is None or known.mean_expected is not None:
        return {}
    if len(known.subjects) > _MOST_SUBJECTS or not len(known.span_start):
        return {}
    law, effect = LAWS[model.law_], EFFECTS[model.effect_]
    whole = SubjectCounts.of_histories(known, law, effect)
    low, high = model.window_
    cut = high - LATE * (high - low)
    early, both = _until(whole, cut), _without_crossing(whole, cut)
    events = early.seen.count.sum(), both.seen.count.sum() - early.seen.count.sum()
    if min(events) < _FEWEST or (whole.seen.start == whole.seen.stop).any():
        return {}
    draws = _early_fit(model, early, (low, cut))
    ways = (PRIOR, HOLD, TREND) if model.has_trend else (PRIOR, HOLD)
    known_early = _log_likelihoods(draws, early, PRIOR)  # the same whatever comes later
    share = draws.weights / draws.weights.sum()
    return {
        way: float(logsumexp(_log_likelihoods(draws, both, way) - known_early, b=share))
        for way in ways
    }


def _early_fit(
    model: GaussianProcessModel, early: SubjectCounts, window: tuple[float, float]
) -> CurveDraws:
    """Draws given the early counts, at the whole fit's length-scale and share of variation."""
    posterior = model.posterior_
    assert isinstance(posterior, CurveDraws)
    length, modulation = window[1] - window[0], _shortened(posterior, window)

    def unit(rows: CountedRows) -> CountedRows:
        start, stop = (rows.start - window[0]) / length, (rows.stop - window[0]) / length
        return replace(rows, start=start, stop=stop)

    cells = reduce_cells(
        unit(early.seen), unit(early.spans), early.law, early.effect, window=window,
        rate=max(early.seen.count.sum(), 1.0)
        / float(early.spans.factor @ (early.spans.stop - early.spans.start) / length),
        n_subjects=early.n_subjects, constant=0.0, pool=False, modulation=modulation,
    )  # fmt: skip
    task = task_for(cells, early.law, early.effect, posterior.kernel)
    weights = _more_probable(posterior)
    scale = float(np.exp(weights @ np.log(posterior.length_scale)))
    mean, variance = posterior.prior_mean, posterior.variance
    log_share = 0.5 * np.log(variance / np.maximum(mean**2, 1e-300))
    share = float(np.clip(weights @ log_share, *task.variations))
    lattice = modes_at(task, scale / (1.0 - LATE), share, n_starts=0)
    weighted = weigh(lattice, _DRAWS, np.random.default_rng(0), rounds=0)
    return EngineFit(task, lattice, weighted, {}).draws(posterior.kernel)


def _more_probable(posterior: CurveDraws) -> Floats:
    """Weights of the curves that vary, or of those that do not: an average would be neither."""
    weights, steady = posterior.weights, posterior.steady
    kept = np.where(steady == (weights[steady].sum() > 0.5), weights, 0.0)
    return np.asarray(kept * (weights.sum() / kept.sum()))


def _shortened(posterior: CurveDraws, window: tuple[float, float]) -> Modulation | None:
    """The factors of a fit over a shorter window."""
    return posterior.modulation.over(window) if isinstance(posterior, ModulatedDraws) else None


def _log_likelihoods(draws: CurveDraws, counts: SubjectCounts, way: str) -> Floats:
    """ln p of all counts under each draw, (S,)."""
    who, rng = np.arange(draws.size), np.random.default_rng(0)
    areas = draws.beyond_integrals(counts.start, counts.stop, who, rng, way, counts.inputs)
    parts = max(1, draws.size * counts.n_subjects // _AT_ONCE)
    return np.concatenate(
        [
            counts.log_likelihoods(areas[:, some], draws.params[:, some]).sum(axis=0)
            for some in np.array_split(who, parts)
        ]
    )


def _until(counts: SubjectCounts, cut: float) -> SubjectCounts:
    """What was seen by a time; counts of intervals that cross it are left out."""
    kept = _without_crossing(counts, cut)
    spans = kept.spans.take(kept.spans.start < cut)
    spans = replace(spans, stop=np.minimum(spans.stop, cut))
    return replace(kept, seen=kept.seen.take(kept.seen.stop <= cut), spans=spans)


def _without_crossing(counts: SubjectCounts, cut: float) -> SubjectCounts:
    """Rows with events, and times at risk, without the intervals that cross a time."""
    seen = counts.seen
    crossing = np.flatnonzero((seen.start < cut) & (seen.stop > cut))
    spans = counts.spans
    for row in crossing:
        inside = (spans.subject == seen.subject[row]) & (spans.start < seen.stop[row])
        inside &= spans.stop > seen.start[row]
        before, after = spans.take(inside), spans.take(inside)
        before = replace(before, stop=np.minimum(before.stop, seen.start[row]))
        after = replace(after, start=np.maximum(after.start, seen.stop[row]))
        spans = spans.take(~inside).joined(before).joined(after)
    spans = spans.take(spans.stop > spans.start)
    kept = np.ones(len(seen.start), dtype=bool)
    kept[crossing] = False
    return replace(counts, seen=seen.take(kept), spans=_ordered(spans))


def _ordered(spans: CountedRows) -> CountedRows:
    """Spans by subject and time, none of them merged across a gap."""
    return merged_spans(spans) if len(spans.start) else spans
