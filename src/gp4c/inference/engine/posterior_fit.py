"""From counts to weighted draws: choose the laws by their evidence, then weigh.

The laws compared are all combinations of a law of counts and one of subject effects that the user
leaves open. The richest is searched for its modes, and draws around them give its evidence and
that of simpler laws (:mod:`gp4c.inference.engine.nested_laws`). A law that they cannot judge is
searched for modes of its own. The richest law that the evidence does not speak clearly against is
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.inference.engine.landscape import Landscape, Task, split_level
from gp4c.inference.engine.lattice import Lattice, Point, find_modes, with_turned
from gp4c.inference.engine.nested_laws import nested_evidence, nested_parameters
from gp4c.inference.engine.tempering import affordable_population, needs_tempering, temper
from gp4c.inference.engine.turns import turned_modes
from gp4c.inference.engine.weigh import Sheaf, Weighted, draw, weigh, weighted
from gp4c.model.cells import Cells
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import CountLaw, SubjectEffect
from gp4c.posterior.draws import CurveDraws, CurveGroup
from gp4c.posterior.modulated_draws import modulated

Floats = NDArray[np.float64]
Laws = tuple[CountLaw, SubjectEffect]
Say = Callable[[str], None]

#: draws of a fit, fewest draws where data are large, and the work per draw that all of them allow
DRAWS, FEWEST_DRAWS, _WORK = 15_000, 1000, 3e7
#: work of one more sheet of a modulated rate
_SHEET = 60
#: draws that the fall-back returns
TEMPERED_DRAWS = 2800
#: draws by which simpler laws are judged, fewest effective ones and largest k̂ with which they are;
#: nats behind from which a law is given up though the draws do not say by how much, and nats that
#: are told of such a law at most
_PILOT, _FEWEST_EFFECTIVE, _LARGEST_K = 1_000, 10.0, 1.0
_FAR_BEHIND, _NO_NUMBER = 30.0, 700.0
#: nats behind the best law from which a law's lattice is not refined
_CLEARLY_WORSE = 10.0
#: nats by which a law must be behind to be given up for a simpler one: odds of 20 to 1
CLEARLY_AGAINST = 3.0
#: weights lighter than this share of an even one are left out
_LIGHT = 1e-5


@dataclass(frozen=True)
class EngineFit:
    """A fitted posterior.

    Attributes
    ----------
    task : Task
        With the laws chosen.
    lattice : Lattice
    weighted : Weighted
    evidences : dict
        Log evidence by the names of the law and the effect: by weights, but by Laplace's method
        for laws that the draws of the richest cannot judge. Of laws far behind, at most this.
    """

    task: Task
    lattice: Lattice
    weighted: Weighted
    evidences: dict[tuple[str, str | None], float]

    @property
    def laws(self) -> Laws:
        """The law of counts and that of effects."""
        return self.task.likelihood.law, self.task.likelihood.effect

    def draws(self, kernel: str, scale: Floats | None = None) -> CurveDraws:
        """The posterior in the user's units; `scale` is that of the coefficients."""
        found = _as_draws(self.weighted, self.task, kernel)
        if scale is None:
            return found
        return replace(found, coefficients=_short(found.coefficients * scale[:, None]))


def fit_posterior(
    observe: Callable[[CountLaw, SubjectEffect], Cells],
    candidates: Sequence[Laws],
    *,
    kernel: str = "se",
    n_inducing: int | None = None,
    mean: float | None = None,
    hyper: str = "integrate",
    seed: int = 0,
    n_draws: int | None = None,
    say: Say | None = None,
) -> EngineFit:
    """Choose among laws, find the modes, and weigh draws.

    Parameters
    ----------
    observe
        Gives the cells that a law and an effect need.
    candidates
        Laws to choose from, one at least.
    mean : float, optional
        Prior mean of f in the user's units (the root of a rate); learned if absent.
    hyper : {"integrate", "optimize"}
        All lattice points, or the best one alone.
    seed : int
    n_draws : int, optional
        Default 15,000, fewer where one draw is much work.
    say : callable, optional
        Told what goes on.
    """
    tell = say or (lambda text: None)
    tasks = {laws: task_for(observe(*laws), *laws, kernel, n_inducing, mean) for laws in candidates}
    search = compare_laws(tasks, seed, tell)
    laws = richest_plausible(search.known)
    if laws not in search.lattices:
        tell(f"searching: {laws[0].title}, {laws[1].title}")
        search.searched(laws, tasks[laws], seed, roughly=False)
    lattice, pilot = search.lattices[laws], search.pilots.get(laws)
    if hyper == "optimize":
        lattice = replace(lattice, steady=None)
        best, pilot = _most_probable(lattice, seed), None
        lattice = Lattice([best], (1.0, 1.0), lattice.spread, turned_modes(best.mode))
    tell("weighing draws")
    lattice, found = _drawn(
        lattice, n_draws or _affordable(tasks[laws]), hyper == "integrate", seed, tell, pilot
    )
    by_name = {(one.name, other.name): value for (one, other), value in search.known.items()}
    by_name[laws[0].name, laws[1].name] = found.log_evidence
    return EngineFit(tasks[laws], lattice, found, by_name)


@dataclass
class LawSearch:
    """What the comparison of laws found.

    Attributes
    ----------
    known : dict
        Log evidences.
    lattices : dict
        Those of laws that were searched.
    pilots : dict
        First draws of these, where weights say something.
    """

    known: dict[Laws, float] = field(default_factory=dict)
    lattices: dict[Laws, Lattice] = field(default_factory=dict)
    pilots: dict[Laws, Weighted] = field(default_factory=dict)

    def judged(self, simple: Task) -> float | None:
        """The log evidence of a law from draws of a richer one; None if there are none to tell."""
        for laws, pilot in self.pilots.items():
            lattice = self.lattices[laws]
            kept = nested_parameters(lattice.best.mode.landscape.task, simple)
            if kept is None:
                continue
            found = nested_evidence(pilot, simple, kept)
            far = found.log_evidence < pilot.log_evidence - _FAR_BEHIND
            if far or _trusted(found.effective, found.pareto_k):
                return max(found.log_evidence, pilot.log_evidence - _NO_NUMBER)
        return None

    def searched(self, laws: Laws, task: Task, seed: int, roughly: bool) -> float:
        """The log evidence of a law from its own modes, by weights where these are good enough."""
        top = max(self.known.values(), default=-np.inf)
        lattice = find_modes(task, rounds=1)
        if lattice.log_evidence > top - _CLEARLY_WORSE and not roughly:
            lattice = find_modes(task, lattice)
        self.lattices[laws] = lattice
        if task.likelihood.cells.expansion is not None:
            return lattice.log_evidence
        found = weighted(draw(lattice, _PILOT, np.random.default_rng([seed, 2])))
        if not _trusted(found.effective, found.pareto_k):
            return lattice.log_evidence
        self.pilots[laws] = found
        return found.log_evidence


def compare_laws(
    tasks: dict[Laws, Task], seed: int, tell: Say, *, roughly: bool = False
) -> LawSearch:
    """Judge laws, the richest first, by draws of a richer one, or search them.

    `roughly` lays one lattice for each law searched, however narrow its posterior is.
    """
    search = LawSearch()
    for laws, task in tasks.items():
        value = search.judged(task)
        if value is None:
            tell(f"searching: {laws[0].title}, {laws[1].title}")
            value = search.searched(laws, task, seed, roughly)
        search.known[laws] = value
    return search


def _trusted(effective: float, pareto_k: float) -> bool:
    return effective > _FEWEST_EFFECTIVE and pareto_k < _LARGEST_K


def richest_plausible(evidence: Mapping[Laws, float]) -> Laws:
    """The law with most parameters that the evidence does not speak clearly against.

    A richer law contains the simpler ones and shrinks to them where the data ask for it, so that
    a needless parameter costs little; one that is missing spoils bands and forecasts.
    """
    top = max(evidence.values())
    plausible = [laws for laws, value in evidence.items() if value > top - CLEARLY_AGAINST]
    return max(plausible, key=lambda laws: (_n_parameters(laws), evidence[laws]))


def _n_parameters(laws: Laws) -> int:
    law, effect = laws
    return len(law.parameters) + len(effect.parameters)


def evidences(
    observe: Callable[[CountLaw, SubjectEffect], Cells],
    candidates: Sequence[Laws],
    kernel: str,
    n_inducing: int | None,
) -> dict[tuple[str, str | None], float]:
    """Log evidences of laws by Laplace's method, by their names."""
    return {
        (law.name, effect.name): find_modes(
            task_for(observe(law, effect), law, effect, kernel, n_inducing, None)
        ).log_evidence
        for law, effect in candidates
    }


class Settings(TypedDict, total=False):
    """What :func:`task_for` must know besides cells and laws."""

    kernel: str
    n_inducing: int | None
    mean: float | None


def task_for(
    cells: Cells,
    law: CountLaw,
    effect: SubjectEffect,
    kernel: str = "se",
    n_inducing: int | None = None,
    mean: float | None = None,
) -> Task:
    """What is fitted to cells; `mean` is in the user's units, as in :func:`fit_posterior`."""
    scale = np.sqrt(cells.rate / (cells.window[1] - cells.window[0]))
    likelihood = CountLikelihood(cells, law, effect)
    unit_mean = None if mean is None else float(mean) / float(scale)
    return Task(likelihood, KERNELS[kernel], n_inducing, unit_mean)


def _most_probable(lattice: Lattice, seed: int) -> Point:
    """The point of the lattice with most evidence, by weights: Laplace's method errs by nats."""
    found = weighted(draw(lattice, FEWEST_DRAWS, np.random.default_rng(seed)))
    total = float(found.size)
    best = max(found.sheaves, key=lambda one: float(logsumexp(one.log_weights(total))))
    return best.point


def _drawn(
    lattice: Lattice,
    n_draws: int,
    integrate: bool,
    seed: int,
    tell: Say,
    pilot: Weighted | None,
) -> tuple[Lattice, Weighted]:
    """Weighted draws; carried from the prior where weights fail and that is affordable."""
    turned = lattice.turned
    task = lattice.best.mode.landscape.task
    # the fall-back learns the mean of f, and needs the likelihood far from the modes
    possible = integrate and task.mean is None and task.likelihood.cells.expansion is None
    population = affordable_population(lattice) if possible else 0
    if turned and not population:
        lattice, pilot = with_turned(lattice, turned), None
    first = None if pilot is None else pilot.sheaves
    found = weigh(lattice, n_draws, np.random.default_rng(seed), first=first)
    if population and needs_tempering(found, bool(turned)):
        tell("f may cross zero: carrying draws from the prior")
        rng = np.random.default_rng([seed, 1])  # whatever the weights took from the first
        return lattice, temper(lattice, TEMPERED_DRAWS, rng, population=population)
    return lattice, replace(found, rough=possible and needs_tempering(found, turned=False))


def _affordable(task: Task) -> int:
    """Draws whose weights take about as long as the search."""
    likelihood = task.likelihood
    cells = likelihood.cells
    rows = len(cells.weight) * (15 if len(cells.hard) else 3)
    work = rows + len(cells.start) + 2 * cells.n_owners + _SHEET * (len(cells.sheets) - 1)
    return int(np.clip(_WORK / max(work, 1), FEWEST_DRAWS, DRAWS))


def _as_draws(found: Weighted, task: Task, kernel: str) -> CurveDraws:
    """Draws by length-scale; values have the precision of files, so that these give the same."""
    by_landscape: dict[int, list[tuple[Sheaf, Floats]]] = {}
    homes: dict[int, Landscape] = {}
    first = 0
    for sheaf in found.sheaves:
        weights = found.weights[first : first + sheaf.x.shape[1]]
        first += sheaf.x.shape[1]
        land = sheaf.point.mode.landscape
        homes[id(land)] = land
        by_landscape.setdefault(id(land), []).append((sheaf, weights))
    groups, columns = [], []
    least = _LIGHT / found.size
    for key, parts in by_landscape.items():
        land = homes[key]
        x = np.concatenate([sheaf.x for sheaf, _ in parts], axis=1)
        u = np.concatenate([np.full(sheaf.x.shape[1], sheaf.u) for sheaf, _ in parts])
        weights = np.concatenate([weights for _, weights in parts])
        keep = weights > least
        if not keep.any():
            continue
        v, level, params, beta = land.parts(x[:, keep])
        k, mean = split_level(u[keep])
        scale = np.exp(level / 2)
        groups.append(CurveGroup(land.prior.length_scale, land.prior.inducing, _short(v)))
        rest = x[land.dimension - task.n_beta + len(beta) :, keep]
        columns.append((weights[keep], (scale * k) ** 2, scale * mean, params, beta, rest))
    weights, variance, means, params, beta, rest = (
        np.concatenate(parts, axis=-1) for parts in zip(*columns, strict=True)
    )
    cells = task.likelihood.cells
    curves = CurveDraws(
        kernel=kernel,
        groups=tuple(groups),
        weights=_short(weights / weights.sum()),
        variance=_short(variance),
        prior_mean=_short(means),
        params=_short(params),
        coefficients=_short(beta),
        chain=np.zeros(len(weights), dtype=np.intp),
        window=cells.window,
        rate=cells.rate,
    )
    if cells.modulation is None:
        return curves
    return modulated(curves, cells.modulation, _short(rest))


def _short(values: Floats) -> Floats:
    """Numbers with the precision of 32 bits."""
    return values.astype(np.float32).astype(np.float64)
