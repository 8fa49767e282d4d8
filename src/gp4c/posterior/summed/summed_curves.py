"""The sum of the curves of several types of events, draw by draw of their joint posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.posterior.draws import COMPLETION_SEED, CurveDraws
from gp4c.posterior.quantiles import weighted_quantiles

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class SummedCurves(CurveDraws):
    """Draws of Σ λ_e: draw s is the sum of the draws ``who[:, s]`` of the types.

    Attributes
    ----------
    parts : tuple of CurveDraws
        The posterior of each type; its weights are those of the joint one.
    who : (T, S)
        Draw of each type.
    """

    parts: tuple[CurveDraws, ...] = ()
    who: Indices = None  # type: ignore[assignment]

    @classmethod
    def of(
        cls, parts: Sequence[CurveDraws], who: Indices, weights: Floats
    ) -> SummedCurves:  # fmt: skip
        """The sum of curves with weights of the tuples; a sum has no parameters of its own."""
        first, none, size = parts[0], np.zeros(0), who.shape[1]
        return cls(
            kernel=first.kernel, groups=(), weights=weights, variance=none,
            prior_mean=none, params=np.zeros((0, size)), coefficients=np.zeros((0, size)),
            chain=np.zeros(size, dtype=np.intp), window=first.window, rate=first.rate,
            parts=tuple(parts), who=who,
        )  # fmt: skip

    @property
    def long_run_rate(self) -> float:
        """E λ far from the data."""
        return float(sum(part.long_run_rate for part in self.parts))

    def multiplied(self, factor: Floats) -> CurveDraws:
        """The same draws times a factor each; types share draws of their own, so none."""
        raise NotImplementedError("multiply the parts")

    def intensities(self, times: Floats) -> Floats:
        """λ(t) of every draw, (times, S)."""
        each = [part.intensities(times)[:, row] for part, row in self._each()]
        return np.asarray(np.sum(each, axis=0))

    def intensity(self, times: Floats) -> Floats:
        """E λ(t)."""
        return np.asarray(np.sum([part.intensity(times) for part in self.parts], axis=0))

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of λ(t) over the draws, shape (levels, times)."""
        values = self.intensity_paths(times, np.arange(self.size)).T
        return weighted_quantiles(values, self.weights, levels)

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of λ at `times`, shape (size, len(times))."""
        chosen = self.choose(size, rng)
        each = [part.paths_of(times, row[chosen], rng) for part, row in self._each()]
        return np.asarray(np.sum(each, axis=0))

    def intensity_paths(self, times: Floats, who: Indices) -> Floats:
        """λ of chosen draws, (draws, times)."""
        seed = COMPLETION_SEED
        each = [
            part.paths_of(times, row[who], np.random.default_rng([seed, e]))
            for e, (part, row) in enumerate(self._each())
        ]
        return np.asarray(np.sum(each, axis=0))

    def expected_integral(
        self, start: Floats, stop: Floats, inputs: Floats | None = None
    ) -> Floats:
        """E ∫ λ over each (start, stop]."""
        each = [part.expected_integral(start, stop) for part in self.parts]
        return np.asarray(np.sum(each, axis=0))

    def integrals_of(
        self,
        start: Floats,
        stop: Floats,
        who: Indices,
        rng: np.random.Generator,
        inputs: Floats | None = None,
    ) -> Floats:
        """∫ λ over each interval of chosen draws, (intervals, len(who))."""
        each = [part.integrals_of(start, stop, row[who], rng) for part, row in self._each()]
        return np.asarray(np.sum(each, axis=0))

    def held_integrals(
        self, start: Floats, stop: Floats, who: Indices, rng: np.random.Generator
    ) -> Floats:
        """The same with the rate held at its value at the nearer end outside the window."""
        each = [part.held_integrals(start, stop, row[who], rng) for part, row in self._each()]
        return np.asarray(np.sum(each, axis=0))

    def _each(self) -> zip[tuple[CurveDraws, Indices]]:
        return zip(self.parts, self.who, strict=True)
