"""The posterior of the intensity as draws of paths: what the sampler gives.

It answers what `posterior.Posterior` answers, from weighted draws of v, each with its own
hyper-parameters. Inside the window a draw is the path that was sampled; outside it a draw is
completed by the prior's process given v, so that forecasts return to the prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gp4c.design.kernels import KERNELS
from gp4c.design.quadrature import Grid, IntervalIntegrals
from gp4c.inference.sparse_prior import SparsePrior

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: nodes per gap between inducing inputs, and per panel outside the window
ORDER = 12
#: most panels on each side outside the window; they are at least a length-scale wide
OUTER_PANELS = 40
#: seed of the completion outside the window where quantiles are asked for
COMPLETION_SEED = 0


@dataclass(frozen=True)
class _Group:
    """Draws that share a length-scale."""

    who: Indices
    prior: SparsePrior

    def grid(self, low: float, high: float) -> Grid:
        """Panels between inducing inputs, and on to `low` and `high` outside the window."""
        edges = [np.linspace(0.0, 1.0, max(len(self.prior.inducing), 2))]
        for gap, origin, sign in ((-low, 0.0, -1.0), (high - 1.0, 1.0, 1.0)):
            if gap > 0:
                panels = int(np.clip(np.ceil(gap / self.prior.length_scale), 1, OUTER_PANELS))
                edges.append(origin + sign * np.linspace(0.0, gap, panels + 1))
        return Grid.on(np.unique(np.concatenate(edges)), ORDER)

    def residual(self, x: Floats) -> Floats:
        """Prior variance (of a unit-variance process) that v leaves open; 0 in the window."""
        open_share = np.maximum(1.0 - (self.prior.features(x) ** 2).sum(axis=1), 0.0)
        return np.where((x < 0) | (x > 1), open_share, 0.0)

    def completion(self, x: Floats, n: int, rng: np.random.Generator) -> Floats:
        """Joint draws of what v leaves open at x, of unit variance, (X, n)."""
        outside = np.flatnonzero((x < 0) | (x > 1))
        result = np.zeros((len(x), n))
        if len(outside):
            there = x[outside]
            B = self.prior.features(there)
            values, vectors = np.linalg.eigh(self.prior.covariance(there, there) - B @ B.T)
            factor = vectors * np.sqrt(np.maximum(values, 0.0))
            result[outside] = factor @ rng.standard_normal((len(there), n))
        return result


@dataclass(frozen=True)
class SampledPosterior:
    """Weighted draws of f on a window, in the user's time: λ(t) = scale · f(t)².

    Attributes
    ----------
    kernel : str
    inducing : (M,)
        Inducing inputs in unit time.
    draws : (M, S)
        v of each draw.
    weights : (S,)
        Their posterior weights; they sum to 1.
    length_scale, variance, prior_mean, shape : (S,)
        Hyper-parameters of each draw in unit time and unit rate.
    chain : (S,)
        The independent population it belongs to.
    window : (t0, t1)
    rate : float
        Events per window and unit of exposure that the unit rate stands for.
    """

    kernel: str
    inducing: Floats
    draws: Floats
    weights: Floats
    length_scale: Floats
    variance: Floats
    prior_mean: Floats
    shape: Floats
    chain: Indices
    window: tuple[float, float]
    rate: float

    @property
    def scale(self) -> float:
        """Intensity per unit of f²."""
        return self.rate / (self.window[1] - self.window[0])

    @property
    def size(self) -> int:
        """S, the number of draws."""
        return len(self.weights)

    def unit(self, times: Floats) -> Floats:
        """Times with the window at [0, 1]."""
        return (times - self.window[0]) / (self.window[1] - self.window[0])

    # -- the intensity ----------------------------------------------------------------------

    def intensities(self, times: Floats) -> Floats:
        """λ(t) of every draw, (times, S); outside the window its mean given v."""
        mean, residual = self._conditional(self.unit(times))
        return np.asarray(self.scale * (mean**2 + residual))

    def paths(self, times: Floats) -> Floats:
        """f(t) of every draw in unit rate, (times, S); outside the window its mean given v."""
        return self._conditional(self.unit(times))[0]

    def intensity(self, times: Floats) -> Floats:
        """E λ(t)."""
        return np.asarray(self.intensities(times) @ self.weights)

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of λ(t) over the draws, shape (levels, times)."""
        mean, residual = self._conditional(self.unit(times))
        noise = np.random.default_rng(COMPLETION_SEED).standard_normal(self.size)
        return weighted_quantiles(
            self.scale * (mean + np.sqrt(residual) * noise) ** 2, self.weights, levels
        )

    def intensity_lower(self, times: Floats, levels: Floats) -> Floats:
        """Lower edges of bands of λ(t): its quantiles, since draws have no sign of their own."""
        return self.intensity_quantile(times, levels)

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of λ at `times`, shape (size, len(times))."""
        who, x = self._choose(size, rng), self.unit(times)
        paths = np.empty((len(x), size))
        for group, chosen in self._share(who):
            paths[:, chosen] = self._paths(group, x, who[chosen], rng)
        return np.asarray(self.scale * paths.T**2)

    # -- the cumulative intensity --------------------------------------------------------------

    def integrals(self, start: Floats, stop: Floats) -> Floats:
        """∫ λ over each (start, stop] of every draw, (intervals, S)."""
        rng = np.random.default_rng(COMPLETION_SEED)
        return self._integrals(start, stop, np.arange(self.size), rng)

    def expected_integral(self, start: Floats, stop: Floats) -> Floats:
        """E ∫ λ over each (start, stop]; what v leaves open outside the window in closed form."""
        total = np.zeros(len(start))
        for group, integrals in self._integrators(start, stop):
            nodes = integrals.grid.nodes
            mean = self._means(group, nodes, group.who)
            weight = self.weights[group.who]
            total += integrals.apply(mean**2) @ weight
            residual = integrals.apply(group.residual(nodes))
            total += residual * (weight @ self.variance[group.who])
        return self.rate * total

    def integral_variance(self, start: Floats, stop: Floats) -> Floats:
        """Var ∫ λ over each (start, stop]."""
        values = self.integrals(start, stop)
        mean = values @ self.weights
        return np.asarray((values - mean[:, None]) ** 2 @ self.weights)

    def integral_quantile(self, start: Floats, stop: Floats, levels: Floats) -> Floats:
        """Quantiles of ∫ λ over the draws, shape (levels, intervals)."""
        return weighted_quantiles(self.integrals(start, stop), self.weights, levels)

    def sample_integrals(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> Floats:
        """Draws of ∫ λ over each interval, jointly, shape (size, len(start))."""
        return self.sample_integrals_and_shapes(start, stop, size, rng)[0]

    def sample_integrals_and_shapes(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Draws of ∫ λ with the frailty's α that belongs to each: (size, len(start)), (size,)."""
        who = self._choose(size, rng)
        return self._integrals(start, stop, who, rng).T, self.shape[who]

    # -- pieces -------------------------------------------------------------------------------

    @cached_property
    def _groups(self) -> list[_Group]:
        values, inverse = np.unique(self.length_scale, return_inverse=True)
        kernel = KERNELS[self.kernel]
        return [
            _Group(np.flatnonzero(inverse == i), SparsePrior(kernel, self.inducing, float(a)))
            for i, a in enumerate(values)
        ]

    def _means(self, group: _Group, x: Floats, who: Indices) -> Floats:
        """E f(x) given v of the draws `who` of a group, (X, len(who))."""
        rough = group.prior.features(x) @ self.draws[:, who]
        return np.asarray(self.prior_mean[who] + np.sqrt(self.variance[who]) * rough)

    def _paths(self, group: _Group, x: Floats, who: Indices, rng: np.random.Generator) -> Floats:
        """f(x) of the draws `who` of a group, completed outside the window."""
        completion = group.completion(x, len(who), rng)
        return np.asarray(self._means(group, x, who) + np.sqrt(self.variance[who]) * completion)

    def _conditional(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of f(x) given v, for every draw: (X, S) each."""
        mean, residual = np.empty((2, len(x), self.size))
        for group in self._groups:
            mean[:, group.who] = self._means(group, x, group.who)
            residual[:, group.who] = np.outer(group.residual(x), self.variance[group.who])
        return mean, residual

    def _choose(self, size: int, rng: np.random.Generator) -> Indices:
        """Draws in proportion to their weights, each as often as the next, in random order."""
        return rng.permutation(systematic(self.weights, size, rng))

    def _share(self, who: Indices) -> Iterator[tuple[_Group, Indices]]:
        """Each group with the positions in `who` that belong to it."""
        home = np.empty(self.size, dtype=np.intp)
        for index, group in enumerate(self._groups):
            home[group.who] = index
        for index, group in enumerate(self._groups):
            chosen = np.flatnonzero(home[who] == index)
            if len(chosen):
                yield group, chosen

    def _integrators(
        self, start: Floats, stop: Floats
    ) -> Iterator[tuple[_Group, IntervalIntegrals]]:
        low, high = self.unit(start), self.unit(stop)
        first, last = low.min(initial=0.0), high.max(initial=1.0)
        common: IntervalIntegrals | None = None
        for group in self._groups:
            if common is None or first < 0 or last > 1:  # in the window all grids are the same
                common = IntervalIntegrals(group.grid(first, last), low, high)
            yield group, common

    def _integrals(
        self, start: Floats, stop: Floats, who: Indices, rng: np.random.Generator
    ) -> Floats:
        shares = {id(group): chosen for group, chosen in self._share(who)}
        result = np.empty((len(start), len(who)))
        for group, integrals in self._integrators(start, stop):
            chosen = shares.get(id(group))
            if chosen is not None:
                paths = self._paths(group, integrals.grid.nodes, who[chosen], rng)
                result[:, chosen] = np.maximum(integrals.apply(paths**2), 0.0)
        return self.rate * result


def weighted_quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """Quantiles of each row of values under the weights of its columns, (levels, rows).

    Linear between the points (½w₁, x₁), (w₁ + ½w₂, x₂), … of the sorted row.
    """
    order = np.argsort(values, axis=1)
    sorted_weights = weights[order]
    positions = np.cumsum(sorted_weights, axis=1) - sorted_weights / 2
    rows = zip(positions / weights.sum(), np.take_along_axis(values, order, axis=1), strict=True)
    return np.array([np.interp(levels, p, v) for p, v in rows]).reshape(-1, len(levels)).T


def systematic(weights: Floats, size: int, rng: np.random.Generator) -> Indices:
    """Indices drawn in proportion to weights, in order; each ⌊size·w⌋ or ⌈size·w⌉ times."""
    ends = np.cumsum(weights)
    points = (np.arange(size) + rng.random()) / size * ends[-1]
    return np.asarray(np.minimum(np.searchsorted(ends, points, side="right"), len(weights) - 1))
