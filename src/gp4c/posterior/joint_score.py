r"""The joint likelihood of new counts, averaged over a Gaussian process.

ln E p(counts | f) over the posterior is what a held-out score asks for. Draws from the posterior
estimate it badly: the new counts know f better than that, so that a handful of thousands of draws
carry the mean, which is then noisy and nearly always too low (docs/maths.md, section 8). Here draws
come from where posterior and new likelihood together are: with f = μ + Gξ on the nodes and
ξ ~ N(0, I), Newton's method finds the mode of

.. math::  \ell(\xi) - |\xi|^2/2

with the Fisher information as its curvature H, and draws of N(ξ*, H⁻¹) are weighted by what the
proposal differs from the integrand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.model.laws import EFFECTS, SubjectEffect
from gp4c.model.laws.effects import ClosedForm
from gp4c.posterior.scoring import NO_PARAMETERS, ScoredRows, subject_log_likelihoods
from gp4c.posterior.sparse_posterior import Posterior

Floats = NDArray[np.float64]

#: most Newton steps, and the gain in nats below which they end
_NEWTON_STEPS, _NEWTON_GAIN = 25, 1e-3
#: fewest draws, half of them mirror images
_LEAST_DRAWS = 32
#: least ∫f²: counts where f is zero are all but impossible, not quite
_LEAST_MASS = 1e-100
#: numbers held at once
_MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class CountLaw:
    """The law of the rows given their integrals: Poisson, conjugate effects, or given weights.

    `psi` (P,) are the parameters of the effect, `weights` (K,) known effects instead of a law.
    """

    rows: ScoredRows
    effect: SubjectEffect = EFFECTS[None]
    psi: Floats = field(default_factory=lambda: NO_PARAMETERS)
    weights: Floats | None = None

    def log_likelihood(self, integrals: Floats) -> Floats:
        """ln p(all counts | ∫λ) + Σ ln m! of each draw, (S, J) → (S,)."""
        each = subject_log_likelihoods(
            self.rows, integrals, effect=self.effect, psi=self.psi, weights=self.weights
        )
        return np.asarray(each.sum(axis=1))

    def slope_and_information(self, integrals: Floats, jacobian: Floats) -> tuple[Floats, Floats]:
        """Gradient and Fisher information in ξ at integrals (J,) with ∂∫λ/∂ξ (J, p)."""
        rows, J = self.rows, len(integrals)
        expected = rows.expected(integrals[None])[0]
        effects, variances = self._effects(expected)
        exposure = np.bincount(rows.interval, rows.exposure * effects[rows.subject], J)
        slope = (self._count / integrals - exposure) @ jacobian
        scaled = jacobian * np.sqrt(exposure / integrals)[:, None]
        information = scaled.T @ scaled
        if variances is not None:  # what the effects leave of it: −Var(υ | counts) ∇R ∇Rᵀ
            at_once = max(_MOST_NUMBERS // len(rows.count), 1)
            parts = np.split(jacobian.T, range(at_once, jacobian.shape[1], at_once))
            by_subject = np.concatenate([rows.expected(part) for part in parts])
            by_subject *= np.sqrt(variances)
            information = information - by_subject @ by_subject.T
        return slope, information

    def _effects(self, expected: Floats) -> tuple[Floats, Floats | None]:
        """E υ and Var υ of each subject given its counts; no variance where υ is known."""
        K = self.rows.n_subjects
        if not self.effect.varies:
            return (np.ones(K) if self.weights is None else self.weights), None
        totals = self.rows.totals
        powers, times = np.unique(totals, return_counts=True)
        subjects = ClosedForm(np.ones(K), totals, powers, times.astype(np.float64))
        terms = self.effect.closed_form_terms(subjects, expected[:, None], self.psi[:, None])
        return -terms.by_exposure[:, 0], terms.by_exposure_twice[:, 0]

    @cached_property
    def _count(self) -> Floats:
        size = int(self.rows.interval.max(initial=-1)) + 1
        return np.bincount(self.rows.interval, self.rows.count, size).astype(np.float64)


class LinearMap(Protocol):
    """Integrals over intervals as a linear function of values at nodes."""

    def apply(self, values: Floats) -> Floats:
        """Integrals (J,) or (J, S) of functions given at the nodes, (Q,) or (Q, S)."""
        ...


@dataclass(frozen=True)
class SquaredCurve:
    """f = μ + Gξ on its nodes, and the law of the new counts given ∫λ = rate · ∫f²."""

    law: CountLaw
    integrals: LinearMap
    rate: float
    mean: Floats
    factor: Floats

    def value(self, xi: Floats) -> Floats:
        """ℓ(ξ) of each column, some at a time."""
        at_once = max(_MOST_NUMBERS // max(len(self.law.rows.count), len(self.mean)), 1)
        if xi.shape[1] > at_once:
            parts = np.split(xi, range(at_once, xi.shape[1], at_once), axis=1)
            return np.concatenate([self.value(part) for part in parts])
        f = self.mean[:, None] + self.factor @ xi
        masses = self.rate * np.maximum(self.integrals.apply(f * f), _LEAST_MASS)
        return self.law.log_likelihood(masses.T)

    def around(self, xi: Floats) -> tuple[float, Floats, Floats]:
        """ℓ(ξ) − |ξ|²/2, its gradient, and its Fisher curvature."""
        f = self.mean + self.factor @ xi
        masses = self.rate * np.maximum(self.integrals.apply(f * f), _LEAST_MASS)
        jacobian = 2 * self.rate * self.integrals.apply(f[:, None] * self.factor)
        with np.errstate(over="ignore", invalid="ignore"):  # where f is all but zero
            slope, information = self.law.slope_and_information(masses, jacobian)
        value = float(self.law.log_likelihood(masses[None])[0]) - float(xi @ xi) / 2
        return value, slope - xi, information + np.eye(len(xi))


@dataclass(frozen=True)
class _Proposal:
    """Where the ξ lie given the new counts: N(mode, root rootᵀ)."""

    mode: Floats
    root: Floats
    log_det: float

    @classmethod
    def of(cls, curve: SquaredCurve) -> _Proposal:
        """Newton's method with the Fisher information, halving steps that lose."""
        xi = np.zeros(curve.factor.shape[1])
        here, slope, information = curve.around(xi)
        for _ in range(_NEWTON_STEPS):
            if not (np.all(np.isfinite(slope)) and np.all(np.isfinite(information))):
                information = np.eye(len(xi))  # as the posterior proposes
                break
            step, share = np.linalg.solve(information, slope), 1.0
            expected_gain = float(slope @ step) / 2
            while (there := curve.around(xi + share * step))[0] < here and share > 1e-3:
                share /= 2
            if there[0] < here:
                break
            xi = xi + share * step
            here, slope, information = there
            if expected_gain < _NEWTON_GAIN:
                break
        values, vectors = np.linalg.eigh(information)
        return cls(xi, vectors / np.sqrt(values), float(np.log(values).sum()))

    def draw(self, curve: SquaredCurve, size: int, rng: np.random.Generator) -> tuple[float, float]:
        """Log-likelihood from mirrored draws, and its relative error."""
        half = rng.standard_normal((len(self.mode), (size + 1) // 2))
        normals = np.concatenate([half, -half], axis=1)
        xi = self.mode[:, None] + self.root @ normals
        correction = (normals**2).sum(axis=0) - (xi**2).sum(axis=0) - self.log_det
        logs = curve.value(xi) + correction / 2
        pairs = logsumexp(logs.reshape(2, -1), axis=0) - np.log(2)
        mean = float(logsumexp(pairs) - np.log(len(pairs)))
        return mean, float(np.exp(pairs - mean).std(ddof=1) / np.sqrt(len(pairs)))


def joint_log_likelihood(
    posterior: Posterior,
    start: Floats,
    stop: Floats,
    law: CountLaw,
    n_draws: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """ln E p(counts | f) + Σ ln m!, and its Monte-Carlo standard error.

    Parameters
    ----------
    start, stop : (J,)
        The distinct intervals of the rows.
    n_draws : int
    """
    integrals = posterior.integrals(start, stop)
    mean, factor, _ = posterior.spread(integrals.grid.nodes)
    return mean_log_likelihood(
        SquaredCurve(law, integrals, posterior.rate, mean, factor), n_draws, rng
    )


def mean_log_likelihood(
    curve: SquaredCurve, n_draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """ln E p(counts | f) + Σ ln m! over the curve's ξ, and its Monte-Carlo standard error."""
    return _Proposal.of(curve).draw(curve, max(_LEAST_DRAWS, n_draws), rng)
