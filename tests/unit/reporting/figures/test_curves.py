"""Curves on a grid are the model's own, whatever route gave them."""

import numpy as np
import pytest

import gp4c
from gp4c.exceptions import OutsideWindowError
from gp4c.reporting.figures.curves import curves_of

TIMES = np.array([0.2, 1.5, 7.0, 12.0])


def test_all_levels_at_once_are_the_bands_one_by_one(smooth):
    curves = curves_of(smooth, TIMES, levels=(0.5, 0.95))
    assert curves.levels == (0.5, 0.95)
    np.testing.assert_array_equal(curves.rate, smooth.intensity(TIMES))
    np.testing.assert_array_equal(curves.cumulative, smooth.cumulative(TIMES))
    for level in (0.5, 0.95):
        np.testing.assert_allclose(
            curves.rate_bands[level], smooth.intensity_band(TIMES, level), rtol=1e-9
        )
        np.testing.assert_allclose(
            curves.cumulative_bands[level],
            smooth.cumulative_band(TIMES, level),
            rtol=1e-9,
            atol=1e-12,
        )


def test_simultaneous_bands_and_extrapolation_go_through_the_model(smooth):
    wide = curves_of(smooth, TIMES, kind="simultaneous")
    low, high = smooth.intensity_band(TIMES, kind="simultaneous")
    np.testing.assert_array_equal(wide.rate_bands[0.95], (low, high))
    with pytest.raises(OutsideWindowError):
        curves_of(smooth, [13.0])
    beyond = curves_of(smooth, [11.0, 14.0], extrapolate=True)
    assert beyond.cumulative[1] > beyond.cumulative[0]
    assert beyond.cumulative_bands[0.95][1][1] > beyond.cumulative[1]


def test_a_step_function_has_its_jumps_and_no_rate(stepwise):
    curves = curves_of(stepwise)
    assert curves.step
    assert curves.rate is None
    assert set(stepwise.times_) <= set(curves.times)
    np.testing.assert_array_equal(curves.cumulative, stepwise.cumulative(curves.times))
    assert list(curves.to_frame()) == ["time", "cumulative", "cumulative_low", "cumulative_high"]


def test_a_model_without_bands_has_curves(visits):
    curves = curves_of(gp4c.LocalEM(bandwidth=2.0).fit(visits))
    assert curves.cumulative_bands == {}
    assert list(curves.to_frame()) == ["time", "rate", "cumulative"]


def test_the_table_takes_the_level_asked_for(smooth):
    curves = curves_of(smooth, TIMES, levels=(0.5, 0.8))
    assert list(curves.to_frame(0.5)["rate_low"]) == list(curves.rate_bands[0.5][0])
    assert list(curves.to_frame()["rate_low"]) == list(curves.rate_bands[0.8][0])


def test_the_number_of_events_begins_at_zero_without_doubt(smooth):
    low, high = curves_of(smooth, [0.0, 12.0]).cumulative_bands[0.95]
    assert low[0] == high[0] == 0
    assert low[1] < high[1]
