"""The paper's algorithm as the paper writes it, in plain NumPy: the yardstick of `speed.py`.

Every evaluation of the bound goes through the distinct intervals one by one, forms the matrix
Φ_j = ∫ k(z, x) k(x, z)ᵀ dx from error functions, and takes the traces of Theorem 2 and Appendix C
from matrix products with K⁻¹: O(N·M³). The optimiser is variational EM with a bounded
quasi-Newton method over (μ, C), Σ = C Cᵀ, and over (ln a, ln γ), about ten evaluations each, until
a round changes the constant-free bound by less than 1e-4 of it. Everything is in the data's
units and nothing is shared with the package, so the bound it reports also checks the package's.

``remember=True`` is a kinder variant: the products of an interval are kept while (a, γ) stay,
so that only the first evaluation of an E-step costs O(N·M³) and the others O(N·M²).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import erf

Floats = NDArray[np.float64]

JITTER = 1e-6
SMALLEST_DIAGONAL = 0.01
LEMMA2_CONSTANT = float(np.euler_gamma + np.log(2.0))


@dataclass(frozen=True)
class Intervals:
    """Distinct intervals: ends, events in all, and how many subjects were seen over them."""

    start: Floats
    stop: Floats
    count: Floats
    seen: Floats

    @classmethod
    def of(cls, start: Floats, stop: Floats, count: Floats) -> Intervals:
        """Merge identical intervals."""
        ends = np.column_stack([start, stop])
        distinct, which = np.unique(ends, axis=0, return_inverse=True)
        which, n = which.reshape(-1), len(distinct)
        seen = np.bincount(which, minlength=n).astype(float)
        return cls(distinct[:, 0], distinct[:, 1], np.bincount(which, count, n), seen)


@dataclass(frozen=True)
class NaiveFit:
    """Where the algorithm stopped; `objective` has every constant but −Σ ln m!."""

    inducing: Floats
    mean: Floats
    factor: Floats
    length_scale: float
    variance: float
    prior_mean: float
    objective: float
    rounds: int
    evaluations: int


class Prior:
    """K (with jitter), its inverse and its derivative by ln a, and the interval integrals."""

    def __init__(self, z: Floats, a: float, gamma: float):
        self.z, self.a, self.gamma = z, a, gamma
        self.gap, self.middle = z[:, None] - z, (z[:, None] + z) / 2
        k = np.exp(-(self.gap**2) / (2 * a**2))
        factor = cho_factor(gamma * (k + JITTER * np.eye(len(z))), lower=True)
        self.inverse = cho_solve(factor, np.eye(len(z)))
        self.log_det = 2 * float(np.log(np.diag(factor[0])).sum())
        self.factor = np.tril(factor[0])
        self.derivative = gamma * k * self.gap**2 / a**2
        self.bump = gamma**2 * np.exp(-(self.gap**2) / (4 * a**2))

    def overlap(self, start: float, stop: float) -> Floats:
        """Φ of one interval."""
        a = self.a
        inside = erf((stop - self.middle) / a) - erf((start - self.middle) / a)
        return self.bump * (np.sqrt(np.pi) * a / 2) * inside

    def overlap_derivative(self, phi: Floats, start: float, stop: float) -> Floats:
        """∂Φ/∂ln a of one interval."""
        upper, lower = (stop - self.middle) / self.a, (start - self.middle) / self.a
        edge = upper * np.exp(-(upper**2)) - lower * np.exp(-(lower**2))
        return phi * (self.gap**2 / (2 * self.a**2) + 1) - self.a * self.bump * edge

    def single(self, start: float, stop: float) -> tuple[Floats, Floats]:
        """∫ k(z, x) dx over one interval and its derivative by ln a."""
        scale = np.sqrt(2) * self.a
        upper, lower = (stop - self.z) / scale, (start - self.z) / scale
        psi = self.gamma * np.sqrt(np.pi) / 2 * scale * (erf(upper) - erf(lower))
        edge = upper * np.exp(-(upper**2)) - lower * np.exp(-(lower**2))
        return psi, psi - self.gamma * scale * edge


class NaiveBound:
    """The bound of Theorem 2 as a function of (μ, C) and of (a, γ)."""

    def __init__(self, data: Intervals, z: Floats, g: float, b: float, remember: bool):
        self.data, self.z, self.g, self.b, self.remember = data, z, g, b, remember
        self.evaluations = 0
        self._kept: tuple[Prior, list[tuple[Floats, float, Floats]]] | None = None

    def _products(self, prior: Prior, j: int) -> tuple[Floats, float, Floats]:
        """K⁻¹Φ_jK⁻¹, tr(K⁻¹Φ_j) and K⁻¹∫_j k."""
        start, stop = self.data.start[j], self.data.stop[j]
        left = prior.inverse @ prior.overlap(start, stop)
        return left @ prior.inverse, float(np.trace(left)), prior.inverse @ prior.single(
            start, stop
        )[0]  # fmt: skip

    def _all_products(self, prior: Prior) -> list[tuple[Floats, float, Floats]] | None:
        if not self.remember:
            return None
        if self._kept is None or self._kept[0] is not prior:
            every = range(len(self.data.start))
            self._kept = prior, [self._products(prior, j) for j in every]
        return self._kept[1]

    def by_q(self, prior: Prior, mu: Floats, C: Floats) -> tuple[float, Floats, Floats]:
        """The constant-free bound and its gradients by μ and by C."""
        self.evaluations += 1
        kept, d, S = self._all_products(prior), mu - self.g, C @ C.T
        value, by_mu, by_S = 0.0, np.zeros_like(mu), np.zeros_like(S)
        for j, (start, stop) in enumerate(zip(self.data.start, self.data.stop, strict=True)):
            B, trace, h = kept[j] if kept else self._products(prior, j)
            Bd, length = B @ d, stop - start
            mean_sq = self.g**2 * length + 2 * self.g * (h @ d) + d @ Bd
            variance = prior.gamma * length - trace + np.sum(B * S)
            mass = mean_sq + self.b * variance
            count, seen = self.data.count[j], self.data.seen[j]
            value += count * np.log(mass) - seen * (mean_sq + variance)
            by_mu += 2 * (count / mass - seen) * (self.g * h + Bd)
            by_S += (self.b * count / mass - seen) * B
        away = prior.inverse @ d
        kl = np.sum(prior.inverse * S) + d @ away - len(d) + prior.log_det
        value -= kl / 2 - np.log(np.diag(C)).sum()
        by_C = np.tril(2 * by_S @ C - prior.inverse @ C) + np.diag(1 / np.diag(C))
        return float(value), by_mu - away, by_C

    def by_hyper(self, prior: Prior, mu: Floats, C: Floats) -> tuple[float, Floats]:
        """The constant-free bound and its gradient by (ln a, ln γ) at fixed (μ, C)."""
        self.evaluations += 1
        d, S, inverse = mu - self.g, C @ C.T, prior.inverse
        slope = inverse @ prior.derivative
        value, by_a, by_gamma = 0.0, 0.0, 0.0
        for j, (start, stop) in enumerate(zip(self.data.start, self.data.stop, strict=True)):
            phi, (psi, dpsi) = prior.overlap(start, stop), prior.single(start, stop)
            left, h, length = inverse @ phi, inverse @ psi, stop - start
            B, left_d = left @ inverse, inverse @ prior.overlap_derivative(phi, start, stop)
            change = slope @ B
            dB = left_d @ inverse - change - change.T
            mean_sq = self.g**2 * length + 2 * self.g * (h @ d) + d @ B @ d
            variance = prior.gamma * length - np.trace(left) + np.sum(B * S)
            mass = mean_sq + self.b * variance
            count, seen = self.data.count[j], self.data.seen[j]
            value += count * np.log(mass) - seen * (mean_sq + variance)
            d_mean_sq = 2 * self.g * (inverse @ dpsi - slope @ h) @ d + d @ dB @ d
            d_variance = np.sum(slope * left.T) - np.trace(left_d) + np.sum(dB * S)
            by_mean_sq, by_variance = count / mass - seen, self.b * count / mass - seen
            by_a += by_mean_sq * d_mean_sq + by_variance * d_variance
            # γ cancels in B and h: only the residual variance grows with it
            by_gamma += by_variance * (prior.gamma * length - np.trace(left))
        away, inner = inverse @ d, np.sum(inverse * S)
        kl = inner + d @ away - len(d) + prior.log_det
        value -= kl / 2 - np.log(np.diag(C)).sum()
        by_a += (np.sum((slope @ inverse) * S) + away @ prior.derivative @ away) / 2
        by_a -= np.trace(slope) / 2
        by_gamma += (inner + d @ away - len(d)) / 2
        return float(value), np.array([by_a, by_gamma])


def maximise(
    function: Callable[[Floats], tuple[float, Floats]], x: Floats, low: Floats, evaluations: int
) -> tuple[Floats, float]:
    """Bounded limited-memory quasi-Newton ascent; the best point evaluated."""
    best: list[tuple[float, Floats]] = []

    def negative(x: Floats) -> tuple[float, Floats]:
        value, gradient = function(x)
        if not best or value > best[0][0]:
            best[:] = [(value, x.copy())]
        return -value, -gradient

    bounds = [(lowest, None) for lowest in low]
    options = {"maxfun": evaluations, "maxiter": evaluations}
    minimize(negative, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return best[0][1], best[0][0]


def fit(
    panel: object,
    *,
    b: float = 0.3,
    n_inducing: int = 30,
    seed: int = 0,
    tol: float = 1e-4,
    evaluations: int = 10,
    remember: bool = False,
) -> NaiveFit:
    """Fit the paper's model to a panel (unit exposures) by the paper's procedure."""
    subject, start, stop = panel.subject_index, panel.start, panel.stop  # type: ignore[attr-defined]
    count, window = panel.count.astype(float), panel.window  # type: ignore[attr-defined]
    rates = np.bincount(subject, count) / np.bincount(subject, stop - start)
    g, M = float(np.sqrt(rates.mean())), n_inducing
    z = np.linspace(*window, M)
    bound = NaiveBound(Intervals.of(start, stop, count), z, g, b, remember)
    rows, columns = np.tril_indices(M)
    low = np.concatenate(
        [np.full(M, -np.inf), np.where(rows == columns, SMALLEST_DIAGONAL, -np.inf)]
    )

    def unpack(x: Floats) -> tuple[Floats, Floats]:
        C = np.zeros((M, M))
        C[rows, columns] = x[M:]
        return x[:M], C

    theta = np.log([np.sqrt(window[1] - window[0]), g**2 / 2])  # (ln a, ln γ)
    prior = Prior(z, *np.exp(theta))
    mu = np.sqrt(0.5) * g * (0.1 + np.random.default_rng(seed).random(M))
    x = np.maximum(np.concatenate([mu, prior.factor[rows, columns]]), low)
    value, rounds, change = -np.inf, 0, np.inf
    while change > tol:

        def over_q(x: Floats, prior: Prior = prior) -> tuple[float, Floats]:
            value, by_mu, by_C = bound.by_q(prior, *unpack(x))
            return value, np.concatenate([by_mu, by_C[rows, columns]])

        x, _ = maximise(over_q, x, low, evaluations)
        mu, C = unpack(x)

        def over_hyper(theta: Floats, mu: Floats = mu, C: Floats = C) -> tuple[float, Floats]:
            return bound.by_hyper(Prior(z, *np.exp(theta)), mu, C)

        theta, new = maximise(over_hyper, theta, np.full(2, -10.0), evaluations)
        prior, rounds = Prior(z, *np.exp(theta)), rounds + 1
        change, value = abs(new - value) / abs(new), new
    objective = value - LEMMA2_CONSTANT * float(count.sum())
    a, gamma = np.exp(theta)
    return NaiveFit(z, mu, C, float(a), float(gamma), g, objective, rounds, bound.evaluations)
