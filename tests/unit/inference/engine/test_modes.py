"""Climbs, components and lattices: maxima are maxima, maps invert, densities integrate."""

import numpy as np
import pytest
from engine_tasks import COMBINATIONS, random_points, task_of, thiotepa, tiny_panel
from numpy.testing import assert_allclose

from gp4c.inference.engine.climb import Tilts, carried_over, climb, move, tilt
from gp4c.inference.engine.components import Component
from gp4c.inference.engine.lattice import find_modes


@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_a_climb_ends_where_no_direction_leads_up(law, effect):
    land = task_of(thiotepa(), law, effect).landscape(np.log(0.15))
    u = np.array([-1.2, -0.5])
    starts = np.stack([land.rough_start(v) for v in u], axis=1)
    for mode in climb(land, starts, u, tol=1e-4, max_steps=60):
        assert mode.found
        at = land.derivatives(mode.x[:, None], np.array([mode.u]))
        tilted = tilt(land, mode.x[:, None], np.array([mode.u]), mode.tilt, at)
        step = np.linalg.solve(-tilted.hessian[0], tilted.gradient[0])
        assert 0.5 * tilted.gradient[0] @ step < 0.02  # nats still to gain; rules leave some noise
        assert np.linalg.eigvalsh(tilted.hessian[0]).max() < 0


def test_tilted_derivatives_are_those_of_the_moved_density():
    land, h = task_of(thiotepa(), "poisson", "gamma").landscape(np.log(0.15)), 1e-5
    x, u = random_points(land, 1)
    rng = np.random.default_rng(3)
    axes, _ = np.linalg.qr(rng.standard_normal((land.size, land.size)))
    tilts = Tilts(rng.random((1, land.size)), axes[None])
    at = tilt(land, x, u, tilts, land.derivatives(x, u))

    def value(step):
        moved = move(land, x, step[:, None], tilts, u)
        log_jacobian = -tilts.trace / 2 * moved[land.size]
        return (land.log_density(moved, u) + log_jacobian)[0]

    steps = h * np.eye(land.dimension)
    gradient = np.array([(value(s) - value(-s)) / (2 * h) for s in steps])
    assert_allclose(at.gradient[0], gradient, rtol=1e-5, atol=1e-4)
    level, k = land.size, 2
    mixed = [
        (value(a + b) - value(a - b) - value(b - a) + value(-a - b)) / (4e4 * h * h)
        for a, b in [(100 * steps[level], 100 * steps[k]), (100 * steps[level], 100 * steps[level])]
    ]
    assert_allclose([at.hessian[0, level, k]], mixed[:1], rtol=1e-3, atol=1e-2)


@pytest.fixture(scope="module")
def component():
    lattice = find_modes(task_of(thiotepa(), "bursts", "gamma"))
    return Component.around(lattice.best.mode)


def test_points_and_residuals_are_inverse(component):
    e, z = component.noise(50, np.random.default_rng(0))
    again_e, again_z = component.residuals(component.points(e, z))
    assert_allclose(again_e, e, atol=1e-9)
    assert_allclose(again_z, z, atol=1e-8)


def test_the_density_has_the_jacobian_of_the_map(component):
    e, z = component.noise(2, np.random.default_rng(1))
    e, z, h = e[:, :1], z[:, :1], 1e-6
    both = np.concatenate([e, z])
    n = len(e)

    def at(y):
        return component.points(y[:n], y[n:])[:, 0]

    columns = [
        (at(both + h * s[:, None]) - at(both - h * s[:, None])) / (2 * h) for s in np.eye(len(both))
    ]
    _, log_determinant = np.linalg.slogdet(np.array(columns))
    x = component.points(e, z)
    expected = component.noise_density(e, z) - log_determinant
    assert_allclose(component.log_density(x), expected, rtol=1e-6)


def test_noise_has_the_density_it_claims(component):
    """Importance weights of one scale of noise under another average to 1."""
    rng = np.random.default_rng(2)
    e, z = component.noise(40_000, rng)
    log_density = component.noise_density(e, z)
    wide = -0.5 * (e**2).sum(axis=0) - 0.5 * (z**2).sum(axis=0)
    wide = wide - 0.5 * (len(e) + len(z)) * np.log(2 * np.pi)
    ratio = np.exp(wide - log_density)
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(20_000)  # mirrored pairs


def test_a_curve_carried_to_another_length_scale_is_the_same_curve():
    task = task_of(thiotepa(), "bursts", None)
    mode = find_modes(task).best.mode
    other = task.landscape(mode.landscape.log_length - 0.4)
    x = carried_over(mode, other, mode.u)
    times = np.linspace(0.05, 0.95, 9)
    u = np.array([mode.u])
    old = mode.landscape.curve_at(times, mode.x[:, None], u)
    assert_allclose(other.curve_at(times, x[:, None], u), old, rtol=0.02)


def test_lattices_refine_until_the_steps_suit():
    lattice = find_modes(task_of(tiny_panel(), "poisson", None))
    assert lattice.suits
    assert len(lattice.points) > 5
    again = find_modes(lattice.best.mode.landscape.task, lattice)
    assert again is lattice
