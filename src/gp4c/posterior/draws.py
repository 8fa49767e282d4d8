"""The posterior as weighted draws of curves: what every question is answered from.

A draw is a whole curve f with its hyper-parameters, the parameters of the laws of counts and
subject effects, and the coefficients of covariates. Inside the window a draw is the path that was
weighed; outside it a draw is completed by the prior's process given its inducing values, so that
forecasts return to the prior.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gp4c.model.hyper_priors import STEADY
from gp4c.model.kernels import KERNELS
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.model.sparse_prior import SparsePrior
from gp4c.posterior.quantiles import weighted_quantiles

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: nodes per gap between inducing inputs, and per panel outside the window
ORDER = 8
#: most panels on each side outside the window; they are at least a length-scale wide
OUTER_PANELS = 40
#: how a curve may go on outside the window: back to its level, as it was at the nearer end, or
#: with its trend
PRIOR, HOLD, TREND = "prior", "hold", "trend"
#: seed of the completion outside the window where quantiles are asked for
COMPLETION_SEED = 0


@dataclass(frozen=True)
class CurveGroup:
    """Draws that share a length-scale: their inducing values, whitened.

    Attributes
    ----------
    length_scale : float
        In unit time.
    inducing : (M,)
        Inducing inputs in unit time.
    values : (M, S)
        v of each draw.
    """

    length_scale: float
    inducing: Floats
    values: Floats

    @property
    def size(self) -> int:
        """Number of draws."""
        return int(self.values.shape[1])


@dataclass(frozen=True)
class _Process:
    """A group with its prior: what the group's draws say at any time."""

    prior: SparsePrior
    who: Indices

    def grid(self, low: float, high: float) -> Grid:
        """Panels between inducing inputs, and on to `low` and `high` outside the window."""
        edges = [np.linspace(0.0, 1.0, max(len(self.prior.inducing), 2))]
        for gap, origin, sign in ((-low, 0.0, -1.0), (high - 1.0, 1.0, 1.0)):
            if gap > 0:
                panels = int(np.clip(np.ceil(gap / self.prior.length_scale), 1, OUTER_PANELS))
                edges.append(origin + sign * np.linspace(0.0, gap, panels + 1))
        return Grid.on(np.unique(np.concatenate(edges)), ORDER)

    def features(self, x: Floats) -> Floats:
        """b(x) and a one, for what is the same at all times: (X, M + 1)."""
        return np.concatenate([self.prior.features(x), np.ones((len(x), 1))], axis=1)

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
class CurveDraws:
    """Weighted draws of f on a window, in the user's time: λ(t) = scale · f(t)².

    Attributes
    ----------
    kernel : str
    groups : tuple of CurveGroup
        The draws, length-scale by length-scale; all other arrays are in this order.
    weights : (S,)
        Their posterior weights; they sum to 1 within rounding to 32 bits.
    variance, prior_mean : (S,)
        γ and g of each draw in unit rate.
    params : (P, S)
        Parameters of the laws: those of subject effects, then those of counts.
    coefficients : (p, S)
        β of each draw.
    chain : (S,)
        The independent population that it belongs to, for a sampler.
    window : (t0, t1)
    rate : float
        Events per window and unit of exposure that the unit rate stands for.
    """

    kernel: str
    groups: tuple[CurveGroup, ...]
    weights: Floats
    variance: Floats
    prior_mean: Floats
    params: Floats
    coefficients: Floats
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

    @cached_property
    def steady(self) -> NDArray[np.bool_]:
        """Draws of a curve that does not vary, (S,): its prior beside a trend has some."""
        return np.asarray(self.variance < np.exp(2 * STEADY + 1) * self.prior_mean**2)

    @cached_property
    def length_scale(self) -> Floats:
        """Length-scale of each draw, in unit time."""
        return np.concatenate([np.full(g.size, g.length_scale) for g in self.groups])

    @property
    def long_run_rate(self) -> float:
        """E λ far from the data: scale · (g² + γ), averaged over the draws."""
        return float(self.scale * (self.weights @ (self.prior_mean**2 + self.variance)))

    def unit(self, times: Floats) -> Floats:
        """Times with the window at [0, 1]."""
        return (times - self.window[0]) / (self.window[1] - self.window[0])

    def multiplied(self, factor: Floats) -> CurveDraws:
        """The same draws, the rate of each multiplied by a factor of its own, (S,)."""
        return replace(
            self, variance=self.variance * factor, prior_mean=self.prior_mean * np.sqrt(factor)
        )

    def reweighted(self, weights: Floats) -> tuple[CurveDraws, Indices]:
        """The draws with other weights (S,), those of weight 0 left out, and their new places."""
        keep = weights > 0
        ends = np.cumsum([group.size for group in self.groups])[:-1]
        parts = zip(self.groups, np.split(keep, ends), strict=True)
        groups = [replace(g, values=g.values[:, some]) for g, some in parts if some.any()]
        kept = replace(
            self, groups=tuple(groups), weights=weights[keep], variance=self.variance[keep],
            prior_mean=self.prior_mean[keep], params=self.params[:, keep],
            coefficients=self.coefficients[:, keep], chain=self.chain[keep],
        )  # fmt: skip
        return kept, np.cumsum(keep) - 1

    def choose(self, size: int, rng: np.random.Generator) -> Indices:
        """Draws in proportion to their weights, each as often as the next, in random order."""
        return np.asarray(rng.permutation(systematic(self.weights, size, rng)))

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
        x = self.unit(times)
        each = [self._mean_square(process, x) for process in self._processes]
        return np.asarray(self.scale * np.sum(each, axis=0))

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of λ(t) over the draws, shape (levels, times)."""
        values = self._completed_intensities(times)
        return weighted_quantiles(values, self.weights, levels)

    def intensity_edges(self, times: Floats, low: Floats, high: Floats) -> Floats:
        """Lower and upper edges of bands of λ(t), its quantiles: (2, levels, times)."""
        found = self.intensity_quantile(times, np.concatenate([low, high]))
        return found.reshape(2, len(low), len(times))

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of λ at `times`, shape (size, len(times))."""
        return self.paths_of(times, self.choose(size, rng), rng)

    def paths_of(self, times: Floats, who: Indices, rng: np.random.Generator) -> Floats:
        """λ of chosen draws at any times, completed outside the window, (draws, times)."""
        x = self.unit(times)
        paths = np.empty((len(x), len(who)))
        for process, chosen in self._share(who):
            paths[:, chosen] = self._paths(process, x, who[chosen], rng)
        return np.asarray(self.scale * paths.T**2)

    def intensity_paths(self, times: Floats, who: Indices) -> Floats:
        """λ of chosen draws at times in the window, (draws, times)."""
        x = self.unit(times)
        paths = np.empty((len(who), len(x)))
        for process, chosen in self._share(who):
            mean = self._means(process, x, who[chosen])
            residual = np.outer(process.residual(x), self.variance[who[chosen]])
            paths[chosen] = (mean**2 + residual).T
        return np.asarray(self.scale * paths)

    # -- the cumulative intensity --------------------------------------------------------------

    def integrals(self, start: Floats, stop: Floats) -> Floats:
        """∫ λ over each (start, stop] of every draw, (intervals, S)."""
        rng = np.random.default_rng(COMPLETION_SEED)
        return self.integrals_of(start, stop, np.arange(self.size), rng)

    def expected_integral(
        self, start: Floats, stop: Floats, inputs: Floats | None = None
    ) -> Floats:
        """E ∫ λ over each (start, stop]; what v leaves open outside the window in closed form.

        `inputs` (intervals, r) are what rows bring to a modulated rate; here there is none.
        """
        total = np.zeros(len(start))
        for process, integrals in self._integrators(start, stop):
            total += integrals.apply(self._mean_square(process, integrals.grid.nodes))
        return self.rate * total

    def integral_quantile(self, start: Floats, stop: Floats, levels: Floats) -> Floats:
        """Quantiles of ∫ λ over the draws, shape (levels, intervals)."""
        return weighted_quantiles(self.integrals(start, stop), self.weights, levels)

    def sample_integrals(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> Floats:
        """Draws of ∫ λ over each interval, jointly, shape (size, len(start))."""
        return self.integrals_of(start, stop, self.choose(size, rng), rng).T

    def integrals_of(
        self,
        start: Floats,
        stop: Floats,
        who: Indices,
        rng: np.random.Generator,
        inputs: Floats | None = None,
    ) -> Floats:
        """∫ λ over each interval of chosen draws, (intervals, len(who)).

        `inputs` (intervals, r) are what rows bring to a modulated rate; here there is none.
        """
        shares = {id(process): chosen for process, chosen in self._share(who)}
        result = np.empty((len(start), len(who)))
        for process, integrals in self._integrators(start, stop):
            chosen = shares.get(id(process))
            if chosen is not None:
                paths = self._paths(process, integrals.grid.nodes, who[chosen], rng)
                result[:, chosen] = np.maximum(integrals.apply(paths**2), 0.0)
        return self.rate * result

    def held_integrals(
        self, start: Floats, stop: Floats, who: Indices, rng: np.random.Generator
    ) -> Floats:
        """The same with the rate held at its value at the nearer end outside the window."""
        low, high = self.window
        inside = self.integrals_of(np.clip(start, low, high), np.clip(stop, low, high), who, rng)
        first, last = self.intensities(np.array([low, high]))[:, who]
        before = np.maximum(np.minimum(stop, low) - start, 0.0)
        after = np.maximum(stop - np.maximum(start, high), 0.0)
        return np.asarray(inside + np.outer(before, first) + np.outer(after, last))

    def beyond_integrals(
        self,
        start: Floats,
        stop: Floats,
        who: Indices,
        rng: np.random.Generator,
        beyond: str,
        inputs: Floats | None = None,
    ) -> Floats:
        """:meth:`integrals_of`, or :meth:`held_integrals` if `beyond` is "hold"."""
        if beyond == HOLD:
            return self.held_integrals(start, stop, who, rng)
        return self.integrals_of(start, stop, who, rng, inputs)

    def mean_integrals(
        self, start: Floats, stop: Floats, beyond: str, inputs: Floats | None = None
    ) -> Floats:
        """The mean of :meth:`beyond_integrals` over the posterior."""
        if beyond != HOLD:
            return self.expected_integral(start, stop, inputs)
        low, high = self.window
        inside = self.expected_integral(np.clip(start, low, high), np.clip(stop, low, high))
        first, last = self.intensity(np.array([low, high]))
        before = np.maximum(np.minimum(stop, low) - start, 0.0)
        after = np.maximum(stop - np.maximum(start, high), 0.0)
        return np.asarray(inside + before * first + after * last)

    # -- pieces -------------------------------------------------------------------------------

    @cached_property
    def _processes(self) -> list[_Process]:
        kernel = KERNELS[self.kernel]
        ends = np.cumsum([0, *(group.size for group in self.groups)])
        return [
            _Process(SparsePrior(kernel, group.inducing, group.length_scale), np.arange(a, b))
            for group, a, b in zip(self.groups, ends, ends[1:], strict=False)
        ]

    @cached_property
    def _home(self) -> Indices:
        """Group of each draw."""
        sizes = [group.size for group in self.groups]
        return np.repeat(np.arange(len(sizes)), sizes)

    def _means(self, process: _Process, x: Floats, who: Indices) -> Floats:
        """E f(x) given v of the draws `who` of one group, (X, len(who))."""
        return process.features(x) @ self._coefficients(process, who)

    def _coefficients(self, process: _Process, who: Indices) -> Floats:
        """What multiplies the features of a process in E f(x), (M + 1, len(who))."""
        first = process.who[0]
        values = self.groups[self._home[first]].values[:, who - first]
        return np.concatenate([values * np.sqrt(self.variance[who]), self.prior_mean[None, who]])

    def _mean_square(self, process: _Process, x: Floats) -> Floats:
        """Σ w E f(x)² over the draws of one group, a quadratic form of the features, (X,)."""
        weight, features = self.weights[process.who], process.features(x)
        coefficients = self._coefficients(process, process.who)
        form = (coefficients * weight) @ coefficients.T
        residual = process.residual(x) * (weight @ self.variance[process.who])
        return np.asarray(((features @ form) * features).sum(axis=1) + residual)

    def _completed_intensities(self, times: Floats) -> Floats:
        """λ(t) of every draw, (times, S), completed outside the window at each time by itself."""
        x = self.unit(times)
        mean, residual = self._conditional(x)
        outside = np.flatnonzero((x < 0) | (x > 1))
        if len(outside):
            noise = np.random.default_rng(COMPLETION_SEED).standard_normal(self.size)
            mean[outside] += np.sqrt(residual[outside]) * noise
        mean *= mean
        mean *= self.scale
        return mean

    def _paths(
        self, process: _Process, x: Floats, who: Indices, rng: np.random.Generator
    ) -> Floats:
        """f(x) of the draws `who` of one group, completed outside the window."""
        completion = process.completion(x, len(who), rng)
        return np.asarray(self._means(process, x, who) + np.sqrt(self.variance[who]) * completion)

    def _conditional(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of f(x) given v, for every draw: (X, S) each."""
        parts, residual = [], np.broadcast_to(0.0, (len(x), self.size))
        if ((x < 0) | (x > 1)).any():
            residual = np.empty((len(x), self.size))
        for process in self._processes:
            parts.append(self._means(process, x, process.who))
            if residual.flags.writeable:
                residual[:, process.who] = np.outer(process.residual(x), self.variance[process.who])
        return np.concatenate(parts, axis=1), residual

    def _share(self, who: Indices) -> Iterator[tuple[_Process, Indices]]:
        """Each group with the positions in `who` that belong to it."""
        home = self._home[who]
        for index, process in enumerate(self._processes):
            chosen = np.flatnonzero(home == index)
            if len(chosen):
                yield process, chosen

    def _integrators(
        self, start: Floats, stop: Floats
    ) -> Iterator[tuple[_Process, IntervalIntegrals]]:
        low, high = self.unit(start), self.unit(stop)
        first, last = low.min(initial=0.0), high.max(initial=1.0)
        known: dict[int, IntervalIntegrals] = {}
        for process in self._processes:
            size = len(process.prior.inducing)
            # in the window grids of one size are the same
            if size not in known or first < 0 or last > 1:
                known[size] = IntervalIntegrals(process.grid(first, last), low, high, often=True)
            yield process, known[size]


def systematic(weights: Floats, size: int, rng: np.random.Generator) -> Indices:
    """Indices drawn in proportion to weights, in order; each ⌊size·w⌋ or ⌈size·w⌉ times."""
    ends = np.cumsum(weights)
    points = (np.arange(size) + rng.random()) / size * ends[-1]
    return np.asarray(np.minimum(np.searchsorted(ends, points, side="right"), len(weights) - 1))
