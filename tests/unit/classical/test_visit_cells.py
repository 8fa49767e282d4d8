"""Runs of cells: every way to sum over them is a loop over intervals and cells."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gp4c.classical import visit_cells as cells
from gp4c.classical.visit_cells import Grid, Runs

RUNS = Runs(np.array([0, 2, 5, 3, 5]), np.array([4, 3, 12, 3, 6]), 14)  # the fourth is empty


def covers(interval, cell):
    return RUNS.first[interval] <= cell < RUNS.last[interval]


@pytest.fixture(params=["matrix", "running sums"])
def runs(request, monkeypatch):
    if request.param == "running sums":
        monkeypatch.setattr(cells, "_MATRIX_ENTRIES", 3)
    return Runs(RUNS.first, RUNS.last, RUNS.size)  # nothing cached


@pytest.mark.parametrize("shape", [(14,), (14, 3)])
def test_sums_are_loops(runs, shape, rng):
    values = rng.standard_normal(shape)
    expected = [
        sum((values[c] for c in range(14) if covers(i, c)), np.zeros(shape[1:])) for i in range(5)
    ]
    assert_allclose(runs.sums(values), expected, atol=1e-14)


def test_sums_of_few_jumps_are_loops(runs):
    jumps = np.zeros(14)
    jumps[[2, 11]] = [3.0, 1e-12]
    assert_array_equal(runs.sums(jumps), [3.0, 3.0, 1e-12, 0.0, 0.0])


@pytest.mark.parametrize("shape", [(5,), (5, 2)])
def test_covers_are_loops(runs, shape, rng):
    values = rng.standard_normal(shape)
    expected = [
        sum((values[i] for i in range(5) if covers(i, c)), np.zeros(shape[1:])) for c in range(14)
    ]
    assert_allclose(runs.cover(values), expected, atol=1e-14)
    assert_array_equal(runs.covered, [any(covers(i, c) for i in range(5)) for c in range(14)])
    # exactly nothing where nothing is covered: no remainder of a running sum
    assert_array_equal(runs.cover(values)[~runs.covered], 0.0)


def test_the_gram_matrix_is_that_of_the_matrix(rng):
    weights = rng.uniform(0.1, 2.0, 5)
    A = RUNS.matrix.toarray()
    assert_allclose(RUNS.gram(weights), A.T @ np.diag(weights) @ A, atol=1e-13)


def test_some_intervals_on_some_cells():
    sites = np.array([1, 2, 8, 13])
    assert_array_equal(RUNS.on(sites).matrix.toarray(), RUNS.matrix.toarray()[:, sites])
    rows = np.array([2, 0])
    assert_array_equal(RUNS.take(rows).matrix.toarray(), RUNS.matrix.toarray()[rows])
    assert len(RUNS.take(rows)) == 2


def test_intervals_are_laid_on_their_own_end_points():
    grid = Grid.of(np.array([0.0, 1.0, 0.5]), np.array([2.0, 3.5, 1.0]))
    assert_array_equal(grid.points, [0.0, 0.5, 1.0, 2.0, 3.5])
    assert_array_equal(grid.width, [0.5, 0.5, 1.0, 1.5])
    assert_array_equal(grid.runs.first, [0, 2, 1])
    assert_array_equal(grid.runs.last, [3, 4, 2])
    assert_allclose(grid.runs.sums(grid.width), [2.0, 2.5, 0.5])


def test_entries_are_those_of_the_matrix(monkeypatch):
    assert RUNS.n_entries == RUNS.matrix.nnz == RUNS.n_kept
    monkeypatch.setattr(cells, "_MATRIX_ENTRIES", 3)
    assert RUNS.n_kept == 3
