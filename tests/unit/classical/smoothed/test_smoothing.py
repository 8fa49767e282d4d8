"""The S-step of local EM against adaptive quadrature of its definition."""

import itertools

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from gp4c.classical.smoothed.smoothing import Smoother, intensity_at, kernel_weights, panel_edges

POINTS = np.array([0.0, 0.4, 1.0, 1.01, 2.5, 6.0])
DENSITY = np.array([3.0, 0.0, 8.0, 0.0, 0.7])
AT_RISK = np.array([5.0, 4.0, 4.0, 0.0, 2.0])


def by_definition(x, points, bandwidth, density, at_risk):
    """λ(x) with each kernel integral by quadrature of the Gaussian density."""
    weights = [
        quad(lambda u: norm.pdf(u, x, bandwidth), a, b, epsabs=1e-15, epsrel=1e-12)[0]
        for a, b in itertools.pairwise(points)
    ]
    return (weights @ density) / (weights @ at_risk)


@pytest.mark.parametrize("bandwidth", [0.3, 1.0, 4.0])
def test_intensity_is_its_definition(bandwidth):
    times = np.array([0.0, 0.2, 1.005, 1.9, 3.0, 6.0])
    ours = intensity_at(times, POINTS, bandwidth, DENSITY[:, None], AT_RISK[:, None])[:, 0]
    theirs = [by_definition(x, POINTS, bandwidth, DENSITY, AT_RISK) for x in times]
    assert_allclose(ours, theirs, rtol=1e-9)


@pytest.mark.parametrize("bandwidth", [0.02, 0.1, 0.5, 2.0, 50.0])
def test_integrals_agree_with_quadrature(bandwidth):
    smoother = Smoother.of(POINTS, bandwidth, (-0.5, 7.0))
    rates = smoother.exposure(AT_RISK[:, None]).rates(DENSITY[:, None])
    times = np.array([-0.2, 0.0, 0.35, 1.0, 1.004, 2.0, 4.1, 6.0, 7.0])
    ours = smoother.cumulative(rates, times)[:, 0]

    def intensity(x):
        return intensity_at(np.array([x]), POINTS, bandwidth, DENSITY[:, None], AT_RISK[:, None])[
            0, 0
        ]

    breaks = np.unique(np.concatenate([[-0.5], times, smoother.edges]))
    pieces = [
        quad(intensity, a, b, epsabs=1e-13, epsrel=1e-11, limit=200)[0]
        for a, b in itertools.pairwise(breaks)
    ]
    theirs = np.concatenate([[0.0], np.cumsum(pieces)])[np.searchsorted(breaks, times)]
    assert_allclose(ours, theirs, rtol=2e-9, atol=2e-9)
    masses = smoother.masses(rates)[:, 0]
    assert_allclose(masses, np.diff(smoother.cumulative(rates, POINTS)[:, 0]), atol=1e-14)


@pytest.mark.parametrize("width", [1e-12, 1e-9, 1e-5, 1e-2, 1.0])
def test_a_narrow_cell_keeps_its_mass_beside_far_larger_ones(width):
    # nobody but the narrow cell is seen on the left: the rate there is a trillion times larger
    points = np.array([0.0, 40.0, 40.0 + width, 100.0])
    density, at_risk = np.array([0.0, 1.0 / width, 0.0]), np.array([0.0, 1e-6, 1.0])
    smoother = Smoother.of(points, 0.4, (0.0, 100.0))
    rates = smoother.exposure(at_risk[:, None]).rates(density[:, None])
    masses = smoother.masses(rates)[:, 0]
    assert masses[0] > 1e6 * masses[1]

    def intensity(x):
        return intensity_at(np.array([x]), points, 0.4, density[:, None], at_risk[:, None])[0, 0]

    expected = quad(intensity, points[1], points[2], epsrel=1e-11, limit=200)[0]
    assert_allclose(masses[1], expected, rtol=1e-5 if width == 1e-12 else 1e-8)


def test_columns_are_separate_problems():
    densities = np.stack([DENSITY, DENSITY[::-1]], axis=1)
    at_risk = np.stack([AT_RISK, np.ones(5)], axis=1)
    smoother = Smoother.of(POINTS, 0.7, (0.0, 6.0))
    both = smoother.exposure(at_risk).rates(densities)
    for k in range(2):
        alone = smoother.exposure(at_risk[:, [k]]).rates(densities[:, [k]])
        assert_allclose(both[:, k], alone[:, 0], rtol=1e-13)


@pytest.mark.parametrize("bandwidth", [1e-3, 1.0, 1e3, 1e12])
def test_weights_keep_their_digits_in_both_tails(bandwidth):
    points = np.array([0.0, 1e-3, 1.0, 2.0, 9.0])
    x = np.array([-8.0 * bandwidth, 0.0, 0.5, 9.0 + 8.0 * bandwidth])
    weights = kernel_weights(x, points, bandwidth).toarray()
    checked = 0
    with mpmath.workdps(80):
        for row, place in zip(weights, x, strict=True):
            z = [(mpmath.mpf(p) - mpmath.mpf(place)) / mpmath.mpf(bandwidth) for p in points]
            for cell, weight in enumerate(row):
                if abs(z[cell]) < 9.9 and abs(z[cell + 1]) < 9.9:
                    exact = float(mpmath.ncdf(z[cell + 1]) - mpmath.ncdf(z[cell]))
                    assert_allclose(weight, exact, rtol=1e-10)
                    checked += 1
    assert checked >= 2


def test_far_from_all_exposure_the_nearest_cell_counts():
    points = np.array([0.0, 1.0, 100.0, 101.0, 102.0])
    density, at_risk = np.array([2.0, 0.0, 9.0, 4.0]), np.array([4.0, 0.0, 3.0, 2.0])
    times = np.array([-50.0, 40.0, 60.0, 300.0])
    rates = intensity_at(times, points, 0.1, density[:, None], at_risk[:, None])[:, 0]
    assert_allclose(rates, [0.5, 0.5, 3.0, 2.0], rtol=1e-12)
    smoother = Smoother.of(points, 0.1, (-50.0, 300.0))
    nodes = smoother.exposure(at_risk[:, None]).rates(density[:, None])
    total = smoother.cumulative(nodes, np.array([-50.0, 50.5]))[:, 0]
    assert_allclose(total, [0.0, 0.5 * 100.5], rtol=1e-3)
    empty = smoother.exposure(np.zeros((4, 1))).rates(np.zeros((4, 1)))
    assert np.all(empty == 0.0)


@pytest.mark.parametrize("bandwidth", [1e-9, 0.01, 1.0, 1e9])
def test_panels_cover_the_window(bandwidth):
    edges = panel_edges(POINTS, bandwidth, (-1.0, 8.0))
    assert edges[0] == -1.0
    assert edges[-1] == 8.0
    assert np.all(np.diff(edges) > 0)
    assert len(edges) < 1000
