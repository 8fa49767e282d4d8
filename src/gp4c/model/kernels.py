"""Stationary covariances of unit variance, in a length-scale a.

A kernel is a function of the distance and of a; everything else that models need (the sparse
basis, integrals over intervals) is built from that. The squared exponential also has closed
forms for its interval integrals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Floats = NDArray[np.float64]


#: every kernel that can be asked for by name; a kernel joins by being defined
KERNELS: dict[str, Kernel] = {}

#: step of the difference that stands in for a derivative which a kernel does not give
_STEP = 1e-5


class Kernel(ABC):
    """A covariance. Subclasses with a `name` register themselves in `KERNELS`.

    Attributes
    ----------
    name : str
    title : str
        Its name in a methods section.
    spacing : float
        Spacing of inducing inputs, in length-scales, at which the sparse prior is resolved.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    spacing: ClassVar[float] = 0.35

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "name" in vars(cls):
            KERNELS[cls.name] = cls()

    @abstractmethod
    def __call__(self, distance: Floats, length_scale: float) -> Floats:
        """k(r) at distances r ≥ 0, with k(0) = 1."""

    def interval_nodes(self, length: Floats, tol: float = 1e-8) -> NDArray[np.intp]:
        """Gauss–Legendre nodes for ∫ f² over intervals of so many length-scales.

        The default suits kernels with a kink at 0, which leaves about 1e-5 whatever `tol` asks.
        """
        return np.ceil(16.0 + 12.0 * length).astype(np.intp)

    def log_derivative(self, distance: Floats, length_scale: float) -> Floats:
        """∂k/∂ln a; by a central difference unless a kernel knows better."""
        up, down = (self(distance, length_scale * np.exp(s)) for s in (_STEP, -_STEP))
        return np.asarray((up - down) / (2 * _STEP))


class SquaredExponential(Kernel):
    """k(r) = exp(−r²/2a²), the kernel of the paper (its ARD function without γ)."""

    name = "se"
    title = "squared exponential"
    spacing = 0.7

    def __call__(self, distance: Floats, length_scale: float) -> Floats:
        """k(r)."""
        return np.exp(-0.5 * (distance / length_scale) ** 2)

    def interval_nodes(self, length: Floats, tol: float = 1e-8) -> NDArray[np.intp]:
        """Nodes per interval: E ln ∫ f² to `tol` even for a q as wide as the prior."""
        finer = -np.log10(np.clip(tol, 1e-12, 1e-4)) - 5.0  # digits beyond the fifth
        least = 3.4 + 0.5 * finer + (1.7 + 0.12 * finer) * length
        return np.asarray(np.ceil(least), dtype=np.intp)

    def log_derivative(self, distance: Floats, length_scale: float) -> Floats:
        """∂k/∂ln a = k · r²/a²."""
        scaled = (distance / length_scale) ** 2
        return np.asarray(scaled * np.exp(-0.5 * scaled))

    def integral(self, z: Floats, start: Floats, stop: Floats, length_scale: float) -> Floats:
        """∫ k(z_i, x) dx over each (start, stop], shape (J, M), in closed form."""
        scale = np.sqrt(2.0) * length_scale
        upper, lower = (stop[:, None] - z) / scale, (start[:, None] - z) / scale
        return np.asarray(np.sqrt(np.pi / 2) * length_scale * (erf(upper) - erf(lower)))

    def overlap(self, z: Floats, start: Floats, stop: Floats, length_scale: float) -> Floats:
        """Φ: ∫ k(z_i, x) k(x, z_l) dx over each (start, stop], shape (J, M, M), in closed form.

        The product of two bumps is a bump at the midpoint z̄ (equation (9) of the paper).
        """
        gap = z[:, None] - z[None, :]
        middle = (z[:, None] + z[None, :]) / 2
        upper = (stop[:, None, None] - middle) / length_scale
        lower = (start[:, None, None] - middle) / length_scale
        mass = np.sqrt(np.pi) / 2 * length_scale * (erf(upper) - erf(lower))
        return np.asarray(np.exp(-((gap / (2 * length_scale)) ** 2)) * mass)


class Matern32(Kernel):
    """k(r) = (1 + s) exp(−s), s = √3 r/a: rates with sudden changes of slope."""

    name = "matern32"
    title = "Matérn 3/2"
    spacing = 0.35

    def __call__(self, distance: Floats, length_scale: float) -> Floats:
        """k(r)."""
        s = np.sqrt(3.0) * distance / length_scale
        return np.asarray((1 + s) * np.exp(-s))

    def log_derivative(self, distance: Floats, length_scale: float) -> Floats:
        """∂k/∂ln a = s² exp(−s)."""
        s = np.sqrt(3.0) * distance / length_scale
        return np.asarray(s**2 * np.exp(-s))


class Matern52(Kernel):
    """k(r) = (1 + s + s²/3) exp(−s), s = √5 r/a: between Matérn-3/2 and squared exponential."""

    name = "matern52"
    title = "Matérn 5/2"
    spacing = 0.45

    def __call__(self, distance: Floats, length_scale: float) -> Floats:
        """k(r)."""
        s = np.sqrt(5.0) * distance / length_scale
        return np.asarray((1 + s + s**2 / 3) * np.exp(-s))

    def interval_nodes(self, length: Floats, tol: float = 1e-8) -> NDArray[np.intp]:
        """Nodes per interval: the kink of k at 0 leaves about 1e-6 whatever `tol` asks."""
        return np.ceil(10.0 + 6.0 * length).astype(np.intp)

    def log_derivative(self, distance: Floats, length_scale: float) -> Floats:
        """∂k/∂ln a = (s² + s³)/3 · exp(−s)."""
        s = np.sqrt(5.0) * distance / length_scale
        return np.asarray((s**2 + s**3) / 3 * np.exp(-s))
