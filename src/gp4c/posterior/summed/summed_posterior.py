"""The posterior of a sum of intensities: λ(t) = Σ_l λ_l(t), each a squared Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.posterior.quantiles import quadratic_form_cdf, solve_quantiles
from gp4c.posterior.sparse_posterior import Posterior

Floats = NDArray[np.float64]
Cumulants = tuple[Floats, Floats, Floats]

#: standard deviations above the mean that no quantile passes
_FAR = 60.0


@dataclass(frozen=True)
class SummedPosterior:
    """Independent intensities on one window, and their sum; questions are in the user's time.

    Sums of squares of Gaussians are quadratic forms: their cumulants add up, and quantiles are
    Jensen and Solomon's from the first three (docs/maths.md, section 7). One part alone answers
    for itself.

    Attributes
    ----------
    parts : tuple of Posterior
        At least one.
    """

    parts: tuple[Posterior, ...]

    def weighted(self, weights: Floats) -> SummedPosterior:
        """The sum with each part multiplied by a weight, (L,)."""
        pairs = zip(self.parts, weights, strict=True)
        return SummedPosterior(tuple(replace(p, rate=p.rate * float(w)) for p, w in pairs))

    @property
    def window(self) -> tuple[float, float]:
        """Of every part."""
        return self.parts[0].window

    @property
    def long_run_rate(self) -> float:
        """E λ far from the data."""
        return sum(part.long_run_rate for part in self.parts)

    # -- the intensity -------------------------------------------------------------------------

    def intensity(self, times: Floats) -> Floats:
        """E λ(t)."""
        return np.asarray(sum(part.intensity(times) for part in self.parts))

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of λ(t), shape (levels, times)."""
        if len(self.parts) == 1:
            return self.parts[0].intensity_quantile(times, levels)
        return _quantiles(self._added([_point_cumulants(p, times) for p in self.parts]), levels)

    def intensity_lower(self, times: Floats, levels: Floats) -> Floats:
        """Lower edges of bands of λ(t), (levels, times): quantiles.

        One part alone has an edge of zero where its f may be zero; a sum has its quantile there,
        since it is zero only where all parts are.
        """
        if len(self.parts) == 1:
            return self.parts[0].intensity_lower(times, levels)
        return self.intensity_quantile(times, levels)

    def intensity_edges(self, times: Floats, low: Floats, high: Floats) -> Floats:
        """Lower and upper edges of bands of λ(t), (2, levels, times)."""
        return np.stack([self.intensity_lower(times, low), self.intensity_quantile(times, high)])

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of λ at `times`, shape (size, len(times))."""
        return np.asarray(sum(p.sample_intensity(times, size, rng) for p in self.parts))

    # -- the cumulative intensity --------------------------------------------------------------

    def expected_integral(self, start: Floats, stop: Floats) -> Floats:
        """E ∫ λ over each (start, stop]."""
        return np.asarray(self.expected_integrals(start, stop).sum(axis=0))

    def expected_integrals(self, start: Floats, stop: Floats) -> Floats:
        """The same of each part, (L, intervals)."""
        return np.stack([part.expected_integral(start, stop) for part in self.parts])

    def integral_quantile(self, start: Floats, stop: Floats, levels: Floats) -> Floats:
        """Quantiles of ∫ λ, shape (levels, intervals)."""
        if len(self.parts) == 1:
            return self.parts[0].integral_quantile(start, stop, levels)
        each = []
        for part in self.parts:
            first, second, third = part._integral_cumulants(start, stop)
            each.append((part.rate * first, part.rate**2 * second, part.rate**3 * third))
        return _quantiles(self._added(each), levels)

    def sample_integrals(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> Floats:
        """Draws of ∫ λ over each interval, jointly, shape (size, len(start))."""
        return np.asarray(self.sample_parts(start, stop, size, rng).sum(axis=0))

    def sample_parts(
        self, start: Floats, stop: Floats, size: int, rng: np.random.Generator
    ) -> Floats:
        """The same of each part, (L, size, intervals)."""
        return np.stack([part.sample_integrals(start, stop, size, rng) for part in self.parts])

    @staticmethod
    def _added(each: list[Cumulants]) -> Cumulants:
        first, second, third = (np.sum(terms, axis=0) for terms in zip(*each, strict=True))
        return first, second, third


def _point_cumulants(part: Posterior, times: Floats) -> Cumulants:
    """First three cumulants of λ(t) = s f²: s(μ² + σ²), s²(2σ⁴ + 4μ²σ²), s³(8σ⁶ + 24μ²σ⁴)."""
    mean, variance = part.moments(part.unit(times))
    s, square = part.scale, mean**2
    return (
        s * (square + variance),
        s**2 * (2 * variance**2 + 4 * square * variance),
        s**3 * (8 * variance**3 + 24 * square * variance**2),
    )


def _quantiles(cumulants: Cumulants, levels: Floats) -> Floats:
    mean, variance, third = cumulants

    def cdf(x: Floats) -> Floats:
        return quadratic_form_cdf(x, mean, variance, third)

    top = mean + _FAR * np.sqrt(variance)
    return solve_quantiles(cdf, np.zeros_like(top), top, levels)
