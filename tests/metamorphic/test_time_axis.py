"""Unit and origin of time: the same study in seconds, or counted from another day."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from relations import CASES, TIMES, WINDOW, Case, answers, assert_same, baseline, names, tolerance

#: a day in seconds, and a small unit; both keep times exact
UNITS = {"seconds": 86400.0, "1024ths": 1.0 / 1024.0}
#: where a second unit, or origin, costs little
QUICK = ["GP4C lemma2", "GP4CW", "GP3", "LocalEM", "NPMPLE", "NPMLE", "HomogeneousPoisson gamma"]


def moved(case: Case, unit: float = 1.0, shift: float = 0.0) -> tuple[pd.DataFrame, tuple]:
    """The study with times t · unit + shift, and its window."""
    table = case.table()
    columns = ["time"] if case.events else ["start", "stop"]
    table[columns] = table[columns] * unit + shift
    return table, (WINDOW[0] * unit + shift, WINDOW[1] * unit + shift)


def with_unit(name: str, unit: float):
    """The estimator; a bandwidth is a time and goes with the unit."""
    model = CASES[name].make()
    if name == "LocalEM":
        model.set_params(bandwidths=np.multiply(model.bandwidths, unit))
    return Case(lambda: model, events=CASES[name].events)


@pytest.mark.parametrize(
    ("name", "unit"), [(n, u) for n in names("unit") for u in UNITS if u == "seconds" or n in QUICK]
)
def test_the_unit_of_time_is_the_unit_of_the_answer(name: str, unit: str) -> None:
    factor, model = UNITS[unit], baseline(name)
    other = with_unit(name, factor).fit(*moved(CASES[name], unit=factor))
    assert_same(answers(other, TIMES * factor, factor), answers(model, TIMES), tolerance(name))
    gained = 0.0
    if CASES[name].events:  # a density per unit of time
        gained = -len(CASES[name].table()) * np.log(factor)
    assert_allclose(other.objective_, model.objective_ + gained, **tolerance(name))
    if hasattr(model, "length_scale_"):
        assert_allclose(other.length_scale_, factor * model.length_scale_, **tolerance(name))
        assert_allclose(factor * other.variance_, model.variance_, **tolerance(name))
        assert_allclose(np.sqrt(factor) * other.mean_, model.mean_, **tolerance(name))
    if hasattr(model, "bandwidth_"):
        assert_allclose(other.bandwidth_, factor * model.bandwidth_, **tolerance(name))


@pytest.mark.parametrize("name", names("origin"))
def test_the_origin_of_time_may_be_anywhere(name: str) -> None:
    # the whole study before the year 0
    other = CASES[name].fit(*moved(CASES[name], shift=-1000.0))
    assert other.window_ == (-1000.0, -984.0)
    model = baseline(name)
    assert_same(answers(other, TIMES - 1000.0), answers(model, TIMES), tolerance(name))
    assert_allclose(other.objective_, model.objective_, **tolerance(name))


@pytest.mark.parametrize("name", QUICK)
def test_a_study_may_straddle_zero(name: str) -> None:
    other = CASES[name].fit(*moved(CASES[name], shift=-5.0))
    assert_same(answers(other, TIMES - 5.0), answers(baseline(name), TIMES), tolerance(name))
