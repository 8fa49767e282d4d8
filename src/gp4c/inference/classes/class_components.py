"""The laws from which draws of the classes are taken: one around each mode.

Around a mode, in (ξ, l, …), levels, shares and parameters have a multivariate t law and the curves
a Gaussian given them; a quarter of the draws of the curves comes from a wider one. The density of
a draw is averaged over all labellings of the classes, so that the C! copies of a mode are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from gp4c.inference.classes.class_climb import ClassMode, ClassTilts, constants
from gp4c.inference.classes.class_landscape import ClassLandscape
from gp4c.inference.engine.components import TAILS, WIDE_SHARE

Floats = NDArray[np.float64]

#: how far the wider Gaussian goes from the data's precision to the prior's
_TOWARDS_PRIOR = 0.4


@dataclass(frozen=True)
class ClassComponent:
    """One mode's law: x = centre + map of (e, z), e a t vector, z a Gaussian one."""

    space: ClassLandscape
    centre: Floats
    tilts: ClassTilts
    tail_factor: Floats  # lower factor of the covariance of the tail
    regression: Floats  # of the curves on the tail
    axes: Floats  # of the precision of the curves given the tail
    precision: Floats

    @classmethod
    def around(cls, mode: ClassMode) -> ClassComponent:
        """The law around a mode."""
        tail, curve = mode.space.tail_rows, mode.space.curve_rows
        root = mode.axes / np.sqrt(mode.precision)
        covariance = root @ root.T
        inner = covariance[np.ix_(tail, tail)]
        whole = (mode.axes * mode.precision) @ mode.axes.T
        precision, axes = np.linalg.eigh(whole[np.ix_(curve, curve)])
        return cls(
            space=mode.space,
            centre=mode.x,
            tilts=mode.tilts,
            tail_factor=np.asarray(np.linalg.cholesky(inner)),
            regression=np.asarray(np.linalg.solve(inner, covariance[np.ix_(tail, curve)]).T),
            axes=axes,
            precision=precision,
        )

    @cached_property
    def widening(self) -> Floats:
        """Deviations of the wider Gaussian along the axes, relative to the narrow one."""
        lam = self.precision
        wide = np.minimum(lam, 1.0) + _TOWARDS_PRIOR * np.maximum(lam - 1.0, 0.0)
        return np.sqrt(lam / wide)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """So many draws, (D, size); the second half mirrors the first."""
        half = -(-size // 2)
        e = rng.standard_normal((len(self.tail_factor), half))
        e /= np.sqrt(rng.chisquare(TAILS, half) / TAILS)
        z = self.axes.T @ rng.standard_normal((len(self.precision), half))
        z = np.where(rng.random(half) < WIDE_SHARE, z * self.widening[:, None], z)
        return self._points(np.hstack([e, -e])[:, :size], np.hstack([z, -z])[:, :size])

    def _points(self, e: Floats, z: Floats) -> Floats:
        space, b = self.space, constants(self.space)
        offset, x = self.tail_factor @ e, np.empty((self.space.dimension, e.shape[1]))
        x[space.tail_rows] = offset
        x[space.curve_rows] = self.regression @ offset + self.axes @ (z / self._root)
        x += self.centre[:, None]
        for c, rows, level in self._classes():
            change = x[level] - self.centre[level]
            x[rows] = self.tilts.stretched(c, x[rows] + b, change) - b
        return x

    def log_density(self, x: Floats) -> Floats:
        """Log density at points (D, S), averaged over the labellings of the classes."""
        each = [self._log_density(x[rows]) for rows in self.space.permuted()]
        return np.asarray(logsumexp(each, axis=0) - np.log(len(each)))

    def _log_density(self, x: Floats) -> Floats:
        space, b = self.space, constants(self.space)
        d, scale = x - self.centre[:, None], self._log_scale
        for c, rows, level in self._classes():
            d[rows] = self.tilts.stretched(c, x[rows] + b, -d[level]) - b
            d[rows] -= self.centre[rows, None]
            scale = scale + self.tilts.trace[c] / 2 * d[level]
        tail = d[space.tail_rows]
        e = solve_triangular(self.tail_factor, tail, lower=True)
        z = self._root * (self.axes.T @ (d[space.curve_rows] - self.regression @ tail))
        return self._noise_density(e, z) + scale

    def _noise_density(self, e: Floats, z: Floats) -> Floats:
        n, m = len(e), len(z)
        t = gammaln((TAILS + n) / 2) - gammaln(TAILS / 2) - n / 2 * np.log(TAILS * np.pi)
        t = t - (TAILS + n) / 2 * np.log1p((e * e).sum(axis=0) / TAILS)
        narrow = -0.5 * (z * z).sum(axis=0) + np.log(1 - WIDE_SHARE)
        spread = z / self.widening[:, None]
        wide = -0.5 * (spread * spread).sum(axis=0) - np.log(self.widening).sum()
        both = np.logaddexp(narrow, wide + np.log(WIDE_SHARE))
        return np.asarray(t + both - m / 2 * np.log(2 * np.pi))

    def _classes(self) -> list[tuple[int, slice, int]]:
        """Label, rows of the curve and row of the level of every class."""
        m, block = self.space.size, self.space.block
        return [(c, slice(c * block, c * block + m), c * block + m) for c in self.space.labels]

    @cached_property
    def _root(self) -> Floats:
        return np.sqrt(self.precision)[:, None]

    @cached_property
    def _log_scale(self) -> Floats:
        """−ln |∂x/∂(e, z)| at the centre."""
        return np.asarray(np.log(self._root).sum() - np.log(np.diag(self.tail_factor)).sum())
