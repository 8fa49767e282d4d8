"""Results per subject of fits by sums: totals, expected counts, effects, histories."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.ordering import label_array, label_order, ranks
from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.tables.sources import ArraySource, PanelSource
from gp4c.estimators.fit_warnings import warn_if_overdispersed
from gp4c.large.streaming import PanelSums
from gp4c.large.subject_sums import Spans, subject_totals
from gp4c.model.dispersion import poisson_dispersion
from gp4c.model.laws import EFFECTS
from gp4c.model.table_integrals import TABLE, Table, summed_between
from gp4c.posterior.draws import CurveDraws, systematic

if TYPE_CHECKING:
    from gp4c.data.subjects import LabelArray
    from gp4c.estimators.gp_base import GaussianProcessModel

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: draws behind the effects of single subjects, and subjects treated at once
_EFFECT_DRAWS, _AT_ONCE = 200, 1 << 12


def store_subjects(model: GaussianProcessModel, source: PanelSource, sums: PanelSums) -> None:
    """Set totals, expected counts, effects and histories of subjects, if they were kept."""
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
    effects, expected = _effects(model, spans, first, totals)
    if EFFECTS[model.effect_].varies:
        model.subject_effects_, model.subject_expected_ = effects[order], expected[order]
    else:
        found = poisson_dispersion(totals, expected)
        warn_if_overdispersed(type(model).__name__, found, "effect='gamma' or effect='auto'")
    model.subjects_ = np.asarray(labels[order], dtype=object)
    model.subject_totals_ = totals[order]
    known = _histories(model, spans, first, order, source.window)
    service = source.panel.service if isinstance(source, ArraySource) else None
    model.histories_ = replace(known, service=service)


def _labels(
    source: PanelSource, keys: NDArray[np.uint64], labels: dict[int, Hashable]
) -> LabelArray:
    if isinstance(source, ArraySource):
        return source.panel.subjects[keys.view(np.int64)]
    if labels:
        return label_array([labels[key] for key in keys.tolist()])
    return keys.view(np.int64)


def _effects(
    model: GaussianProcessModel, spans: Spans, first: Indices, totals: Floats
) -> tuple[Floats, Floats]:
    """Effect and expected count of each subject, averaged over draws of the posterior."""
    draws, effect = model.posterior_, EFFECTS[model.effect_]
    assert isinstance(draws, CurveDraws)
    who = systematic(draws.weights, _EFFECT_DRAWS, np.random.default_rng(0))
    psi = draws.params[: len(effect.parameters), who]
    effects, expected = np.ones(len(first)), np.empty(len(first))
    for some, mine in _expected(_table(draws, who), spans, first):
        expected[some] = mine.mean(axis=1)
        if effect.varies:
            effects[some] = effect.mean(psi, totals[some, None], mine).mean(axis=1)
    return effects, expected


def _table(draws: CurveDraws, who: Indices) -> Table:
    """∫ λ from the window's start and its slope in steps of the table, (TABLE + 1, S)."""
    low, high = draws.window
    times = np.linspace(low, high, TABLE + 1)
    level = draws.integrals_of(np.full(TABLE + 1, low), times, who, np.random.default_rng(0))
    slope = draws.intensity_paths(times, who).T * ((high - low) / TABLE)
    return level, slope


def _expected(table: Table, spans: Spans, first: Indices) -> Iterator[tuple[slice, Floats]]:
    """Expected counts of subjects at effect 1, (subjects, S), some subjects at a time."""
    ends = np.append(first, len(spans))
    for begin in range(0, len(first), _AT_ONCE):
        subjects = slice(begin, min(begin + _AT_ONCE, len(first)))
        rows = slice(ends[subjects.start], ends[subjects.stop])
        yield subjects, summed_between(
            table, spans.start[rows], spans.stop[rows], spans.exposure[rows],
            first[subjects] - rows.start,
        )  # fmt: skip


def _histories(
    model: GaussianProcessModel,
    spans: Spans,
    first: Indices,
    order: Indices,
    window: tuple[float, float],
) -> SubjectHistories:
    """What forecasts need to know of the subjects, in order of their labels.

    The rows are gone, and Poisson counts do without them.
    """
    owner = np.repeat(ranks(order), np.diff(np.append(first, len(spans))))
    by_owner = np.argsort(owner, kind="stable")
    origin, length = window[0], window[1] - window[0]
    none, nobody = np.zeros(0), np.zeros(0, dtype=np.intp)
    return SubjectHistories(
        model.subjects_, model.subject_totals_, owner[by_owner],
        origin + length * spans.start[by_owner], origin + length * spans.stop[by_owner],
        spans.exposure[by_owner], nobody, none, none, none, none,
    )  # fmt: skip
