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

#: f may cross zero where its posterior mean is within this many standard deviations of it
NEAR_ZERO = 2.0
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
MAX_MOVES = 3


def crossings(work: Workspace, at: Evaluation, near_zero: float = NEAR_ZERO) -> Floats:
    """Unit times where f is nearest to zero and may cross it, likeliest first."""
    ratio = np.abs(at.mean) / np.sqrt(np.maximum(at.variance, 1e-300))
    lowest = (ratio[1:-1] <= ratio[:-2]) & (ratio[1:-1] <= ratio[2:]) & (ratio[1:-1] < near_zero)
    places = np.flatnonzero(lowest) + 1
    order = np.argsort(ratio[places], kind="stable")[:MAX_CROSSINGS]
    return np.asarray(work.likelihood.grid.nodes[places[order]])


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

    `mirrored` says that it is the side before the place that was turned, not the one beyond.
    """

    estep: EStep
    turned: tuple[float, ...] = ()
    mirrored: bool = False


def has_sides(hyper: Hyper) -> bool:
    """Whether the prior tells f from −f."""
    return bool(hyper.mean > NO_MEAN * np.sqrt(hyper.variance))


def places_to_turn(work: Workspace, hyper: Hyper, base: EStep) -> Floats:
    """Times where |f| is smallest, in order; with a small mean, however sure f is there."""
    near = hyper.mean > FAR_MEAN * np.sqrt(hyper.variance)
    return np.sort(crossings(work, base.evaluation, NEAR_ZERO if near else np.inf))


def neighbours(work: Workspace, hyper: Hyper, base: EStep, places: Floats) -> list[Pattern]:
    """Optima reached by turning f on one side of a place, or between two neighbouring places.

    With a prior mean the two sides differ; without, f and −f are the same.
    """
    turns = [(float(place),) for place in places] + list(itertools.pairwise(places.tolist()))
    sites, found, sided = base.evaluation.sites(), [], has_sides(hyper)
    for turn in turns:
        turned = flip(work, sites, np.array(turn))
        both = [turned, negated(turned)] if sided and len(turn) == 1 else [turned]
        for mirrored, start in enumerate(both):
            optimum = optimum_from(work, hyper, start, base.evaluation.bound.total - HOPELESS)
            if optimum is not None:
                found.append(Pattern(optimum, turn, bool(mirrored)))
    return found


def turned_optimum(
    work: Workspace, hyper: Hyper, base: EStep, patterns: list[Pattern]
) -> EStep | None:
    """The optimum with the turns of all these patterns; None for a start that is none."""
    places = np.array([place for pattern in patterns for place in pattern.turned])
    sites = flip(work, base.evaluation.sites(), places)
    if sum(pattern.mirrored for pattern in patterns) % 2:
        sites = negated(sites)
    start = work.from_sites(hyper, sites)
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
    places = places_to_turn(work, hyper, base)
    if scout is None or scout is work or not len(places):
        return distinct(neighbours(work, hyper, base, places), base, NEGLIGIBLE)
    cheap = e_step(scout, hyper, base.q, ROUGH, STEPS)
    promising = distinct(neighbours(scout, hyper, cheap, places), cheap, NEGLIGIBLE + SCOUT_ERROR)
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
