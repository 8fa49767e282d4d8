"""The mixture from which draws are taken: a Gaussian around each mode, with heavier tails.

Around a mode, in (ξ, l, …), level and parameters of the laws have a multivariate t law, and the
curve with the coefficients has a Gaussian given them. A quarter of the draws of the curve comes
from a wider Gaussian, stretched towards the prior where the data are strong.

Subjects that differ leave the height of a curve open however well its shape is known, and the
deviations of the shape grow with the height. The height is therefore a factor e^τ of its own, not
a Gaussian's direction (docs/maths_engine.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from gp4c.inference.engine.climb import Mode, Tilts
from gp4c.inference.engine.landscape import Landscape

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: degrees of freedom of level and parameters
TAILS = 6.0
#: share of the wider Gaussian, how far it goes from the data's precision to the prior's, and the
#: share of the prior's precision that it keeps
WIDE_SHARE, _TOWARDS_PRIOR, _BELOW_PRIOR = 0.25, 0.4, 0.8
#: deviation of ln height up to which the height is a factor; the prior shapes wider ones
_KNOWN_HEIGHT = 0.35
#: the lowest height, relative to the mode's: no draw goes there
_LOWEST = 1e-30


@dataclass(frozen=True)
class Component:
    """One mode's law: x = centre + map of (e, z), e a t vector, z a Gaussian one."""

    landscape: Landscape
    u: float
    centre: Floats
    tilt: Tilts
    tail_factor: Floats  # lower factor of the covariance of (l, parameters)
    regression: Floats  # of (ξ, β) on them
    axes: Floats  # of the precision of (ξ, β) given them
    precision: Floats

    @classmethod
    def around(cls, mode: Mode) -> Component:
        """The law around a mode."""
        land = mode.landscape
        tail, curve = _tail(land), _curve(land)
        root = mode.axes / np.sqrt(mode.precision)
        covariance = root @ root.T
        inner = covariance[np.ix_(tail, tail)]
        whole = (mode.axes * mode.precision) @ mode.axes.T
        precision, axes = np.linalg.eigh(whole[np.ix_(curve, curve)])
        return cls(
            landscape=land,
            u=mode.u,
            centre=mode.x,
            tilt=mode.tilt,
            tail_factor=np.asarray(np.linalg.cholesky(inner)),
            regression=np.asarray(np.linalg.solve(inner, covariance[np.ix_(tail, curve)]).T),
            axes=axes,
            precision=precision,
        )

    @cached_property
    def widening(self) -> Floats:
        """Deviations of the wider Gaussian, along the axes, relative to the narrow one."""
        lam = self.precision  # continuous at 1, where the data say nothing and rounding decides
        wide = _BELOW_PRIOR * np.minimum(lam, 1.0) + _TOWARDS_PRIOR * np.maximum(lam - 1.0, 0.0)
        return np.sqrt(lam / wide)

    def noise(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """e and z of so many draws, an even number; every second one mirrors the one before.

        z is drawn in the coordinates of the curve and turned to the axes: where precisions are
        equal, as where there are no data, rounding chooses the axes, and must not choose the draws.
        """
        half = size // 2
        tail = rng.standard_normal((len(self.tail_factor), half))
        tail /= np.sqrt(rng.chisquare(TAILS, half) / TAILS)
        z = self.axes.T @ rng.standard_normal((len(self.precision), half))
        z = np.where(rng.random(half) < WIDE_SHARE, z * self.widening[:, None], z)
        return np.concatenate([tail, -tail], axis=1), np.concatenate([z, -z], axis=1)

    def points(self, e: Floats, z: Floats) -> Floats:
        """x of the noise, (D, S)."""
        land = self.landscape
        offset = self.tail_factor @ e
        x = np.empty((land.dimension, e.shape[1]))
        x[_tail(land)] = offset
        x[_curve(land)] = self.regression @ offset + self.axes @ (self._raised(z) / self.root)
        x += self.centre[:, None]
        m = land.size
        x[:m] = self._stretched(x[:m] + self._b, x[m] - self.centre[m]) - self._b
        return x

    def residuals(self, x: Floats) -> tuple[Floats, Floats]:
        """e and z of points: the inverse of :meth:`points`."""
        land = self.landscape
        m = land.size
        d = x - self.centre[:, None]
        d[:m] = self._stretched(x[:m] + self._b, -d[m]) - self._b - self.centre[:m, None]
        tail = d[_tail(land)]
        e = solve_triangular(self.tail_factor, tail, lower=True)
        z = self.root * (self.axes.T @ (d[_curve(land)] - self.regression @ tail))
        return e, self._lowered(z)

    def log_density(self, x: Floats) -> Floats:
        """Log density at points (D, S)."""
        e, z = self.residuals(x)
        return self.noise_density(e, z) + self.log_scale(x, z)

    def noise_density(self, e: Floats, z: Floats) -> Floats:
        """Log density of the noise itself."""
        n, m = len(e), len(z)
        t = gammaln((TAILS + n) / 2) - gammaln(TAILS / 2) - n / 2 * np.log(TAILS * np.pi)
        t = t - (TAILS + n) / 2 * np.log1p((e * e).sum(axis=0) / TAILS)
        narrow = -0.5 * (z * z).sum(axis=0) + np.log(1 - WIDE_SHARE)
        spread = z / self.widening[:, None]
        wide = -0.5 * (spread * spread).sum(axis=0) - np.log(self.widening).sum()
        both = np.logaddexp(narrow, wide + np.log(WIDE_SHARE))
        return np.asarray(t + both - m / 2 * np.log(2 * np.pi))

    def log_scale(self, x: Floats, z: Floats) -> Floats:
        """−ln |∂x/∂(e, z)| at points and their z."""
        m = self.landscape.size
        fixed = np.log(self.root).sum() - np.log(np.diag(self.tail_factor)).sum()
        scale = fixed + self.tilt.trace / 2 * (x[m] - self.centre[m])
        if self._raises:
            scale = scale - self._growth * self._log_height(self._upwards @ z)
        return np.asarray(scale)

    def _stretched(self, values: Floats, change: Floats) -> Floats:
        """e^{−P · change / 2} times each column of values (M, S)."""
        axes, shares = self.tilt.axes[0], self.tilt.shares[0][:, None]
        return np.asarray(axes @ (np.exp(-0.5 * shares * change) * (axes.T @ values)))

    # -- the height as a factor -----------------------------------------------------------------

    def _raised(self, z: Floats) -> Floats:
        """z with its part t along the height made a factor: ((e^τ − 1)/σ, e^{κτ} z⊥)."""
        if not self._raises:
            return z
        t, way = self._upwards @ z, self._upwards[:, None]
        tau = self._log_height(t)
        return np.asarray(
            way * (np.expm1(tau) / self._spread) + np.exp(self._grows * tau) * (z - way * t)
        )

    def _lowered(self, z: Floats) -> Floats:
        """The inverse of :meth:`_raised`; very large where there is none, below a curve of zero."""
        if not self._raises:
            return z
        t, way = self._upwards @ z, self._upwards[:, None]
        tau = np.log(np.maximum(1.0 + self._spread * t, _LOWEST))
        back = tau / self._spread - self._growth * self._spread
        return np.asarray(way * back + np.exp(-self._grows * tau) * (z - way * t))

    def _log_height(self, t: Floats) -> Floats:
        """τ = σt + σ²·growth: volume grows with the height, so that its mean is above the mode."""
        return np.asarray(self._spread * (t + self._growth * self._spread))

    @property
    def _raises(self) -> bool:
        return self._spread < _KNOWN_HEIGHT

    @cached_property
    def _height(self) -> Floats:
        """ξ + b in the units of z: along it the curve is multiplied."""
        curve = np.zeros(len(self.precision))
        m = self.landscape.size
        curve[:m] = self.centre[:m] + self._b[:, 0]
        return np.asarray(self.root[:, 0] * (self.axes.T @ curve))

    @cached_property
    def _spread(self) -> float:
        """σ, the deviation of ln height given level and parameters."""
        return float(1.0 / np.linalg.norm(self._height))

    @cached_property
    def _upwards(self) -> Floats:
        """The direction of the height among z, of length 1."""
        return self._height * self._spread

    @cached_property
    def _growth(self) -> float:
        """d ln |∂z′/∂z| / dτ."""
        return 1.0 + self._grows * (len(self.precision) - 1)

    @cached_property
    def _grows(self) -> float:
        """κ, the mean share of the data, not of the prior, in what is known of z."""
        return float(np.clip(1.0 - np.mean(1.0 / self.precision), 0.0, 1.0))

    @cached_property
    def root(self) -> Floats:
        """Square roots of the precision, as a column."""
        return np.sqrt(self.precision)[:, None]

    @cached_property
    def _b(self) -> Floats:
        return self.landscape.constants(np.array([self.u]))


def _tail(land: Landscape) -> Indices:
    """Rows of level and parameters."""
    return np.arange(land.size, land.size + 1 + land.task.n_params)


def _curve(land: Landscape) -> Indices:
    """Rows of the inducing values and of the coefficients."""
    return np.asarray(np.r_[0 : land.size, land.size + 1 + land.task.n_params : land.dimension])
