"""Where searches for classes begin: groups by level, by shape, by both, and at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.classes.class_climb import ClassMode
from gp4c.inference.classes.class_landscape import ClassLandscape

Floats = NDArray[np.float64]

#: probability of a start's own class: the rest lets subjects move
_OWN = 0.9
#: starts from centres drawn at random among the subjects, and from random memberships
_N_CENTRED, _N_RANDOM = 3, 2
#: rounds in which centres move
_ROUNDS = 10


@dataclass(frozen=True)
class SubjectFeatures:
    """How subjects differ from one curve for all: in level and in shape, in standard errors.

    Attributes
    ----------
    level : (K,)
        ln of observed over expected events, half an event added to both.
    shape : (K,)
        Mean time of the events minus that expected, in deviations of one event, shrunk where
        there are few events.
    """

    level: Floats
    shape: Floats

    @classmethod
    def under(cls, one: ClassMode) -> SubjectFeatures:
        """Relative to the mode of a single class."""
        space, counts = one.space, one.space.data.counts
        seen, spans, n = counts.seen, counts.spans, counts.n_subjects
        land, u = space.land, np.array([space.u])
        times = np.linspace(0.0, 1.0, 201)
        rate = np.exp(one.x[space.size]) * land.curve_at(times, one.x[:, None], u)[:, 0] ** 2
        steps = np.diff(times) * 0.5
        mass = np.append(0.0, np.cumsum(steps * (rate[1:] + rate[:-1])))
        moment = np.append(0.0, np.cumsum(steps * ((times * rate)[1:] + (times * rate)[:-1])))

        def between(curve: Floats) -> Floats:
            ends = np.interp(spans.stop, times, curve) - np.interp(spans.start, times, curve)
            return np.bincount(spans.subject, spans.factor * ends, n).astype(float)

        expected, middle = between(mass), between(moment)
        events = np.bincount(seen.subject, seen.count, n).astype(float)
        at = np.bincount(seen.subject, seen.count * (seen.start + seen.stop) / 2, n)
        level = np.log((events + 0.5) / (expected + 0.5))
        late = at - events * middle / np.maximum(expected, 1e-12)
        return cls(level, late / np.sqrt(events + 1.0) / 0.29)

    @property
    def table(self) -> Floats:
        """Both, standardised, (K, 2)."""
        both = np.stack([self.level, self.shape], axis=1)
        return np.asarray((both - both.mean(axis=0)) / np.maximum(both.std(axis=0), 1e-12))


def first_memberships(
    features: SubjectFeatures, fewer: ClassMode, n_classes: int, rng: np.random.Generator
) -> list[Floats]:
    """Memberships (K, C) from which to climb; `fewer` is the mode with one class less."""
    starts = [_cut(features.level, n_classes), _cut(features.shape, n_classes)]
    if n_classes > 2:
        starts += _split(fewer.membership, features)
    starts += [_centred(features.table, n_classes, rng) for _ in range(_N_CENTRED)]
    n = len(features.level)
    starts += [rng.dirichlet(np.ones(n_classes), n) for _ in range(_N_RANDOM)]
    return starts


def _soft(labels: NDArray[np.intp], n_classes: int) -> Floats:
    rest = (1.0 - _OWN) / (n_classes - 1)
    return np.where(labels[:, None] == np.arange(n_classes), _OWN, rest)


def _cut(values: Floats, n_classes: int) -> Floats:
    """Groups of equal size by one feature."""
    rank = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    return _soft(rank * n_classes // len(values), n_classes)


def _split(membership: Floats, features: SubjectFeatures) -> list[Floats]:
    """Each class cut in two at the mean of a feature, the others kept."""
    found = []
    for c in range(membership.shape[1]):
        own = membership[:, c]
        for values in (features.level, features.shape):
            above = values > (own @ values) / max(float(own.sum()), 1e-12)
            share = np.where(above, _OWN, 1.0 - _OWN)
            halves = [own * share, own * (1.0 - share)]
            found.append(np.column_stack([np.delete(membership, c, axis=1), *halves]))
    return found


def _centred(table: Floats, n_classes: int, rng: np.random.Generator) -> Floats:
    """Groups around centres: first far apart, then each at the middle of its group."""
    centres = table[[rng.integers(len(table))]]
    while len(centres) < n_classes:
        gaps = ((table[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
        weight = gaps / gaps.sum() if gaps.sum() > 0 else np.full(len(table), 1 / len(table))
        centres = np.vstack([centres, table[rng.choice(len(table), p=weight)]])
    labels = np.zeros(len(table), dtype=np.intp)
    for _ in range(_ROUNDS):
        labels = ((table[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        known = [c for c in range(n_classes) if (labels == c).any()]
        centres[known] = [table[labels == c].mean(axis=0) for c in known]
    return _soft(labels, n_classes)


def start_at(space: ClassLandscape, one: ClassMode, membership: Floats) -> Floats:
    """A point of C classes: the curve of one class, its level moved to each group's own."""
    counts, single = space.data.counts, one.space
    x = np.zeros(space.dimension)
    x[space.n_classes * space.block :] = one.x[single.block :]
    events = np.bincount(counts.seen.subject, counts.seen.count, counts.n_subjects)
    spans = counts.spans
    exposed = np.bincount(
        spans.subject, spans.factor * (spans.stop - spans.start), counts.n_subjects
    )
    for c, own in enumerate(membership.T):
        first = c * space.block
        x[first : first + space.size] = one.x[: space.size]
        ratio = (own @ events + 0.5) / (own @ exposed + 0.5)
        x[first + space.size] = np.log(ratio)
        x[first + space.size + 1] = np.log(own.mean() * space.n_classes + 1e-3)
    return x
