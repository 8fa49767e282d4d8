r"""Likelihood of a step function Λ in its jumps, and the conditions of its maximum.

With jumps λ ≥ 0 at the visit times,

.. math::
    \ell(\lambda) = \sum_{i: m_i > 0} m_i \log (A\lambda)_i + \sum_k \varphi_k((V\lambda)_k) ,

A the (N, G) zero-one matrix of the intervals with events, V the (K, G) exposures of the
subjects. A Poisson process has φ(L) = −L (one pooled "subject" suffices); gamma frailty has the
log marginal likelihood of :mod:`gp4c.model.gamma_frailty`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gp4c.classical.visit_cells import Flags, Floats, Indices, Runs, group_sums
from gp4c.model.gamma_frailty import frailty_mean, log_marginal

#: a step that takes more than this share of an interval's mass is refused (rounding decides there)
_ALL_BUT_NOTHING = -1.0 + 1e-9


class ExposureTerm(Protocol):
    """The part of the log-likelihood that depends on each subject's cumulative exposure L."""

    def value(self, exposure: Floats) -> float:
        """Σ φ_k(L_k)."""

    def gain(self, exposure: Floats, change: Floats) -> float:
        """Σ φ_k(L_k + change_k) − φ_k(L_k), accurate for small changes."""

    def slope(self, exposure: Floats) -> Floats:
        """−φ_k'(L_k) > 0: what a unit of exposure costs, (K,)."""

    def curvature(self, exposure: Floats) -> Floats | None:
        """φ_k''(L_k) ≥ 0, (K,); None if all are 0."""


@dataclass(frozen=True)
class PoissonExposure:
    """φ(L) = −L."""

    def value(self, exposure: Floats) -> float:
        """See :class:`ExposureTerm`."""
        return -float(exposure.sum())

    def gain(self, exposure: Floats, change: Floats) -> float:
        """See :class:`ExposureTerm`."""
        return -float(change.sum())

    def slope(self, exposure: Floats) -> Floats:
        """See :class:`ExposureTerm`."""
        return np.ones_like(exposure)

    def curvature(self, exposure: Floats) -> Floats | None:
        """See :class:`ExposureTerm`."""
        return None


@dataclass(frozen=True, eq=False)
class GammaExposure:
    """φ_k(L) = w_k log E[γ^N_k e^{-γL}], the frailty γ integrated out.

    Attributes
    ----------
    variance : float
        Frailty variance v = 1/α.
    events, weights : (K,)
        Events and multiplicity of each subject.
    """

    variance: float
    events: Floats
    weights: Floats

    def value(self, exposure: Floats) -> float:
        """See :class:`ExposureTerm`."""
        return float(self.weights @ log_marginal(self.variance, self.events, exposure))

    def gain(self, exposure: Floats, change: Floats) -> float:
        """See :class:`ExposureTerm`."""
        v = self.variance
        if v == 0.0:
            return -float(self.weights @ change)
        share = v * change / (1.0 + v * exposure)
        far = np.log1p(v * np.maximum(exposure + change, 0.0)) - np.log1p(v * exposure)
        moved = np.where(share > -0.5, np.log1p(np.maximum(share, -0.5)), far)
        return -float(self.weights @ ((1.0 / v + self.events) * moved))

    def slope(self, exposure: Floats) -> Floats:
        """See :class:`ExposureTerm`: the posterior mean frailty, times the multiplicity."""
        return self.weights * frailty_mean(self.variance, self.events, exposure)

    def curvature(self, exposure: Floats) -> Floats | None:
        """See :class:`ExposureTerm`."""
        if self.variance == 0.0:
            return None
        return self.slope(exposure) * self.variance / (1.0 + self.variance * exposure)


@dataclass(frozen=True, eq=False)
class Exposure:
    """Exposure of each subject in each cell, V: (K, L), kept as runs.

    Attributes
    ----------
    runs : Runs
        Observed intervals, (N,).
    rate : (N,)
        Exposure in each of them.
    subject : (N,)
        Whose it is, 0 to K − 1.
    n_subjects : int
        K; 1 with everybody pooled.
    """

    runs: Runs
    rate: Floats
    subject: Indices
    n_subjects: int

    @classmethod
    def pooled(cls, runs: Runs, rate: Floats) -> Exposure:
        """Everybody together."""
        return cls(runs, rate, np.zeros(len(runs), dtype=np.intp), 1)

    def by_subject(self, jumps: Floats) -> Floats:
        """Vλ, (K,)."""
        return group_sums(self.subject, self.rate * self.runs.sums(jumps), self.n_subjects)

    def cost(self, slope: Floats) -> Floats:
        """Vᵀ slope, (L,)."""
        return self.runs.cover(self.rate * slope[self.subject])

    def columns(self, chosen: Indices) -> Floats:
        """Columns of V, (K, n_chosen)."""
        runs = self.runs.on(chosen)
        change = np.zeros((self.n_subjects, len(chosen) + 1))
        np.add.at(change, (self.subject, runs.first), self.rate)
        np.subtract.at(change, (self.subject, runs.last), self.rate)
        return np.cumsum(change, axis=1)[:, :-1]

    def on(self, sites: Indices) -> Exposure:
        """Return the same exposure on fewer cells."""
        return Exposure(self.runs.on(sites), self.rate, self.subject, self.n_subjects)

    def moves(self) -> tuple[Flags, Flags]:
        """Whether any subject's exposure rises, and falls, from a cell to the next: (L − 1,)."""
        size = self.runs.size
        place = np.concatenate([self.runs.first, self.runs.last])
        whose = np.concatenate([self.subject, self.subject])
        where, inverse = np.unique(whose * (size + 1) + place, return_inverse=True)
        change = np.bincount(inverse, np.concatenate([self.rate, -self.rate]))
        size_of = np.bincount(inverse, np.concatenate([self.rate, self.rate]))
        change[np.abs(change) <= 1e-12 * size_of] = 0.0  # 0.1 + 0.2 − 0.3 is no change
        rises, falls = np.zeros(size + 1, dtype=np.bool_), np.zeros(size + 1, dtype=np.bool_)
        rises[where[change > 0] % (size + 1)] = True
        falls[where[change < 0] % (size + 1)] = True
        return rises[1:size], falls[1:size]


@dataclass(frozen=True, eq=False)
class JumpProblem:
    """Where jumps may sit and what they explain.

    Attributes
    ----------
    size : int
        Number of cells L.
    sites : (G,)
        Cells that may carry a jump; all others carry none at the maximum.
    inside : Runs
        The N intervals with events as runs of sites, A.
    count : (N,)
        Their events m > 0 (times multiplicity).
    exposure : Exposure
        V on the sites.
    """

    size: int
    sites: Indices
    inside: Runs
    count: Floats
    exposure: Exposure

    @property
    def total(self) -> float:
        """All events."""
        return float(self.count.sum())

    @classmethod
    def of(cls, runs: Runs, count: Floats, exposure: Exposure) -> JumpProblem:
        """Keep the intervals with events and the sites where a jump can help.

        Parameters
        ----------
        runs : Runs
            The intervals (distinct or not).
        count : (N,)
            Events in them.
        exposure : Exposure
            On the same cells.
        """
        seen = runs.take(count > 0)
        sites = np.flatnonzero(_useful_sites(seen, exposure))
        return cls(runs.size, sites, seen.on(sites), count[count > 0], exposure.on(sites))


@dataclass(frozen=True, eq=False)
class Gradient:
    """What a jump at each site gains and costs.

    Attributes
    ----------
    mass : (N,)
        Aλ, the fitted mean of each interval with events.
    gain, cost : (G,)
        Aᵀ(m / Aλ) and Vᵀ slope; the gradient is their difference.
    """

    mass: Floats
    gain: Floats
    cost: Floats

    @property
    def ratio(self) -> Floats:
        """Gain per cost: at most 1 everywhere and 1 under every jump at the maximum, (G,)."""
        return self.gain / self.cost


def gradient(problem: JumpProblem, term: ExposureTerm, jumps: Floats) -> Gradient:
    """Evaluate :class:`Gradient` at given jumps."""
    mass = problem.inside.sums(jumps)
    return Gradient(
        mass=mass,
        gain=problem.inside.cover(problem.count / mass),
        cost=problem.exposure.cost(term.slope(problem.exposure.by_subject(jumps))),
    )


def log_likelihood(problem: JumpProblem, term: ExposureTerm, jumps: Floats) -> float:
    """ℓ(λ) without constants; −inf if an interval with events has no mass."""
    mass = problem.inside.sums(jumps)
    if np.any(mass <= 0.0):
        return -np.inf
    return float(problem.count @ np.log(mass)) + term.value(problem.exposure.by_subject(jumps))


def improvement(problem: JumpProblem, term: ExposureTerm, jumps: Floats, step: Floats) -> float:
    """ℓ(λ + step) − ℓ(λ) from the differences themselves: exact to rounding near the maximum."""
    relative = problem.inside.sums(step) / problem.inside.sums(jumps)
    if np.any(relative <= _ALL_BUT_NOTHING):
        return -np.inf
    exposure = problem.exposure
    change = term.gain(exposure.by_subject(jumps), exposure.by_subject(step))
    return float(problem.count @ np.log1p(relative)) + change


def kkt_residual(jumps: Floats, slopes: Gradient, total: float) -> float:
    """Largest violation of the conditions of the maximum, free of units.

    The conditions: gain/cost ≤ 1 at every site, and = 1 where there is a jump (weighted here by
    the share of all events that the jump carries). For the Poisson likelihood, which is concave,
    the log-likelihood is within ``2 · total · residual`` nats of its maximum.
    """
    if len(jumps) == 0:
        return 0.0
    excess = slopes.ratio - 1.0
    slack = float(np.abs(jumps * slopes.cost * excess).sum()) / total
    return max(float(excess.max()), slack)


def _useful_sites(seen: Runs, exposure: Exposure) -> Flags:
    """Cells that no neighbour dominates, (L,).

    A jump in cell l can move one cell to the right without loss if no interval with events ends
    between the two and no subject's exposure rises there; to the left likewise. Ties go right,
    so that a jump sits at the last time the likelihood allows and an extra visit without
    information never moves it.
    """
    useful = seen.covered.copy()
    size = seen.size
    ends = np.bincount(seen.last, minlength=size + 1)[1:size] > 0
    begins = np.bincount(seen.first, minlength=size + 1)[1:size] > 0
    rises, falls = exposure.moves()
    moves_right = ~ends & ~rises
    moves_left = ~begins & ~falls & ~moves_right
    useful[:-1] &= ~moves_right
    useful[1:] &= ~moves_left
    return useful
