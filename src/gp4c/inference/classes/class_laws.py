"""The laws of counts and of effects, weighed again for every number of classes.

Two classes that differ in level look like one class with frailties, and curves that cross look like
bursts. What a single class needs says nothing of what is left within classes
(docs/maths_classes.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gp4c.inference.classes.class_climb import ClassMode
from gp4c.inference.classes.class_fit import ClassFit, ClassFitter, Names, Say, fit_of
from gp4c.inference.classes.class_landscape import ClassData
from gp4c.inference.classes.class_search import ClassLattice
from gp4c.inference.classes.class_weigh import WeightedClasses
from gp4c.inference.engine.lattice import Lattice
from gp4c.inference.engine.posterior_fit import Laws

#: draws by which a law is judged
_PILOT = 1000


@dataclass
class ClassLaws:
    """Fits one number of classes after another, each under the laws that lead to its best one.

    Attributes
    ----------
    fitters : dict
        By the names of the laws, the simplest first.
    modes : dict
        The best mode of the last number of classes, under every law that was tried.
    """

    fitters: dict[Names, ClassFitter]
    say: Say
    modes: dict[Names, ClassMode] = field(default_factory=dict)

    @classmethod
    def after(
        cls,
        lattice: Lattice,
        data: ClassData,
        laws: Sequence[Laws],
        *,
        kernel: str,
        n_inducing: int | None,
        seed: int,
        say: Say,
    ) -> ClassLaws:
        """Start from the lattice of a single class; `laws` has the richest first."""
        fitters = {
            (law.name, effect.name): ClassFitter.after(
                lattice, data.under(law, effect), kernel, n_inducing, seed, say
            )
            for law, effect in reversed(laws)
        }
        return cls(fitters, say, {names: fitter.one for names, fitter in fitters.items()})

    def fit(self) -> ClassFit:
        """The posterior of one class more than before, under the law with most evidence."""
        lattices: dict[Names, ClassLattice] = {}
        draws: dict[Names, WeightedClasses] = {}
        n_classes = 1 + next(iter(self.modes.values())).space.n_classes
        pilot = _PILOT if len(self.fitters) > 1 else None

        def evidence(names: Names) -> float:
            self.say(f"searching {n_classes} classes: {' + '.join(filter(None, names))}")
            fitter = self.fitters[names]
            best = max(draws, key=lambda one: draws[one].log_evidence, default=None)
            known = lattices[best].best.membership if best is not None else None
            lattices[names] = fitter.lattice(self._fewer(names), known)
            draws[names] = fitter.drawn(lattices[names], pilot)
            return draws[names].log_evidence

        known = evidences_towards_best(list(self.fitters), evidence)
        best = max(known, key=lambda names: known[names])
        self.modes = {names: lattice.best for names, lattice in lattices.items()}
        found = draws[best]
        if pilot is not None:
            self.say(f"weighing draws of {n_classes} classes")
            found = self.fitters[best].drawn(lattices[best])
            known[best] = found.log_evidence
        return fit_of(lattices[best], found, known, len(self.fitters))

    def _fewer(self, names: Names) -> ClassMode:
        """The best mode of one class less; if it was not searched, near that of another law."""
        if names in self.modes:
            return self.modes[names]
        other = max(self.modes.values(), key=lambda mode: mode.log_evidence)
        return self.fitters[names].carried_from(other)


def evidences_towards_best(
    laws: Sequence[Names], evidence: Callable[[Names], float]
) -> dict[Names, float]:
    """Evidences along a path from the first law: one part is changed at a time, for the better.

    The path ends at a law that no change of the law of counts or of the law of effects improves.
    Frailties and bursts both widen counts, so that both together are worth a search only if one of
    them is better than none.
    """
    best = laws[0]
    known = {best: evidence(best)}
    while True:
        near = [
            one for one in laws if one not in known and (one[0] == best[0] or one[1] == best[1])
        ]
        if not near:
            return known
        known[near[0]] = evidence(near[0])
        best = max(known, key=lambda names: known[names])
