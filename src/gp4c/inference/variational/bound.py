"""The whole objective, :func:`theorem2`: F(m, S) − KL for a Gaussian q(v) = N(m, S).

F comes from the moments of f at the grid's nodes and, for a count term that needs them, from
covariances within intervals.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from gp4c.inference.variational.count_terms.exact import Block, BlockTerm
from gp4c.inference.variational.likelihood import Likelihood
from gp4c.model.sparse_prior import Hyper, SparsePrior

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Bound:
    """The objective of :func:`theorem2`, term by term; `total` is their sum.

    `counts` and `events` are the expected log intensities in unit time and rate; `exposure` and
    `kl` are subtracted; `constant` holds every constant but −Σ ln m!.
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

    def kl(self) -> float:
        """KL(q ‖ N(0, I)) = ½ (tr S + mᵀm − M − ln|S|)."""
        size = len(self.mean)
        trace = np.vdot(self.root, self.root)
        return float((trace + self.mean @ self.mean - size - self.log_det) / 2)


def theorem2(work: Workspace, hyper: Hyper, q: Gaussian) -> Evaluation:
    r"""Theorem 2 of the paper, the whole objective as a sum of named terms, with its gradients.

    .. math::
        \tilde L = \sum_j m_j \ln \int_j (E_q^2 f + b\,\mathrm{Var}_q f)
        - \sum_k E_q \int_k f^2 - \mathrm{KL}(q \| p) - (C + \ln 2) \sum_j m_j .

    The first and the last term are Theorem 1 (`count_terms/lemma2.py`); a tighter count term may
    take their place. Exact event times add Σ E ln f², effects of subjects change the second term
    (`exposure.py`), and the user's units add a constant. The paper's −Σ ln m! is left out.
    """
    data = work.likelihood
    mean, variance = work.moments(hyper, q)  # of f at the nodes
    counts = data.counts(mean, variance)
    within = [block.evaluate(hyper, q.mean, q.root) for block in work.blocks]
    events = data.events(mean, variance)
    exposure, weight = data.exposure(mean**2 + variance, hyper.shape)
    bound = Bound(
        counts=counts.value + sum(term.value for term in within),
        events=events.value,
        exposure=exposure,
        kl=q.kl(),
        constant=data.units + counts.constant,
    )
    by_mean = counts.by_mean + events.by_mean - 2 * mean * weight
    by_variance = counts.by_variance + events.by_variance - weight
    gradients = work.gradients(hyper, by_mean, by_variance, within)
    return Evaluation(
        bound, counts.constant, *gradients, mean, variance, by_mean, by_variance, tuple(within)
    )


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
    """The bound at one q, with what its gradients need.

    `given_away` is the part of its constant that belongs to the count term.
    """

    bound: Bound
    given_away: float
    grad_mean: Floats
    grad_covariance: Floats
    mean: Floats
    variance: Floats
    by_mean: Floats
    by_variance: Floats
    within: tuple[BlockTerm, ...]

    def sites(self) -> Sites:
        """Θ = −∂F/∂Cov, t = ∂F/∂mean + 2Θ·mean."""
        curvature = -self.by_variance
        blocks = []
        for term in self.within:
            theta = -term.by_covariance
            blocks.append((theta, term.by_mean + 2 * np.einsum("jab,jb->ja", theta, term.mean)))
        return Sites(curvature, self.by_mean + 2 * curvature * self.mean, tuple(blocks))


class Workspace:
    """All arrays that depend on the length-scale alone: features at nodes and in blocks."""

    def __init__(self, likelihood: Likelihood, prior: SparsePrior, tol: float = 1e-8):
        self.likelihood = likelihood
        self.prior = prior
        self.features = prior.features(likelihood.grid.nodes)
        # the prior variance that the inducing inputs leave unexplained, never negative
        self.residual = np.maximum(1.0 - (self.features**2).sum(axis=1), 0.0)
        self.blocks: list[Block] = likelihood.term.blocks(
            likelihood.start, likelihood.stop, likelihood.count, prior, tol
        )

    @property
    def size(self) -> int:
        """M, the number of inducing inputs."""
        return int(self.features.shape[1])

    def moments(self, hyper: Hyper, q: Gaussian) -> tuple[Floats, Floats]:
        """Mean and variance of f at the nodes."""
        mean = hyper.mean + sqrt(hyper.variance) * (self.features @ q.mean)
        spread = self.features @ q.root
        explained = np.einsum("ij,ij->i", spread, spread)
        return mean, hyper.variance * (self.residual + explained)

    def interval_logs(self, hyper: Hyper, q: Gaussian) -> Floats:
        """E ln ∫_j f² of each counted interval, or what the count term has for it."""
        data = self.likelihood
        found = data.term.interval_logs(data.integrals, *self.moments(hyper, q), data.b)
        for block in self.blocks:
            found[block.which] = block.logs(hyper, q.mean, q.root)
        return found

    def with_counts(self, count: Floats, totals: Floats) -> Workspace:
        """The same features for other numbers of events in the intervals and of the subjects."""
        changed = copy(self)
        changed.likelihood = self.likelihood.with_counts(count, totals)
        changed.blocks = [replace(block, count=count[block.which]) for block in self.blocks]
        return changed

    def gradients(
        self, hyper: Hyper, by_mean: Floats, by_variance: Floats, within: list[BlockTerm]
    ) -> tuple[Floats, Floats]:
        """∂F/∂m and ∂F/∂S from the derivatives by the moments of f."""
        B = self.features
        grad_mean = sqrt(hyper.variance) * (B.T @ by_mean)
        grad_covariance = hyper.variance * (B.T @ (by_variance[:, None] * B))
        for term in within:
            grad_mean += term.grad_mean
            grad_covariance += term.grad_covariance
        return grad_mean, grad_covariance

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
        for block, term in zip(self.blocks, at.within, strict=True):
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
