"""The exact count term on intervals: Monte Carlo, limits, finite differences, node counts."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.inference.variational.count_terms.exact import (
    SMALL_BLOCK,
    Block,
    Exact,
    block_orders,
)
from gp4c.inference.variational.expected_logs.log_quadratic import expected_log_quadratic
from gp4c.inference.variational.expected_logs.log_square import expected_log_square
from gp4c.model.kernels import KERNELS
from gp4c.model.quadrature import Grid
from gp4c.model.sparse_prior import Hyper, SparsePrior
from problems import central_difference, gaussian, random_q, symmetric_directions
from tolerances import FINITE_DIFFERENCE, STANDARD_ERRORS

HYPER = Hyper(0.25, 0.6, 0.8)


def prior_of(kernel: str, size: int, length_scale: float) -> SparsePrior:
    return SparsePrior(KERNELS[kernel], np.linspace(0.0, 1.0, size), length_scale)


def one_block(
    prior: SparsePrior, low: float, high: float, count: float = 1.0, tol: float = 1e-11
) -> Block:
    (block,) = Exact().blocks(np.array([low]), np.array([high]), np.array([count]), prior, tol)
    return block


def test_value_agrees_with_draws_of_the_process(rng: np.random.Generator) -> None:
    prior, q = prior_of("se", 6, HYPER.length_scale), random_q(6, 1)
    low, high = 0.2, 0.9
    grid = Grid.on(np.linspace(low, high, 5), 8)
    # f at the nodes of another rule: sparse part from q, residual from the prior given v
    B = prior.features(grid.nodes)
    left = prior.covariance(grid.nodes, grid.nodes) - B @ B.T
    values, vectors = np.linalg.eigh(left)
    n = 100_000
    noise = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * rng.normal(size=(len(B), n)))
    v = q.mean[:, None] + q.root @ rng.normal(size=(6, n))
    f = HYPER.mean + np.sqrt(HYPER.variance) * (B @ v + noise)
    logs = np.log(grid.weights @ f**2)
    ours = one_block(prior, low, high).evaluate(HYPER, q.mean, q.root).value
    error = logs.std() / np.sqrt(n)
    assert error < 4e-3
    assert abs(ours - logs.mean()) < STANDARD_ERRORS * error


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_a_tiny_interval_is_a_point(kernel: str) -> None:
    prior, q, width, x = prior_of(kernel, 6, 0.25), random_q(6, 2), 1e-7, 0.37
    ours = one_block(prior, x - width / 2, x + width / 2).evaluate(HYPER, q.mean, q.root).value
    b = prior.features(np.array([x]))[0]
    mean = HYPER.mean + np.sqrt(HYPER.variance) * b @ q.mean
    variance = HYPER.variance * (1 - b @ b + b @ q.covariance @ b)
    expected = np.log(width) + expected_log_square(mean, variance)[0]
    assert_allclose(ours, expected, rtol=0, atol=1e-6)


def test_gradients_by_q() -> None:
    prior, q = prior_of("se", 4, 0.4), random_q(4, 3)
    (block,) = Exact().blocks(
        np.array([0.1, 0.5]), np.array([0.4, 0.8]), np.array([2.0, 3.0]), prior, 1e-11
    )

    def value(mean: np.ndarray, S: np.ndarray) -> float:
        here = gaussian(mean, S)
        return block.evaluate(HYPER, here.mean, here.root).value

    term = block.evaluate(HYPER, q.mean, q.root)
    by_mean = central_difference(lambda m: value(m, q.covariance), q.mean)
    assert_allclose(term.grad_mean, by_mean, **FINITE_DIFFERENCE)
    for direction in symmetric_directions(4):
        slope = central_difference(
            lambda e, d=direction: value(q.mean, q.covariance + e[0] * d), np.zeros(1), 1e-4
        )
        assert_allclose((term.grad_covariance * direction).sum(), slope[0], **FINITE_DIFFERENCE)


def fine_value(prior: SparsePrior, low: float, high: float, q_seed: int, order: int) -> float:
    """E ln ∫ f² with panels that end at every inducing input: no kink inside a panel."""
    z, q = prior.inducing, random_q(len(prior.inducing), q_seed, mean=1.0, spread=0.3)
    grid = Grid.on(np.array([low, *z[(z > low) & (z < high)], high]), order)
    B, w = prior.features(grid.nodes), np.sqrt(grid.weights)
    spread = B @ q.root
    covariance = prior.covariance(grid.nodes, grid.nodes) - B @ B.T + spread @ spread.T
    mean = HYPER.mean + np.sqrt(HYPER.variance) * (B @ q.mean)
    A = HYPER.variance * w[:, None] * covariance * w
    return float(expected_log_quadratic((w * mean)[None], A[None], 1e-11)[0][0])


def node_error(kernel: str, length: float) -> float:
    """What the nodes that `nodes_needed` allows cost, for an interval of `length` length-scales."""
    a = 0.05
    size = int(np.ceil(1 / (KERNELS[kernel].spacing * a))) + 1
    prior = prior_of(kernel, size, a)
    low, high = 0.313, 0.313 + length * a
    q = random_q(size, 5, mean=1.0, spread=0.3)
    ours = one_block(prior, low, high, tol=1e-8).evaluate(HYPER, q.mean, q.root).value
    return abs(ours - fine_value(prior, low, high, 5, 12))


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("length", [0.01, 0.3, 1.0, 3.0, 8.0])
def test_nodes_suffice(kernel: str, length: float) -> None:
    # Matérn features have a kink at every inducing input, and the residual one on the diagonal
    assert node_error(kernel, length) < 1e-5


@pytest.mark.parametrize("length", [0.01, 0.3])
def test_nodes_are_spectral_for_the_squared_exponential(length: float) -> None:
    assert node_error("se", length) < 1e-8


@pytest.mark.parametrize("length", [3.0, 8.0])
def test_nodes_keep_their_promise_for_the_squared_exponential(length: float) -> None:
    assert node_error("se", length) < 1e-8


@pytest.mark.parametrize("length", [0.3, 3.0, 8.0])
def test_fewer_nodes_keep_a_weaker_promise(length: float) -> None:
    coarse = one_block(prior_of("se", 40, 0.05), 0.313, 0.313 + length * 0.05, tol=1e-5)
    fine = one_block(prior_of("se", 40, 0.05), 0.313, 0.313 + length * 0.05)
    assert coarse.nodes.shape[1] < fine.nodes.shape[1]
    q = random_q(40, 5, mean=1.0, spread=0.3)
    values = [block.evaluate(HYPER, q.mean, q.root).value for block in (coarse, fine)]
    assert 0 < abs(values[0] - values[1]) < 1e-5


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_more_nodes_are_used_for_longer_intervals(kernel: str) -> None:
    needed = KERNELS[kernel].interval_nodes(np.array([1e-9, 0.5, 1.0, 5.0, 20.0]))
    assert np.all(np.diff(needed) >= 0)
    assert needed[0] >= 4


def test_small_groups_join_the_next_larger_number_of_nodes() -> None:
    needed = np.array([4] * 3 + [6] * (2 * SMALL_BLOCK) + [8] * 2 + [30] * 2)
    used = block_orders(needed)
    assert np.all(used >= needed)
    assert np.unique(used).tolist() == [6, 30]


def test_blocks_partition_the_intervals(rng: np.random.Generator) -> None:
    start = rng.uniform(0.0, 0.5, 120)
    stop = start + rng.uniform(1e-4, 0.5, 120)
    count = rng.integers(1, 9, 120).astype(float)
    blocks = Exact().blocks(start, stop, count, prior_of("se", 8, 0.1), 1e-8)
    assert len(blocks) > 1
    assert sum(b.count.sum() for b in blocks) == count.sum()
    lengths = np.concatenate([(b.root_weights**2).sum(axis=1) for b in blocks])
    assert_allclose(np.sort(lengths), np.sort(stop - start), rtol=1e-12)


def test_blocks_add_up_to_their_intervals() -> None:
    prior, q = prior_of("se", 6, 0.25), random_q(6, 4)
    start, stop = np.array([0.0, 0.1, 0.3]), np.array([0.05, 0.2, 0.95])
    count = np.array([1.0, 2.0, 5.0])
    blocks = Exact().blocks(start, stop, count, prior, 1e-11)
    together = sum(b.evaluate(HYPER, q.mean, q.root).value for b in blocks)
    alone = sum(
        one_block(prior, low, high, c).evaluate(HYPER, q.mean, q.root).value
        for low, high, c in zip(start, stop, count, strict=True)
    )
    assert_allclose(together, alone, rtol=1e-11)
