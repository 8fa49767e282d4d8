r"""Starts for a mixture of bases: the same model with rates that are constant on a few bins.

.. math:: m_{ki} \sim \mathrm{Poisson}\Bigl(\sum_l w_{kl} \sum_b a_{ib} \theta_{lb}\Bigr),

a_ib the length of interval i in bin b. This is a factorisation of a matrix of counts with
non-negative factors. Its EM updates cost next to nothing, so that many random starts are tried and
the best few are handed on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.bases.basis_weights import EventRows
from gp4c.inference.variational.exposure import SMALLEST_WEIGHT
from gp4c.model.observations import Observations

Floats = NDArray[np.float64]

#: bins of the window: enough to tell early from late and a peak from its sides
N_BINS = 12
#: updates of each start; they only have to tell good starts from bad ones
N_UPDATES = 100
#: events that every bin of every basis has beforehand: no bin is closed for good
BEFOREHAND = 0.1
#: mean difference of the shares of an event below which two starts are the same
SAME = 0.05


@dataclass(frozen=True)
class CoarseStart:
    """Shares of the rows (N, L) and the log likelihood that they were found with."""

    shares: Floats
    value: float


def coarse_starts(
    data: Observations, rows: EventRows, n_bases: int, n_starts: int, rng: np.random.Generator
) -> list[CoarseStart]:
    """Shares of the rows from `n_starts` random starts, the most likely first, each once."""
    edges = np.linspace(0.0, 1.0, N_BINS + 1)
    inside = np.minimum(data.stop[:, None], edges[1:]) - np.maximum(data.start[:, None], edges[:-1])
    inside = np.maximum(inside, 0.0)
    at_risk = np.asarray(data.by_subject @ inside)
    length = inside[data.count != 0][rows.interval]
    found = [_one_start(rows, length, at_risk, n_bases, rng) for _ in range(n_starts)]
    different: list[CoarseStart] = []
    for start in sorted(found, key=lambda start: -start.value):
        if not any(_same(rows, start, other) for other in different):
            different.append(start)
    return different


def _same(rows: EventRows, one: CoarseStart, other: CoarseStart) -> bool:
    """Whether two starts share the events alike; the larger basis comes first in both."""
    apart = np.abs(one.shares - other.shares).max(axis=1)
    return float(rows.count @ apart) < SAME * float(rows.count.sum())


def _one_start(
    rows: EventRows, length: Floats, at_risk: Floats, n_bases: int, rng: np.random.Generator
) -> CoarseStart:
    """EM from random rates: `length` (N, B) of the rows, `at_risk` (K, B) of the subjects."""
    rates = rng.exponential(size=(n_bases, N_BINS)) + 0.05
    events = np.bincount(rows.subject, rows.count, rows.n_subjects)
    weights = np.repeat(events[:, None] / (at_risk @ rates.T).sum(axis=1)[:, None], n_bases, axis=1)
    for _ in range(N_UPDATES):
        weights = np.maximum(weights, SMALLEST_WEIGHT)
        masses = length @ rates.T
        each = rows.count / (weights[rows.subject] * masses).sum(axis=1)
        counted = (weights[rows.subject] * each[:, None]).T @ length
        rates = (rates * counted + BEFOREHAND) / (weights.T @ at_risk + BEFOREHAND)
        masses = length @ rates.T
        each = rows.count / (weights[rows.subject] * masses).sum(axis=1)
        gained = np.stack(
            [np.bincount(rows.subject, each * mass, rows.n_subjects) for mass in masses.T], axis=1
        )
        weights = weights * gained / (at_risk @ rates.T)
    weights = np.maximum(weights, SMALLEST_WEIGHT)
    parts = weights[rows.subject] * (length @ rates.T)
    whole = parts.sum(axis=1)
    value = float(rows.count @ np.log(whole) - (weights * (at_risk @ rates.T)).sum())
    shares = parts / whole[:, None]
    return CoarseStart(shares[:, np.argsort(-(rows.count @ shares))], value)
