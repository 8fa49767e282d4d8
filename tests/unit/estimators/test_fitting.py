"""Steps of a fit, one by one: units, and the choice of an effect."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from problems import visits_panel


@pytest.mark.parametrize("origin", [0.0, 50.0])
def test_hyper_parameters_are_in_the_units_of_the_data(origin: float) -> None:
    """λ = f² has units 1/time: variance and mean² of f too, the length-scale those of time."""
    options = {"effect": None, "hyper": "optimize", "count_term": "pointwise", "n_inducing": 6}
    unit = gp4c.GP4C(**options).fit(visits_panel(5, 12, 3, level=3.0))
    weeks = gp4c.GP4C(**options).fit(
        visits_panel(5, 12, 3, level=3.0, window=(origin, origin + 20.0))
    )
    assert_allclose(weeks.variance_ * 20.0, unit.variance_, rtol=1e-5)
    assert_allclose(weeks.mean_**2 * 20.0, unit.mean_**2, rtol=1e-5)
    assert_allclose(weeks.length_scale_ / 20.0, unit.length_scale_, rtol=1e-5)


@pytest.mark.parametrize("counts", [[0, 0], [3]])
def test_where_nothing_is_known_of_differences_that_is_said(counts: list[int]) -> None:
    who = np.arange(len(counts))
    panel = gp4c.PanelCounts.from_frame(
        {"subject": who, "start": 0.0 * who, "stop": 1.0 + who, "count": counts}
    )
    choice = gp4c.GP4C(count_term="pointwise", hyper="optimize").fit(panel).effect_choice_
    assert choice.startswith("the data cannot tell whether subjects differ")
