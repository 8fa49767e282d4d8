"""Weighted intervals between nodes against the rows they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from large_panels import compressed, irregular_panel, sums_of
from scipy.integrate import quad

from gp4c.data.panel import PanelCounts
from gp4c.design.compression import WeightedPairs, node_grid, pairs_to_nodes
from gp4c.design.interval_sums import Rows, rows_to_nodes
from gp4c.design.kernels import KERNELS
from gp4c.design.moments import CELLS, PairMoments
from gp4c.design.observations import observe
from gp4c.design.quadrature import Grid, IntervalIntegrals
from gp4c.design.streaming import add_sums
from gp4c.design.table_integrals import TableIntegrals, summed_between
from gp4c.inference.hyper import Problem
from gp4c.inference.sparse_prior import Hyper
from gp4c.models.big import resolution_for
from problems import random_q

pytestmark = pytest.mark.usefixtures("many")

#: what the issue asks of the objective, relative to that of the rows
OBJECTIVE = 1e-6


def test_moments_carry_any_quartic_in_the_ends_exactly(rng: np.random.Generator) -> None:
    start = rng.uniform(0, 1, 500)
    stop = start + rng.uniform(0, 1, 500) * (1 - start)
    weight = rng.normal(size=500)
    moments = PairMoments()
    moments.add_times(start, stop, weight)
    pairs = WeightedPairs.on(node_grid(0.1), pairs_to_nodes(moments))

    def symmetric(s: np.ndarray, e: np.ndarray) -> np.ndarray:
        return 1 + s * e + (s + e) ** 3 - (s * e) ** 2 + 2 * (s**4 + e**4)

    direct = weight @ symmetric(start, stop)
    # nodes paired with themselves are intervals of length 1e-4 panels: error of that squared
    assert pairs.weight[0] @ symmetric(pairs.start, pairs.stop) == pytest.approx(direct, rel=1e-8)


def test_a_smooth_mean_over_intervals_is_summed_to_eight_digits(rng: np.random.Generator) -> None:
    start = rng.uniform(0, 0.95, 300)
    stop = start + rng.uniform(1e-6, 0.05, 300)
    count = rng.poisson(2.0, 300).astype(float)

    def rate(t: float) -> float:
        return float(1.0 + 0.7 * np.sin(t / 0.03))

    direct = sum(
        c * np.log(quad(rate, s, e)[0] / (e - s))
        for s, e, c in zip(start, stop, count, strict=True)
    )
    pairs = WeightedPairs.on(node_grid(0.03), rows_to_nodes(Rows(start, stop, count, count)).pairs)
    length = pairs.stop - pairs.start
    # the running integral is 0.021 (1 − cos(t/0.03)) + t; short differences by the sine's product
    middle = (pairs.start + pairs.stop) / 2
    mass = length + 0.7 * 0.06 * np.sin(middle / 0.03) * np.sin(length / 0.06)
    assert pairs.weight[0] @ np.log(mass / length) == pytest.approx(direct, abs=1e-7 * count.sum())


def evaluations(kernel: str, term: str, effect: str | None, length_scale: float, **data: object):
    """The bound and its gradients at one q, from the rows and from the nodes."""
    panel = irregular_panel(gaps=True, **data)
    resolution = resolution_for(length_scale, kernel)
    hyper = Hyper(length_scale, 0.1, 1.0, 0.8 if effect == "gamma" else np.inf)
    found = []
    for observations in (observe(panel, None, panel.window), compressed(panel, resolution, effect)):
        problem = Problem(observations, KERNELS[kernel], term, 0.3, effect)
        work = problem.workspace(length_scale)
        q = random_q(work.size, seed=1)
        at = work.evaluate(hyper, q)
        found.append((at, work.hyper_gradient(hyper, q, at)))
    return found


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("term", ["lemma2", "pointwise", "exact"])
def test_objective_and_gradients_are_those_of_the_rows(kernel: str, term: str) -> None:
    (rows, by_rows), (nodes, by_nodes) = evaluations(kernel, term, None, 0.25, n_subjects=120)
    assert nodes.bound.total == pytest.approx(rows.bound.total, rel=OBJECTIVE)
    # gradients are differences of terms of the objective's size
    size = abs(rows.bound.counts) + rows.bound.exposure
    np.testing.assert_allclose(nodes.grad_mean, rows.grad_mean, rtol=0, atol=OBJECTIVE * size)
    np.testing.assert_allclose(
        nodes.grad_covariance, rows.grad_covariance, rtol=0, atol=OBJECTIVE * size
    )
    np.testing.assert_allclose(by_nodes, by_rows, rtol=0, atol=OBJECTIVE * size)


@pytest.mark.parametrize("effect", ["gamma", "weight"])
@pytest.mark.parametrize("length_scale", [0.3, 0.07])
def test_subject_effects_are_those_of_the_rows(effect: str, length_scale: float) -> None:
    (rows, by_rows), (nodes, by_nodes) = evaluations(
        "se", "pointwise", effect, length_scale, frailty=0.7
    )
    assert nodes.bound.exposure == pytest.approx(rows.bound.exposure, rel=OBJECTIVE)
    assert nodes.bound.total == pytest.approx(rows.bound.total, rel=OBJECTIVE)
    size = abs(rows.bound.counts) + abs(rows.bound.exposure)
    np.testing.assert_allclose(nodes.grad_mean, rows.grad_mean, rtol=0, atol=OBJECTIVE * size)
    np.testing.assert_allclose(by_nodes, by_rows, rtol=0, atol=OBJECTIVE * size)


def test_any_split_of_the_subjects_gives_the_same_sums() -> None:
    panel = irregular_panel(gaps=True)
    whole = sums_of(panel)
    parts = [sums_of(panel[np.arange(k, panel.n_subjects, 3)]) for k in range(3)]
    together = add_sums(add_sums(parts[0], parts[1]), parts[2])
    assert together.n_subjects == whole.n_subjects == panel.n_subjects
    for name in ("n_rows", "n_events", "exposure_time", "log_lengths"):
        ours, theirs = getattr(together.intervals, name), getattr(whole.intervals, name)
        assert ours == pytest.approx(theirs, rel=1e-13)
    for one, two in (
        (together.intervals.nodes.pairs, whole.intervals.nodes.pairs),
        (together.intervals.nodes.points, whole.intervals.nodes.points),
        (together.subjects.number, whole.subjects.number),
        (together.subjects.events, whole.subjects.events),
    ):
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(together.subjects.times, whole.subjects.times)
    ours, theirs = together.intervals.sample, whole.intervals.sample
    assert sorted(ours.start) == sorted(theirs.start)


def test_few_different_intervals_stay_as_they_are() -> None:
    rows = {"subject": np.arange(900), "start": np.arange(900) % 5, "count": np.arange(900) % 3}
    panel = PanelCounts.from_frame({**rows, "stop": rows["start"] + 2})
    sums = sums_of(panel)
    assert sums.intervals.nodes is None
    distinct = panel.distinct()
    np.testing.assert_array_equal(sums.intervals.exact.count, distinct.count)
    np.testing.assert_array_equal(sums.intervals.exact.exposure, distinct.exposure)


def test_no_interval_leaves_the_window_and_cells_at_its_edges_are_kept() -> None:
    start, stop = np.array([0.0, 1 - 1 / CELLS, 0.0]), np.array([1 / CELLS, 1.0, 1.0])
    nodes = rows_to_nodes(Rows(start, stop, np.ones(3), np.ones(3)))
    pairs = WeightedPairs.on(node_grid(0.05), nodes.pairs)
    assert pairs.start.min() > 0
    assert pairs.stop.max() < 1
    assert pairs.weight[0].sum() == pytest.approx(3.0, rel=1e-12)
    assert nodes.points.sum() == pytest.approx(0.0, abs=1e-12)


def test_integrals_by_table_agree_with_those_by_nodes_and_are_their_own_adjoint(
    rng: np.random.Generator,
) -> None:
    grid = Grid.on(np.linspace(0, 1, 41), 10)
    start = rng.uniform(0, 1, 400)
    stop = start + rng.uniform(0, 1, 400) * (1 - start)
    values = np.stack([np.exp(np.sin(grid.nodes / 0.05)), grid.nodes**2], axis=1)
    table = TableIntegrals(grid, start, stop)
    direct = IntervalIntegrals(grid, start, stop).apply(values)
    np.testing.assert_allclose(table.apply(values), direct, rtol=0, atol=1e-11)
    weight = rng.normal(size=400)
    for k in range(2):
        there, back = weight @ table.apply(values[:, k]), table.transpose(weight) @ values[:, k]
        assert there == pytest.approx(back, rel=1e-11)


def test_weighted_sums_of_integrals_from_a_table(rng: np.random.Generator) -> None:
    grid = Grid.on(np.linspace(0, 1, 41), 10)
    waves = np.array([3.0, 11.0, 25.0])
    table = TableIntegrals(grid, np.zeros(0), np.zeros(0)).table(
        np.cos(grid.nodes[:, None] * waves)
    )
    start = rng.uniform(0, 0.7, 50)
    stop, weight = start + rng.uniform(0.01, 0.3, 50), rng.uniform(0.5, 2.0, 50)
    first = np.array([0, 1, 4, 30])
    each = (
        weight[:, None] * (np.sin(stop[:, None] * waves) - np.sin(start[:, None] * waves)) / waves
    )
    direct = [part.sum(axis=0) for part in np.split(each, first[1:])]
    found = summed_between(table, start, stop, weight, first)
    np.testing.assert_allclose(found, direct, atol=1e-11)
