"""Named intensities against the paper's definition, quadrature and Monte Carlo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gp4c.data.simulate.intensities import (
    NAMED,
    PAPER_LENGTH_SCALE,
    PAPER_VARIANCE,
    GridIntensity,
    SquaredGridIntensity,
    SquareWave,
    _spectrum,
    as_intensity,
    gp_squared,
)
from gp4c.exceptions import PanelDataError

ROUNDING = 1e-12


def small_grids():
    """Increasing grids from 0 to 10 with values of any sign."""
    return st.integers(0, 2**32 - 1).map(
        lambda seed: (
            np.concatenate([[0.0], np.sort(np.random.default_rng(seed).uniform(1, 9, 6)), [10.0]]),
            np.random.default_rng(seed + 1).normal(size=8),
        )
    )


def test_the_square_wave_is_the_papers_synthetic_a():
    time = np.arange(0, 60, 0.25)
    by_definition = [7.0 if int(t // 10) % 2 == 0 else 2.0 for t in time]
    assert_array_equal(SquareWave()(time), by_definition)


@pytest.mark.parametrize("time", [0.0, 3.7, 10.0, 12.5, 20.0, 47.1, 60.0])
@pytest.mark.parametrize("name", sorted(NAMED))
def test_cumulative_agrees_with_quadrature(name, time):
    rate = as_intensity(name, (0.0, 60.0))
    # midpoint rule in steps of 1/1000, which divide every stretch between jumps or grid points
    middle = (np.arange(round(1000 * time)) + 0.5) / 1000
    assert_allclose(rate.cumulative(time), rate(middle).sum() / 1000, rtol=1e-6, atol=1e-9)


@given(small_grids(), st.floats(0, 10))
@settings(max_examples=50, deadline=None)
def test_grids_integrate_exactly(grid_and_values, time):
    grid, values = grid_and_values
    for rate in (GridIntensity(grid, np.abs(values)), SquaredGridIntensity(grid, values)):
        ends = np.append(grid[grid < time], time)
        # a polynomial of degree at most two per piece: three Gauss-Legendre points are exact
        node, weight = np.polynomial.legendre.leggauss(3)
        half = np.diff(ends) / 2
        points = (ends[:-1] + half)[:, None] + half[:, None] * node
        expected = np.sum(half[:, None] * weight * rate(points))
        assert_allclose(rate.cumulative(time), expected, rtol=ROUNDING, atol=ROUNDING)


@given(small_grids(), st.lists(st.floats(0.5, 9.5), min_size=1))
@settings(max_examples=50, deadline=None)
def test_envelopes_are_above_their_intensity(grid_and_values, times):
    grid, values = grid_and_values
    window = (0.5, 9.5)
    known = [
        GridIntensity(grid, np.abs(values)),
        SquaredGridIntensity(grid, values),
        SquareWave(3, 1, 1.7),
    ]
    for rate in known:
        edges, height = rate.envelope(window)
        assert edges[0] == window[0]
        assert edges[-1] == window[1]
        assert (np.diff(edges) > 0).all()
        inside = np.setdiff1d(times, edges)
        cell = np.searchsorted(edges, inside) - 1
        assert (rate(inside) <= height[cell] * (1 + ROUNDING)).all()


@pytest.mark.parametrize("length_scale", [0.3, 2.755, 40.0, 1e3])
def test_the_spectrum_sums_to_the_squared_exponential_kernel(length_scale):
    frequency, weight = _spectrum(length_scale, 0.6, 60.0)
    distance = np.linspace(0, 60, 301)
    kernel = 0.6 * np.exp(-(distance**2) / (2 * length_scale**2))
    assert_allclose(np.cos(np.outer(distance, frequency)) @ weight, kernel, atol=ROUNDING)


def test_draws_have_the_mean_and_covariance_of_the_prior():
    # Monte Carlo: 20,000 draws; each entry is off by more than 4.5 standard errors in one of
    # 150,000 seeds; 14 entries are looked at.
    rng = np.random.default_rng(5)
    draws = np.stack(
        [
            gp_squared(mean=0.4, n_grid=5, window=(0, 8), random_state=rng).values
            for _ in range(20000)
        ]
    )
    grid = np.linspace(0, 8, 5)
    distance = grid[:, None] - grid
    kernel = PAPER_VARIANCE * np.exp(-(distance**2) / (2 * PAPER_LENGTH_SCALE**2))
    error_of_mean = np.sqrt(PAPER_VARIANCE / len(draws))
    assert_allclose(draws.mean(axis=0), 0.4, atol=4.5 * error_of_mean)
    # Var of an empirical covariance of Gaussians: (k_ii k_jj + k_ij²) / n
    error = np.sqrt((PAPER_VARIANCE**2 + kernel**2) / len(draws))
    assert (np.abs(np.cov(draws.T) - kernel) < 4.5 * error).all()


def test_a_draw_depends_on_its_seed_alone():
    assert_array_equal(gp_squared(random_state=3).values, gp_squared(random_state=3).values)
    assert not np.allclose(gp_squared(random_state=3).values, gp_squared(random_state=4).values)


def test_the_function_is_interpolated_and_then_squared():
    # as in the paper: a sign change between two grid points leaves a zero, not a bridge
    rate = SquaredGridIntensity(np.array([0.0, 2.0]), np.array([-1.0, 1.0]))
    assert_allclose(rate([0.0, 1.0, 2.0]), [1.0, 0.0, 1.0], atol=ROUNDING)


def test_arrays_and_numbers_become_intensities():
    window = (0.0, 4.0)
    assert_allclose(as_intensity([0.0, 2.0, 0.0], window)([1.0, 2.0, 3.5]), [1.0, 2.0, 0.5])
    pair = (np.array([0.0, 1.0, 4.0]), np.array([0.0, 3.0, 0.0]))
    assert_allclose(as_intensity(pair, window)([0.5, 2.5]), [1.5, 1.5])
    assert_allclose(as_intensity(2.5, window)([0.0, 4.0]), 2.5)


@pytest.mark.parametrize(
    ("intensity", "message"),
    [
        ("sqare_wave", "no intensity 'sqare_wave'; the named ones are 'square_wave'"),
        ([1.0, -2.0, 1.0], "must not be negative; it is -2 at time 2"),
        ([1.0, np.nan], "must be finite; it is nan at time 4"),
        ([[1.0, 2.0]], "at least two times and as many values"),
        (([0.0, 0.0, 1.0], [1.0, 1.0, 1.0]), "finite and increase"),
        (([0.0, 1.0], [1.0, 1.0, 1.0]), r"the shapes are \(2,\) and \(3,\)"),
    ],
)
def test_what_is_not_an_intensity_is_refused(intensity, message):
    with pytest.raises(PanelDataError, match=message):
        as_intensity(intensity, (0.0, 4.0))


def test_a_grid_does_not_extrapolate():
    with pytest.raises(PanelDataError, match=r"known on \[0, 60\] only"):
        gp_squared(random_state=1)(60.5)


@pytest.mark.parametrize("bad", [{"length_scale": 0.0}, {"variance": -1.0}, {"window": (3, 3)}])
def test_a_prior_needs_positive_parameters(bad):
    with pytest.raises(PanelDataError):
        gp_squared(**bad)
