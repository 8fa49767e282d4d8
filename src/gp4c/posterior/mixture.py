"""The fitted posterior of the intensity λ(t) = scale · f(t)²: a mixture of Gaussian processes f.

One component when hyper-parameters are point estimates and f has one sign pattern; several when
they are integrated over or when optima with different signs matter. All answers are those of
the mixture. Times are the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from gp4c.model.kernels import KERNELS
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.model.sparse_prior import SparsePrior
from gp4c.posterior.quantiles import quadratic_form_cdf, solve_quantiles

Floats = NDArray[np.float64]

#: nodes per gap between inducing inputs when integrals of the posterior are taken
ORDER = 16
#: share of γ above which unexplained prior variance is modelled with its correlation
SMALL_RESIDUAL = 1e-3
#: most panels on either side of the window
OUTER_PANELS = 40
#: distribution functions of components that are evaluated at once
_MOST_NUMBERS = 1_000_000
#: times up to which features are remembered: components of one length-scale share them
_MOST_REMEMBERED = 4_000


@lru_cache(maxsize=8)
def _features(kernel: str, length_scale: float, inducing: bytes, x: bytes) -> Floats:
    prior = SparsePrior(KERNELS[kernel], np.frombuffer(inducing), length_scale)
    result = prior.features(np.frombuffer(x))
    result.flags.writeable = False
    return result


@dataclass(frozen=True)
class Component:
    """One Gaussian process: its hyper-parameters (unit time and rate) and q(v) = N(mean, RRᵀ)."""

    weight: float
    kernel: str
    length_scale: float
    variance: float
    prior_mean: float
    inducing: Floats
    mean: Floats
    root: Floats

    @cached_property
    def prior(self) -> SparsePrior:
        """The kernel factorised at the inducing inputs."""
        return SparsePrior(KERNELS[self.kernel], self.inducing, self.length_scale)

    def features(self, x: Floats) -> Floats:
        """Whitened features at unit times; many components have them in common."""
        if len(x) > _MOST_REMEMBERED:
            return self.prior.features(x)
        return _features(self.kernel, self.length_scale, self.inducing.tobytes(), x.tobytes())

    def moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of f at unit times."""
        B = self.features(x)
        residual = np.maximum(1.0 - (B**2).sum(axis=1), 0.0)
        mean = self.prior_mean + np.sqrt(self.variance) * (B @ self.mean)
        return mean, self.variance * (residual + ((B @ self.root) ** 2).sum(axis=1))

    def spread(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean, factor G and residual variance r with f = mean + Gξ + residual, ξ ~ N(0, I).

        What the inducing inputs leave unexplained is tiny inside the window. Where it is not
        (outside, or with few inducing inputs) G has further columns for it; the rest, less than
        SMALL_RESIDUAL of γ, is in the mean of f² but not in draws, which stay smooth.
        """
        B = self.features(x)
        residual = np.maximum(1.0 - (B**2).sum(axis=1), 0.0)
        G = B @ self.root
        large = np.flatnonzero(residual > SMALL_RESIDUAL)
        if len(large):
            left = self.prior.covariance(x[large], x[large]) - B[large] @ B[large].T
            values, vectors = np.linalg.eigh(left)
            kept = values > 1e-7 * len(large)
            factor = np.zeros((len(x), int(kept.sum())))
            factor[large] = vectors[:, kept] * np.sqrt(values[kept])
            G = np.concatenate([G, factor], axis=1)
            residual = residual - (factor**2).sum(axis=1)
        scale = np.sqrt(self.variance)
        mean = self.prior_mean + scale * (B @ self.mean)
        return mean, scale * G, self.variance * np.maximum(residual, 0.0)

    def draw(self, x: Floats, size: int, rng: np.random.Generator) -> Floats:
        """`size` draws of f at unit times, shape (len(x), size)."""
        mean, G, _ = self.spread(x)
        draws = mean[:, None] + G @ rng.standard_normal((G.shape[1], size))
        return np.asarray(draws)

    def grid(self, low: float, high: float) -> Grid:
        """Integration grid on [low, high] ∪ [0, 1] with panels between inducing inputs.

        Outside the window panels are two length-scales wide, or wider where that would take
        more than OUTER_PANELS of them.
        """
        edges = [np.linspace(0.0, 1.0, max(len(self.inducing), 2))]
        for beyond, side in ((high - 1.0, 1), (-low, -1)):
            if beyond > 0:
                panels = int(np.clip(np.ceil(beyond / (2 * self.length_scale)), 1, OUTER_PANELS))
                steps = beyond * np.arange(1, panels + 1) / panels
                edges.append(1.0 + steps if side > 0 else -steps)
        return Grid.on(np.unique(np.concatenate(edges)), ORDER)


@dataclass(frozen=True)
class Posterior:
    """Mixture of components on a window, in the user's time.

    Attributes
    ----------
    components : tuple of Component
    window : (t0, t1)
    rate : float
        Events per window and unit of exposure that the unit rate stands for: λ(t) = scale · f²,
        scale = rate / (t1 − t0).
    """

    components: tuple[Component, ...]
    window: tuple[float, float]
    rate: float

    @property
    def scale(self) -> float:
        """Intensity per unit of f²."""
        return self.rate / (self.window[1] - self.window[0])

    @property
    def weights(self) -> Floats:
        """Mixture weights."""
        return np.array([c.weight for c in self.components])

    @property
    def long_run_rate(self) -> float:
        """E λ far from the data: scale · (g² + γ), averaged over the components."""
        level = sum(c.weight * (c.prior_mean**2 + c.variance) for c in self.components)
        return float(self.scale * level)

    def unit(self, times: Floats) -> Floats:
        """Times with the window at [0, 1]."""
        return (times - self.window[0]) / (self.window[1] - self.window[0])

    # -- the intensity ----------------------------------------------------------------------

    def intensity(self, times: Floats) -> Floats:
        """E λ(t) = scale · E f²."""
        total = np.zeros(len(times))
        for component in self.components:
            mean, variance = component.moments(self.unit(times))
            total += component.weight * (mean**2 + variance)
        return self.scale * total

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of λ(t), shape (levels, times): λ/scale is a noncentral χ² variable with 1 df.

        P(f² ≤ q) = Φ((√q − μ)/σ) − Φ((−√q − μ)/σ), averaged over components and inverted.
        """
        means, deviations = self._deviations(times)
        weights = self.weights[:, None]

        def cdf(root: Floats) -> Floats:  # of |f|, shape (levels, times)
            upper = ndtr((root[:, None, :] - means) / deviations)
            lower = ndtr((-root[:, None, :] - means) / deviations)
            return np.asarray((weights * (upper - lower)).sum(axis=1))

        top = (np.abs(means) + 40 * deviations).max(axis=0)
        root = solve_quantiles(cdf, np.zeros_like(top), top, levels)
        return np.asarray(self.scale * root**2)

    def intensity_lower(self, times: Floats, levels: Floats) -> Floats:
        """Lower edges of bands of λ(t), (levels, times): quantiles of f up to sign, squared.

        With the sign of each component turned so that its mean is positive. Where a component's f
        is well away from zero this is the quantile of λ; where f may be zero, so may λ, and the
        edge is zero, which a quantile of λ never is (docs/maths.md, section 7).
        """
        means, deviations = self._deviations(times)
        means, weights = np.abs(means), self.weights[:, None]

        def cdf(root: Floats) -> Floats:
            each = ndtr((root[:, None, :] - means) / deviations)
            return np.asarray((weights * each).sum(axis=1))

        reach = 40 * deviations
        bottom, top = (means - reach).min(axis=0), (means + reach).max(axis=0)
        root = solve_quantiles(cdf, bottom, top, levels)
        return np.asarray(self.scale * np.maximum(root, 0.0) ** 2)

    def _deviations(self, times: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of f under each component, (components, times)."""
        moments = [c.moments(self.unit(times)) for c in self.components]
        deviations = np.sqrt(np.maximum([v for _, v in moments], 1e-300))
        return np.array([m for m, _ in moments]), deviations

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of λ at `times`, shape (size, len(times))."""
        parts = [c.draw(self.unit(times), n, rng) for c, n in self._shares(size, rng)]
        return np.asarray(self.scale * np.concatenate(parts, axis=1).T ** 2)

    # -- the cumulative intensity --------------------------------------------------------------

    def expected_integral(self, start: Floats, stop: Floats) -> Floats:
        """E ∫ λ over each (start, stop], in closed form on the grid."""
        total = np.zeros(len(start))
        for component, integrals, grid in self.integrators(start, stop):
            mean, variance = component.moments(grid.nodes)
            total += component.weight * integrals.apply(mean**2 + variance)
        return self.rate * total

    def integral_variance(self, start: Floats, stop: Floats) -> Floats:
        """Var ∫ λ over each (start, stop]: within components and between them."""
        cumulants = [k for _, k in self._integral_cumulants(start, stop)]
        weights = self.weights
        mean = weights @ [k[0] for k in cumulants]
        second = weights @ [k[1] + k[0] ** 2 for k in cumulants]
        return np.asarray(self.rate**2 * np.maximum(second - mean**2, 0.0))

    def integral_quantile(self, start: Floats, stop: Floats, levels: Floats) -> Floats:
        """Quantiles of ∫ λ, shape (levels, intervals).

        ∫ f² is a quadratic form in Gaussians; each component's distribution function is Jensen
        and Solomon's approximation from its first three cumulants (docs/maths.md, section 7).
        """
        cumulants = np.array([k for _, k in self._integral_cumulants(start, stop)])
        weights, most = self.weights, max(_MOST_NUMBERS // (len(cumulants) * len(levels)), 1)

        def solved(mean: Floats, variance: Floats, third: Floats) -> Floats:
            def cdf(x: Floats) -> Floats:
                each = quadratic_form_cdf(x, mean[:, None], variance[:, None], third[:, None])
                return np.asarray(np.tensordot(weights, each, 1))

            top = (mean + 60 * np.sqrt(variance)).max(axis=0)
            return solve_quantiles(cdf, np.zeros_like(top), top, levels)

        parts = np.split(cumulants, range(most, len(start), most), axis=2)
        return self.rate * np.concatenate([solved(*part.swapaxes(0, 1)) for part in parts], axis=1)

    def sample_integrals(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> Floats:
        """Draws of ∫ λ over each interval, jointly, shape (size, len(start))."""
        parts = []
        shares = dict(enumerate(n for _, n in self._shares(size, rng)))
        for index, (component, integrals, grid) in enumerate(self.integrators(start, stop)):
            draws = component.draw(grid.nodes, shares[index], rng)
            parts.append(np.maximum(integrals.apply(draws**2), 0.0))
        return np.asarray(self.rate * np.concatenate(parts, axis=1).T)

    # -- pieces -------------------------------------------------------------------------------

    def integrators(
        self, start: Floats, stop: Floats
    ) -> Iterator[tuple[Component, IntervalIntegrals, Grid]]:
        """Each component with a grid that resolves it, and integrals over intervals on it."""
        low, high = self.unit(start), self.unit(stop)
        for component in self.components:
            grid = component.grid(low.min(initial=0.0), high.max(initial=1.0))
            yield component, IntervalIntegrals(grid, low, high), grid

    def _integral_cumulants(
        self, start: Floats, stop: Floats
    ) -> Iterator[tuple[Component, tuple[Floats, Floats, Floats]]]:
        """First three cumulants of ∫ f² (unit rate) under each component.

        With f = μ + Gξ: H = ∫ GᵀG, l = ∫ Gᵀμ; κ₁ = ∫ μ² + tr H, κ₂ = 2 tr H² + 4 lᵀl,
        κ₃ = 8 tr H³ + 24 lᵀHl. The independent part of the residual enters κ₁ only.
        """
        for component, integrals, grid in self.integrators(start, stop):
            mean, G, residual = component.spread(grid.nodes)
            linear = integrals.apply(G * mean[:, None])
            first = integrals.apply(mean**2 + residual)
            second = 4 * (linear**2).sum(axis=1)
            third = np.zeros_like(first)
            for part, H in integrals.product_parts(G):
                square, ends = H @ H, linear[part]
                first[part] += np.trace(H, axis1=1, axis2=2)
                second[part] += 2 * np.trace(square, axis1=1, axis2=2)
                third[part] += 8 * (square * H).sum(axis=(1, 2))
                third[part] += 24 * (ends * (H @ ends[:, :, None])[:, :, 0]).sum(axis=1)
            yield component, (first, second, third)

    def _shares(self, size: int, rng: np.random.Generator) -> list[tuple[Component, int]]:
        """How many of `size` draws each component gives."""
        if len(self.components) == 1:
            return [(self.components[0], size)]
        counts = rng.multinomial(size, self.weights / self.weights.sum())
        return list(zip(self.components, counts.tolist(), strict=True))
