"""The posterior of a variational fit: λ(t) = scale · f(t)², f a sparse Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

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


@dataclass(frozen=True)
class Posterior:
    """One Gaussian process on a window; questions are in the user's time.

    Attributes
    ----------
    kernel, length_scale, variance, prior_mean
        The prior of f in unit time and rate.
    inducing, mean, root
        Inducing inputs in unit time, and q(v) = N(mean, root rootᵀ).
    window : (t0, t1)
    rate : float
        Events per window and unit of exposure that the unit rate stands for: λ(t) = scale · f²,
        scale = rate / (t1 − t0).
    """

    kernel: str
    length_scale: float
    variance: float
    prior_mean: float
    inducing: Floats
    mean: Floats
    root: Floats
    window: tuple[float, float]
    rate: float

    @cached_property
    def prior(self) -> SparsePrior:
        """The kernel factorised at the inducing inputs."""
        return SparsePrior(KERNELS[self.kernel], self.inducing, self.length_scale)

    @property
    def scale(self) -> float:
        """Intensity per unit of f²."""
        return self.rate / (self.window[1] - self.window[0])

    @property
    def long_run_rate(self) -> float:
        """E λ far from the data: scale · (g² + γ)."""
        return float(self.scale * (self.prior_mean**2 + self.variance))

    def unit(self, times: Floats) -> Floats:
        """Times with the window at [0, 1]."""
        return (times - self.window[0]) / (self.window[1] - self.window[0])

    # -- f at unit times -----------------------------------------------------------------------

    def moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of f at unit times."""
        B = self.prior.features(x)
        residual = np.maximum(1.0 - (B**2).sum(axis=1), 0.0)
        mean = self.prior_mean + np.sqrt(self.variance) * (B @ self.mean)
        return mean, self.variance * (residual + ((B @ self.root) ** 2).sum(axis=1))

    def spread(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean, factor G and residual variance r with f = mean + Gξ + residual, ξ ~ N(0, I).

        What the inducing inputs leave unexplained is tiny inside the window. Where it is not
        (outside, or with few inducing inputs) G has further columns for it; the rest, less than
        SMALL_RESIDUAL of γ, is in the mean of f² but not in draws, which stay smooth.
        """
        B = self.prior.features(x)
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

    def integrals(self, start: Floats, stop: Floats) -> IntervalIntegrals:
        """Integrals over intervals on a grid that resolves f; in unit time."""
        low, high = self.unit(start), self.unit(stop)
        grid = self.grid(low.min(initial=0.0), high.max(initial=1.0))
        return IntervalIntegrals(grid, low, high)

    # -- the intensity -------------------------------------------------------------------------

    def intensity(self, times: Floats) -> Floats:
        """E λ(t) = scale · E f²."""
        mean, variance = self.moments(self.unit(times))
        return self.scale * (mean**2 + variance)

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of λ(t), shape (levels, times): λ/scale is a noncentral χ² variable with 1 df.

        P(f² ≤ q) = Φ((√q − μ)/σ) − Φ((−√q − μ)/σ), inverted.
        """
        mean, deviation = self._deviation(times)

        def cdf(root: Floats) -> Floats:  # of |f|, shape (levels, times)
            return np.asarray(ndtr((root - mean) / deviation) - ndtr((-root - mean) / deviation))

        top = np.abs(mean) + 40 * deviation
        root = solve_quantiles(cdf, np.zeros_like(top), top, levels)
        return np.asarray(self.scale * root**2)

    def intensity_lower(self, times: Floats, levels: Floats) -> Floats:
        """Lower edges of bands of λ(t), (levels, times): quantiles of f up to sign, squared.

        With the sign of f turned so that its mean is positive. Where f is well away from zero
        this is the quantile of λ; where f may be zero, so may λ, and the edge is zero, which a
        quantile of λ never is (docs/maths.md, section 7).
        """
        mean, deviation = self._deviation(times)
        root = np.abs(mean) + deviation * ndtri(levels)[:, None]
        return np.asarray(self.scale * np.maximum(root, 0.0) ** 2)

    def intensity_edges(self, times: Floats, low: Floats, high: Floats) -> Floats:
        """Lower and upper edges of bands of λ(t), (2, levels, times)."""
        return np.stack([self.intensity_lower(times, low), self.intensity_quantile(times, high)])

    def _deviation(self, times: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of f."""
        mean, variance = self.moments(self.unit(times))
        return mean, np.sqrt(np.maximum(variance, 1e-300))

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of λ at `times`, shape (size, len(times))."""
        return np.asarray(self.scale * self.draw(self.unit(times), size, rng).T ** 2)

    # -- the cumulative intensity --------------------------------------------------------------

    def expected_integral(self, start: Floats, stop: Floats) -> Floats:
        """E ∫ λ over each (start, stop], in closed form on the grid."""
        integrals = self.integrals(start, stop)
        mean, variance = self.moments(integrals.grid.nodes)
        return self.rate * integrals.apply(mean**2 + variance)

    def integral_quantile(self, start: Floats, stop: Floats, levels: Floats) -> Floats:
        """Quantiles of ∫ λ, shape (levels, intervals).

        ∫ f² is a quadratic form in Gaussians; its distribution function is Jensen and Solomon's
        approximation from the first three cumulants (docs/maths.md, section 7).
        """
        mean, variance, third = self._integral_cumulants(start, stop)

        def cdf(x: Floats) -> Floats:
            return quadratic_form_cdf(x, mean, variance, third)

        top = mean + 60 * np.sqrt(variance)
        return self.rate * solve_quantiles(cdf, np.zeros_like(top), top, levels)

    def sample_integrals(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> Floats:
        """Draws of ∫ λ over each interval, jointly, shape (size, len(start))."""
        integrals = self.integrals(start, stop)
        squares = self.draw(integrals.grid.nodes, size, rng) ** 2
        return np.asarray(self.rate * np.maximum(integrals.apply(squares), 0.0).T)

    def _integral_cumulants(self, start: Floats, stop: Floats) -> tuple[Floats, Floats, Floats]:
        """First three cumulants of ∫ f² (unit rate).

        With f = μ + Gξ: H = ∫ GᵀG, l = ∫ Gᵀμ; κ₁ = ∫ μ² + tr H, κ₂ = 2 tr H² + 4 lᵀl,
        κ₃ = 8 tr H³ + 24 lᵀHl. The independent part of the residual enters κ₁ only.
        """
        integrals = self.integrals(start, stop)
        mean, G, residual = self.spread(integrals.grid.nodes)
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
        return first, second, third
