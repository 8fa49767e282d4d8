r"""The log density where factors of the rate change within intervals.

A point has the rows (v, l, parameters, β, w). At node q of sheet p the rate is

.. math:: e^{l + x_{pq}^\top w} h_q^2 ,

so that w is to its features what l is to 1: all derivatives in (l, w) are those of l times the
features (1, x) (docs/maths_modulation.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.landscape import Landscape
from gp4c.model.modulation.modulator import Modulation

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class ModulatedLandscape(Landscape):
    """ln prior + ln likelihood at one length-scale, with coefficients w of a modulation."""

    @property
    def modulation(self) -> Modulation:
        """The factors."""
        found = self.task.likelihood.cells.modulation
        assert found is not None
        return found

    @cached_property
    def factors(self) -> Floats:
        """x at the nodes of all sheets, (N, r)."""
        cells = self.task.likelihood.cells
        return self.modulation.sheets(self.nodes.nodes, cells.sheets)

    def coefficients(self, x: Floats) -> Floats:
        """w, the last rows of a point."""
        return x[self.dimension - self.modulation.size :]

    @property
    def curve_rows(self) -> Indices:
        """Those of v, l and w."""
        w = np.arange(self.dimension - self.modulation.size, self.dimension)
        return np.concatenate([np.arange(self.size + 1), w])

    def spread(self, values: Floats) -> Floats:
        """Values at the nodes (Q, S), on every sheet."""
        return values if self.nodes.n_sheets == 1 else np.tile(values, (self.nodes.n_sheets, 1))

    def fold(self, values: Floats) -> Floats:
        """Sums over the sheets, (N, S) → (Q, S)."""
        if self.nodes.n_sheets == 1:
            return values
        return np.asarray(values.reshape(self.nodes.n_sheets, -1, values.shape[1]).sum(axis=0))

    def squares(self, curve: Floats, x: Floats) -> Floats:
        """e^{l + xᵀw} h² on the sheets."""
        return self._scales(x) * self.spread(curve**2)

    def scaled(self, h: Floats, x: Floats) -> tuple[Floats, Floats]:
        """e^{l + xᵀw}, (N, C), and times h²."""
        scale = self._scales(x)
        return scale, scale * self.spread(h * h)

    def _scales(self, x: Floats) -> Floats:
        return np.asarray(np.exp(x[self.size] + self.factors @ self.coefficients(x)))

    @property
    def n_factors(self) -> int:
        """One on every node of every sheet."""
        return len(self.factors)

    def slopes_of_factors(self, weights: Floats) -> Floats:
        """xᵀ weights."""
        return np.asarray(self.factors.T @ weights)

    def _add_curve(
        self, k: Floats, h: Floats, weights: Floats, gradient: Floats, hessian: Floats
    ) -> None:
        """The same in (v, l, w): (1, x) stands where 1 stood."""
        m, w = self.size, slice(self.dimension - self.modulation.size, self.dimension)
        high = self.spread(h)
        slope = weights * high.T
        both = slope * high.T
        gradient[:, :m] = 2 * k[:, None] * (self.fold(slope.T).T @ self.features)
        gradient[:, m], gradient[:, w] = both.sum(axis=1), both @ self.factors
        at_nodes = self.fold(weights.T).T[:, :, None] * self.features
        hessian[:, :m, :m] = (2 * k**2)[:, None, None] * (self.features.T @ at_nodes)
        hessian[:, :m, m] = hessian[:, m, :m] = gradient[:, :m]
        hessian[:, m, m] = gradient[:, m]
        hessian[:, m, w] = hessian[:, w, m] = gradient[:, w]
        for c in range(len(k)):
            hessian[c, w, w] = self.factors.T @ (both[c][:, None] * self.factors)
            crossed = self.fold(slope[c][:, None] * self.factors)
            hessian[c, :m, w] = 2 * k[c] * (self.features.T @ crossed)
            hessian[c, w, :m] = hessian[c, :m, w].T

    def _jacobian(self, k: float, h: Floats, scale: Floats, square: Floats) -> Floats:
        """Integrals of the rate's derivatives in (v, l, w)."""
        by_v = self.nodes.apply_product(scale, (2 * k * h)[:, None] * self.features)
        beside = np.concatenate([np.ones((len(square), 1)), self.factors], axis=1)
        return np.concatenate([by_v, self.nodes.apply(square[:, None] * beside)], axis=1)
