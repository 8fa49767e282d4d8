"""Draws of several class curves: each answers as one posterior, and all together as a population.

A draw of C classes is stored as C draws of a curve, each with the weight of the draw times the
share of its class. Averages over all of them are those of a subject of whom nothing is known, its
class included; bands of the population's curve first average over the classes of each draw.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.posterior.draws import CurveDraws, CurveGroup, systematic
from gp4c.posterior.quantiles import weighted_quantiles

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class ClassDraws(CurveDraws):
    """Weighted draws of C curves.

    Attributes
    ----------
    label : (S,)
        Class of each curve.
    parent : (S,)
        The draw that it belongs to; each has C of them.
    share : (S,)
        Share of its class in the population, of that draw.
    share_coefficients : (q, S)
        η of its class: how covariates of a subject change the probability of the class.
    """

    label: Indices
    parent: Indices
    share: Floats
    share_coefficients: Floats

    @property
    def n_classes(self) -> int:
        """C."""
        return int(self.label.max()) + 1

    @cached_property
    def members(self) -> Indices:
        """Position of the curve of every class in every draw, (C, N)."""
        found = np.empty((self.n_classes, int(self.parent.max()) + 1), dtype=np.intp)
        found[self.label, self.parent] = np.arange(self.size)
        return found

    @cached_property
    def parent_weights(self) -> Floats:
        """Weights of the draws, (N,)."""
        return np.asarray(self.weights[self.members].sum(axis=0))

    def choose_parents(self, size: int, rng: np.random.Generator) -> Indices:
        """Draws in proportion to their weights, in random order."""
        return np.asarray(rng.permutation(systematic(self.parent_weights, size, rng)))

    def of_class(self, label: int) -> CurveDraws:
        """The posterior of one class alone."""
        keep = self.members[label]
        keep = np.sort(keep)
        home = self._home[keep]
        first = np.cumsum([0, *(group.size for group in self.groups)])
        groups = tuple(
            CurveGroup(g.length_scale, g.inducing, g.values[:, keep[home == i] - first[i]])
            for i, g in enumerate(self.groups)
            if (home == i).any()
        )
        weights = self.parent_weights[self.parent[keep]]
        plain = {f.name: getattr(self, f.name) for f in fields(CurveDraws)}
        plain |= {
            "groups": groups, "weights": weights / weights.sum(), "chain": self.chain[keep],
            "variance": self.variance[keep], "prior_mean": self.prior_mean[keep],
            "params": self.params[:, keep], "coefficients": self.coefficients[:, keep],
        }  # fmt: skip
        return CurveDraws(**plain)

    def log_shares(self, z: Floats, parents: Indices) -> Floats:
        """ln π_kc of subjects with covariates z (K, q) in some draws, (C, K, S)."""
        scores = np.array([z @ self.share_coefficients[:, m[parents]] for m in self.members])
        return np.asarray(scores - logsumexp(scores, axis=0))

    def _averaged(self, values: Floats) -> Floats:
        """Σ share · value over the classes of every draw: (rows, S) → (rows, N)."""
        return np.asarray(sum(self.share[m] * values[:, m] for m in self.members))

    # -- the population's curve -----------------------------------------------------------------

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of Σ share · λ(t) over the draws, (levels, times)."""
        values = self._averaged(self._completed_intensities(times))
        return weighted_quantiles(values, self.parent_weights, levels)

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of Σ share · λ at `times`, (size, len(times))."""
        parents, x = self.choose_parents(size, rng), self.unit(times)
        total = np.zeros((len(x), size))
        for m in self.members:
            who = m[parents]
            paths = np.empty((len(x), size))
            for process, chosen in self._share(who):
                paths[:, chosen] = self._paths(process, x, who[chosen], rng)
            total += self.share[who] * paths**2
        return np.asarray(self.scale * total.T)

    def integral_quantile(self, start: Floats, stop: Floats, levels: Floats) -> Floats:
        """Quantiles of Σ share · ∫λ over the draws, (levels, intervals)."""
        values = self._averaged(self.integrals(start, stop))
        return weighted_quantiles(values, self.parent_weights, levels)

    def sample_integrals(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> Floats:
        """Draws of Σ share · ∫λ over each interval, jointly, (size, len(start))."""
        parents = self.choose_parents(size, rng)
        total = sum(
            self.share[m[parents]] * self.integrals_of(start, stop, m[parents], rng)
            for m in self.members
        )
        return np.asarray(total).T
