"""Labellings: counted by the multinomial formula, listed once each, drawn evenly within cells."""

from itertools import permutations
from math import comb, factorial, log

import numpy as np
import pytest
from scipy import stats

from gp4c.analysis.groups.labellings import (
    cell_table,
    every_labelling,
    log_labellings,
    n_labellings,
    random_labellings,
)


@pytest.mark.parametrize(
    ("groups", "cells"),
    [([0, 0, 1, 1, 1], [0] * 5), ([0, 1, 2, 1, 0, 0], [0, 0, 0, 1, 1, 1]), ([0, 0, 1], [0, 0, 1])],
)
def test_all_labellings_are_the_distinct_permutations_within_cells(groups, cells):
    groups, cells = np.array(groups), np.array(cells)
    by_hand = {
        tuple(groups[list(order)])
        for order in permutations(range(len(groups)))
        if np.array_equal(cells[list(order)], cells)
    }
    listed = [tuple(row) for row in every_labelling(groups, cells)]
    assert len(listed) == len(set(listed)) == n_labellings(cell_table(groups, cells))
    assert set(listed) == by_hand


def test_large_numbers_of_labellings_are_exact():
    groups = np.repeat([0, 1, 2], [30, 40, 30])
    expected = factorial(100) // (factorial(30) ** 2 * factorial(40))
    table = cell_table(groups, np.zeros(100, dtype=np.intp))
    assert n_labellings(table) == expected
    assert log_labellings(table) == pytest.approx(float(log(expected)))
    blocks = cell_table(np.tile([0, 1], 50), np.repeat(np.arange(25), 4))
    assert n_labellings(blocks) == comb(4, 2) ** 25


def test_random_labellings_stay_in_their_cells_and_are_evenly_spread():
    groups, cells = np.array([0, 1, 1, 0, 0, 1, 1]), np.array([1, 1, 1, 0, 0, 0, 0])
    drawn = np.concatenate(
        list(random_labellings(groups, cells, 9000, 1000, np.random.default_rng(3)))
    )
    assert np.all(drawn[:, :3].sum(axis=1) == 2)
    assert np.all(drawn[:, 3:].sum(axis=1) == 2)
    _, seen = np.unique(drawn, axis=0, return_counts=True)
    assert len(seen) == 3 * 6
    assert stats.chisquare(seen).pvalue > 0.001


def test_the_size_of_chunks_changes_nothing():
    groups, cells = np.tile([0, 1, 1], 5), np.repeat([0, 1, 2], 5)
    one, other = (
        np.concatenate(list(random_labellings(groups, cells, 100, chunk, np.random.default_rng(1))))
        for chunk in (100, 7)
    )
    assert np.array_equal(one, other)
