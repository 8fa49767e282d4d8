"""Integrals of rate curves against quadrature, derivatives against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

from gp4c.classical.parametric.rate_curves import LogLinearCurve, PowerCurve

START, STOP = np.array([0.0, 0.0, 2.0, 9.9, 3.0]), np.array([0.5, 12.0, 7.0, 10.0, 11.0])
CASES = [
    (PowerCurve(12.0), -0.7),
    (PowerCurve(12.0), 0.0),
    (PowerCurve(5.0), 1.1),
    (LogLinearCurve(6.0, 12.0), -2.5),
    (LogLinearCurve(6.0, 12.0), 1e-9),
    (LogLinearCurve(6.0, 12.0), 0.08),
    (LogLinearCurve(6.0, 12.0), 4.0),
]


def rate(curve, g):
    """The rate by its textbook formula."""
    if isinstance(curve, PowerCurve):
        beta = np.exp(g)
        return lambda t: beta / curve.unit * (t / curve.unit) ** (beta - 1)
    return lambda t: np.exp(g / curve.length * (t - curve.middle))


@pytest.mark.parametrize(("curve", "g"), CASES)
def test_integrals_are_those_of_the_rate(curve, g):
    value = curve.log_integral(START, STOP, g)[0]
    by_quadrature = [quad(rate(curve, g), a, b)[0] for a, b in zip(START, STOP, strict=True)]
    assert_allclose(np.exp(value), by_quadrature, rtol=1e-7)
    times = np.array([0.5, 3.0, 11.0])
    assert_allclose(np.exp(curve.log_rate(times, g)[0]), rate(curve, g)(times), rtol=1e-12)


@pytest.mark.parametrize(("curve", "g"), CASES)
def test_derivatives_are_differences(curve, g):
    h = 1e-5
    up, here, down = (curve.log_integral(START, STOP, g + s) for s in (h, 0.0, -h))
    assert_allclose(here[1], (up[0] - down[0]) / (2 * h), atol=1e-8)
    assert_allclose(here[2], (up[1] - down[1]) / (2 * h), atol=1e-8)
    times = np.array([0.5, 3.0, 11.0])
    up, here, down = (curve.log_rate(times, g + s) for s in (h, 0.0, -h))
    assert_allclose(here[1], (up[0] - down[0]) / (2 * h), atol=1e-8)


def test_series_and_closed_form_meet():
    curve = LogLinearCurve(0.0, 1.0)
    start, stop = np.array([-1.0]), np.array([1.0])  # x = g
    near, far = (curve.log_integral(start, stop, g) for g in (0.05 * (1 - 1e-9), 0.05 * (1 + 1e-9)))
    assert_allclose(near, far, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("curve", [PowerCurve(12.0), LogLinearCurve(6.0, 12.0)])
def test_steep_curves_stay_finite(curve):
    low, high = curve.limits[0]
    for g in (low, high):
        assert np.all(np.isfinite(curve.log_integral(START, STOP, g)))


@pytest.mark.parametrize("curve", [PowerCurve(9.0), LogLinearCurve(6.0, 12.0)])
def test_held_parameters_keep_their_value(curve):
    h = 1e-5
    for parameter in curve.derived(12.0).values():
        y = parameter.at(1.3, 0.4)
        if parameter.held is None:
            assert y == 0.4
            continue
        for g in (0.4, -0.2):
            level, first, second = parameter.held(y, g)
            assert_allclose(parameter.at(level, g), y)
            up, down = parameter.held(y, g + h), parameter.held(y, g - h)
            assert_allclose(first, (up[0] - down[0]) / (2 * h), atol=1e-7)
            assert_allclose(second, (up[1] - down[1]) / (2 * h), atol=1e-7)
        assert_allclose(parameter.held(y, 0.4)[0], 1.3)
