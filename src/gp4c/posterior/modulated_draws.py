"""Weighted draws of a rate with factors that change within intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.model.modulation.modulator import Modulation
from gp4c.model.modulation.sheets import SheetIntegrals
from gp4c.model.quadrature import Grid
from gp4c.posterior.draws import HOLD, ORDER, OUTER_PANELS, TREND, CurveDraws
from gp4c.posterior.quantiles import weighted_quantiles

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class ModulatedDraws(CurveDraws):
    """Draws of λ(t) = scale · f(t)² exp(x(t)ᵀw).

    Outside the window the factors go on as the model says, unless another way is asked for: with
    "prior" f returns to its level and a trend stays as it is at the window's end, with "hold" f
    stays too. A season always goes on.

    Attributes
    ----------
    modulation : Modulation
    modulating : (r, S)
        w of each draw.
    inputs : (i,)
        What a curve brings to the features where nothing else is said.
    """

    modulation: Modulation
    modulating: Floats
    inputs: Floats

    def with_inputs(self, inputs: Floats) -> ModulatedDraws:
        """The same draws, curves being those of rows with these inputs."""
        return replace(self, inputs=inputs)

    # -- the intensity ----------------------------------------------------------------------

    def log_factors(self, times: Floats, who: Indices | slice = slice(None)) -> Floats:
        """x(t)ᵀw of chosen draws at times of the user, (times, draws)."""
        x = self.modulation.shown(self.unit(times))
        features = self.modulation.features(x, self.inputs)
        return np.asarray(features @ self.modulating[:, who])

    def intensities(self, times: Floats) -> Floats:
        """λ(t) of every draw, (times, S); outside the window its mean given v."""
        return np.asarray(super().intensities(times) * np.exp(self.log_factors(times)))

    def intensity(self, times: Floats) -> Floats:
        """E λ(t)."""
        return np.asarray(self.intensities(times) @ self.weights)

    def intensity_quantile(self, times: Floats, levels: Floats) -> Floats:
        """Quantiles of λ(t) over the draws, shape (levels, times)."""
        values = self._completed_intensities(times) * np.exp(self.log_factors(times))
        return weighted_quantiles(values, self.weights, levels)

    def sample_intensity(self, times: Floats, size: int, rng: np.random.Generator) -> Floats:
        """Draws of λ at `times`, shape (size, len(times))."""
        who, x = self.choose(size, rng), self.unit(times)
        paths = np.empty((len(x), size))
        for process, chosen in self._share(who):
            paths[:, chosen] = self._paths(process, x, who[chosen], rng)
        return np.asarray(self.scale * (paths**2 * np.exp(self.log_factors(times, who))).T)

    def intensity_paths(self, times: Floats, who: Indices) -> Floats:
        """λ of chosen draws at times in the window, (draws, times)."""
        return super().intensity_paths(times, who) * np.exp(self.log_factors(times, who)).T

    # -- the cumulative intensity --------------------------------------------------------------

    def expected_integral(
        self, start: Floats, stop: Floats, inputs: Floats | None = None
    ) -> Floats:
        """E ∫ λ over each (start, stop]; what v leaves open outside the window in closed form."""
        return self.mean_integrals(start, stop, TREND, inputs)

    def integrals_of(
        self,
        start: Floats,
        stop: Floats,
        who: Indices,
        rng: np.random.Generator,
        inputs: Floats | None = None,
    ) -> Floats:
        """∫ λ over each interval of chosen draws, (intervals, len(who))."""
        return self.beyond_integrals(start, stop, who, rng, TREND, inputs)

    def beyond_integrals(
        self,
        start: Floats,
        stop: Floats,
        who: Indices,
        rng: np.random.Generator,
        beyond: str,
        inputs: Floats | None = None,
    ) -> Floats:
        """∫ λ over each interval of chosen draws, (intervals, len(who))."""
        areas = self._areas(start, stop, beyond, inputs)
        x = np.clip(areas.grid.nodes, 0.0, 1.0) if beyond == HOLD else areas.grid.nodes
        result = np.empty((len(start), len(who)))
        for process, chosen in self._share(who):
            squares = self._paths(process, x, who[chosen], rng) ** 2
            found = areas.apply(squares, self.modulating[:, who[chosen]])
            result[:, chosen] = np.maximum(found, 0.0)
        return self.rate * result

    def mean_integrals(
        self, start: Floats, stop: Floats, beyond: str, inputs: Floats | None = None
    ) -> Floats:
        """The mean of :meth:`beyond_integrals` over the posterior."""
        areas = self._areas(start, stop, beyond, inputs)
        x = np.clip(areas.grid.nodes, 0.0, 1.0) if beyond == HOLD else areas.grid.nodes
        total = np.zeros(len(start))
        for process in self._processes:
            for some in _some(process.who):
                squares = self._means(process, x, some) ** 2
                squares += np.outer(process.residual(x), self.variance[some])
                total += areas.apply(squares, self.modulating[:, some]) @ self.weights[some]
        return self.rate * total

    def held_integrals(
        self, start: Floats, stop: Floats, who: Indices, rng: np.random.Generator
    ) -> Floats:
        """f and trend as they are at the nearer end outside the window; the season goes on."""
        return self.beyond_integrals(start, stop, who, rng, HOLD)

    def _areas(
        self, start: Floats, stop: Floats, beyond: str, inputs: Floats | None
    ) -> SheetIntegrals:
        """What takes f² at the nodes of one grid for all draws to integrals over intervals."""
        low, high = self.unit(start), self.unit(stop)
        if inputs is None:
            inputs = np.tile(self.inputs, (len(start), 1))
        grid = self._grid(low.min(initial=0.0), high.max(initial=1.0))
        return SheetIntegrals(self.modulation, grid, low, high, inputs, beyond == TREND)

    def _grid(self, low: float, high: float) -> Grid:
        """Panels for the shortest length-scale and for the factors."""
        size = max(len(group.inducing) for group in self.groups)
        shortest = min(group.length_scale for group in self.groups)
        edges = [np.linspace(0.0, 1.0, max(size, 2))]
        for gap, origin, sign in ((-low, 0.0, -1.0), (high - 1.0, 1.0, 1.0)):
            if gap > 0:
                panels = int(np.clip(np.ceil(gap / shortest), 1, OUTER_PANELS))
                edges.append(origin + sign * np.linspace(0.0, gap, panels + 1))
        return Grid.on(self.modulation.refined(np.unique(np.concatenate(edges))), ORDER)


def modulated(draws: CurveDraws, modulation: Modulation, modulating: Floats) -> ModulatedDraws:
    """Draws of curves with those of the coefficients of a modulation."""
    plain = {one.name: getattr(draws, one.name) for one in fields(draws)}
    return ModulatedDraws(
        **plain, modulation=modulation, modulating=modulating, inputs=modulation.neutral
    )


def _some(who: Indices, most: int = 500) -> Iterator[Indices]:
    """Draws, so many at a time."""
    for first in range(0, len(who), most):
        yield who[first : first + most]
