"""Sign patterns of f: λ = f² does not tell them apart, but the smooth prior of f does.

Where λ comes close to zero, f may touch zero or cross it. Each pattern of crossings is a local
optimum of the bound (or nearly one). Flipping the likelihood's sites to one side of a point
starts the E-step in the other pattern (docs/maths.md, section 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.estep import EStep, e_step
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Evaluation, Sites, Workspace

Floats = NDArray[np.float64]

#: f may cross zero where its posterior mean is within this many standard deviations of it
NEAR_ZERO = 2.0
#: patterns this many nats below the best carry no weight worth computing
NEGLIGIBLE = 3.0
#: nats by which a pattern must be better to be moved to
WORTHWHILE = 1e-3
#: tolerance (nats) and most steps of the first look at a pattern
ROUGH, ROUGH_STEPS = 1e-2, 60
#: most points at which crossings are tried, nearest to zero first
MAX_CROSSINGS = 12


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


def neighbours(
    work: Workspace, scout: Workspace, hyper: Hyper, estep: EStep, margin: float, tol: float
) -> Iterator[EStep]:
    """Optima whose signs differ from this one's on one side of a point where f may cross zero.

    A pattern is tried with the cheap bound of `scout` first, and given up if it is more than
    `margin` nats behind there.
    """
    same = scout is work
    base = estep if same else e_step(scout, hyper, estep.q, ROUGH, ROUGH_STEPS)
    for place in crossings(work, estep.evaluation):
        flipped = flip(scout, base.evaluation.sites(), np.array([place]))
        for sites in (flipped, negated(flipped)):
            start = scout.from_sites(hyper, sites)
            if start is None:
                continue
            rough = e_step(scout, hyper, start, ROUGH, ROUGH_STEPS)
            if rough.evaluation.bound.total > base.evaluation.bound.total - margin:
                yield e_step(work, hyper, rough.q, tol)


def best_signs(work: Workspace, scout: Workspace, hyper: Hyper, estep: EStep, tol: float) -> EStep:
    """Climb over sign patterns, one crossing at a time, until none improves the bound."""
    best, improved = estep, True
    while improved:
        improved = False
        for other in neighbours(work, scout, hyper, best, 1.0, tol):
            if other.evaluation.bound.total > best.evaluation.bound.total + WORTHWHILE:
                best, improved = other, True
                break
    return best


def sign_modes(
    work: Workspace,
    scout: Workspace,
    hyper: Hyper,
    estep: EStep,
    tol: float,
    max_modes: int = 16,
) -> tuple[list[EStep], Floats]:
    """Distinct optima over sign patterns near the best one, with weights ∝ exp(bound).

    Patterns are explored from the best outwards, one crossing at a time, as long as they are
    within reach of the best.
    """
    modes, frontier = [estep], [estep]
    while frontier and len(modes) < max_modes:
        current = frontier.pop(0)
        for other in neighbours(work, scout, hyper, current, NEGLIGIBLE, tol):
            best = max(m.evaluation.bound.total for m in modes)
            near = other.evaluation.bound.total > best - NEGLIGIBLE
            if near and all(_differs(other, mode) for mode in modes):
                modes.append(other)
                frontier.append(other)
    modes = sorted(modes, key=lambda mode: -mode.evaluation.bound.total)[:max_modes]
    values = np.array([mode.evaluation.bound.total for mode in modes])
    weights = np.exp(values - values.max())
    return modes, weights / weights.sum()


def _differs(first: EStep, second: EStep) -> bool:
    """Whether two optima are different: their means lie apart by more than rounding."""
    a, b = first.evaluation, second.evaluation
    distance = np.abs(a.mean - b.mean) / np.sqrt(np.minimum(a.variance, b.variance) + 1e-300)
    return bool(distance.max() > 0.1)
