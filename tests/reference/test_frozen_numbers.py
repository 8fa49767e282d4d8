"""The paper's estimator, its family and the classical ones give the numbers they gave before."""

import json

import pytest
from make_frozen_numbers import NUMBERS, numbers
from numpy.testing import assert_allclose

FROZEN = json.loads(NUMBERS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def found():
    return numbers()


def test_nothing_is_missing(found):
    assert set(found) == set(FROZEN)


@pytest.mark.parametrize("case", FROZEN)
def test_the_numbers_are_the_same(found, case):
    assert set(found[case]) == set(FROZEN[case])
    for name, value in FROZEN[case].items():
        assert_allclose(found[case][name], value, rtol=1e-9, atol=0.0, err_msg=name)
