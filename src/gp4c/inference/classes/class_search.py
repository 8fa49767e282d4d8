"""Modes of C classes on a lattice of (ln a, u), from several starts.

Starts are climbed at one point of the lattice; the modes that they find are carried to its
neighbours of all points within `DROP` nats of the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from gp4c.inference.classes.class_climb import ClassMode, ClassTilts, climb_classes
from gp4c.inference.classes.class_landscape import SHARE_DEVIATION, ClassData, ClassLandscape
from gp4c.inference.classes.class_starts import SubjectFeatures, first_memberships, start_at
from gp4c.inference.engine.landscape import Task, split_level
from gp4c.inference.engine.lattice import LENGTHS

Floats = NDArray[np.float64]
Place = tuple[int, int]

#: nats below the best within which the lattice goes on from a point to its neighbours
DROP = 2.0
#: Newton steps with the memberships of a start; then stages without them, and steps of a stage
_GIVEN_STEPS, _STAGES, _STAGE_STEPS = 3, 6, 4
#: starts of a refit, and of a law of which another law has told something
_FEW = 3
#: gain, in nats, at which climbs on the lattice stop: half of it is added to the evidence
_NEAR = 1.0
#: modes kept, how far they may be below the best, and how alike memberships of two may be
_MOST_MODES, _BELOW, _ALIKE = 2, 3.0, 0.02
#: steps in deviations of the posterior: the trapezoid rule errs by 1e-5 for a normal one; a
#: lattice is laid anew if they turn out longer than so many deviations
_STEP, _LONG_STEP, _MOST_ROUNDS = 1.25, 1.7, 3
_STEP_LIMITS = ((0.1, 0.8), (0.1, 1.2))
#: most points of a lattice
_MOST_POINTS = 60
#: least precision of directions in which a point that is no mode bends the other way
_SADDLE = 0.3


@dataclass
class ClassLatticePoint:
    """Modes at one (ln a, u), and points that stand for fewer classes."""

    place: Place
    modes: list[ClassMode]
    fewer: ClassMode | None = None

    @property
    def log_evidence(self) -> float:
        """Of all modes together."""
        return float(logsumexp([mode.log_evidence for mode in self.modes]))


@dataclass
class ClassLattice:
    """Points that carry weight.

    Attributes
    ----------
    points : list of ClassLatticePoint
    steps : (step of ln a, step of u)
    n_starts, n_agreeing : int
        Starts, and how many of them ended at the best mode.
    """

    points: list[ClassLatticePoint]
    steps: tuple[float, float]
    n_starts: int = 1
    n_agreeing: int = 1

    @property
    def log_step(self) -> float:
        """ln of the area that a point stands for."""
        return float(np.log(self.steps[0] * self.steps[1]))

    @property
    def log_evidence(self) -> float:
        """By Laplace's method at each point, and the trapezoid rule over them."""
        return float(logsumexp([p.log_evidence for p in self.points])) + self.log_step

    @property
    def best(self) -> ClassMode:
        """The mode with most evidence."""
        every = [mode for point in self.points for mode in point.modes]
        return max(every, key=lambda mode: mode.log_evidence)


@dataclass
class ClassSearch:
    """Everything that a search for classes needs; landscapes are kept by length-scale."""

    data: ClassData
    task: Task
    _spaces: dict[float, ClassLandscape] = field(default_factory=dict)

    def space(self, log_length: float, u: float, n_classes: int) -> ClassLandscape:
        """The density at one length-scale and u."""
        if log_length not in self._spaces:
            land = self.task.landscape(log_length)
            self._spaces[log_length] = ClassLandscape(self.data, land, u, n_classes)
        return replace(self._spaces[log_length], u=u, n_classes=n_classes)

    def find(
        self,
        fewer: ClassMode,
        one: ClassMode,
        steps: tuple[float, float],
        rng: np.random.Generator,
        known: Floats | None = None,
    ) -> ClassLattice:
        """The modes of one class more than `fewer` has; `one` is the mode of a single class.

        Memberships `known` (K, C) of other laws are the first start, and few others are made.
        """
        first = [] if known is None else [known]
        modes, n_agreeing, n_starts = self.from_starts(
            fewer, one, rng, first=first, few=known is not None
        )
        lattice = ClassLattice([], steps)
        for _ in range(_MOST_ROUNDS):
            walk = _Walk(self, modes, fewer, steps)
            lattice = walk.lattice()
            spread = walk.spread()
            if all(step < _LONG_STEP * one for step, one in zip(steps, spread, strict=True)):
                break
            best = max(lattice.points, key=lambda point: point.log_evidence)
            modes, steps = best.modes, suitable_steps(spread)
        return replace(lattice, n_starts=n_starts, n_agreeing=n_agreeing)

    def from_starts(
        self,
        fewer: ClassMode,
        one: ClassMode,
        rng: np.random.Generator,
        *,
        first: Sequence[Floats] = (),
        few: bool = False,
    ) -> tuple[list[ClassMode], int, int]:
        """Distinct modes, best first, how many starts ended at the best, and how many there were.

        At the length-scale and u of `fewer`; starts from memberships `first` (K, C) come before
        others. Only the first starts are made if `few` are enough.
        """
        at = fewer.space
        n_classes = at.n_classes + 1
        space = self.space(at.land.log_length, at.u, n_classes)
        single = climb_classes(
            self.space(at.land.log_length, at.u, 1), carried(one, self._one(at)), max_steps=20
        )
        starts = first_memberships(SubjectFeatures.under(single), fewer, n_classes, rng)
        starts = [*first, *starts]
        starts = starts[:_FEW] if few else starts
        found: list[ClassMode] = []
        ends = []
        for membership in starts:
            near = climb_classes(
                space, start_at(space, single, membership), given=membership,
                max_steps=_GIVEN_STEPS, tol=1.0,
            )  # fmt: skip
            mode = _climbed(space, near.x, found)
            ends.append(mode)
            if not any(mode is one for one in found):
                found.append(mode)
        found = [mode for mode in found if np.isfinite(mode.log_evidence)]
        if not found:
            raise ArithmeticError("no mode of the classes was found")
        found.sort(key=lambda mode: (not mode.found, -mode.log_evidence))
        kept = [mode for mode in found if mode.log_evidence > found[0].log_evidence - _BELOW]
        return kept[:_MOST_MODES], sum(mode is found[0] for mode in ends), len(starts)

    def _one(self, at: ClassLandscape) -> ClassLandscape:
        return self.space(at.land.log_length, at.u, 1)


def _climbed(space: ClassLandscape, start: Floats, known: list[ClassMode]) -> ClassMode:
    """The mode that a climb finds; one that is known already as soon as the climb is near it."""
    x = start
    for _ in range(_STAGES):
        mode = climb_classes(space, x, max_steps=_STAGE_STEPS)
        near = next((one for one in known if alike(mode.membership, one.membership)), None)
        if near is not None:
            return near
        if mode.found:
            break
        x = mode.x
    return mode


def alike(first: Floats, second: Floats) -> bool:
    """Whether two memberships (K, C) are the same under some labelling."""
    gaps = np.abs(first[:, :, None] - second[:, None, :]).mean(axis=0)
    rows, columns = linear_sum_assignment(gaps)
    return bool(gaps[rows, columns].mean() < _ALIKE)


def suitable_steps(spread: tuple[float, float]) -> tuple[float, float]:
    """Steps for a posterior with these deviations of ln a and u."""
    pairs = zip(spread, _STEP_LIMITS, strict=True)
    first, second = (float(np.clip(_STEP * one, *limits)) for one, limits in pairs)
    return first, second


class _Walk:
    """A lattice while it grows from the point of its first modes."""

    def __init__(
        self,
        search: ClassSearch,
        modes: list[ClassMode],
        fewer: ClassMode,
        steps: tuple[float, float],
    ):
        self.search, self.steps = search, steps
        self.origin = (modes[0].space.land.log_length, modes[0].space.u)
        self.n_classes = modes[0].space.n_classes
        self.limits = (LENGTHS, search.task.variations)
        self.points: dict[Place, ClassLatticePoint] = {}
        self._add(ClassLatticePoint((0, 0), modes), fewer)
        queue = [(0, 0)]
        while queue and len(self.points) < _MOST_POINTS:
            queue.sort(key=lambda place: -self.points[place].log_evidence)
            place = queue.pop(0)
            if self.points[place].log_evidence < self.top - DROP:
                break
            queue += [near for near in self._neighbours(place) if self._climb(near, place)]

    @property
    def top(self) -> float:
        return max(point.log_evidence for point in self.points.values())

    def _neighbours(self, place: Place) -> list[Place]:
        i, j = place
        near = [(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)]
        return [one for one in near if one not in self.points and self._inside(one)]

    def _at(self, place: Place) -> tuple[float, float]:
        pairs = zip(self.origin, place, self.steps, strict=True)
        first, second = (start + n * step for start, n, step in pairs)
        return first, second

    def _inside(self, place: Place) -> bool:
        pairs = zip(self._at(place), self.limits, strict=True)
        return all(low <= value <= high for value, (low, high) in pairs)

    def _climb(self, place: Place, near: Place) -> bool:
        """Carry the modes of a neighbour; whether any was found."""
        log_length, u = self._at(place)
        space = self.search.space(log_length, u, self.n_classes)
        known = self.points[near]
        modes = [
            climb_classes(space, carried(mode, space), tol=_NEAR, max_steps=15)
            for mode in known.modes
        ]
        modes = [mode for mode in modes if mode.found and np.isfinite(mode.log_evidence)]
        if not modes:
            return False
        self._add(ClassLatticePoint(place, modes), known.fewer)
        return True

    def _add(self, point: ClassLatticePoint, fewer: ClassMode | None) -> None:
        log_length, u = self._at(point.place)
        if fewer is not None:
            space = self.search.space(log_length, u, self.n_classes - 1)
            point.fewer = climb_classes(space, carried(fewer, space), tol=_NEAR, max_steps=15)
        self.points[point.place] = point

    def lattice(self) -> ClassLattice:
        """All points, those behind the edge included."""
        return ClassLattice(list(self.points.values()), self.steps)

    def spread(self) -> tuple[float, float]:
        """Deviations of ln a and u; at least half a step, below which the points cannot tell."""
        points = list(self.points.values())
        evidence = np.array([point.log_evidence for point in points])
        weight = np.exp(evidence - logsumexp(evidence))
        places = np.array([point.place for point in points], dtype=float)
        deviations = np.sqrt(weight @ (places - weight @ places) ** 2)
        first, second = np.maximum(deviations, 1 / 2) * np.array(self.steps)
        return float(first), float(second)


def carried(mode: ClassMode, space: ClassLandscape) -> Floats:
    """Where the curves of a mode are under another length-scale and u, as a start there."""
    old, x = mode.space, np.zeros(space.dimension)
    x[space.n_classes * space.block :] = mode.x[old.n_classes * old.block :]
    (k, mean), (old_k, old_mean) = split_level(np.array(space.u)), split_level(np.array(old.u))
    features = old.land.prior.features(space.land.prior.inducing)
    for c in space.labels:
        was, now = c * old.block, c * space.block
        curve = old_mean + old_k * (features @ mode.x[was : was + old.size])
        v = space.land.prior.inverse_factor @ ((curve - mean) / k)
        size = float(np.sqrt((v * v).mean()))
        x[now : now + space.size] = v * min(1.0, 3.0 / max(size, 1e-300))
        x[now + space.size : now + space.block] = mode.x[was + old.size : was + old.block]
    return x


# -- points that stand for fewer classes ---------------------------------------------------------


def degenerate_modes(fewer: ClassMode, space: ClassLandscape) -> list[ClassMode]:
    """Centres for the part of the posterior in which there is one class less.

    Either the largest class is there twice, or one class is empty and follows the prior. Without
    them draws around modes would miss what the posterior holds there, and with it the evidence.
    """
    return [_doubled(fewer, space), _empty(fewer, space)]


def _widened(fewer: ClassMode, space: ClassLandscape) -> tuple[Floats, ClassTilts]:
    """The point of fewer classes with a block more, still to be set."""
    old, x = fewer.space, np.zeros(space.dimension)
    for c in old.labels:
        was, now = c * old.block, c * space.block
        x[now : now + old.block] = fewer.x[was : was + old.block]
    x[space.n_classes * space.block :] = fewer.x[old.n_classes * old.block :]
    shares = np.vstack([fewer.tilts.shares, np.zeros((1, space.size))])
    axes = np.concatenate([fewer.tilts.axes, np.eye(space.size)[None]])
    return x, ClassTilts(shares, axes)


def _doubled(fewer: ClassMode, space: ClassLandscape) -> ClassMode:
    x, _ = _widened(fewer, space)
    largest = int(fewer.membership.sum(axis=0).argmax())
    was, now = largest * space.block, (space.n_classes - 1) * space.block
    x[now : now + space.block] = x[was : was + space.block]
    if space.n_classes > 2:  # two halves have the share of the whole
        for first in (was, now):
            x[first + space.size + 1] -= np.log(2.0)
    at = space.derivatives(x)
    precision, axes = np.linalg.eigh(-at.hessian)
    precision = np.maximum(np.abs(precision), _SADDLE)
    tilts = ClassTilts.none(space)
    return ClassMode(space, x, tilts, precision, axes, at.membership, -np.inf, False, 0)


def _empty(fewer: ClassMode, space: ClassLandscape) -> ClassMode:
    x, tilts = _widened(fewer, space)
    old, last = fewer.space, (space.n_classes - 1) * space.block
    depth = 0.5 * np.log(space.data.n_subjects + 1.0)
    precision = np.zeros((space.dimension, space.dimension))
    rows = np.concatenate(
        [c * space.block + np.arange(old.block) for c in old.labels]
        + [np.arange(space.n_classes * space.block, space.dimension)]
    )
    precision[np.ix_(rows, rows)] = (fewer.axes * fewer.precision) @ fewer.axes.T
    own = np.arange(last, last + space.size + 1)
    precision[own, own] = 1.0
    for c in space.labels:
        first = c * space.block + space.size + 1
        shares = np.arange(first, first + space.n_shares)
        if c == space.n_classes - 1 or not old.n_shares:
            precision[shares, shares] = SHARE_DEVIATION**-2
        x[first] += -depth if c == space.n_classes - 1 else depth / (space.n_classes - 1)
    values, axes = np.linalg.eigh(precision)
    return ClassMode(
        space, x, tilts, np.maximum(values, _SADDLE), axes, fewer.membership, -np.inf, False, 0
    )
