"""Draws of the classes with exact weights, relabelled so that a label means one class.

The weight of a draw is the exact joint density over the density of all laws that it could have
come from, averaged over labellings: the evidence counts each set of classes once, not C! times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.classes.class_components import ClassComponent
from gp4c.inference.classes.class_landscape import ClassLandscape
from gp4c.inference.classes.class_search import ClassLattice, ClassLatticePoint, degenerate_modes
from gp4c.inference.engine.pareto import pareto_smoothed

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: share of the draws that goes to points by the root of their weight, and share of the draws of a
#: point that goes to each law that stands for fewer classes
_EVEN, _FEWER_SHARE = 0.15, 0.1


@dataclass(frozen=True)
class ClassSheaf:
    """The draws at one lattice point.

    Attributes
    ----------
    space : ClassLandscape
    x : (D, S)
    log_weight : (S,)
        Of every draw, before anything is smoothed.
    log_joint : (C, K, S)
        ln π_kc L_kc.
    """

    space: ClassLandscape
    x: Floats
    log_weight: Floats
    log_joint: Floats

    def relabelled(self, order: Indices) -> ClassSheaf:
        """The same draws, the classes of draw s in the order `order[:, s]`."""
        space, n = self.space, self.x.shape[1]
        x, every = self.x.copy(), np.arange(n)
        for c in space.labels:
            for rows in range(space.block):
                x[c * space.block + rows] = self.x[order[c] * space.block + rows, every]
        joint = np.take_along_axis(self.log_joint, order[:, None, :], axis=0)
        return ClassSheaf(space, x, self.log_weight, joint)

    @property
    def membership(self) -> Floats:
        """r_kc of every draw, (C, K, S)."""
        return np.asarray(np.exp(self.log_joint - logsumexp(self.log_joint, axis=0)))


@dataclass(frozen=True)
class WeightedClasses:
    """All draws of C classes with their weights.

    Attributes
    ----------
    sheaves : list of ClassSheaf
    weights : (S,)
        Smoothed, summing to 1, in the order of the sheaves.
    log_evidence, effective, pareto_k : float
    """

    sheaves: list[ClassSheaf]
    weights: Floats
    log_evidence: float
    effective: float
    pareto_k: float

    @property
    def membership(self) -> Floats:
        """Posterior probabilities of the classes, (K, C)."""
        parts = np.split(self.weights, np.cumsum([s.x.shape[1] for s in self.sheaves])[:-1])
        pairs = zip(self.sheaves, parts, strict=True)
        return np.asarray(sum(sheaf.membership @ weight for sheaf, weight in pairs)).T


def weigh_classes(lattice: ClassLattice, n_draws: int, rng: np.random.Generator) -> WeightedClasses:
    """Draw around the modes, weigh, and give every draw the labels of the best mode."""
    evidence = np.array([point.log_evidence for point in lattice.points])
    share = np.exp(evidence - logsumexp(evidence))
    root = np.sqrt(share)
    share = (1 - _EVEN) * share + _EVEN * root / root.sum()
    numbers = np.maximum(np.rint(share * n_draws), 4).astype(int)
    sheaves = [
        _drawn(point, int(n), lattice.log_step, rng)
        for point, n in zip(lattice.points, numbers, strict=True)
    ]
    log_weights = np.concatenate([sheaf.log_weight for sheaf in sheaves])
    smoothed, k = pareto_smoothed(log_weights)
    raw = np.exp(log_weights - logsumexp(log_weights))
    found = WeightedClasses(
        sheaves, np.exp(smoothed - logsumexp(smoothed)), float(logsumexp(log_weights)),
        float(1.0 / (raw**2).sum()), k,
    )  # fmt: skip
    return _relabelled(found, lattice.best.membership)


def _drawn(
    point: ClassLatticePoint, number: int, log_step: float, rng: np.random.Generator
) -> ClassSheaf:
    """Draws of one point from its modes, and from laws that stand for fewer classes."""
    modes, space = point.modes, point.modes[0].space
    evidence = np.array([mode.log_evidence for mode in modes])
    share = np.exp(evidence - logsumexp(evidence))
    share = 0.9 * share + 0.1 / len(share)
    if point.fewer is not None:
        others = degenerate_modes(point.fewer, space)
        modes = [*modes, *others]
        fewer = np.full(len(others), _FEWER_SHARE)
        share = np.append((1 - fewer.sum()) * share, fewer)
    laws = [ClassComponent.around(mode) for mode in modes]
    each = np.maximum(np.rint(share * number), 1).astype(int)
    x = np.hstack([law.draw(int(n), rng) for law, n in zip(laws, each, strict=True)])
    proposal = np.array([law.log_density(x) for law in laws]) + np.log(each)[:, None]
    with np.errstate(all="ignore"):
        joint = space.log_joint(x)
        target = logsumexp(joint, axis=0).sum(axis=0) + space.log_prior(x)
    log_weight = target + log_step - logsumexp(proposal, axis=0)
    log_weight = np.where(np.isfinite(log_weight), log_weight, -np.inf)
    return ClassSheaf(space, x, log_weight, np.nan_to_num(joint, nan=-1e9, neginf=-1e9))


def _relabelled(found: WeightedClasses, reference: Floats) -> WeightedClasses:
    """Give each draw the labelling under which its memberships agree best with a reference."""
    space = found.sheaves[0].space
    orders = list(permutations(space.labels))
    sheaves = []
    for sheaf in found.sheaves:
        shared = np.einsum("kc,dks->cds", reference, sheaf.membership)  # class c with label d
        agreement = np.array([sum(shared[c, d] for c, d in enumerate(o)) for o in orders])
        best = np.array(orders)[agreement.argmax(axis=0)].T  # (C, S)
        sheaves.append(sheaf.relabelled(best))
    return replace(found, sheaves=sheaves)
