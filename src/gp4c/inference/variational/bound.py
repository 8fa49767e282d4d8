"""The variational bound F(m, S) − KL for a Gaussian q(v) = N(m, S), and its gradients.

F comes from the moments of f at the grid's nodes and, for the exact count term, from its
covariances within intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from gp4c.inference.variational.expected_logs.exact import Block, build_blocks
from gp4c.inference.variational.likelihood import Likelihood
from gp4c.model.sparse_prior import Hyper, SparsePrior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """The objective, term by term; `total` is their sum: Theorem 2 of the paper.

    With the count term of Theorem 1 it is the paper's bound; tighter count terms keep its form.

    `counts` and `events` are the expected log intensities, `exposure` and `kl` are subtracted,
    `constant` holds every constant but −Σ ln m!.
    """

    counts: float
    events: float
    exposure: float
    kl: float
    constant: float

    @property
    def total(self) -> float:
        """Counts + events − exposure − KL + constant."""
        return self.counts + self.events - self.exposure - self.kl + self.constant


@dataclass(frozen=True)
class Gaussian:
    """q(v) = N(mean, S), S = root rootᵀ, with ln|S| beside it and P = S⁻¹ where it is known."""

    mean: Floats
    root: Floats
    log_det: float
    known_precision: Floats | None = None

    @classmethod
    def from_natural(cls, precision: Floats, linear: Floats) -> Gaussian | None:
        """Build from (P, h = Pm); None when P is not positive definite or not finite."""
        if not (np.isfinite(precision.sum()) and np.isfinite(linear.sum())):
            return None
        # LAPACK directly: the checks of the wrappers cost more than the work at this size
        factor, failed = dpotrf(precision, lower=1, clean=1)
        if failed:
            return None
        inverse, failed = dtrtri(factor, lower=1)
        if failed:
            return None
        root = inverse.T
        log_det = -2 * float(np.log(factor.diagonal()).sum())
        return cls(root @ (inverse @ linear), root, log_det, precision)

    @classmethod
    def prior(cls, size: int) -> Gaussian:
        """N(0, I)."""
        return cls(np.zeros(size), np.eye(size), 0.0, np.eye(size))

    @cached_property
    def precision(self) -> Floats:
        """P = S⁻¹."""
        if self.known_precision is not None:
            return self.known_precision
        inverse = np.linalg.inv(self.root)
        return np.asarray(inverse.T @ inverse)

    @property
    def linear(self) -> Floats:
        """h = P m."""
        return np.asarray(self.precision @ self.mean)

    @property
    def covariance(self) -> Floats:
        """S."""
        return np.asarray(self.root @ self.root.T)

    def widened(self, direction: Floats) -> Gaussian:
        """The distribution with direction · directionᵀ added to its covariance."""
        inner = np.linalg.solve(self.root, direction)
        length = float(inner @ inner)
        # S + δδᵀ = R(I + uuᵀ)Rᵀ, and √(I + uuᵀ) = I + (√(1 + |u|²) − 1) uuᵀ/|u|²
        stretch = (np.sqrt(1 + length) - 1) / max(length, 1e-300)
        root = self.root + stretch * np.outer(direction, inner)
        return Gaussian(self.mean, root, self.log_det + float(np.log1p(length)))

    def kl(self) -> float:
        """KL(q ‖ N(0, I)) = ½ (tr S + mᵀm − M − ln|S|)."""
        size = len(self.mean)
        trace = np.vdot(self.root, self.root)
        return float((trace + self.mean @ self.mean - size - self.log_det) / 2)


@dataclass(frozen=True)
class Sites:
    """The likelihood's Gaussian approximation exp(−fᵀΘf + tᵀf) in function space.

    It does not depend on hyper-parameters, so it carries an optimum from one set of them to
    the next. Node sites are diagonal; each block has a full Θ per interval.
    """

    curvature: Floats
    slope: Floats
    blocks: tuple[tuple[Floats, Floats], ...]


@dataclass(frozen=True)
class Evaluation:
    """The bound at one q, with what its gradients need."""

    bound: Bound
    grad_mean: Floats
    grad_covariance: Floats
    mean: Floats
    variance: Floats
    by_mean: Floats
    by_variance: Floats
    block_terms: tuple[tuple[Floats, Floats, Floats, Floats], ...]

    def sites(self) -> Sites:
        """Θ = −∂F/∂Cov, t = ∂F/∂mean + 2Θ·mean."""
        curvature = -self.by_variance
        blocks = []
        for mean, _, by_mean, by_covariance in self.block_terms:
            theta = -by_covariance
            blocks.append((theta, by_mean + 2 * np.einsum("jab,jb->ja", theta, mean)))
        return Sites(curvature, self.by_mean + 2 * curvature * self.mean, tuple(blocks))


class Workspace:
    """All arrays that depend on the length-scale alone: features at nodes and in blocks."""

    def __init__(self, likelihood: Likelihood, prior: SparsePrior, tol: float = 1e-8):
        self.likelihood = likelihood
        self.prior = prior
        self.features = prior.features(likelihood.grid.nodes)
        # the prior variance that the inducing inputs leave unexplained, never negative
        self.residual = np.maximum(1.0 - (self.features**2).sum(axis=1), 0.0)
        self.blocks: list[Block] = []
        if likelihood.count_term == "exact":
            lk = likelihood
            self.blocks = build_blocks(lk.start, lk.stop, lk.count, prior, tol)

    @property
    def size(self) -> int:
        """M, the number of inducing inputs."""
        return int(self.features.shape[1])

    def moments(self, hyper: Hyper, q: Gaussian) -> tuple[Floats, Floats]:
        """Mean and variance of f at the nodes."""
        mean = hyper.mean + np.sqrt(hyper.variance) * (self.features @ q.mean)
        spread = self.features @ q.root
        explained = np.einsum("ij,ij->i", spread, spread)
        return mean, hyper.variance * (self.residual + explained)

    def evaluate(self, hyper: Hyper, q: Gaussian) -> Evaluation:
        """The bound, Theorem 2 of the paper, and its gradients by the mean and covariance of q."""
        mean, variance = self.moments(hyper, q)
        terms = self.likelihood.node_terms(mean, variance, hyper.shape)
        scale, B = np.sqrt(hyper.variance), self.features
        grad_mean = scale * (B.T @ terms.by_mean)
        grad_covariance = hyper.variance * (B.T @ (terms.by_variance[:, None] * B))
        counts, block_terms = terms.counts, []
        for block in self.blocks:
            term = block.evaluate(hyper, q.mean, q.root)
            counts += term.value
            grad_mean += term.grad_mean
            grad_covariance += term.grad_covariance
            block_terms.append((term.mean, term.covariance, term.by_mean, term.by_covariance))
        bound = Bound(counts, terms.events, terms.exposure, q.kl(), self.likelihood.constant)
        return Evaluation(
            bound, grad_mean, grad_covariance, mean, variance,
            terms.by_mean, terms.by_variance, tuple(block_terms),
        )  # fmt: skip

    def from_sites(self, hyper: Hyper, sites: Sites) -> Gaussian | None:
        """The posterior of the prior at `hyper` times the sites; None if it is not one."""
        B = self.features
        precision = np.eye(self.size)
        precision += 2 * hyper.variance * (B.T @ (sites.curvature[:, None] * B))
        linear = B.T @ (sites.slope - 2 * hyper.mean * sites.curvature)
        for block, (theta, slope) in zip(self.blocks, sites.blocks, strict=True):
            precision += 2 * hyper.variance * block.pull_matrix(theta)
            linear += block.pull_vector(slope - 2 * hyper.mean * theta.sum(axis=2))
        return Gaussian.from_natural(precision, np.sqrt(hyper.variance) * linear)

    def accepts(self, sites: Sites) -> bool:
        """Whether the sites belong to the same nodes and blocks."""
        shapes = [block.residual.shape for block in self.blocks]
        same_blocks = shapes == [theta.shape for theta, _ in sites.blocks]
        return same_blocks and len(sites.slope) == len(self.features)

    def hyper_gradient(
        self, hyper: Hyper, q: Gaussian, at: Evaluation, with_length_scale: bool = True
    ) -> Floats:
        """∂/∂(ln a, ln γ, g, ln α) at fixed q; at the optimal q it is the total derivative."""
        S = q.covariance
        by_length = self._by_length_scale(hyper, q, at, S) if with_length_scale else 0.0
        by_variance = float(at.by_mean @ (at.mean - hyper.mean) / 2 + at.by_variance @ at.variance)
        by_prior_mean = float(at.by_mean.sum())
        for block, term in zip(self.blocks, at.block_terms, strict=True):
            part = block.hyper_gradient(hyper, q.mean, S, term)
            by_length, by_variance, by_prior_mean = (
                by_length + part[0], by_variance + part[1], by_prior_mean + part[2],
            )  # fmt: skip
        by_shape = self.likelihood.exposure.shape_gradient(at.mean**2 + at.variance, hyper.shape)
        return np.array([by_length, by_variance, by_prior_mean, by_shape])

    def _by_length_scale(self, hyper: Hyper, q: Gaussian, at: Evaluation, S: Floats) -> float:
        """The nodes' part of ∂/∂ln a, through the features."""
        dB = self.prior.features_derivative(self.likelihood.grid.nodes, self.features)
        toward = np.sqrt(hyper.variance) * np.outer(at.by_mean, q.mean)
        excess = self.features @ S - self.features
        toward += 2 * hyper.variance * at.by_variance[:, None] * excess
        return float(np.vdot(dB, toward))
