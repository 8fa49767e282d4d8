"""Weighted intervals between nodes against the rows they stand for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from large_panels import compressed, irregular_panel, sums_of
from scipy.integrate import quad

from gp4c.data.panel import PanelCounts
from gp4c.inference.engine.landscape import Derivatives
from gp4c.inference.engine.posterior_fit import task_for
from gp4c.large.compression import WeightedPairs, node_grid, pairs_to_nodes
from gp4c.large.interval_sums import Rows, rows_to_nodes
from gp4c.large.moments import CELLS, PairMoments
from gp4c.large.resolved import resolution_for
from gp4c.large.streaming import add_sums
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.model.table_integrals import TableIntegrals, summed_between

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


def evaluations(
    kernel: str, effect: str | None, length_scale: float, **data: object
) -> tuple[Derivatives, Derivatives]:
    """The log density and its derivatives at one point, from the rows and from the nodes."""
    panel = irregular_panel(gaps=True, **data)
    laws = LAWS["poisson"], EFFECTS[effect]
    # fits lay nodes closer where the logarithm of α + R asks for it
    resolution = resolution_for(length_scale, kernel) / (1.0 if effect is None else 2.0)
    found = []
    rows = observe_cells(panel, None, panel.window, *laws)
    for cells in (rows, compressed(panel, resolution, effect)):
        # as many events as these have a quadrature as smooth as nodes need
        cells = replace(cells, n_events=1e6)
        land = task_for(cells, *laws, kernel).landscape(np.log(length_scale))
        x = 0.3 * np.random.default_rng(1).normal(size=(land.dimension, 2))
        found.append(land.derivatives(x, np.array([-1.0, -0.6])))
    return found[0], found[1]


def assert_close(nodes: Derivatives, rows: Derivatives) -> None:
    """Derivatives are differences of terms of the size of the counts."""
    size = OBJECTIVE * np.abs(rows.hessian).max()
    np.testing.assert_allclose(nodes.value, rows.value, rtol=OBJECTIVE)
    np.testing.assert_allclose(nodes.gradient, rows.gradient, rtol=0, atol=size)
    np.testing.assert_allclose(nodes.hessian, rows.hessian, rtol=0, atol=size)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_density_and_its_derivatives_are_those_of_the_rows(kernel: str) -> None:
    rows, nodes = evaluations(kernel, None, 0.25, n_subjects=120)
    assert_close(nodes, rows)


@pytest.mark.parametrize("length_scale", [0.3, 0.07])
def test_subject_effects_are_those_of_the_rows(length_scale: float) -> None:
    rows, nodes = evaluations("se", "gamma", length_scale, frailty=0.7)
    assert_close(nodes, rows)


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
