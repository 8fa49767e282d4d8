"""Variation and level: there and back, slopes by differences, limits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.inference.coordinates import Coordinates
from gp4c.inference.hyper import MEAN_BOUNDS, VARIANCE_BOUNDS
from gp4c.inference.sparse_prior import Hyper

BASE = Hyper(length_scale=0.3, variance=0.4, mean=0.8)


@pytest.mark.parametrize("free_mean", [True, False])
def test_there_and_back(free_mean):
    coordinates = Coordinates(BASE, free_mean)
    for hyper in (BASE, Hyper(0.3, 0.05, 0.8), Hyper(0.3, 2.0, 1.7 if free_mean else 0.8)):
        back = coordinates.hyper(*coordinates.of(hyper))
        assert_allclose(
            (back.length_scale, back.variance, back.mean),
            (hyper.length_scale, hyper.variance, hyper.mean),
            rtol=1e-12,
        )


def test_the_coordinates_are_relative_variation_and_mean_square():
    s, level = Coordinates(BASE, True).of(BASE)
    assert_allclose(np.exp(s), np.sqrt(0.4) / 0.8)
    assert_allclose(np.exp(level), 0.8**2 + 0.4)
    assert Coordinates(BASE, False).of(BASE) == (np.log(0.4), 0.0)


@pytest.mark.parametrize("free_mean", [True, False])
def test_directions_are_slopes(free_mean):
    coordinates, step = Coordinates(BASE, free_mean), 1e-6
    here = np.array(coordinates.of(BASE))
    for place, found in enumerate(coordinates.direction(BASE)):
        shift = step * np.eye(2)[place]
        up, down = (coordinates.hyper(*(here + side * shift)) for side in (1, -1))
        slope = [
            np.log(up.length_scale / down.length_scale),
            np.log(up.variance / down.variance),
            up.mean - down.mean,
            0.0,
        ]
        assert_allclose(found, np.array(slope) / (2 * step), atol=1e-8)


def test_the_volume_is_the_mean():
    along, up = Coordinates(BASE, True).direction(BASE)
    assert_allclose(abs(np.linalg.det([along[1:3], up[1:3]])), BASE.mean)


def test_outside_the_limits_there_is_nothing():
    fixed = Coordinates(BASE, False)
    low, high = np.log(VARIANCE_BOUNDS)
    assert fixed.hyper(low + 1e-6, 0.0) is not None
    assert fixed.hyper(low - 1e-6, 0.0) is None
    assert fixed.hyper(high - 1e-6, 0.0) is not None
    assert fixed.hyper(high + 1e-6, 0.0) is None
    free, s = Coordinates(BASE, True), 0.0  # √γ = g
    for bound, inwards in zip(MEAN_BOUNDS, (1, -1), strict=True):
        if 0 < bound < np.inf and VARIANCE_BOUNDS[0] < bound**2 < VARIANCE_BOUNDS[1]:
            level = np.log(2 * bound**2)
            assert free.hyper(s, level + inwards * 1e-6) is not None
            assert free.hyper(s, level - inwards * 1e-6) is None


@pytest.mark.parametrize(("bound", "inside"), [(MEAN_BOUNDS[0], 1.001), (MEAN_BOUNDS[1], 0.999)])
def test_a_learned_mean_has_limits_of_its_own(bound, inside):
    free = Coordinates(BASE, True)
    for factor, there in ((inside, True), (1 / inside, False)):
        mean = bound * factor
        variance = 0.1 * mean**2  # far from its own limits
        found = free.hyper(*free.of(Hyper(0.3, variance, mean)))
        assert (found is not None) == there
