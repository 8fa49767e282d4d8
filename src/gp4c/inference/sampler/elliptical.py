"""Elliptical slice sampling of many draws at once.

A target that is a Gaussian times a factor is explored along ellipses of the Gaussian; no step
size is tuned and every update moves. The Gaussian may be the prior, or any other that resembles
the target better, once the factor is divided by it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: (columns, their terms) → logarithm of the factor, (S,)
LogFactor = Callable[[Floats, Floats], Floats]

#: most shrinkings of a slice; beyond them a draw stays where it is
MAX_SHRINKS = 200


class Target(Protocol):
    """A density exp(β·terms[0] + terms[1]) · N(v; 0, I), v the first `size` coordinates."""

    @property
    def size(self) -> int:
        """Coordinates with a standard normal prior."""
        ...

    def evaluate(self, x: Floats) -> Floats:
        """The two terms of each column, (D, S) → (2, S)."""
        ...


@dataclass(frozen=True)
class Population:
    """Draws in columns with their two terms, and what it took to move them here.

    Attributes
    ----------
    x : (D, S)
    terms : (2, S)
    evaluations, updates : int
        Evaluations of the target, and slice updates, summed over draws.
    """

    x: Floats
    terms: Floats
    evaluations: int = 0
    updates: int = 0

    def take(self, who: Indices) -> Population:
        """The chosen columns, with no work counted."""
        return Population(self.x[:, who], self.terms[:, who])

    def after(self, *parts: Population) -> Population:
        """The parts side by side, their work added to this population's."""
        return Population(
            np.concatenate([p.x for p in parts], axis=1),
            np.concatenate([p.terms for p in parts], axis=1),
            self.evaluations + sum(p.evaluations for p in parts),
            self.updates + sum(p.updates for p in parts),
        )


@dataclass(frozen=True)
class Ellipse:
    """Points centre + (x − centre) cos φ + (other − centre) sin φ; arrays (D, S) or (D, 1)."""

    centre: Floats
    other: Floats

    def at(self, x: Floats, angle: Floats, who: Indices) -> Floats:
        """Points at angles φ for the columns `who`."""
        centre = self.centre[:, who] if self.centre.shape[1] > 1 else self.centre
        away = (x[:, who] - centre) * np.cos(angle)
        return np.asarray(centre + away + (self.other[:, who] - centre) * np.sin(angle))


def slice_along(
    target: Target,
    population: Population,
    ellipse: Ellipse,
    log_factor: LogFactor,
    rng: np.random.Generator,
) -> Population:
    """One elliptical slice update of every draw (Murray, Adams and MacKay 2010).

    Leaves the ellipse's Gaussian times exp(log_factor) invariant.
    """
    x, terms = population.x.copy(), population.terms.copy()
    n = int(x.shape[1])
    height = log_factor(x, terms) + np.log1p(-rng.random(n))
    angle: Floats = 2 * np.pi * rng.random((n,))
    low, high = angle - 2 * np.pi, angle.copy()
    active, evaluations = np.arange(n), 0
    for _ in range(MAX_SHRINKS):
        proposal = ellipse.at(population.x, angle[active], active)
        there = target.evaluate(proposal)
        evaluations += len(active)
        above = log_factor(proposal, there) >= height[active]
        x[:, active[above]], terms[:, active[above]] = proposal[:, above], there[:, above]
        active = active[~above]
        if not len(active):
            break
        left = angle[active] < 0  # shrink the bracket towards angle 0, the present draw
        low[active[left]], high[active[~left]] = angle[active[left]], angle[active[~left]]
        angle[active] = low[active] + (high[active] - low[active]) * rng.random(len(active))
    return Population(x, terms, population.evaluations + evaluations, population.updates + n)


def population_slice(
    target: Target, population: Population, beta: float, rng: np.random.Generator
) -> Population:
    """Update all coordinates along ellipses of the population's own mean and covariance.

    Such steps are as long as the target is wide, in every direction (Nishihara, Murray and
    Adams 2014). Each half takes its Gaussian from the other: from its own draws it would depend
    on what it moves, and contract the population.
    """
    n = population.x.shape[1]
    one = population.take(np.arange(n // 2))
    other = population.take(np.arange(n // 2, n))
    one = _guided_slice(target, one, other.x, beta, rng)
    other = _guided_slice(target, other, one.x, beta, rng)
    return population.after(one, other)


def _guided_slice(
    target: Target, population: Population, guide: Floats, beta: float, rng: np.random.Generator
) -> Population:
    """Update along the ellipse of the Gaussian with the mean and covariance of `guide`."""
    d, n = guide.shape
    mean = guide.mean(axis=1, keepdims=True)
    share = d / (n + d)  # shrink towards the diagonal: the covariance of n draws is noisy
    covariance = (1 - share) * np.atleast_2d(np.cov(guide))
    covariance += np.diag(share / (1 - share) * np.diag(covariance) + 1e-9)
    root = np.linalg.cholesky(covariance)
    whiten = np.linalg.inv(root)
    ellipse = Ellipse(mean, mean + root @ rng.standard_normal(population.x.shape))

    def log_factor(x: Floats, terms: Floats) -> Floats:
        prior = -0.5 * (x[: target.size] ** 2).sum(axis=0)
        gaussian = -0.5 * ((whiten @ (x - mean)) ** 2).sum(axis=0)
        return np.asarray(beta * terms[0] + terms[1] + prior - gaussian)

    return slice_along(target, population, ellipse, log_factor, rng)
