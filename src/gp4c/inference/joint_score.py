r"""The joint likelihood of new counts, averaged over a mixture of Gaussian processes.

ln E p(counts | f) over the posterior is what a held-out score asks for. Draws from the posterior
estimate it badly: the new counts know f better than that, so that a handful of thousands of draws
carry the mean, which is then noisy and nearly always too low (docs/maths.md, section 8). Here each
component proposes where posterior and new likelihood together are: with f = μ + Gξ on the nodes and
ξ ~ N(0, I), Newton's method finds the mode of

.. math::  \ell(\xi) - |\xi|^2/2

with the Fisher information as its curvature H, and draws of N(ξ*, H⁻¹) are weighted by what the
proposal differs from the integrand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gp4c.design.quadrature import IntervalIntegrals
from gp4c.inference.posterior import Posterior
from gp4c.inference.scoring import ScoredRows, subject_log_likelihoods

Floats = NDArray[np.float64]

#: most Newton steps, and the gain in nats below which they end
_NEWTON_STEPS, _NEWTON_GAIN = 25, 1e-3
#: fewest draws of a component, half of them mirror images; nats behind the best at which a
#: component is left at Laplace's value
_LEAST_DRAWS, _NEGLIGIBLE = 32, 12.0
#: numbers held at once
_MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class CountLaw:
    """The law of the rows given their integrals: Poisson, gamma frailty, or given weights."""

    rows: ScoredRows
    effect: str | None = None
    shape: float = np.inf
    weights: Floats | None = None

    def log_likelihood(self, integrals: Floats) -> Floats:
        """ln p(all counts | ∫λ) + Σ ln m! of each draw, (S, J) → (S,)."""
        each = subject_log_likelihoods(
            self.rows, integrals, effect=self.effect, shape=self.shape, weights=self.weights
        )
        return np.asarray(each.sum(axis=1))

    def slope_and_information(self, integrals: Floats, jacobian: Floats) -> tuple[Floats, Floats]:
        """Gradient and Fisher information in ξ at integrals (J,) with ∂∫λ/∂ξ (J, p)."""
        rows, J = self.rows, len(integrals)
        expected = rows.expected(integrals[None])[0]
        if self._frail:
            effects = (self.shape + rows.totals) / (self.shape + expected)
        else:
            effects = np.ones(rows.n_subjects) if self.weights is None else self.weights
        exposure = np.bincount(rows.interval, rows.exposure * effects[rows.subject], J)
        safe = np.maximum(integrals, 1e-300)
        slope = (self._count / safe - exposure) @ jacobian
        scaled = jacobian * np.sqrt(exposure / safe)[:, None]
        information = scaled.T @ scaled
        if self._frail:  # what the frailties leave of it: −(α + m)/(α + R)² ∇R ∇Rᵀ
            by_subject = rows.expected(jacobian.T) * (np.sqrt(effects / (self.shape + expected)))
            information = information - by_subject @ by_subject.T
        return slope, information

    @property
    def _frail(self) -> bool:
        return self.effect == "gamma" and bool(np.isfinite(self.shape))

    @cached_property
    def _count(self) -> Floats:
        size = int(self.rows.interval.max(initial=-1)) + 1
        return np.bincount(self.rows.interval, self.rows.count, size).astype(np.float64)


@dataclass(frozen=True)
class _Proposal:
    """A component's f on its nodes, and where its ξ lie given the new counts."""

    law: CountLaw
    integrals: IntervalIntegrals
    rate: float
    mean: Floats
    factor: Floats
    mode: Floats
    root: Floats
    log_det: float
    laplace: float

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Log weights whose mean is the likelihood under this component, (size,)."""
        half = rng.standard_normal((len(self.mode), (size + 1) // 2))
        normals = np.concatenate([half, -half], axis=1)
        xi = self.mode[:, None] + self.root @ normals
        at_once = max(_MOST_NUMBERS // max(len(self.law.rows.count), len(self.mean)), 1)
        parts = np.split(xi, range(at_once, xi.shape[1], at_once), axis=1)
        value = np.concatenate([_value(self, part) for part in parts])
        correction = (normals**2).sum(axis=0) - (xi**2).sum(axis=0) - self.log_det
        return np.asarray(value + correction / 2)


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
        Draws of all components together, most where they matter most.
    """
    proposals = [
        _proposal(law, integrals, posterior.rate, *component.spread(grid.nodes)[:2])
        for component, integrals, grid in posterior._integrators(start, stop)
    ]
    logs = np.log(np.maximum(posterior.weights, 1e-300))
    guess = logs + np.array([p.laplace for p in proposals])
    share = np.exp(guess - logsumexp(guess))
    values, errors = np.empty(len(proposals)), np.zeros(len(proposals))
    for k, proposal in enumerate(proposals):
        if guess[k] < guess.max() - _NEGLIGIBLE:
            values[k] = guess[k]
            continue
        size = max(_LEAST_DRAWS, int(np.ceil(n_draws * share[k])))
        log_weights = proposal.draw(size, rng)
        mean = logsumexp(log_weights) - np.log(len(log_weights))
        values[k] = logs[k] + mean
        half = len(log_weights) // 2
        pairs = np.logaddexp(log_weights[:half], log_weights[half:]) - np.log(2)
        errors[k] = np.exp(pairs - mean).std(ddof=1) / np.sqrt(half)
    total = float(logsumexp(values))
    return total, float(np.sqrt(((np.exp(values - total) * errors) ** 2).sum()))


def _proposal(
    law: CountLaw, integrals: IntervalIntegrals, rate: float, mean: Floats, factor: Floats
) -> _Proposal:
    """Newton's method with the Fisher information, halving steps that lose."""
    size = factor.shape[1]
    xi = np.zeros(size)
    here, slope, information = _around(law, integrals, rate, mean, factor, xi)
    for _ in range(_NEWTON_STEPS):
        step = np.linalg.solve(information, slope)
        expected_gain, share = float(slope @ step) / 2, 1.0
        while share > 1e-3:
            there = _around(law, integrals, rate, mean, factor, xi + share * step)
            if there[0] >= here:
                break
            share /= 2
        else:
            break
        xi = xi + share * step
        here, slope, information = there
        if expected_gain < _NEWTON_GAIN:
            break
    values, vectors = np.linalg.eigh(information)
    root = vectors / np.sqrt(values)
    log_det = float(np.log(values).sum())
    return _Proposal(
        law, integrals, rate, mean, factor, xi, root, log_det, here - log_det / 2
    )  # fmt: skip


def _around(
    law: CountLaw,
    integrals: IntervalIntegrals,
    rate: float,
    mean: Floats,
    factor: Floats,
    xi: Floats,
) -> tuple[float, Floats, Floats]:
    """ℓ(ξ) − |ξ|²/2, its gradient, and its Fisher curvature."""
    f = mean + factor @ xi
    masses = rate * np.maximum(integrals.apply(f * f), 0.0)
    jacobian = 2 * rate * integrals.apply(f[:, None] * factor)
    slope, information = law.slope_and_information(masses, jacobian)
    value = float(law.log_likelihood(masses[None])[0]) - float(xi @ xi) / 2
    return value, slope - xi, information + np.eye(len(xi))


def _value(at: _Proposal, xi: Floats) -> Floats:
    f = at.mean[:, None] + at.factor @ xi
    masses = at.rate * np.maximum(at.integrals.apply(f * f), 0.0)
    return at.law.log_likelihood(masses.T)
