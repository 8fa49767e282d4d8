"""Distinct intervals against a dictionary, for every route and size."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gp4c
from gp4c.data import distinct as module
from gp4c.data import ordering
from gp4c.data.distinct import distinct_intervals, interval_keys, sum_counts, sum_floats
from gp4c.data.ordering import LARGE, pair_order


def by_dictionary(start, stop, count, exposure):
    counts, exposures = defaultdict(int), defaultdict(list)
    for a, b, m, w in zip(start, stop, count, exposure, strict=True):
        counts[float(a), float(b)] += int(m)
        exposures[float(a), float(b)].append(float(w))
    keys = sorted(counts)
    return keys, [counts[k] for k in keys], [math.fsum(exposures[k]) for k in keys]


def check(start, stop, count, exposure):
    found = distinct_intervals(start, stop, count, exposure)
    keys, counts, exposures = by_dictionary(start, stop, count, exposure)
    assert list(zip(found.start.tolist(), found.stop.tolist(), strict=True)) == keys
    assert found.count.tolist() == counts
    # math.fsum rounds correctly; ours may be off by the last bit
    np.testing.assert_allclose(found.exposure, exposures, rtol=2**-52, atol=0)
    assert np.array_equal(found.start[found.inverse], start)
    assert np.array_equal(found.stop[found.inverse], stop)
    return found


def rows(n, n_starts, n_stops, seed=0):
    random = np.random.default_rng(seed)
    start = random.choice(random.uniform(0, 1, n_starts), n)
    stop = random.choice(random.uniform(1, 2, n_stops), n)
    return start, stop, random.poisson(2, n), random.choice([1.0, 0.1, 1 / 3, 1e-9, 1e6], n)


@pytest.fixture
def as_if_large(monkeypatch):
    """Take the routes for many rows with few."""
    for place in (module, ordering):
        monkeypatch.setattr(place, "LARGE", 100)


@pytest.mark.parametrize(("n", "n_starts", "n_stops"), [(1, 1, 1), (900, 10, 9), (900, 900, 900)])
def test_agrees_with_a_dictionary(n, n_starts, n_stops):
    check(*rows(n, n_starts, n_stops))


@pytest.mark.parametrize(
    ("n_starts", "n_stops", "by_hash"), [(20, 30, True), (9000, 3, False), (50, 9000, False)]
)
def test_routes_for_many_rows_agree_with_a_dictionary(as_if_large, n_starts, n_stops, by_hash):
    columns = rows(9000, n_starts, n_stops)
    assert (module._groups_by_hash(*columns[:2]) is not None) is by_hash
    check(*columns)


def test_colliding_keys_do_not_merge_intervals(as_if_large, monkeypatch):
    monkeypatch.setattr(
        module, "interval_keys", lambda start, stop: np.zeros(len(start), np.uint64)
    )
    check(*rows(2000, 20, 30))


def test_many_rows_take_the_hash_route_as_they_are():
    start, stop, count, exposure = rows(LARGE + 50_000, 40, 50)
    assert module._groups_by_hash(start, stop) is not None
    assert len(distinct_intervals(start, stop, count, exposure)) == 2000


def test_keys_of_swapped_or_close_ends_differ():
    a, b = np.array([1.0, 2.0, 1.0]), np.array([2.0, 1.0, np.nextafter(2.0, 3.0)])
    assert len(np.unique(interval_keys(a, b))) == 3


@pytest.mark.parametrize("size", [2, LARGE + 2])
def test_minus_zero_is_zero(size):
    start = np.zeros(size)
    start[::2] = -0.0
    found = distinct_intervals(start, np.ones(size), np.ones(size, np.int64), np.ones(size))
    assert len(found) == 1
    assert not np.signbit(found.start[0])
    assert found.count.tolist() == [size]


def test_end_points_a_rounding_apart_are_different():
    stop = np.array([0.1 + 0.2, 0.3])
    found = distinct_intervals(np.zeros(2), stop, np.ones(2, np.int64), np.ones(2))
    assert found.stop.tolist() == [0.3, 0.1 + 0.2]


@given(st.permutations(range(40)), st.lists(st.floats(1e-12, 1e12), min_size=40, max_size=40))
def test_sums_of_exposures_do_not_depend_on_the_order_of_rows(order, weights):
    group = np.arange(40) % 3
    weight = np.array(weights)
    order = np.array(order)
    one = sum_floats(group, weight, 3)
    two = sum_floats(group[order], weight[order], 3)
    assert np.array_equal(one, two)
    exact = [math.fsum(weight[group == k]) for k in range(3)]
    np.testing.assert_allclose(one, exact, rtol=2**-52, atol=0)


def test_groups_may_be_empty_or_have_one_row():
    assert sum_floats(np.array([2, 0, 2]), np.array([0.1, 0.7, 0.2]), 3).tolist() == [
        0.7,
        0.0,
        0.1 + 0.2,
    ]
    assert sum_floats(np.array([2, 0]), np.array([0.1, 0.7]), 3).tolist() == [0.7, 0.0, 0.1]


def test_sums_of_many_unlike_exposures_do_not_depend_on_the_order_of_rows():
    random = np.random.default_rng(2)
    weight = np.exp(random.normal(0, 12, 60_000))
    group = random.integers(0, 4, 60_000)
    expected = [math.fsum(weight[group == k]) for k in range(4)]
    for _ in range(5):
        order = random.permutation(60_000)
        found = sum_floats(group[order], weight[order], 4)
        assert np.array_equal(found, sum_floats(group, weight, 4))
        np.testing.assert_allclose(found, expected, rtol=2**-52, atol=0)


def test_counts_beyond_double_precision_are_summed_exactly():
    count = np.array([2**53, 1, 1, 2**53 - 1])
    assert sum_counts(np.array([0, 0, 1, 1]), count, 2).tolist() == [2**53 + 1, 2**53]


@pytest.mark.parametrize("n", [1000, LARGE + 1000])
@pytest.mark.parametrize("first_kind", ["float", "tied float", "few", "many", "wide"])
def test_pair_order_sorts_by_two_keys(n, first_kind):
    random = np.random.default_rng(1)
    first = {
        "float": random.normal(size=n),
        "tied float": random.normal(size=50)[random.integers(0, 50, n)],
        "few": random.integers(0, 9, n),
        "many": random.integers(0, n, n),
        "wide": random.integers(0, 2**40, n),
    }[first_kind]
    second = random.normal(size=n).round(2)
    order = pair_order(first, second)
    assert np.array_equal(np.sort(order), np.arange(n))
    expected = np.lexsort((second, first))
    assert np.array_equal(first[order], first[expected])
    assert np.array_equal(second[order], second[expected])


def test_rows_in_order_are_left_alone():
    index = np.array([0, 0, 1])
    assert ordering.row_order(index, np.array([1.0, 2.0, 0.0])) is None
    assert ordering.row_order(index, np.array([2.0, 1.0, 0.0])).tolist() == [1, 0, 2]


def test_a_panel_computes_its_distinct_intervals_once_and_read_only():
    panel = gp4c.load_dataset("bladder")
    found = panel.distinct()
    assert panel.distinct() is found
    assert found.exposure.sum() == panel.n_intervals
    assert found.count.sum() == panel.n_events
    with pytest.raises(ValueError, match="read-only"):
        found.count[0] = 9
    assert repr(found) == "<DistinctIntervals: 270 of 920 intervals, 402 events>"
