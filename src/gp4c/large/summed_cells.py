"""From sums over a stream of rows to cells: real intervals, or intervals between nodes.

Cells of sums have real weights, some of them negative (docs/maths_scale.md). They serve the Poisson
law, without effects or with a conjugate one. Other laws need the classes of rows, without effects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.data.distinct import distinct_intervals
from gp4c.large.compression import WeightedPairs, node_grid, weighted_points
from gp4c.large.interval_sums import IntervalSums, NodeSums, Rows
from gp4c.large.subject_sums import SubjectSums, subject_totals
from gp4c.model.cells import Cells, CountedRows
from gp4c.model.laws import EFFECTS, CountLaw, SubjectEffect

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: a posterior is smoother than its prior at the shorter of the length-scales that are tried, so
#: that its objective is still accurate there: the result measures it
STRETCH = 2.5


@dataclass(frozen=True)
class Intervals:
    """Weighted intervals in unit time, and Σ c ln(length) of the rows less that of these."""

    rows: Rows
    log_lengths: float


@dataclass(frozen=True)
class Owners:
    """Times at risk in unit time, and the (weighted) subjects that they belong to.

    Attributes
    ----------
    start, stop, exposure, owner : (P,)
    number, power : (O,)
        Subjects and events that an owner stands for.
    powers, times : (n,)
        Histogram of the totals of subjects.
    """

    start: Floats
    stop: Floats
    exposure: Floats
    owner: Indices
    number: Floats
    power: Floats
    powers: Floats
    times: Floats


def cells_of_sums(
    sums: IntervalSums,
    subjects: SubjectSums | None,
    window: tuple[float, float],
    effect: SubjectEffect,
    resolution: float,
    rate: float | None = None,
) -> Cells:
    """Cells for functions of length-scale `resolution` (in windows) and longer, Poisson counts.

    Parameters
    ----------
    subjects : SubjectSums, optional
        Needed by effects that vary.
    rate : float, optional
        Events per window and unit of exposure that the unit rate stands for; default that of the
        data.
    """
    intervals = _intervals_of(sums, resolution)
    if rate is None:
        rate = max(sums.n_events, 1.0) / sums.exposure_time
    rows = intervals.rows
    if effect.varies:
        assert subjects is not None
        owners = owners_of_sums(subjects, resolution)
    else:
        owners = _everybody(rows, sums.n_events)
    seen = rows.take(rows.count != 0)
    constant = sums.n_events * np.log(rate) + sums.log_exposures + intervals.log_lengths
    nobody, none = np.zeros(0, dtype=np.intp), np.zeros(0)
    return Cells(
        start=seen.start,
        stop=seen.stop,
        power=seen.count,
        power_z=none,
        rows=CountedRows(none, none, none, none, nobody, np.zeros((0, 0))),
        weight=none,
        row_cell=nobody,
        row_owner=nobody,
        counts=none,
        times=none,
        span_start=owners.start,
        span_stop=owners.stop,
        span_factor=rate * owners.exposure,
        span_owner=owners.owner,
        span_z=np.zeros((len(owners.start), 0)),
        number=owners.number,
        owner_power=owners.power,
        powers=owners.powers,
        power_times=owners.times,
        hard=nobody,
        constant=float(constant),
        window=window,
        rate=rate,
        n_events=sums.n_events,
        n_subjects=float(owners.times.sum()),
        resolution=resolution / STRETCH,
    )


def cells_of_classes(sums: IntervalSums, window: tuple[float, float], law: CountLaw) -> Cells:
    """Cells for any law of counts without subject effects: what differs between rows, once."""
    assert sums.exact is not None
    assert sums.classes is not None
    plain = cells_of_sums(sums, None, window, EFFECTS[None], 0.0)
    classes, rate = sums.classes, plain.rate
    order = np.lexsort((classes.exposure, classes.stop, classes.start, -classes.count))
    start, stop, exposure, count, number = (
        values[order] for values in
        (classes.start, classes.stop, classes.exposure, classes.count, classes.number)
    )  # fmt: skip
    intervals = distinct_intervals(start, stop, count.astype(np.int64), number)
    power = number * law.power(count)
    left = law.has_remainder(count)
    n_left, counts = int(left.sum()), np.unique(count)
    nobody = np.zeros(n_left, dtype=np.intp)
    return replace(
        plain,
        start=intervals.start,
        stop=intervals.stop,
        power=np.bincount(intervals.inverse, power, len(intervals)).astype(float),
        rows=CountedRows(
            start[left],
            stop[left],
            count[left],
            rate * exposure[left],
            nobody,
            np.zeros((n_left, 0)),
        ),
        weight=number[left],
        row_cell=intervals.inverse[left],
        row_owner=nobody,
        counts=counts,
        times=np.bincount(np.searchsorted(counts, count), number, len(counts)).astype(float),
        constant=float(power @ np.log(rate * exposure)),
        _maps={},
    )


def intervals_between_nodes(sums: NodeSums, log_lengths: float, resolution: float) -> Intervals:
    """Counts on pairs of nodes; exposure on (0, node], ∫ being a difference of running ones."""
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


def owners_of_sums(subjects: SubjectSums, resolution: float) -> Owners:
    """Spans between nodes for subjects with one span, and the spans of all others."""
    pairs = WeightedPairs.of_spans(node_grid(resolution), subjects.number, subjects.events)
    number, events = pairs.weight
    others = subjects.others
    first, totals = subject_totals(others) if len(others) else (np.zeros(0, int), np.zeros(0))
    size = np.diff(np.append(first, len(others)))
    return Owners(
        start=np.concatenate([pairs.start, others.start]),
        stop=np.concatenate([pairs.stop, others.stop]),
        exposure=np.concatenate([np.ones(len(number)), others.exposure]),
        owner=np.concatenate(
            [np.arange(len(number)), len(number) + np.repeat(np.arange(len(first)), size)]
        ),
        number=np.concatenate([number, np.ones(len(first))]),
        power=np.concatenate([events, totals]),
        powers=subjects.totals,
        times=subjects.times,
    )


def _intervals_of(sums: IntervalSums, resolution: float) -> Intervals:
    """The intervals themselves where they are few, else intervals between nodes."""
    if sums.exact is not None:
        return Intervals(sums.exact, 0.0)
    assert sums.nodes is not None
    return intervals_between_nodes(sums.nodes, sums.log_lengths, resolution)


def _everybody(rows: Rows, n_events: float) -> Owners:
    """One owner for all exposure."""
    watched = rows.take(rows.exposure != 0)
    one, events = np.ones(1), np.array([n_events])
    return Owners(
        watched.start, watched.stop, watched.exposure, np.zeros(len(watched), dtype=np.intp),
        one, events, events, one,
    )  # fmt: skip
