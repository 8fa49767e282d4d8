"""Sign patterns of f: λ = f² does not tell them apart, but the smooth prior of f does.

Where λ is small, f may touch zero or cross it, and between visits far apart it may cross unseen.
Each pattern of crossings is a local optimum of the bound (or nearly one), and there may be dozens
that explain the data as well. Turning the sites of the likelihood beyond a place, or between two
places, starts the E-step in another pattern (docs/maths.md, section 5).
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.estep import EStep, e_step
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Evaluation, Sites, Workspace

Floats = NDArray[np.float64]

#: f may cross zero where its posterior mean is within this many standard deviations of it
NEAR_ZERO = 2.0
#: an f whose prior mean is more of its standard deviations from zero crosses only where it is near
FAR_MEAN = 1.0
#: patterns this many nats below the best carry no weight worth computing
NEGLIGIBLE = 4.5
#: steps after which a pattern that is still HOPELESS nats behind is given up, and most steps
FIRST_STEPS, HOPELESS, STEPS = 4, 10.0, 25
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


def promising(
    work: Workspace, hyper: Hyper, base: EStep, scout: Workspace | None = None
) -> list[EStep]:
    """Neighbouring optima that may compete, after a first look with a cheap bound."""
    if scout is None or scout is work:
        return neighbours(work, hyper, base)
    cheap = e_step(scout, hyper, base.q, ROUGH, STEPS)
    different = [cheap]
    for other in neighbours(scout, hyper, cheap):
        competes = _gain(other, cheap) > -NEGLIGIBLE - SCOUT_ERROR
        if competes and all(_differs(other, known) for known in different):
            different.append(other)
    return [e_step(work, hyper, other.q, ROUGH, STEPS) for other in different[1:]]


def neighbours(work: Workspace, hyper: Hyper, base: EStep) -> list[EStep]:
    """Optima reached by turning f on one side of a place, or between two neighbouring places.

    The places are those where |f| is smallest, however sure the present pattern is there. With a
    prior mean the two sides differ; without, f and −f are the same.
    """
    near = hyper.mean > FAR_MEAN * np.sqrt(hyper.variance)
    places = np.sort(crossings(work, base.evaluation, NEAR_ZERO if near else np.inf))
    turns = [np.array([place]) for place in places]
    turns += [np.array(pair) for pair in itertools.pairwise(places)]
    sites, found = base.evaluation.sites(), []
    for turn in turns:
        turned = flip(work, sites, turn)
        both = [turned, negated(turned)] if hyper.mean > 0 and len(turn) == 1 else [turned]
        for start in both:
            optimum = _pattern(work, hyper, start, base.evaluation.bound.total - HOPELESS)
            if optimum is not None:
                found.append(optimum)
    return found


def _pattern(work: Workspace, hyper: Hyper, sites: Sites, hopeless: float) -> EStep | None:
    """The optimum from these sites; None for a start that is none, or leads far too low."""
    start = work.from_sites(hyper, sites)
    if start is None:
        return None
    first = e_step(work, hyper, start, ROUGH, FIRST_STEPS)
    if first.converged or first.evaluation.bound.total < hopeless:
        return first if first.evaluation.bound.total >= hopeless else None
    return e_step(work, hyper, first.q, ROUGH, STEPS)


def best_signs(
    work: Workspace, hyper: Hyper, estep: EStep, tol: float, scout: Workspace | None = None
) -> EStep:
    """Move to the best neighbouring sign pattern until none improves the bound."""
    best = estep
    for _ in range(MAX_MOVES):
        others = promising(work, hyper, best, scout)
        other = max(others, key=lambda mode: mode.evaluation.bound.total, default=None)
        gain = -np.inf if other is None else _gain(other, best)
        if other is None or gain <= WORTHWHILE:
            break
        best = other
    return best if best is estep else e_step(work, hyper, best.q, tol)


def sign_modes(
    work: Workspace,
    hyper: Hyper,
    estep: EStep,
    *,
    rounds: int = 1,
    max_modes: int = 24,
    scout: Workspace | None = None,
) -> list[EStep]:
    """Distinct optima over sign patterns, those near the best, best first.

    Each round looks at the neighbours of the best pattern not looked at yet.
    """
    modes = [estep]
    done: list[EStep] = []
    for _ in range(rounds):
        waiting = [mode for mode in modes if all(mode is not other for other in done)]
        if not waiting:
            break
        done.append(waiting[0])
        for other in promising(work, hyper, waiting[0], scout):
            if _gain(other, modes[0]) > -NEGLIGIBLE and all(_differs(other, m) for m in modes):
                modes.append(other)
        modes.sort(key=lambda mode: -mode.evaluation.bound.total)
    return [mode for mode in modes if _gain(mode, modes[0]) > -NEGLIGIBLE][:max_modes]


def _gain(mode: EStep, over: EStep) -> float:
    return mode.evaluation.bound.total - over.evaluation.bound.total


def _differs(first: EStep, second: EStep) -> bool:
    """Whether two optima give different rates: |f| differs by more than a fraction of its error."""
    a, b = first.evaluation, second.evaluation
    deviation = np.sqrt(np.minimum(a.variance, b.variance) + 1e-300)
    return bool((np.abs(np.abs(a.mean) - np.abs(b.mean)) / deviation).max() > 0.3)
