"""Sign patterns of f: λ = f² does not tell them apart, but the smooth prior of f does.

Where λ is small, f may touch zero or cross it, and between visits far apart it may cross unseen.
Each pattern of crossings is a local optimum of the bound (or nearly one), and there may be dozens
that explain the data as well. Turning the sites of the likelihood beyond a place, or between two
places, starts the E-step in another pattern (docs/maths.md, section 5).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.estep import EStep, e_step
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Evaluation, Sites, Workspace

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: f may cross zero where |f| has a minimum within this many of its posterior standard deviations
#: of zero, or of its prior ones: kept on the wrong side, an f can be sure of itself
NEAR_ZERO, CLOSE = 2.0, 1.0
#: f may cross zero within a bump of |f| whose top is less than this many of its posterior and of
#: its prior standard deviations from zero
UNSURE, SMALL = 6.0, 2.0
#: an f that dips below zero and comes back has one minimum of |f| between its two crossings, each
#: this many length-scales from it
DIP = 0.6
#: beyond this many standard deviations the sign of f is clear
CLEAR_SIGN = 2.0
#: an f whose prior mean is more of its standard deviations from zero crosses only where it is near
FAR_MEAN = 1.0
#: a prior mean of fewer standard deviations makes no difference between f and −f
NO_MEAN = 0.1
#: patterns this many nats below the best carry no weight worth computing
NEGLIGIBLE = 4.5
#: optima nearer to each other than this many standard deviations cover the same ground; rates
#: whose roots differ by less of one are the same
SAME_MODE, SAME_RATE = 2.0, 0.3
#: steps after which a pattern that is still HOPELESS nats behind is given up, and most steps
FIRST_STEPS, HOPELESS, STEPS = 4, 10.0, 25
#: most steps for several turns at once, at places that are known to be worth turning
TURN_STEPS = 12
#: tolerance, in nats, of a pattern's first optimum
ROUGH = 0.05
#: nats by which the cheap bound may misjudge a pattern
SCOUT_ERROR = 3.0
#: nats by which a pattern must be better to be moved to
WORTHWHILE = 1e-3
#: most places at which signs are turned, nearest to zero first
MAX_CROSSINGS = 12
#: most moves from pattern to better pattern
MAX_MOVES = 6


def places_to_turn(work: Workspace, hyper: Hyper, at: Evaluation) -> Floats:
    """Unit times where f may cross zero, in order: minima of |f|, ends of the window included.

    With a small prior mean, however large |f| is there; else where it comes near zero.
    """
    size, prior_deviation = np.abs(at.mean), np.sqrt(hyper.variance)
    in_deviations = _in_deviations(at)
    low = _minima(size)
    if hyper.mean > FAR_MEAN * prior_deviation:
        near = (in_deviations < NEAR_ZERO) | (size < CLOSE * prior_deviation)
        low = low[near[low]]
    return np.asarray(work.likelihood.grid.nodes[_first_few(low, in_deviations)])


def halves_to_turn(work: Workspace, hyper: Hyper, at: Evaluation) -> list[tuple[float, float]]:
    """From the top of a bump of |f| to its foot on either side, where f may cross zero between.

    Wide intervals see such an f as well as one that is large throughout.
    """
    size, in_deviations = np.abs(at.mean), _in_deviations(at)
    inside = np.arange(1, len(size) - 1)
    high = np.intersect1d(_minima(-size), inside)
    unsure = (in_deviations < UNSURE) & (size < SMALL * np.sqrt(hyper.variance))
    nodes = work.likelihood.grid.nodes
    feet = np.concatenate([[0.0], nodes[np.intersect1d(_minima(size), inside)], [1.0]])
    tops = nodes[_first_few(high[unsure[high]], in_deviations)].tolist()
    after = np.searchsorted(feet, tops)
    left = [(float(feet[k - 1]), top) for k, top in zip(after, tops, strict=True)]
    right = [(top, float(feet[k])) for k, top in zip(after, tops, strict=True)]
    return left + right


def _in_deviations(at: Evaluation) -> Floats:
    """|E f| in posterior standard deviations."""
    return np.asarray(np.abs(at.mean) / np.sqrt(np.maximum(at.variance, 1e-300)))


def _minima(values: Floats) -> Indices:
    """Where neighbours are no smaller, ends included."""
    fenced = np.concatenate([[np.inf], values, [np.inf]])
    return np.flatnonzero((values <= fenced[:-2]) & (values <= fenced[2:]))


def _first_few(places: Indices, order: Floats) -> Indices:
    """The MAX_CROSSINGS places that come first in some order, as they are in time."""
    return np.sort(places[np.argsort(order[places], kind="stable")[:MAX_CROSSINGS]])


def crosses(at: Evaluation) -> bool:
    """Whether the mean of f is clearly on either side of zero."""
    ratio = at.mean / np.sqrt(np.maximum(at.variance, 1e-300))
    return bool(ratio.min() < -CLEAR_SIGN and ratio.max() > CLEAR_SIGN)


def flip(work: Workspace, sites: Sites, signs_at: Floats) -> Sites:
    """Sites of s(x)·f, where s changes sign at each of the times `signs_at`."""

    def sign(x: Floats) -> Floats:
        return np.asarray(1.0 - 2.0 * (np.searchsorted(np.sort(signs_at), x) % 2))

    blocks = []
    for block, (theta, slope) in zip(work.blocks, sites.blocks, strict=True):
        s = sign(block.nodes)
        blocks.append((theta * s[:, :, None] * s[:, None, :], slope * s))
    nodes = work.likelihood.grid.nodes
    return replace(sites, slope=sites.slope * sign(nodes), blocks=tuple(blocks))


def negated(sites: Sites) -> Sites:
    """Sites of −f."""
    blocks = tuple((theta, -slope) for theta, slope in sites.blocks)
    return replace(sites, slope=-sites.slope, blocks=blocks)


@dataclass(frozen=True)
class Pattern:
    """An optimum over q, and the places at which its signs were turned from the first one's.

    `mirrored` says that it is the side before the place that was turned, not the one beyond; with
    a `reach`, f was turned only this far to either side of the place.
    """

    estep: EStep
    turned: tuple[float, ...] = ()
    mirrored: bool = False
    reach: float = 0.0

    @property
    def flips(self) -> tuple[float, ...]:
        """Times at which the sign was changed."""
        if self.reach == 0:
            return self.turned
        return self.turned[0] - self.reach, self.turned[0] + self.reach


def has_sides(hyper: Hyper) -> bool:
    """Whether the prior tells f from −f."""
    return bool(hyper.mean > NO_MEAN * np.sqrt(hyper.variance))


def turns_to_try(work: Workspace, hyper: Hyper, base: EStep) -> list[Pattern]:
    """Turns of f beyond or around a place, between two neighbouring ones, or of half a bump.

    With a prior mean the two sides of a place differ; without, f and −f are the same. Where f
    comes near zero nowhere there are none.
    """
    places = places_to_turn(work, hyper, base.evaluation)
    first, last = work.likelihood.grid.nodes[[0, -1]]
    inside = places[(places > first) & (places < last)].tolist()
    sides = (False, True) if has_sides(hyper) else (False,)
    beyond = [Pattern(base, (place,), mirrored) for place in inside for mirrored in sides]
    halves = halves_to_turn(work, hyper, base.evaluation) if len(places) else []
    between = [Pattern(base, pair) for pair in [*itertools.pairwise(inside), *halves]]
    reach = DIP * hyper.length_scale
    return beyond + between + [Pattern(base, (place,), reach=reach) for place in places.tolist()]


def neighbours(work: Workspace, hyper: Hyper, base: EStep, turns: list[Pattern]) -> list[Pattern]:
    """Optima reached from `base` by each of the turns, but for those that lead far too low."""
    found, hopeless = [], base.evaluation.bound.total - HOPELESS
    for turn in turns:
        optimum = optimum_from(work, hyper, turned_sites(work, base, [turn]), hopeless)
        if optimum is not None:
            found.append(replace(turn, estep=optimum))
    return found


def turned_sites(work: Workspace, base: EStep, patterns: list[Pattern]) -> Sites:
    """Sites of `base` with the signs of all these patterns turned."""
    flips = np.array([place for pattern in patterns for place in pattern.flips])
    sites = flip(work, base.evaluation.sites(), flips)
    return negated(sites) if sum(pattern.mirrored for pattern in patterns) % 2 else sites


def turned_optimum(
    work: Workspace, hyper: Hyper, base: EStep, patterns: list[Pattern]
) -> EStep | None:
    """The optimum with the turns of all these patterns; None for a start that is none."""
    start = work.from_sites(hyper, turned_sites(work, base, patterns))
    return None if start is None else e_step(work, hyper, start, ROUGH, TURN_STEPS)


def optimum_from(work: Workspace, hyper: Hyper, sites: Sites, hopeless: float) -> EStep | None:
    """The optimum from these sites; None for a start that is none, or leads far too low."""
    start = work.from_sites(hyper, sites)
    if start is None:
        return None
    first = e_step(work, hyper, start, ROUGH, FIRST_STEPS)
    if first.converged or first.evaluation.bound.total < hopeless:
        return first if first.evaluation.bound.total >= hopeless else None
    return e_step(work, hyper, first.q, ROUGH, STEPS)


def competing(
    work: Workspace, hyper: Hyper, base: EStep, scout: Workspace | None = None
) -> list[Pattern]:
    """Neighbours that give other rates and are not negligible beside `base`.

    `scout` has a cheap bound, which takes a first look.
    """
    turns = turns_to_try(work, hyper, base)
    if scout is None or scout is work or not turns:
        return distinct(neighbours(work, hyper, base, turns), base, NEGLIGIBLE)
    cheap = e_step(scout, hyper, base.q, ROUGH, STEPS)
    promising = distinct(neighbours(scout, hyper, cheap, turns), cheap, NEGLIGIBLE + SCOUT_ERROR)
    found = [replace(p, estep=e_step(work, hyper, p.estep.q, ROUGH, STEPS)) for p in promising]
    return distinct(found, base, NEGLIGIBLE)


def distinct(
    patterns: list[Pattern], base: EStep, behind: float, same_rates: bool = False
) -> list[Pattern]:
    """Patterns at most so many nats behind `base` that differ from it and from one another.

    Those that give the same rates with other signs count as different if `same_rates` says so.
    """
    kept = [Pattern(base)]
    for pattern in patterns:
        near = _gain(pattern.estep, base) > -behind
        if near and all(_differs(pattern.estep, other.estep, same_rates) for other in kept):
            kept.append(pattern)
    return kept[1:]


def best_signs(
    work: Workspace, hyper: Hyper, estep: EStep, tol: float, scout: Workspace | None = None
) -> EStep:
    """Move to the best neighbouring sign pattern until none improves the bound."""
    best = estep
    for _ in range(MAX_MOVES):
        others = [pattern.estep for pattern in competing(work, hyper, best, scout)]
        other = max(others, key=lambda mode: mode.evaluation.bound.total, default=best)
        if _gain(other, best) <= WORTHWHILE:
            break
        best = other
    return best if best is estep else e_step(work, hyper, best.q, tol)


def _gain(mode: EStep, over: EStep) -> float:
    return mode.evaluation.bound.total - over.evaluation.bound.total


def _differs(first: EStep, second: EStep, same_rates: bool) -> bool:
    """Whether two optima are not one and the same, and give different rates (or need not)."""
    apart = first.q.mean - second.q.mean
    if apart @ first.q.precision @ apart < SAME_MODE**2:
        return False
    a, b = first.evaluation, second.evaluation
    deviation = np.sqrt(np.minimum(a.variance, b.variance) + 1e-300)
    return same_rates or bool(
        (np.abs(np.abs(a.mean) - np.abs(b.mean)) / deviation).max() > SAME_RATE
    )
