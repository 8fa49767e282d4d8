"""Modes on a lattice of (ln a, u): the trapezoid rule over the hyper-parameters.

One point of every length-scale is looked at; from the peaks among them the lattice grows while
points are within `DROP` nats of the best. Where the posterior is narrower than the steps, it is
laid anew with shorter ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.engine.climb import Mode, carried_over, climb
from gp4c.inference.engine.landscape import Landscape, Task
from gp4c.inference.engine.turns import distinct, turned_modes
from gp4c.model.hyper_priors import STEADY, VARIATION, normal_log_density

Floats = NDArray[np.float64]

#: nats below the best within which lattice points count
DROP = 4.5
#: nats below the best at which the sweep over length-scales ends, and at which a climb is given up
_WALK, _HOPELESS = 15.0, 20.0
#: promised gain, in nats, at which climbs end with a last free step; the same in the sweep
_CLOSELY, _ROUGHLY = 0.5, 2.0
#: first steps in ln a and u; narrower posteriors get 1.3 of their deviation, not below the last
STEPS = (0.5, 0.7)
_WIDE_ENOUGH, _STEP_IN_DEVIATIONS, _SHORTEST_STEP = 0.6, 1.3, 0.06
#: steps of a lattice that is thinned out, in deviations
_THIN = 0.8
#: where the sweep begins, in windows, and the length-scales that it may reach
_START = float(np.log(0.15))
LENGTHS = (float(np.log(0.0158)), float(np.log(1.2)))
#: most lattices laid, most steps along u at one length-scale, and most fillings of a lattice
_MOST_ROUNDS, _MOST_ALONG, _MOST_FILLS = 5, 14, 40
#: differences between neighbours larger than this are not extrapolated
_EXTRAPOLATED = 2.0
#: nats by which other signs of f must be better, and how often a lattice is laid anew for them
_CLEARLY_HIGHER, _MOST_TURNS = 0.1, 4


@dataclass
class Point:
    """A lattice point (i, j): its best mode, and other modes found there."""

    i: int
    j: int
    mode: Mode
    others: list[Mode] = field(default_factory=list)

    @property
    def modes(self) -> list[Mode]:
        """The best mode and the others."""
        return [self.mode, *self.others]

    @property
    def log_evidence(self) -> float:
        """Of all modes together."""
        return float(np.logaddexp.reduce([mode.log_evidence for mode in self.modes]))


@dataclass
class _Row:
    """One length-scale: its landscape, and points by j."""

    i: int
    landscape: Landscape
    points: dict[int, Point] = field(default_factory=dict)
    tried: set[int] = field(default_factory=set)

    @property
    def best(self) -> float:
        """Of its points, at least one."""
        return max(point.mode.log_evidence for point in self.points.values())


@dataclass(frozen=True)
class Lattice:
    """Points that carry weight, and the steps between them.

    Attributes
    ----------
    points : list of Point
    steps : (step of ln a, step of u)
    spread : (deviation of ln a, deviation of u)
    turned : list of Mode
        Modes at the best point with other signs of f, as far as they matter.
    steady : Point, optional
        The curve that does not vary, beside the lattice; it stands for its prior probability.
    """

    points: list[Point]
    steps: tuple[float, float]
    spread: tuple[float, float]
    turned: list[Mode] = field(default_factory=list)
    steady: Point | None = None

    @property
    def masses(self) -> list[tuple[Point, float]]:
        """All points, with ln of what the density at each is multiplied by.

        That is the area that a point stands for, times the prior probability that the curve
        varies. The steady curve has the other part of the probability, and no prior of (ln a, u).
        """
        if self.steady is None:
            return [(point, self.log_step) for point in self.points]
        mode = self.steady.mode
        share = mode.landscape.task.steady
        density = mode.landscape.log_prior_length + normal_log_density(np.array(mode.u), *VARIATION)
        varying = self.log_step + float(np.log1p(-share))
        steady = float(np.log(share) - density)
        return [*((point, varying) for point in self.points), (self.steady, steady)]

    @property
    def log_step(self) -> float:
        """ln of the area that a point stands for."""
        return float(np.log(self.steps[0] * self.steps[1]))

    @property
    def log_evidence(self) -> float:
        """By Laplace's method at each point, and the trapezoid rule over them."""
        if self.steady is not None:
            return float(logsumexp([p.log_evidence + mass for p, mass in self.masses]))
        return float(logsumexp([p.log_evidence for p in self.points])) + self.log_step

    @property
    def _narrow(self) -> list[bool]:
        """Along which axis the posterior is narrower than the steps."""
        return [
            deviation < _WIDE_ENOUGH * step and step > 2 * _SHORTEST_STEP
            for deviation, step in zip(self.spread, self.steps, strict=True)
        ]

    @property
    def suits(self) -> bool:
        """Whether the steps suit the posterior."""
        return not any(self._narrow)

    def shorter_steps(self) -> tuple[float, float]:
        """Steps for the next lattice: 1.3 deviations where the posterior is narrow."""
        both = zip(self.steps, self.spread, self._narrow, strict=True)
        first, second = (
            min(step, max(_STEP_IN_DEVIATIONS * deviation, step / 6, _SHORTEST_STEP))
            if narrow
            else step
            for step, deviation, narrow in both
        )
        return first, second

    def thinned(self) -> Lattice:
        """Every so manieth point, where shorter steps turned out to be needless.

        Steps of 0.8 deviations are short enough for the trapezoid rule, and more points would
        share the same number of draws.
        """
        strides = [
            max(1, int(min(_THIN * deviation, first) / step))
            for deviation, step, first in zip(self.spread, self.steps, STEPS, strict=True)
        ]
        best = self.best
        kept = [
            point for point in self.points
            if (point.i - best.i) % strides[0] == 0 and (point.j - best.j) % strides[1] == 0
        ]  # fmt: skip
        steps = (self.steps[0] * strides[0], self.steps[1] * strides[1])
        return replace(self, points=kept, steps=steps)

    @property
    def best(self) -> Point:
        """The point with the highest evidence."""
        return max(self.points, key=lambda point: point.mode.log_evidence)


class _Walk:
    """A lattice while it grows."""

    def __init__(self, task: Task, steps: tuple[float, float], origin: tuple[float, float]):
        self.task, self.steps, self.origin = task, steps, origin
        self.rows: dict[int, _Row] = {}
        self.top = -np.inf
        shortest = 1.0 / max(task.n_inducing - 1, 1) / 1.5 if task.n_inducing else 0.0
        resolution = max(task.likelihood.cells.resolution, shortest, 1e-300)
        self.limits = (max(LENGTHS[0], float(np.log(resolution))), LENGTHS[1])

    def u(self, j: int) -> float:
        return self.origin[1] + j * self.steps[1]

    def grow(self, known: list[Mode]) -> None:
        """Spread from known modes, or look at all length-scales first."""
        if not self.spread_from(known):
            self._sweep()
            self._fill()

    def spread_from(self, known: list[Mode]) -> bool:
        """Begin next to known modes and fill what is near the best; whether there is anything."""
        near: dict[int, list[Mode]] = {}
        for mode in sorted(known, key=lambda one: one.log_evidence):
            i = round((mode.landscape.log_length - self.origin[0]) / self.steps[0])
            near.setdefault(i, []).append(mode)
        for i, modes in near.items():
            if self._within(i):
                self._begin(i, modes)
        if np.isfinite(self.top):
            self._fill()
        return bool(np.isfinite(self.top))

    def _begin(self, i: int, modes: list[Mode]) -> None:
        """Modes on points of this lattice are taken as they are; others are climbed from."""
        log_length, near = self.origin[0] + i * self.steps[0], dict[int, Mode | None]()
        landscape = modes[-1].landscape
        if landscape.log_length == log_length:
            self.rows[i] = _Row(i, landscape)
        row = self._row(i)
        for mode in modes:
            j = round((mode.u - self.origin[1]) / self.steps[1])
            if mode.landscape is row.landscape and mode.u == self.u(j):
                self._add(row, j, mode)
            else:
                near[j] = mode
        near = {j: mode for j, mode in near.items() if j not in row.points}
        if near:
            self._climb(row, near)

    def _add(self, row: _Row, j: int, mode: Mode) -> None:
        row.tried.add(j)
        row.points[j] = Point(row.i, j, mode)
        self.top = max(self.top, mode.log_evidence)

    def _sweep(self) -> None:
        """One point of every length-scale, from the first to both sides; peaks are climbed."""
        first = self._first_row()
        for direction in (1, -1):
            row = first
            while row.points and row.best > self.top - _WALK and self._within(row.i + direction):
                j, point = max(row.points.items(), key=lambda one: one[1].mode.log_evidence)
                row = self._row(row.i + direction)
                self._climb(row, {j: point.mode}, _ROUGHLY)
        heights = {i: row.best for i, row in self.rows.items() if row.points}
        for i, height in heights.items():
            around = (heights.get(i - 1, -np.inf), heights.get(i + 1, -np.inf))
            if height > max(self.top - _WALK, *around):
                self._peak(self.rows[i])

    def _peak(self, row: _Row) -> None:
        """Go along u while that leads up."""
        for _ in range(_MOST_ALONG):
            j, point = max(row.points.items(), key=lambda one: one[1].mode.log_evidence)
            sides = [k for k in (j - 1, j + 1) if k not in row.tried and self._varies(k)]
            if not sides:
                return
            self._climb(row, dict.fromkeys(sides, point.mode))

    def _fill(self) -> None:
        """Neighbours of all points that are near the best, until there are no new ones."""
        for _ in range(_MOST_FILLS):
            wanted: dict[int, dict[int, Mode | None]] = {}
            for row in list(self.rows.values()):
                for j, point in row.points.items():
                    if point.mode.log_evidence > self.top - DROP:
                        for i, k in self._new_neighbours(row.i, j):
                            wanted.setdefault(i, {}).setdefault(k, point.mode)
            if not wanted:
                return
            for i, near in wanted.items():
                self._climb(self._row(i), near)

    def _new_neighbours(self, i: int, j: int) -> list[tuple[int, int]]:
        """Lattice points next to one that were not tried."""
        around = ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
        return [
            (a, b)
            for a, b in around
            if self._within(a) and self._varies(b) and b not in self._tried(a)
        ]

    def _tried(self, i: int) -> set[int]:
        return self.rows[i].tried if i in self.rows else set()

    def _within(self, i: int) -> bool:
        """Whether a length-scale may be reached."""
        return bool(self.limits[0] <= self.origin[0] + i * self.steps[0] <= self.limits[1])

    def _varies(self, j: int) -> bool:
        """Whether a u may be reached: one step beyond the limits at most."""
        low, high = self.task.variations
        return low - self.steps[1] < self.u(j) < high + self.steps[1]

    def _first_row(self) -> _Row:
        """The row where the sweep begins; elsewhere if no mode is found there."""
        for i, j in ((0, 0), (0, 1), (-1, 1), (-2, 1), (1, 0), (0, -1), (0, -2), (2, -2)):
            row = self._row(i)
            self._climb(row, {j: None})
            if row.points:
                return row
        raise ArithmeticError("no mode of the posterior was found")

    def _row(self, i: int) -> _Row:
        """The row of a length-scale, empty if it is new."""
        if i not in self.rows:
            landscape = self.task.landscape(self.origin[0] + i * self.steps[0])
            self.rows[i] = _Row(i, landscape)
        return self.rows[i]

    def _climb(self, row: _Row, near: dict[int, Mode | None], tol: float = _CLOSELY) -> None:
        """Climb at one length-scale from modes nearby, or from a crude rate."""
        row.tried.update(near)
        u = np.array([self.u(j) for j in near])
        starts = np.array([self._start(row, j, mode) for j, mode in near.items()]).T
        modes = climb(row.landscape, starts, u, tol=tol, floor=self.top - _HOPELESS)
        for j, mode in zip(near, modes, strict=True):
            if mode.found:
                self._add(row, j, mode)

    def _start(self, row: _Row, j: int, near: Mode | None) -> Floats:
        """The neighbour's curve, moved on as the last two neighbours moved."""
        land = row.landscape
        if near is None:
            return land.rough_start(self.u(j))
        x = carried_over(near, land, self.u(j))
        before = self._before(row, j, near)
        if before is not None:
            change = near.x - carried_over(before, near.landscape, near.u)
            if near.landscape.size != land.size:
                x[land.size :] += change[near.landscape.size :]
            elif np.abs(change).max() < _EXTRAPOLATED:
                x += change
        return x

    def _before(self, row: _Row, j: int, near: Mode) -> Mode | None:
        """The mode on the other side of the neighbour."""
        if near.landscape is row.landscape:
            step = 1 if near.u > self.u(j) else -1
            point = row.points.get(j + 2 * step)
            return None if point is None else point.mode
        for other in self.rows.values():
            if other.landscape is near.landscape:
                behind = self.rows.get(2 * other.i - row.i)
                point = None if behind is None else behind.points.get(j)
                return None if point is None else point.mode
        return None

    def lattice(self) -> Lattice:
        points = [
            point
            for row in self.rows.values()
            for point in row.points.values()
            if point.mode.log_evidence > self.top - DROP
        ]
        return Lattice(points, self.steps, self._spread(points))

    def _spread(self, points: list[Point]) -> tuple[float, float]:
        """Deviations of ln a and u; from the neighbours of the best where they are small."""
        evidence = np.array([point.mode.log_evidence for point in points])
        weight = np.exp(evidence - logsumexp(evidence))
        at = {
            (row.i, j): point.mode.log_evidence
            for row in self.rows.values()
            for j, point in row.points.items()
        }
        best = max(at, key=lambda key: at[key])
        result = []
        for axis, step in enumerate(self.steps):
            place = np.array([(point.i, point.j)[axis] for point in points], dtype=float)
            deviation = float(np.sqrt(weight @ (place - weight @ place) ** 2)) * step
            if deviation < 0.45 * step:
                i, j = best
                around = [(i - 1, j), (i + 1, j)] if axis == 0 else [(i, j - 1), (i, j + 1)]
                sides = [at[key] for key in around if key in at] or [at[best] - 20.0]
                bend = 2 * (at[best] - float(np.mean(sides))) / step**2
                deviation = float(max(bend, 1.0 / step**2) ** -0.5)
            result.append(deviation)
        return result[0], result[1]


def _first_length(task: Task) -> float:
    """ln a where the sweep begins; an expansion holds near the shortest that it resolves."""
    cells = task.likelihood.cells
    if cells.expansion is None:
        return _START
    return float(np.clip(np.log(cells.resolution) + STEPS[0], *LENGTHS))


def find_modes(task: Task, after: Lattice | None = None, rounds: int = _MOST_ROUNDS) -> Lattice:
    """Lay lattices until the steps suit the posterior.

    Parameters
    ----------
    after : Lattice, optional
        A rough one, laid before with fewer rounds.
    """
    steps, origin = STEPS, (_first_length(task), task.first_variation)
    known: list[Mode] = []
    lattice = after
    if lattice is not None and lattice.suits:
        return lattice
    for _ in range(rounds):
        if lattice is not None:
            steps, best = lattice.shorter_steps(), lattice.best.mode
            origin = (best.landscape.log_length, best.u)
            known = [point.mode for point in lattice.points]
        walk = _Walk(task, steps, origin)
        walk.grow(known)
        lattice = walk.lattice()
        if lattice.suits:
            break
    assert lattice is not None
    return replace(_polished(_best_turned(task, lattice).thinned()), steady=steady_point(task))


def steady_point(task: Task) -> Point | None:
    """The mode of the curve that does not vary; None where its probability is 0.

    Its length-scale is known from nowhere, and the longest needs the fewest inducing inputs.
    """
    if not task.steady:
        return None
    land = task.landscape(LENGTHS[1])
    start = land.rough_start(STEADY)[:, None]
    mode = climb(land, start, np.array([STEADY]))[0]
    return Point(0, 0, mode) if mode.found else None


def _best_turned(task: Task, lattice: Lattice) -> Lattice:
    """The same lattice, laid anew from other signs of f while these have more evidence."""
    for _ in range(_MOST_TURNS):
        best = lattice.best.mode
        lattice = replace(lattice, turned=turned_modes(best))
        if not lattice.turned:
            break
        other = lattice.turned[0]
        if other.log_evidence < best.log_evidence + _CLEARLY_HIGHER:
            break
        walk = _Walk(task, lattice.steps, (best.landscape.log_length, best.u))
        if not walk.spread_from([other]) or walk.lattice().log_evidence < lattice.log_evidence:
            break
        lattice = walk.lattice()
    return lattice


def _polished(lattice: Lattice) -> Lattice:
    """The same points with modes and curvatures as close as draws need them."""
    points = []
    for row in _by_landscape(lattice):
        land = row[0].mode.landscape
        x = np.array([point.mode.x for point in row]).T
        closer = climb(land, x, np.array([point.mode.u for point in row]))
        points += [
            replace(point, mode=mode if mode.found else point.mode)
            for point, mode in zip(row, closer, strict=True)
        ]
    return replace(lattice, points=points)


def _by_landscape(lattice: Lattice) -> list[list[Point]]:
    """Points, length-scale by length-scale."""
    rows: dict[int, list[Point]] = {}
    for point in lattice.points:
        rows.setdefault(id(point.mode.landscape), []).append(point)
    return list(rows.values())


def with_turned(lattice: Lattice, turned: list[Mode]) -> Lattice:
    """The lattice with modes of other signs of f beside the best one of every point."""
    points = []
    for row in _by_landscape(lattice):
        land = row[0].mode.landscape
        pairs = [(point, mode) for point in row for mode in turned]
        starts = np.array([carried_over(mode, land, point.mode.u) for point, mode in pairs]).T
        reached = climb(land, starts, np.array([point.mode.u for point, _ in pairs]))
        for n, point in enumerate(row):
            here = reached[n * len(turned) : (n + 1) * len(turned)]
            others = [mode for mode in here if mode.found]
            points.append(replace(point, others=distinct([point.mode, *others])[1:]))
    return replace(lattice, points=points)
