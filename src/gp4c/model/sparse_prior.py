"""The whitened sparse Gaussian-process prior: f(x) = g + √γ b(x)ᵀv + residual, v ~ N(0, I)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from gp4c.model.kernels import Kernel

Floats = NDArray[np.float64]

#: added to the diagonal of K, as in the paper (section 5, "Experiment Settings")
JITTER = 1e-6


@dataclass(frozen=True)
class Hyper:
    """Hyper-parameters in unit time (the window is [0, 1]) and unit rate.

    Attributes
    ----------
    length_scale : a
    variance : γ
    mean : g, the constant prior mean of f
    shape : α of the gamma frailty; infinite without one
    """

    length_scale: float
    variance: float
    mean: float
    shape: float = np.inf

    def to_vector(self) -> Floats:
        """(ln a, ln γ, g, ln α), the coordinates of the search."""
        return np.array(
            [np.log(self.length_scale), np.log(self.variance), self.mean, np.log(self.shape)]
        )

    @classmethod
    def from_vector(cls, vector: Floats) -> Hyper:
        """Invert :meth:`to_vector`."""
        a, gamma, g, alpha = vector
        return cls(float(np.exp(a)), float(np.exp(gamma)), float(g), float(np.exp(alpha)))

    def with_length_scale(self, length_scale: float) -> Hyper:
        """The same γ, g and α at another length-scale."""
        return replace(self, length_scale=length_scale)


@dataclass(frozen=True)
class SparsePrior:
    """The kernel at M inducing inputs z, factorised: K + jitter = L Lᵀ, b(x) = L⁻¹ k(z, x)."""

    kernel: Kernel
    inducing: Floats
    length_scale: float

    @cached_property
    def factor(self) -> Floats:
        """L, lower triangular."""
        K = self.covariance(self.inducing, self.inducing)
        return np.asarray(np.linalg.cholesky(K + JITTER * np.eye(len(K))))

    @cached_property
    def inverse_factor(self) -> Floats:
        """L⁻¹; the jitter keeps it accurate to about 1e-13."""
        return np.asarray(lapack.dtrtri(self.factor, lower=1)[0])

    def covariance(self, x: Floats, y: Floats) -> Floats:
        """k(x, y) for all pairs along the last axis: shape (..., X, Y)."""
        return self.kernel(np.abs(x[..., :, None] - y[..., None, :]), self.length_scale)

    def covariance_derivative(self, x: Floats, y: Floats) -> Floats:
        """∂k(x, y)/∂ln a for all pairs along the last axis."""
        return self.kernel.log_derivative(
            np.abs(x[..., :, None] - y[..., None, :]), self.length_scale
        )

    def features(self, x: Floats) -> Floats:
        """b(x)ᵀ for each x, shape (X, M)."""
        return np.asarray(self.covariance(x, self.inducing) @ self.inverse_factor.T)

    def features_derivative(self, x: Floats, features: Floats) -> Floats:
        """∂b(x)ᵀ/∂ln a: B = k L⁻ᵀ and dL = L ⌊L⁻¹ dK L⁻ᵀ⌋, ⌊·⌋ the lower half."""
        direct = self.covariance_derivative(x, self.inducing) @ self.inverse_factor.T
        return np.asarray(direct - features @ self._factor_derivative.T)

    @cached_property
    def _factor_derivative(self) -> Floats:
        """⌊L⁻¹ (∂K/∂ln a) L⁻ᵀ⌋: lower triangle with half the diagonal."""
        dK = self.covariance_derivative(self.inducing, self.inducing)
        lower = np.tril(self.inverse_factor @ dK @ self.inverse_factor.T)
        lower.ravel()[:: len(lower) + 1] /= 2
        return np.asarray(lower)
