r"""The joint posterior of several types of events, whose subject effects depend.

Types meet only in the integrals over subjects' effects. So with the posteriors of the types by
themselves as proposals, and loadings x of the dependence from a law q of their own, the weight of a
tuple of draws is

.. math:: \frac{\pi(x)}{q(x)} \prod_k \frac{p(\text{counts of subject } k \text{ of all types} \mid
          \text{draws}, x)}{\prod_e p(\text{counts of type } e \mid \text{draw of } e)} ,

the ratio of :mod:`gp4c.model.laws.effect_copula`, and its mean is the evidence of the joint model
over the product of those of the types (docs/maths_types.md). Pilots adapt q and are thrown away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from gp4c.inference.engine.pareto import pareto_smoothed
from gp4c.model.laws.effect_copula import (
    LARGEST,
    EffectScores,
    ScoredSubjects,
    draws_at_once,
    joint_ratios,
)
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.subject_counts import SubjectCounts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: draws of a coupling and of each pilot; fewest draws where there are many subjects, and draws
#: times subjects that all of them allow
DRAWS, PILOTS, FEWEST, _WORK = 2000, (200, 300), 600, 1e6
#: degrees of freedom of the proposal of the loadings, its first scale, and how much wider than the
#: pilot's weights say it is
_FREEDOM, _FIRST, _WIDER = 5.0, 0.9, 1.2
#: draws by which the grid's resolution is judged
_JUDGED = 8


@dataclass(frozen=True)
class Margin:
    """The posterior of one type by itself, and what was counted.

    Attributes
    ----------
    draws : CurveDraws
    counts : SubjectCounts
    place : (n_subjects,)
        Position of each subject among those of the type, -1 where it was not counted.
    """

    draws: CurveDraws
    counts: SubjectCounts
    place: Indices

    @property
    def depends(self) -> bool:
        """Whether the type has effects, which can depend on those of other types."""
        return self.counts.effect.varies

    def split(self, who: Indices) -> tuple[Floats, Floats, Floats]:
        """r of the rows, R of the subjects and the laws' parameters, for chosen draws."""
        rng = np.random.default_rng(0)
        integrals = self.draws.integrals_of(self.counts.start, self.counts.stop, who, rng)
        beta = self.draws.coefficients[:, who] if self.counts.seen.z.shape[1] else None
        row, owner = self.counts.expected_rows(integrals, beta)
        return row, owner, self.draws.params[:, who]


@dataclass(frozen=True)
class Coupling:
    """Weighted tuples of draws of the types, and the loadings of their effects.

    Attributes
    ----------
    who : (T, S)
        Draw of each type.
    loadings : (T, S)
        l_e; 0 for types without effects.
    weights : (S,)
        Smoothed, summing to 1.
    log_gain : float
        ln of the evidence of dependent over independent effects.
    effective, pareto_k : float
    """

    who: Indices
    loadings: Floats
    weights: Floats
    log_gain: float
    effective: float
    pareto_k: float


def couple(
    margins: list[Margin], n_subjects: int, seed: int = 0, n_draws: int | None = None
) -> Coupling:
    """Weigh tuples of draws of the types.

    Parameters
    ----------
    margins : list of Margin
        The types by themselves.
    n_subjects : int
        All subjects.
    n_draws : int, optional
        Default 2000, fewer where there are many subjects.
    """
    rng = np.random.default_rng(seed)
    size = n_draws or int(np.clip(_WORK / max(n_subjects, 1), FEWEST, DRAWS))
    free = [e for e, margin in enumerate(margins) if margin.depends]
    if len(free) < 2:
        who = np.array([margin.draws.choose(size, rng) for margin in margins])
        even = np.full(size, 1.0 / size)
        return Coupling(who, np.zeros(who.shape), even, 0.0, float(size), -np.inf)
    some = Dependence([margins[e] for e in free], n_subjects)
    law = _Proposal(np.zeros(some.dimension), _FIRST**2 * np.eye(some.dimension))
    for pilot in PILOTS:
        _, x, log_weights = some.weighed(min(pilot, size), law, rng)
        law = _Proposal.around(x, log_weights)
    chosen, x, log_weights = some.weighed(size, law, rng)
    smoothed, k = pareto_smoothed(log_weights)
    raw = np.exp(log_weights - logsumexp(log_weights))
    who = np.empty((len(margins), size), dtype=np.intp)
    loadings = np.zeros((len(margins), size))
    who[free], loadings[free] = chosen, some.loadings(x)
    for e, margin in enumerate(margins):
        if e not in free:
            who[e] = margin.draws.choose(size, rng)
    return Coupling(
        who,
        loadings,
        np.exp(smoothed - logsumexp(smoothed)),
        float(logsumexp(log_weights) - np.log(size)),
        float(1.0 / (raw**2).sum()),
        k,
    )


class Dependence:
    """The types with effects, of some subjects, and the parameters of their dependence.

    Two types have one, x = atanh ρ; more have x_e = atanh l_e each, of which −x says the same.
    Correlations (or loadings) are uniform in (−1, 1) a priori.
    """

    def __init__(self, margins: list[Margin], n_subjects: int) -> None:
        self.margins, self.n_subjects = margins, n_subjects
        self.dimension = 1 if len(margins) == 2 else len(margins)
        self.subjects = []
        for margin in margins:
            found = ScoredSubjects.of(margin.counts.likelihood)
            judged = margin.draws.choose(_JUDGED, np.random.default_rng(0))
            self.subjects.append(found.resolved(*margin.split(judged)))

    def loadings(self, x: Floats) -> Floats:
        """(dimension, S) → (T, S), kept where the grid resolves them.

        Of two types the second is the factor, which saves half the work; where the grid does not
        resolve its scores, both have the loading √|ρ|.
        """
        bounded = np.clip(np.tanh(x), -LARGEST, LARGEST)
        if self.dimension > 1:
            return np.asarray(bounded)
        rho = bounded[0]
        if not len(self.subjects[1].narrow):
            return np.stack([rho, np.ones_like(rho)])
        root = np.minimum(np.sqrt(np.abs(rho)), LARGEST)
        return np.stack([root, np.sign(rho) * root])

    def weighed(
        self, size: int, law: _Proposal, rng: np.random.Generator
    ) -> tuple[Indices, Floats, Floats]:
        """Draws of the types (T, S), parameters (d, S), and log weights (S,)."""
        who = np.array([margin.draws.choose(size, rng) for margin in self.margins])
        x = law.draw(size, rng)
        folded = self.dimension > 1
        log_q = law.log_density(x)
        if folded:  # x and −x are one law
            log_q = np.logaddexp(log_q, law.log_density(-x)) - np.log(2)
        log_prior = (-2 * np.logaddexp(x, -x) + np.log(2.0)).sum(axis=0)  # of uniform tanh x
        ratio = self.log_ratio(who, self.loadings(x))
        return who, x, ratio + log_prior - log_q

    def log_ratio(self, who: Indices, loadings: Floats) -> Floats:
        """Σ_k ln of the joint probability over that of independent effects, (S,)."""
        return np.asarray(self.log_ratios(who, loadings).sum(axis=0))

    def log_ratios(self, who: Indices, loadings: Floats) -> Floats:
        """The same subject by subject, (n_subjects, S)."""
        parts = [
            joint_ratios(found, self.places, loadings[:, some], self.n_subjects)
            for some, found in self.scores(who)
        ]
        return np.concatenate(parts, axis=1)

    def scores(self, who: Indices) -> Iterator[tuple[slice, list[EffectScores]]]:
        """What chosen draws say of the subjects' scores, type by type, some at a time."""
        pairs = zip(self.margins, who, strict=True)
        yield from self.scores_of([margin.split(row) for margin, row in pairs])

    def scores_of(
        self, known: list[tuple[Floats, Floats, Floats]]
    ) -> Iterator[tuple[slice, list[EffectScores]]]:
        """The same from r, R and the parameters of each type."""
        size = known[0][2].shape[1]
        step = draws_at_once(self.n_subjects)
        for first in range(0, size, step):
            some = slice(first, min(first + step, size))
            each = zip(self.subjects, known, strict=True)
            yield some, [one.scores(*(part[:, some] for part in parts)) for one, parts in each]

    @property
    def places(self) -> list[Indices]:
        """Positions of the subjects among those of each type."""
        return [margin.place for margin in self.margins]


@dataclass(frozen=True)
class _Proposal:
    """Student's t for x, with a wide share of its own."""

    centre: Floats
    covariance: Floats

    @classmethod
    def around(cls, x: Floats, log_weights: Floats) -> _Proposal:
        """With the moments of weighted draws; weights are flattened while few are heavy."""
        for power in (1.0, 0.5, 0.25, 0.1):
            weights = np.exp(power * (log_weights - log_weights.max()))
            weights /= weights.sum()
            if 1.0 / (weights**2).sum() > 20.0 * len(x):
                break
        if len(x) > 1:  # one of the two signs
            x = x * np.where(x.sum(axis=0) < 0, -1.0, 1.0)
        centre = x @ weights
        away = x - centre[:, None]
        covariance = _WIDER**2 * (away * weights) @ away.T + 1e-4 * np.eye(len(x))
        return cls(centre, covariance)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """(d, S), inside the limits."""
        root = np.linalg.cholesky(self.covariance)
        mix = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, size))
        x = self.centre[:, None] + root @ rng.standard_normal((len(self.centre), size)) * mix
        return np.asarray(x)

    def log_density(self, x: Floats) -> Floats:
        """ln q(x), (S,)."""
        d, nu = len(self.centre), _FREEDOM
        root = np.linalg.cholesky(self.covariance)
        scaled = np.linalg.solve(root, x - self.centre[:, None])
        constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - d / 2 * np.log(nu * np.pi)
        constant -= np.log(np.diag(root)).sum()
        return np.asarray(constant - (nu + d) / 2 * np.log1p((scaled**2).sum(axis=0) / nu))
