"""What a model file may hold: each kind of value at the edge of what is allowed."""

import math

import numpy as np
import pytest

from gp4c.files import kinds


@pytest.mark.parametrize("value", [(0.0, 1.0), (-5, 3), (-1e300, 1e300), (0, 5e-324)])
def test_windows(value):
    assert kinds.window(value, {}) is None


@pytest.mark.parametrize(
    "value",
    [
        (-math.inf, 1.0), (0.0, math.inf), (1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.nan),
        (0.0,), (0.0, 1.0, 2.0), ("0", "1"), [0.0, 1.0], None,
    ],
)  # fmt: skip
def test_no_windows(value):
    assert kinds.window(value, {}) == "is not a window of time"


@pytest.mark.parametrize(
    ("positions", "wrong"),
    [
        ([0, 0, 0], None),  # all rows of the first subject
        ([2, 2], None),
        ([0, 1, 2], None),
        ([], None),
        ([0, 3], "points outside its array"),
        ([-1, 0], "points outside its array"),
    ],
)
def test_positions_stay_in_their_array(positions, wrong):
    check = kinds.index("P", into="K")
    assert check(np.array(positions, dtype=np.int64), {"K": 3}) == wrong


@pytest.mark.parametrize(
    ("options", "good", "bad"),
    [
        ({}, [0.0, -1.0], [math.inf, math.nan]),
        ({"positive": True}, [1e-300], [0.0, -1.0, math.inf, math.nan]),
        ({"infinite": True}, [0.0, math.inf, -math.inf], [math.nan]),
        ({"infinite": True, "nan": True}, [0.0, math.inf, math.nan], []),
        ({"positive": True, "infinite": True}, [math.inf, 3.0], [-math.inf, 0.0, math.nan]),
    ],
)
def test_numbers_alone_and_in_arrays(options, good, bad):
    alone, many = kinds.number(**options), kinds.array("n", **options)
    for value in good:
        assert alone(value, {}) is None
        assert many(np.array([1.0, value]), {}) is None
    for value in bad:
        assert alone(value, {}) is not None
        assert many(np.array([1.0, value]), {}) is not None
    assert alone(True, {}) == alone("1", {}) == "is not a number"


def test_sizes_with_one_name_are_one_size():
    check, sizes = kinds.array("K", "M"), {}
    assert check(np.zeros((2, 3)), sizes) is None
    assert kinds.array("M")(np.zeros(3), sizes) is None
    assert kinds.array("M")(np.zeros(2), sizes) == "has 2 values instead of 3"
    assert kinds.array("M")(np.zeros((3, 1)), sizes) == "has 2 axes instead of 1"


def test_only_what_some_fits_lack_may_be_missing():
    checks = {"rate_": kinds.number(), "seed_": kinds.Sometimes(kinds.COUNT)}
    assert kinds.problem_with({"rate_": 1.0}, checks) is None
    assert kinds.problem_with({"seed_": 1}, checks) == "'rate_' is missing"
    assert kinds.problem_with({"rate_": 1.0, "seed_": 1.5}, checks) == "'seed_' is a float"
