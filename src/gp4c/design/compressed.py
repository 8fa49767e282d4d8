"""From sums over a stream of rows to observations: real intervals, or intervals between nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.design.compression import WeightedPairs, node_grid, weighted_points
from gp4c.design.interval_sums import IntervalSums, NodeSums, Rows
from gp4c.design.observations import Observations, PooledSubjects
from gp4c.design.subject_sums import SubjectSums, subject_totals

Floats = NDArray[np.float64]

#: a posterior is smoother than its prior at the shorter of the length-scales that are tried, so
#: that its objective is still accurate there: the result measures it
STRETCH = 2.5


@dataclass(frozen=True)
class Intervals:
    """Weighted intervals in unit time, and Σ c ln(length) of the rows less that of these."""

    rows: Rows
    log_lengths: float


def intervals_between_nodes(sums: NodeSums, log_lengths: float, resolution: float) -> Intervals:
    """Counts on pairs of nodes; exposure on (0, node], E ∫ being a difference of running ones."""
    grid = node_grid(resolution)
    pairs = WeightedPairs.on(grid, sums.pairs)
    nodes, exposure = weighted_points(grid, sums.points)
    count = pairs.weight[0]
    rows = Rows(
        np.concatenate([pairs.start, np.zeros(len(nodes))]),
        np.concatenate([pairs.stop, nodes]),
        np.concatenate([count, np.zeros(len(nodes))]),
        np.concatenate([np.zeros(len(count)), exposure]),
    )
    return Intervals(rows, log_lengths - float(count @ np.log(pairs.stop - pairs.start)))


def observe_sums(
    sums: IntervalSums,
    subjects: SubjectSums | None,
    window: tuple[float, float],
    resolution: float,
) -> Observations:
    """Observations for functions of length-scale `resolution` (in windows) and longer.

    Without the subjects' sums there can be no subject effects.
    """
    if sums.exact is not None:
        intervals = Intervals(sums.exact, 0.0)
    else:
        assert sums.nodes is not None
        intervals = intervals_between_nodes(sums.nodes, sums.log_lengths, resolution)
    rows = intervals.rows
    rate = max(sums.n_events, 1.0) / sums.exposure_time
    constant = sums.n_events * np.log(rate) + sums.log_exposures + intervals.log_lengths
    length = len(rows)
    by_subject, totals = sparse.csr_array((1, length)), np.array([sums.n_events])
    pooled = None
    if subjects is not None:
        spans, pooled, totals, by_span = _pool(subjects, resolution)
        zero = np.zeros(len(spans[0]))
        rows = rows.joined(Rows(spans[0], spans[1], zero, zero))
        nothing = sparse.csr_array((by_span.shape[0], length))
        by_subject = sparse.csr_array(sparse.hstack([nothing, rate * by_span], format="csr"))
    return Observations(
        start=rows.start,
        stop=rows.stop,
        count=rows.count,
        exposure=rate * rows.exposure,
        events=np.zeros(0),
        by_subject=by_subject,
        totals=totals,
        rate=rate,
        window=window,
        constant=float(constant),
        pooled=pooled,
        resolution=resolution / STRETCH,
    )


def _pool(
    subjects: SubjectSums, resolution: float
) -> tuple[tuple[Floats, Floats], PooledSubjects | None, Floats, sparse.csr_array]:
    """Spans between nodes for subjects with one span, and the spans of all others."""
    pairs = WeightedPairs.of_spans(node_grid(resolution), subjects.number, subjects.events)
    number, events = pairs.weight
    others = subjects.others
    first, totals = subject_totals(others) if len(others) else (np.zeros(0, int), np.zeros(0))
    size = np.diff(np.append(first, len(others)))
    owner = np.concatenate(
        [np.arange(len(number)), len(number) + np.repeat(np.arange(len(first)), size)]
    )
    weight = np.concatenate([np.ones(len(number)), others.exposure])
    shape = (len(number) + len(first), len(owner))
    by_span = sparse.csr_array((weight, (owner, np.arange(len(owner)))), shape)
    if not len(number):  # each subject stands for itself
        return (others.start, others.stop), None, totals, by_span
    pooled = PooledSubjects(
        number=np.concatenate([number, np.ones(len(first))]),
        totals=subjects.totals,
        times=subjects.times,
    )
    spans = np.concatenate([pairs.start, others.start]), np.concatenate([pairs.stop, others.stop])
    return spans, pooled, np.concatenate([events, totals]), by_span
