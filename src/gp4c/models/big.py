"""Fits to panels that are too large for their rows: sums first, then the usual fit on them.

The rows are read once. What remains of them are weighted intervals between nodes, close enough
for the length-scale: a first fit with the cheap bound finds how close they must be, and the
result says how far the objective is from that of the rows (docs/maths_scale.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.ordering import label_array, label_order
from gp4c.data.panel import PanelCounts
from gp4c.data.sources import ArraySource, PanelSource, scan_panel
from gp4c.data.subject_histories import SubjectHistories
from gp4c.design.compressed import intervals_between_nodes, observe_sums
from gp4c.design.compression import SHORTEST
from gp4c.design.interval_sums import Rows, rows_to_nodes
from gp4c.design.kernels import KERNELS, SquaredExponential
from gp4c.design.observations import Observations
from gp4c.design.streaming import PanelSums, Say, sum_source
from gp4c.design.subject_sums import Spans, subject_totals
from gp4c.design.table_integrals import TableIntegrals, summed_between
from gp4c.inference.dispersion import Dispersion, poisson_dispersion
from gp4c.inference.exposure import SUBJECT_COSTS
from gp4c.inference.hyper import Optimum, Problem
from gp4c.inference.priors import weak_prior
from gp4c.inference.search import search
from gp4c.inference.threads import one_blas_thread
from gp4c.inference.watching import WatchedProblem
from gp4c.models.fitting import Fit, store_fit, unit_mean, warn_unless_converged
from gp4c.models.overdispersion import warn_if_overdispersed
from gp4c.models.size import SUPPORTED, unsupported

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents

Floats = NDArray[np.float64]

#: length-scale, in windows, that a first look resolves
FIRST_LOOK = 0.04
#: relative error of the objective above which a fit is repeated with closer nodes
TARGET = 1e-7
#: most work for the exact count term in one evaluation, as Σ (nodes in an interval)², about a
#: quarter of a second; beyond it the pointwise term stands in, and the result says how far off
MOST_WORK = 3e6
#: subjects whose expected counts are computed at once
SUBJECTS_AT_ONCE = 1 << 12
#: the sparsest nodes: functions of this length-scale
COARSEST = 0.2


def as_source(panel: Any) -> PanelSource:
    """Anything that ``fit`` takes as a source of rows."""
    if isinstance(panel, PanelSource):
        return panel
    return ArraySource(panel) if isinstance(panel, PanelCounts) else scan_panel(panel)


def fit_large(
    model: Any,
    panel: Any,
    events: RecurrentEvents | None = None,
    client: Any = None,
    say: Say | None = None,
) -> None:
    """Fit GP4C to a source of rows; the model's attributes are those of a small fit.

    Parameters
    ----------
    model : GP4C
    panel : PanelCounts, PanelSource or what :func:`gp4c.scan_panel` takes
    events : None
        Exact event times need the rows in memory.
    client : distributed.Client, optional
        Where to read the rows.
    say : callable, optional
        Told what goes on.
    """
    _check_supported(model, events)
    source = as_source(panel)
    began = time.perf_counter()
    sums = _sums(source, model.effect, client, say)
    told = None if say is None else _with_speed(say, sums, time.perf_counter() - began)
    with one_blas_thread():
        problem, fit, model.compression_ = _fit_sums(model, sums, source.window, told)
        store_fit(model, problem, fit)
        _store_subjects(model, source, sums, problem, fit)
    model._keep_time_axis(source)
    model.coefficients_ = None
    model.data_summary_ = _describe(sums, source.window)
    warn_unless_converged(model, fit.best)


def _with_speed(say: Say, sums: PanelSums, seconds: float) -> Say:
    """Also tell how many rows there are, and how fast they were read."""
    n_rows = sums.intervals.n_rows
    return lambda text: say(f"{text} ({n_rows:,.0f} rows, {n_rows / seconds:,.0f} per second)")


def _check_supported(model: Any, events: RecurrentEvents | None) -> None:
    """Say what does not work on sums, and what does."""
    if events is not None:
        raise ValueError("events= goes with a PanelCounts in memory, and without client=")
    for name in unsupported(model):
        raise ValueError(
            f"{name}={getattr(model, name)!r} needs the rows themselves; with data of this size "
            f"use {name}={SUPPORTED[name]!r}, or fit a sample of subjects"
        )


def _sums(source: PanelSource, effect: str | None, client: Any, say: Say | None) -> PanelSums:
    from gp4c.data.sources import DaskSource

    if client is None and not isinstance(source, DaskSource):
        return sum_source(source, effect=effect, say=say)
    from gp4c.models.cluster import sum_on_cluster

    return sum_on_cluster(source, client, effect=effect, say=say)


def _fit_sums(
    model: Any, sums: PanelSums, window: tuple[float, float], say: Say | None
) -> tuple[Problem, Fit, dict[str, Any]]:
    """Fit with nodes as close as the length-scale needs; closer if the error asks for it."""

    def observe(resolution: float) -> Observations:
        return observe_sums(sums.intervals, sums.subjects, window, resolution)

    def tell(text: str) -> None:
        if say is not None:
            say(text)

    unlimited = model._problem(replace(observe(COARSEST), resolution=0.0))
    closest = max(SHORTEST, unlimited.smallest_length_scale(model.n_inducing))
    resolution, found = max(FIRST_LOOK, closest), 1.0
    if sums.intervals.n_events > 0:
        tell("first look at the length-scale")
        found = _first_look(model, observe(resolution))
        while found < resolution and resolution > closest:
            resolution = max(closest, resolution / 3)
            found = _first_look(model, observe(resolution))
        resolution = float(np.clip(resolution_for(found, model.kernel), closest, COARSEST))
    while True:
        data = observe(resolution)
        tell(f"fitting {np.count_nonzero(data.count):,} weighted intervals")
        problem, fit = _fit_curve(model, data, found, say)
        described = describe_compression(sums, problem, fit, resolution, model.count_term)
        if described["relative_error"] <= TARGET or resolution <= closest:
            return problem, fit, described
        resolution = max(closest, resolution / 2)


def _fit_curve(
    model: Any, data: Observations, length_scale: float, say: Say | None
) -> tuple[Problem, Fit]:
    """The usual fit, with the pointwise count term where the exact one would take too long."""
    chosen, seen = type(model)(**model.get_params()), data.count != 0
    lengths = (data.stop - data.start)[seen] / length_scale
    work = float((KERNELS[model.kernel].interval_nodes(lengths).astype(float) ** 2).sum())
    if model.count_term == "exact" and work > MOST_WORK:
        chosen.count_term = "pointwise"
    if say is not None:
        plain = chosen._problem
        chosen._problem = lambda data: WatchedProblem.of(plain(data), say)
    problem, fit = chosen._fit_curve(data)
    model.effect_choice_ = chosen.effect_choice_
    return problem, fit


def resolution_for(length_scale: float, kernel: str) -> float:
    """How close nodes must be for the posteriors around this length-scale of the cheap bound.

    Rougher kernels, which need closer inducing inputs, need nodes closer still.
    """
    smooth = KERNELS[kernel].spacing / SquaredExponential().spacing
    return length_scale * smooth**2


def _first_look(model: Any, data: Observations) -> float:
    """Length-scale of the cheap bound without subject effects."""
    problem = replace(model._problem(data), count_term="pointwise", effect=None)
    mean = unit_mean(problem, model.mean)
    best = search(problem, mean=mean, log_prior=weak_prior, tol=0.1, n_climbs=1)[0]
    return best.hyper.length_scale


# -- what the result says ------------------------------------------------------------------------


def describe_compression(
    sums: PanelSums, problem: Problem, fit: Fit, resolution: float, asked: str
) -> dict[str, Any]:
    """What stands for the rows, and how far the objective is from theirs.

    The error is that of a sample of rows, compressed alone in the same way and evaluated at the
    best fit and at the posterior's component with the shortest length-scale, scaled to all
    events; the larger of the two. If another count term than the one asked for was used, the
    sample also says how many nats its objective is lower at the best fit.
    """
    data = problem.data
    intervals = sums.intervals
    described: dict[str, Any] = {
        "count_term": problem.count_term,
        "method": "distinct intervals" if intervals.exact is not None else "nodes",
        "n_rows": int(intervals.n_rows),
        "n_intervals": int(np.count_nonzero(data.count)),
        "resolution": resolution * (data.window[1] - data.window[0]),
        "error": 0.0,
        "relative_error": 0.0,
        "below_exact": 0.0,
    }
    if intervals.exact is None and len(intervals.sample):
        shortest = min(fit.parts, key=lambda part: part.optimum.hyper.length_scale).optimum
        errors = [
            abs(compression_error(intervals.sample, problem, optimum, resolution))
            for optimum in (fit.best, shortest)
        ]
        described["error"] = max(errors) * intervals.n_events
        described["relative_error"] = described["error"] / abs(fit.best.value)
        if asked != problem.count_term:
            gap = _counts(intervals.sample, problem, fit.best, asked)
            gap -= _counts(intervals.sample, problem, fit.best, problem.count_term)
            described["below_exact"] = gap / intervals.sample.count.sum() * intervals.n_events
    return described


def compression_error(sample: Rows, problem: Problem, best: Optimum, resolution: float) -> float:
    """Error of Σ c E ln ∫ f² per event, from some rows."""
    log_lengths = float(sample.count @ np.log(sample.stop - sample.start))
    nodes = intervals_between_nodes(rows_to_nodes(sample), log_lengths, resolution)
    compressed = _counts(nodes.rows, problem, best, problem.count_term) + nodes.log_lengths
    direct = _counts(sample, problem, best, problem.count_term)
    return float((compressed - direct) / sample.count.sum())


def _counts(rows: Rows, problem: Problem, at: Optimum, count_term: str) -> float:
    """Σ c E ln ∫ f² of some intervals."""
    data = replace(
        problem.data, start=rows.start, stop=rows.stop, count=rows.count,
        exposure=np.zeros(len(rows)), pooled=None, constant=0.0,
    )  # fmt: skip
    alone = replace(
        problem, data=data, effect=None, count_term=count_term, _likelihoods={}, _scout=None
    )
    work = alone.workspace(at.hyper.length_scale, at.work.size)
    return work.evaluate(at.hyper, at.estep.q).bound.counts


def _describe(sums: PanelSums, window: tuple[float, float]) -> dict[str, float]:
    intervals = sums.intervals
    return {
        "n_subjects": sums.n_subjects,
        "n_intervals": int(intervals.n_rows),
        "n_events": int(intervals.n_events),
        "exposure_time": intervals.exposure_time * (window[1] - window[0]),
    }


# -- results per subject -------------------------------------------------------------------------


def _store_subjects(
    model: Any, source: PanelSource, sums: PanelSums, problem: Problem, fit: Fit
) -> None:
    """Totals, expected counts, effects and histories of the subjects, if they are not too many."""
    model.subjects_ = np.zeros(0, dtype=object)
    model.subject_effects_ = model.subject_expected_ = model.histories_ = None
    model.subject_totals_ = np.zeros(0)
    model._fitted_to = (source.panel if isinstance(source, ArraySource) else None, None)
    spans = sums.spans
    if spans is None:
        return
    first, totals = subject_totals(spans)
    labels = _labels(source, spans.key[first], sums.labels)
    order = label_order(labels)
    if problem.effect is not None:
        effects, expected = _effects(problem, fit, spans, first, totals)
        shared = problem.data.rate / model.posterior_.rate
        model.subject_effects_ = effects[order] * shared
        model.subject_expected_ = expected[order] / shared
    else:
        found = _dispersion(problem, fit, spans, first, totals)
        warn_if_overdispersed(type(model).__name__, found, "effect='gamma' or effect='auto'")
    model.subjects_ = np.asarray(labels[order], dtype=object)
    model.subject_totals_ = totals[order]
    model.histories_ = _histories(model, spans, first, order, source.window)


def _labels(source: PanelSource, keys: Any, labels: dict[int, Any]) -> Any:
    if isinstance(source, ArraySource):
        return source.panel.subjects[keys.view(np.int64)]
    if labels:
        return label_array([labels[key] for key in keys.tolist()])
    return keys.view(np.int64)


def _effects(
    problem: Problem, fit: Fit, spans: Spans, first: NDArray[np.intp], totals: Floats
) -> tuple[Floats, Floats]:
    """Effect and expected count of each subject, averaged over the posterior's components."""
    optima = [part.optimum for part in fit.parts]
    weights = np.array([part.weight for part in fit.parts])
    effects, expected = np.empty(len(first)), np.empty(len(first))
    for subjects, mine in _expected(problem, optima, spans, first):
        expected[subjects] = mine @ weights
        effects[subjects] = 0.0
        for part, one in zip(fit.parts, np.ascontiguousarray(mine.T), strict=True):
            cost, shape = SUBJECT_COSTS[problem.effect or "gamma"], part.optimum.hyper.shape
            effects[subjects] += part.weight * cost.weight(totals[subjects], one, shape)
    return effects, expected


def _expected(
    problem: Problem, optima: list[Optimum], spans: Spans, first: NDArray[np.intp]
) -> Iterator[tuple[slice, Floats]]:
    """Expected counts of subjects at effect 1, (subjects, optima), some subjects at a time."""
    levels, slopes = [], []
    for optimum in optima:
        at, none = optimum.estep.evaluation, np.zeros(0)
        table = TableIntegrals(optimum.work.likelihood.grid, none, none)
        level, slope = table.table(at.mean**2 + at.variance)
        levels.append(level)
        slopes.append(slope)
    tables = np.stack(levels, axis=1), np.stack(slopes, axis=1)
    ends = np.append(first, len(spans))
    for begin in range(0, len(first), SUBJECTS_AT_ONCE):
        subjects = slice(begin, min(begin + SUBJECTS_AT_ONCE, len(first)))
        rows = slice(ends[subjects.start], ends[subjects.stop])
        yield subjects, summed_between(
            tables, spans.start[rows], spans.stop[rows],
            problem.data.rate * spans.exposure[rows], first[subjects] - rows.start,
        )  # fmt: skip


def _dispersion(
    problem: Problem, fit: Fit, spans: Spans, first: NDArray[np.intp], totals: Floats
) -> Dispersion:
    """Whether the totals vary more than the best fit without subject effects allows."""
    parts = [mine[:, 0] for _, mine in _expected(problem, [fit.best], spans, first)]
    return poisson_dispersion(totals, np.concatenate(parts))


def _histories(
    model: Any, spans: Spans, first: NDArray[np.intp], order: NDArray[np.intp], window: Any
) -> SubjectHistories:
    """What forecasts need to know of the subjects, in order of their labels."""
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    owner = np.repeat(rank, np.diff(np.append(first, len(spans))))
    by_owner = np.argsort(owner, kind="stable")
    origin, length = window[0], window[1] - window[0]
    return SubjectHistories(
        model.subjects_,
        model.subject_totals_,
        owner[by_owner],
        origin + length * spans.start[by_owner],
        origin + length * spans.stop[by_owner],
        spans.exposure[by_owner],
    )
