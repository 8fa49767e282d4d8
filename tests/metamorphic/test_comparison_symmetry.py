"""A comparison of groups has no preferred order: of rows, of labels, of the two groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from relations import QUICK, TIMES, panel_of, study

import gp4c

INNER = TIMES[2:]
SMOOTH = gp4c.GP4C(count_term="pointwise", effect=None, **QUICK)


def compared(table: pd.DataFrame, **options: Any) -> Any:
    return gp4c.compare(panel_of(table), "group", SMOOTH, n_permutations=199, **options)


def three_groups() -> pd.DataFrame:
    table = study()
    return table.assign(group=np.where(table["subject"] > "s07", "c", table["group"]))


@pytest.fixture(scope="module")
def a_to_b() -> Any:
    return compared(study())


def test_the_order_of_rows_changes_no_bit(a_to_b: Any) -> None:
    again = compared(study().sample(frac=1.0, random_state=8))
    for curve in ("rate", "cumulative"):
        assert np.all(again.ratio(INNER, curve=curve) == a_to_b.ratio(INNER, curve=curve))
    assert np.all(again.ratio_band(INNER)[0] == a_to_b.ratio_band(INNER)[0])
    assert again.p_value == a_to_b.p_value
    assert again.horizon == a_to_b.horizon


@pytest.mark.parametrize("curve", ["rate", "cumulative"])
def test_the_other_reference_inverts_everything(a_to_b: Any, curve: str) -> None:
    """Draws belong to the groups: which one is the reference turns them round, no more.

    The median of an even number of draws lies between two of them, and the inverse between the
    inverses: so ratios invert but for that gap.
    """
    b_to_a = compared(study(), reference="b")
    assert b_to_a.groups == ["b", "a"]
    how = {"curve": curve}
    assert_allclose(b_to_a.ratio(INNER, **how) * a_to_b.ratio(INNER, **how), 1.0, rtol=1e-4)
    low, high = a_to_b.ratio_band(INNER, **how)
    down, up = b_to_a.ratio_band(INNER, **how)
    wide = (low > 0.02) & (high < 50.0)  # quantiles between neighbouring draws far apart
    assert_allclose((down * high)[wide], 1.0, rtol=1e-2)
    assert_allclose((up * low)[wide], 1.0, rtol=1e-2)
    assert_allclose(b_to_a.difference(INNER, **how), -a_to_b.difference(INNER, **how), rtol=1e-9)
    assert_allclose(b_to_a.probability(INNER, **how), 1.0 - a_to_b.probability(INNER, **how))


@pytest.mark.parametrize("test", ["level", "curve"])
def test_the_p_value_knows_neither_reference_nor_names(test: str) -> None:
    two, three = study(), three_groups()
    renamed = {"a": "z", "b": "y", "c": "a"}  # sorts the other way round
    for table in (two, three):
        expected = compared(table, test=test).p_value
        assert compared(table, test=test, reference="b").p_value == expected
        other = table.assign(group=table["group"].map(renamed))
        assert compared(other, test=test).p_value == expected


def test_other_names_of_the_groups_keep_the_direction(a_to_b: Any) -> None:
    table = study()
    other = compared(table.assign(group=table["group"].map({"a": "z", "b": "y"})), reference="z")
    assert other.groups == ["z", "y"]
    # draws of the groups have other seeds now: 4000 of them know a median to a few percent
    assert_allclose(other.ratio(INNER[:5]), a_to_b.ratio(INNER[:5]), rtol=0.1)
    assert_allclose(other.difference(INNER), a_to_b.difference(INNER), atol=0.02)


def test_a_pair_among_three_groups_is_the_same_both_ways() -> None:
    three = compared(three_groups())
    there, back = (three.ratio(INNER, pair=pair) for pair in (("a", "c"), ("c", "a")))
    assert_allclose(there * back, 1.0, rtol=1e-4)
