r"""Effects of covariates that change over time.

A covariate z with a constant effect multiplies the rate by exp(βz). Over time the effect is
β + δ(s), with a smooth deviation δ whose mean over the window is 0, so that β stays the average of
the log ratio. δ is a Gaussian process with deviation τ and a squared exponential covariance of
length-scale ℓ, given that its mean is 0:

.. math::
    k_0(s, t) = k(s, t) - \frac{m(s) m(t)}{\bar m}, \quad
    m(s) = \int_0^1 k(s, t)\,dt, \quad \bar m = \int_0^1 m .

Its first eigenfunctions, scaled by the roots of their eigenvalues, are the features: they hold all
but 0.1% of the variance. τ is ½ per step between the two values of a covariate that has two, and
per two deviations of any other (docs/maths_modulation.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from gp4c.model.modulation.modulator import Modulator
from gp4c.model.quadrature import gauss_legendre

Floats = NDArray[np.float64]

#: deviation of the log ratio around its average, length-scale in windows, eigenfunctions kept
DEVIATION, LENGTH, SIZE = 0.5, 0.35, 5
#: nodes of the eigenproblem; eigenvalues to 1e-12
_NODES = 48


@dataclass(frozen=True)
class OverTime(Modulator):
    """A smooth ratio curve for each column of a covariate.

    Attributes
    ----------
    label : str
        The covariate, or function of it, inside ``over_time()``.
    names : tuple of str
        Its columns in the regression, such as ``"arm[b]"``.
    columns : tuple of int
        Where they stand among the columns of the regression.
    units : (c,)
        Step of each column over which the log ratio deviates by ½.
    """

    label: str
    names: tuple[str, ...]
    columns: tuple[int, ...]
    units: Floats

    name = "over_time"

    @property
    def size(self) -> int:
        """The eigenfunctions, once for each column."""
        return SIZE * len(self.names)

    @property
    def neutral(self) -> Floats:
        """Average covariates, which are 0."""
        return np.zeros(len(self.names))

    def over(self, window: tuple[float, float]) -> Self:
        """The same effects; they deviate over whatever window there is."""
        return self

    def features(self, x: Floats, inputs: Floats, goes_on: bool) -> Floats:
        """z / unit times the eigenfunctions; outside the window as at its nearer end."""
        basis = deviations(np.clip(x, 0.0, 1.0))
        return np.concatenate([z * basis for z in inputs / self.units], axis=1)


def deviations(x: Floats) -> Floats:
    """Features of δ at times in windows, (Q, SIZE)."""
    nodes, projection = _eigenfunctions()
    return np.asarray(_centred(x, nodes) @ projection)


def _centred(x: Floats, y: Floats) -> Floats:
    """k₀ at all pairs."""
    k = np.exp(-0.5 * ((x[:, None] - y) / LENGTH) ** 2)
    whole = LENGTH * np.sqrt(np.pi / 2)

    def mean(s: Floats) -> Floats:
        root = LENGTH * np.sqrt(2)
        return np.asarray(whole * (erf((1 - s) / root) + erf(s / root)))

    a = 1.0 / LENGTH
    total = 2 * whole * erf(a / np.sqrt(2)) - 2 * LENGTH**2 * (1 - np.exp(-0.5 * a * a))
    return np.asarray(DEVIATION**2 * (k - np.outer(mean(x), mean(y)) / total))


@lru_cache(maxsize=1)
def _eigenfunctions() -> tuple[Floats, Floats]:
    """Nodes, and what takes k₀(s, nodes) to √λ φ(s): Nyström's method with Gauss nodes."""
    x, weights = gauss_legendre(_NODES)
    nodes, weights = (x + 1) / 2, weights / 2
    root = np.sqrt(weights)
    values, vectors = np.linalg.eigh(root[:, None] * _centred(nodes, nodes) * root)
    values, vectors = values[::-1][:SIZE], vectors[:, ::-1][:, :SIZE]
    vectors = vectors * np.sign(vectors[-1])  # positive at the end of the window, on any machine
    projection = root[:, None] * vectors / np.sqrt(values)
    projection.flags.writeable = nodes.flags.writeable = False
    return nodes, projection
