"""The share of every sign pattern of f in the posterior mixture.

Turns of f at different places are nearly independent: n places make 2ⁿ patterns, more than any
mixture can list. What matters at a time is how likely the turns near it are, so a few patterns
are enough if every turn is in its share of them. Systematic sampling does that: lay the shares
of the turns end to end, in the order of their places, and let one pattern consist of the turns at
u, u + 1, u + 2, … for u between 0 and 1 (docs/maths.md, section 10).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.hyper import Optimum, Problem, scout_workspace
from gp4c.inference.importance import log_evidence
from gp4c.inference.parts import Weighted
from gp4c.inference.signs import (
    HOPELESS,
    Pattern,
    competing,
    distinct,
    has_sides,
    negated,
    optimum_from,
    turned_optimum,
)

Floats = NDArray[np.float64]

#: most nats by which another pattern may beat the one that the search has settled on
MOST_GAIN = 5.0
#: patterns lighter than this are left out
LIGHT_PATTERN = 0.01
#: turned patterns with more of the posterior than this have several hyper-parameters, each of which
#: would carry more than LIGHT_PLACE of it
MOST_AT_ONE, LIGHT_PLACE = 0.5, 0.04


def with_sign_patterns(problem: Problem, part: Weighted) -> list[Weighted]:
    """Give the sign patterns of f their shares of a posterior with these hyper-parameters."""
    return Turns.at(problem, part.optimum).mixed([part], part)


@dataclass(frozen=True)
class Turns:
    """Turns of f that compete with none at an optimum.

    Attributes
    ----------
    patterns : list of Pattern
        One for each turn, in the order of their places.
    share : (n,)
        Probability of each turn.
    log_total : float
        ln of the evidence of all patterns over that of the one without turns.
    """

    patterns: list[Pattern]
    share: Floats
    log_total: float

    @classmethod
    def at(cls, problem: Problem, base: Optimum) -> Turns:
        """Find the turns that are worth their while, and their evidence."""
        found = competing(base.work, base.hyper, base.estep, scout_workspace(problem, base))
        patterns = sorted(found, key=lambda pattern: float(np.mean(pattern.turned)))
        share, log_product = turn_shares(patterns, _ratios(base, patterns))
        return cls(patterns, share, _with_mirror(base, log_product))

    def mixed(self, parts: list[Weighted], at: Weighted) -> list[Weighted]:
        """Parts with the pattern of `at`, the optimum where the turns were found, and all others.

        That pattern keeps all its parts; the others are solved at the heaviest of them, or at `at`
        alone where they have a small share together.
        """
        mixed, turned = [], []
        for weight, members in arrangements(self.share):
            if not members:
                mixed = [replace(part, weight=weight * part.weight) for part in parts]
            elif weight > LIGHT_PATTERN:
                turned.append((weight, [self.patterns[k] for k in members]))
        mixed = mixed + _turned_parts(turned, parts, at) or parts  # if no turn has an optimum
        total = sum(part.weight for part in mixed)
        return [replace(part, weight=part.weight / total) for part in mixed]


def _ratios(base: Optimum, patterns: list[Pattern]) -> Floats:
    """Evidence of other patterns at the same hyper-parameters over that of the base."""
    if not patterns:
        return np.zeros(0)
    modes = [replace(base, estep=pattern.estep) for pattern in patterns]
    evidence = np.array([log_evidence(mode) for mode in modes]) - log_evidence(base)
    return np.asarray(np.exp(np.minimum(evidence, MOST_GAIN)))


def _with_mirror(at: Optimum, log_product: float) -> float:
    """ln of the evidence with −f counted too, which gives the same rates.

    Where the prior has no sides every pattern has its mirror image, else only the present one is
    added: the images of its turns are turns to the other side.
    """
    if not has_sides(at.hyper):
        return log_product + float(np.log(2.0))
    least = at.estep.evaluation.bound.total - HOPELESS
    sites = negated(at.estep.evaluation.sites())
    mirror = optimum_from(at.work, at.hyper, sites, least)
    if mirror is None:
        return log_product
    images = distinct([Pattern(mirror)], at.estep, np.inf, same_rates=True)
    return float(np.log(np.exp(log_product) + _ratios(at, images).sum()))


def turn_shares(patterns: list[Pattern], ratio: Floats) -> tuple[Floats, float]:
    """Probability of each turn from the ratio of its evidence to the first pattern's.

    Independent turns multiply the evidence by Π(1 + r_i), whose logarithm is also returned, and
    each has the share r_i/(1 + r_i) whatever happens elsewhere. A pair counts for what it has
    beyond the product of its two places, e = r_ij − r_i r_j: with A = (1 + r_i)(1 + r_j) the
    evidence is A + e, the pair's share e/(A + e), and the shares of its places fall by A/(A + e).
    """
    at: dict[tuple[float, ...], float] = defaultdict(float)  # turning here, to either side
    for pattern, r in zip(patterns, ratio, strict=True):
        at[pattern.turned] += float(r)
    odds: dict[tuple[float, ...], float] = {}
    kept = dict.fromkeys(at, 1.0)
    for turned, r in at.items():
        if len(turned) < 2:
            odds[turned] = r
            continue
        first, second = at.get(turned[:1], 0.0), at.get(turned[1:], 0.0)
        odds[turned] = max(r - first * second, 0.0) / ((1 + first) * (1 + second))
        for place in {turned[:1], turned[1:]} & at.keys():
            kept[place] /= 1 + odds[turned]
    part = {t: odds[t] / (1 + odds[t]) * kept[t] / max(at[t], 1e-300) for t in at}
    share = np.array([r * part[p.turned] for p, r in zip(patterns, ratio, strict=True)])
    return share, float(np.log1p(list(odds.values())).sum())


def arrangements(share: Floats) -> list[tuple[float, tuple[int, ...]]]:
    """Sets of turns with weights that sum to one, such that each turn has its share of them.

    Turns next to each other in the list are in one set only where their shares leave no room.
    """
    ends = np.concatenate([[0.0], np.cumsum(share)])
    cuts = np.unique(np.concatenate([[0.0, 1.0], ends % 1.0]))
    found = []
    for low, high in pairwise(cuts):
        places = np.arange((low + high) / 2, ends[-1], 1.0)
        members = np.searchsorted(ends[1:-1], places, side="right")
        found.append((float(high - low), tuple(members.tolist())))
    return found


def _turned_parts(
    turned: list[tuple[float, list[Pattern]]], parts: list[Weighted], at: Weighted
) -> list[Weighted]:
    """Parts for arrangements of turns, each at hyper-parameters of its own where that matters."""
    if not turned:
        return []
    places = _places(sum(weight for weight, _ in turned), parts, at)
    found = []
    for which, where, weight in _coupled([w for w, _ in turned], [p.weight for p in places]):
        optimum = _turned(places[where].optimum, turned[which][1], at.optimum)
        if optimum is not None:
            found.append(replace(places[where], optimum=optimum, weight=weight))
    return found


def _places(mass: float, parts: list[Weighted], at: Weighted) -> list[Weighted]:
    """Parts at which patterns of this mass are turned: those that would carry enough of it."""
    heavy = [part for part in parts if part.weight * mass > LIGHT_PLACE]
    return heavy if mass > MOST_AT_ONE and len(heavy) > 1 else [replace(at, weight=1.0)]


def _coupled(first: list[float], second: list[float]) -> list[tuple[int, int, float]]:
    """Pairs (i, j, weight) whose sums over j are `first` and, up to scale, over i `second`."""
    one, two = np.cumsum(first), np.cumsum(second)
    two *= one[-1] / two[-1]
    cuts = np.unique(np.concatenate([[0.0], one, two]))
    middles = (cuts[1:] + cuts[:-1]) / 2
    which = np.minimum(np.searchsorted(one, middles), len(first) - 1)
    where = np.minimum(np.searchsorted(two, middles), len(second) - 1)
    found: dict[tuple[int, int], float] = defaultdict(float)
    for i, j, weight in zip(which.tolist(), where.tolist(), np.diff(cuts).tolist(), strict=True):
        found[i, j] += weight
    return [(i, j, weight) for (i, j), weight in found.items() if weight > 1e-9]


def _turned(here: Optimum, members: list[Pattern], known: Optimum) -> Optimum | None:
    """The optimum with all members turned at once; None where there is none."""
    if here is known and len(members) == 1:
        return replace(here, estep=members[0].estep)
    estep = turned_optimum(here.work, here.hyper, here.estep, members)
    return None if estep is None else replace(here, estep=estep)
