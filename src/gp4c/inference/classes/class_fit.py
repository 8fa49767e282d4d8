"""From counts to draws of C classes, and to what speaks for this number of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from gp4c.inference.classes.class_climb import ClassMode, climb_classes
from gp4c.inference.classes.class_draws import ClassDraws
from gp4c.inference.classes.class_landscape import ClassData
from gp4c.inference.classes.class_search import (
    ClassLattice,
    ClassSearch,
    carried,
    suitable_steps,
)
from gp4c.inference.classes.class_weigh import ClassSheaf, WeightedClasses, weigh_classes
from gp4c.inference.classes.held_out import leave_one_out
from gp4c.inference.engine.landscape import split_level
from gp4c.inference.engine.lattice import Lattice
from gp4c.inference.engine.posterior_fit import EngineFit
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.posterior.draws import CurveDraws, CurveGroup, systematic

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Names = tuple[str, str | None]
Say = Callable[[str], None]

#: draws of a fit, fewest where data are large, and the work per draw that all of them allow
DRAWS, FEWEST_DRAWS, _WORK = 4000, 1000, 2e7
#: draws behind the leave-one-out likelihood of a single class
_ONE_DRAWS = 1500
#: weights lighter than this share of an even one are left out
_LIGHT = 1e-4
#: share of the subjects that a refit leaves out
_LEFT_OUT = 0.2


@dataclass(frozen=True)
class ClassFit:
    """The posterior of C classes.

    Attributes
    ----------
    n_classes : int
    laws : (str, str or None)
        Names of the law of counts and of that of effects.
    log_evidence, effective, pareto_k : float
    held_out, held_out_k : (K,)
        ln p of each subject given the others, and how reliable it is.
    evidences : dict
        Log evidence of every law that was tried with this number of classes, by the names.
    support : float
        ln p(counts) by which numbers of classes are compared: of a single class under the law that
        describes it best, of more classes averaged over all laws.
    lattice : ClassLattice or None
    weighted : WeightedClasses or None
        None for a single class, whose draws are those of the default engine.
    """

    n_classes: int
    laws: Names
    log_evidence: float
    effective: float
    pareto_k: float
    held_out: Floats
    held_out_k: Floats
    evidences: dict[Names, float]
    support: float
    lattice: ClassLattice | None = None
    weighted: WeightedClasses | None = None


def single_class(fit: EngineFit, draws: CurveDraws, data: ClassData) -> ClassFit:
    """The fit of the default engine as that of one class."""
    who = systematic(draws.weights, _ONE_DRAWS, np.random.default_rng(0))
    counts = data.counts
    low, high = data.window
    start, stop = (low + (high - low) * edge for edge in (counts.start, counts.stop))
    integrals = draws.integrals_of(start, stop, who, np.random.default_rng(0)) / draws.rate
    each = counts.log_likelihoods(integrals, draws.params[:, who])
    held_out, tails = leave_one_out(each, np.zeros(len(who)))
    found, (law, effect) = fit.weighted, fit.laws
    return ClassFit(
        1, (law.name, effect.name), found.log_evidence, found.effective, found.pareto_k, held_out,
        tails, fit.evidences, max(fit.evidences.values()),
    )  # fmt: skip


@dataclass
class ClassFitter:
    """Fits classes under one law of counts and one of effects."""

    search: ClassSearch
    one: ClassMode
    steps: tuple[float, float]
    seed: int
    say: Say

    @classmethod
    def after(
        cls, lattice: Lattice, data: ClassData, kernel: str, n_inducing: int | None, seed: int,
        say: Say,
    ) -> ClassFitter:  # fmt: skip
        """Start from the lattice of a single class, whose laws may be others than those of data."""
        search = ClassSearch(data, data.task(kernel, n_inducing))
        best = lattice.best.mode
        space = search.space(best.landscape.log_length, best.u, 1)
        before, size = best.landscape.task.likelihood, best.landscape.size + 1
        params = known_parameters(best.x[size:], before, search.task.likelihood)
        one = climb_classes(space, np.concatenate([best.x[:size], params]))
        return cls(search, one, suitable_steps(lattice.spread), seed, say)

    def lattice(self, fewer: ClassMode, known: Floats | None = None) -> ClassLattice:
        """The modes of one class more than `fewer` has; `known` are memberships of other laws."""
        n_classes = fewer.space.n_classes + 1
        rng = np.random.default_rng([self.seed, n_classes])
        return self.search.find(fewer, self.one, self.steps, rng, known)

    def drawn(self, lattice: ClassLattice, n_draws: int | None = None) -> WeightedClasses:
        """Weighted draws; as many as take about as long as the search, or so many."""
        n_classes = lattice.best.space.n_classes
        rng = np.random.default_rng([self.seed, n_classes, 1])
        return weigh_classes(lattice, n_draws or self._affordable(n_classes), rng)

    def _affordable(self, n_classes: int) -> int:
        """Draws whose weights take about as long as the search."""
        cells = self.search.data.counts.cells
        rows = len(cells.row_cell) * 15 + len(cells.start) + 2 * cells.n_owners
        return int(np.clip(_WORK / max(rows, 1) / n_classes, FEWEST_DRAWS, DRAWS))

    def carried_from(self, other: ClassMode) -> ClassMode:
        """The mode near one that was found under other laws."""
        at = other.space
        space = self.search.space(at.land.log_length, at.u, at.n_classes)
        shared = at.n_classes * at.block
        before = at.land.task.likelihood
        params = known_parameters(other.x[shared:], before, self.search.task.likelihood)
        return climb_classes(space, np.concatenate([other.x[:shared], params]))

    def agreement(self, found: ClassFit, n_refits: int) -> Floats:
        """Share of subjects in the same class when a fifth of them is left out, for each refit."""
        assert found.lattice is not None
        assert found.weighted is not None
        best, labels = found.lattice.best, found.weighted.membership.argmax(axis=1)
        result = []
        for n in range(n_refits):
            self.say(f"refitting {n + 1} of {n_refits}")
            rng = np.random.default_rng([self.seed, 97, n])
            size = self.search.data.n_subjects
            keep = np.sort(rng.permutation(size)[: max(round((1 - _LEFT_OUT) * size), 2)])
            again = self._refit(best, keep, rng).argmax(axis=1)
            shared = np.zeros((found.n_classes, found.n_classes))
            np.add.at(shared, (labels[keep], again), 1.0)
            rows, columns = linear_sum_assignment(-shared)
            result.append(float(shared[rows, columns].sum()) / len(keep))
        return np.array(result)

    def _refit(self, best: ClassMode, keep: Indices, rng: np.random.Generator) -> Floats:
        """Memberships of the best mode that starts from nothing find without some subjects."""
        search = replace(self.search, data=self.search.data.take(keep), _spaces={})
        search.task = replace(self.search.task, likelihood=search.data.counts.likelihood)
        at, mode = best.space, self.one
        for n_classes in range(1, best.space.n_classes + 1):
            space = search.space(at.land.log_length, at.u, n_classes)
            if n_classes == 1:
                one = mode = climb_classes(space, carried(mode, space), max_steps=20)
            else:
                mode = search.from_starts(mode, one, rng, few=True)[0][0]
        return mode.membership


def fit_of(
    lattice: ClassLattice, found: WeightedClasses, evidences: dict[Names, float], n_laws: int
) -> ClassFit:
    """What draws say of this number of classes, beside the evidence under other laws."""
    likelihood = np.concatenate(
        [logsumexp(sheaf.log_joint, axis=0) for sheaf in found.sheaves], axis=1
    )
    with np.errstate(divide="ignore"):
        held_out, tails = leave_one_out(likelihood, np.log(found.weights))
    space = lattice.best.space
    support = float(logsumexp(list(evidences.values())) - np.log(n_laws))
    return ClassFit(
        space.n_classes, space.data.laws, found.log_evidence, found.effective, found.pareto_k,
        held_out, tails, evidences, support, lattice, found,
    )  # fmt: skip


def known_parameters(params: Floats, before: CountLikelihood, after: CountLikelihood) -> Floats:
    """Parameters of other laws by name; those that are new are at their prior means."""
    old = (*before.effect.parameters, *before.law.parameters)
    known = dict(zip((parameter.name for parameter in old), params, strict=True))
    new = (*after.effect.parameters, *after.law.parameters)
    return np.array([known.get(parameter.name, parameter.mean) for parameter in new])


def class_draws(found: WeightedClasses, data: ClassData, kernel: str, order: Indices) -> ClassDraws:
    """The draws in the user's units; class `order[c]` gets the label c."""
    parts = np.split(found.weights, np.cumsum([s.x.shape[1] for s in found.sheaves])[:-1])
    least = _LIGHT / len(found.weights)
    by_land: dict[float, list[tuple[ClassSheaf, Floats]]] = {}
    for sheaf, weights in zip(found.sheaves, parts, strict=True):
        by_land.setdefault(sheaf.space.land.log_length, []).append((sheaf, weights))
    groups, columns, n_parents = [], [], 0
    for pairs in by_land.values():
        values = []
        for sheaf, weights in pairs:
            keep = np.flatnonzero(weights > least)
            for label, c in enumerate(order):
                values.append(_curve(sheaf, int(c), keep))
                columns.append(_columns(sheaf, int(c), label, keep, weights, n_parents))
            n_parents += len(keep)
        prior, v = pairs[0][0].space.land.prior, np.concatenate(values, axis=1)
        if v.shape[1]:
            groups.append(CurveGroup(prior.length_scale, prior.inducing, _short(v)))
    joined = {
        name: np.concatenate([part[name] for part in columns], axis=-1) for name in columns[0]
    }
    weights = joined.pop("weights")
    return ClassDraws(
        kernel=kernel, groups=tuple(groups), weights=_short(weights / weights.sum()),
        chain=np.zeros(len(weights), dtype=np.intp), window=data.window, rate=data.rate,
        label=joined.pop("label").astype(np.intp), parent=joined.pop("parent").astype(np.intp),
        **{name: _short(values) for name, values in joined.items()},
    )  # fmt: skip


def _curve(sheaf: ClassSheaf, c: int, keep: Indices) -> Floats:
    first = c * sheaf.space.block
    return sheaf.x[first : first + sheaf.space.size, keep]


def _columns(
    sheaf: ClassSheaf, c: int, label: int, keep: Indices, weights: Floats, n_parents: int
) -> dict[str, Floats]:
    """What the draws of one class say besides their curves."""
    space, x = sheaf.space, sheaf.x[:, keep]
    first = c * space.block + space.size
    k, mean = split_level(np.array(space.u))
    scale, n = np.exp(x[first] / 2), len(keep)
    share = np.exp(space.log_shares(x)[c]).mean(axis=0)
    return {
        "weights": weights[keep] * share,
        "variance": (scale * k) ** 2,
        "prior_mean": scale * mean,
        "params": x[space.n_classes * space.block :],
        "coefficients": np.zeros((0, n)),
        "label": np.full(n, float(label)),
        "parent": n_parents + np.arange(n, dtype=float),
        "share": share,
        "share_coefficients": x[first + 1 : first + 1 + space.n_shares],
    }


def _short(values: Floats) -> Floats:
    """Numbers with the precision of 32 bits, as files have them."""
    return values.astype(np.float32).astype(np.float64)
