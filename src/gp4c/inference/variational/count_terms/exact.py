"""The exact count term E_q[ln ∫_I f²] for intervals, from f at Gauss–Legendre nodes inside them.

∫_I f² is a quadratic form in the Gaussian values of f at the nodes, so the expectation of its
logarithm is a one-dimensional integral
(:mod:`gp4c.inference.variational.expected_logs.log_quadratic`). Intervals with the same number of
nodes form a block and are treated together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.variational.count_terms.count_term import CountTerm
from gp4c.inference.variational.expected_logs.log_quadratic import expected_log_quadratic
from gp4c.model.kernels import Kernel
from gp4c.model.quadrature import gauss_legendre
from gp4c.model.sparse_prior import Hyper, SparsePrior

Floats = NDArray[np.float64]

#: arrays of Σ (nodes in an interval)² numbers that a fit holds at once
_SQUARES = 150.0
#: blocks with fewer intervals than this join the next larger one: a call has a fixed cost
SMALL_BLOCK = 60


class Exact(CountTerm):
    """E ln ∫ f² itself: tight, and dear where there are very many different intervals."""

    name = "exact"
    words = "with the expected log-intensity of each interval evaluated exactly"
    within = True
    stand_in = "pointwise"
    most_intervals = 20_000

    def blocks(
        self, start: Floats, stop: Floats, count: Floats, prior: SparsePrior, tol: float
    ) -> list[Block]:
        """The intervals in groups by the number of nodes they need."""
        if not len(start):
            return []
        lengths = (stop - start) / prior.length_scale
        needed, blocks = block_orders(prior.kernel.interval_nodes(lengths, tol)), []
        for order in np.unique(needed):
            chosen = np.flatnonzero(needed == order)
            x, w = gauss_legendre(int(order))
            half = (stop[chosen] - start[chosen])[:, None] / 2
            nodes = (stop[chosen] + start[chosen])[:, None] / 2 + half * x
            features = prior.features(nodes.ravel()).reshape(*nodes.shape, -1)
            residual = prior.covariance(nodes, nodes) - features @ features.transpose(0, 2, 1)
            roots = np.sqrt(half * w)
            blocks.append(
                Block(nodes, roots, count[chosen], features, residual, prior, tol, chosen)
            )
        return blocks

    def numbers(self, length: Floats, kernel: Kernel) -> float:
        """Arrays of the squared numbers of nodes."""
        return _SQUARES * float((kernel.interval_nodes(length).astype(np.float64) ** 2).sum())


@dataclass(frozen=True)
class BlockTerm:
    """Value of a block's count term and its derivatives."""

    value: float
    grad_mean: Floats
    grad_covariance: Floats
    mean: Floats
    covariance: Floats
    by_mean: Floats
    by_covariance: Floats


@dataclass(frozen=True)
class Block:
    """J intervals with n nodes each.

    Attributes
    ----------
    nodes : (J, n)
    root_weights : (J, n)
        Square roots of the quadrature weights.
    count : (J,)
    features : (J, n, M)
    residual : (J, n, n)
        Prior covariance that the inducing inputs leave unexplained.
    prior : SparsePrior
    tol : float
        Relative tolerance of E ln ∫ f².
    which : (J,)
        Positions of the intervals among all that are counted.
    """

    nodes: Floats
    root_weights: Floats
    count: Floats
    features: Floats
    residual: Floats
    prior: SparsePrior
    tol: float
    which: NDArray[np.intp]

    def moments(self, hyper: Hyper, mean: Floats, root: Floats) -> tuple[Floats, Floats]:
        """Mean (J, n) and covariance (J, n, n) of f at the nodes."""
        spread = self.features @ root
        covariance = self.residual + spread @ spread.transpose(0, 2, 1)
        return hyper.mean + np.sqrt(hyper.variance) * (self.features @ mean), (
            hyper.variance * covariance
        )

    def evaluate(self, hyper: Hyper, q_mean: Floats, root: Floats) -> BlockTerm:
        """Σ_j c_j E ln ∫_j f² with gradients by the mean and covariance of q."""
        mean, covariance = self.moments(hyper, q_mean, root)
        w = self.root_weights
        ww = w[:, :, None] * w[:, None, :]
        value, by_d, by_A = expected_log_quadratic(w * mean, ww * covariance, tol=self.tol)
        by_mean = self.count[:, None] * w * by_d
        by_covariance = self.count[:, None, None] * ww * by_A
        return BlockTerm(
            value=float(self.count @ value),
            grad_mean=np.sqrt(hyper.variance) * self.pull_vector(by_mean),
            grad_covariance=hyper.variance * self.pull_matrix(by_covariance),
            mean=mean,
            covariance=covariance,
            by_mean=by_mean,
            by_covariance=by_covariance,
        )

    def logs(self, hyper: Hyper, q_mean: Floats, root: Floats) -> Floats:
        """E ln ∫_j f² of each interval."""
        mean, covariance = self.moments(hyper, q_mean, root)
        w = self.root_weights
        ww = w[:, :, None] * w[:, None, :]
        return expected_log_quadratic(w * mean, ww * covariance, tol=self.tol)[0]

    def pull_vector(self, values: Floats) -> Floats:
        """Σ_j B_jᵀ values_j."""
        flat = self.features.reshape(-1, self.features.shape[-1])
        return np.asarray(flat.T @ values.ravel())

    def pull_matrix(self, matrices: Floats) -> Floats:
        """Σ_j B_jᵀ matrices_j B_j."""
        flat = self.features.reshape(-1, self.features.shape[-1])
        return np.asarray(flat.T @ (matrices @ self.features).reshape(flat.shape))

    def hyper_gradient(
        self, hyper: Hyper, q_mean: Floats, S: Floats, term: BlockTerm
    ) -> tuple[float, float, float]:
        """∂/∂(ln a, ln γ, g) at fixed q."""
        by_mean, by_covariance = term.by_mean, term.by_covariance
        flat = self.features.reshape(-1, self.features.shape[-1])
        dB = self.prior.features_derivative(self.nodes.ravel(), flat)
        mixed = (by_covariance @ self.features).reshape(flat.shape)
        toward = np.sqrt(hyper.variance) * np.outer(by_mean.ravel(), q_mean)
        toward += 2 * hyper.variance * (mixed @ S - mixed)
        dK = self.prior.covariance_derivative(self.nodes, self.nodes)
        by_length = float((dB * toward).sum() + hyper.variance * (by_covariance * dK).sum())
        by_variance = float(
            (by_mean * (term.mean - hyper.mean)).sum() / 2 + (by_covariance * term.covariance).sum()
        )
        return by_length, by_variance, float(by_mean.sum())


def block_orders(needed: NDArray[np.intp]) -> NDArray[np.intp]:
    """Numbers of nodes to use, from those needed: small groups are raised to the next larger."""
    orders, counts = np.unique(needed, return_counts=True)
    used, waiting = [], 0
    for order, count in zip(orders, counts, strict=True):
        waiting += count
        if waiting >= SMALL_BLOCK or order == orders[-1]:
            used.append(order)
            waiting = 0
    return np.asarray(np.array(used)[np.searchsorted(used, needed)])
