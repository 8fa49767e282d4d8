"""The mixture's components: their maps have the density that they claim, and fit the height."""

import numpy as np
import pytest
from engine_tasks import task_of
from numpy.testing import assert_allclose

import gp4c
from gp4c.inference.engine import components
from gp4c.inference.engine.components import Component
from gp4c.inference.engine.lattice import find_modes
from gp4c.inference.engine.weigh import weigh


@pytest.fixture(scope="module")
def lattice():
    """Forty subjects of very different rates, 400 events each: a known shape, an open height."""
    panel, _ = gp4c.simulate_panel(
        lambda t: 40 * (1 + 0.8 * np.sin(3 * t)), n_subjects=40, n_intervals=20, window=(0, 10),
        frailty=1.0, random_state=3,
    )  # fmt: skip
    return find_modes(task_of(panel, "poisson", "gamma"))


def test_residuals_undo_points(lattice):
    component = Component.around(lattice.best.mode)
    e, z = component.noise(40, np.random.default_rng(0))
    assert component._raises
    back = component.residuals(component.points(e, z))
    assert_allclose(back[0], e, atol=1e-8)
    assert_allclose(back[1], z, atol=1e-7)


def test_density_is_that_of_the_noise_over_the_numerical_jacobian(lattice):
    component = Component.around(lattice.best.mode)
    e, z = (part[:, :1] for part in component.noise(2, np.random.default_rng(1)))
    at, n = np.concatenate([e, z]), len(e)
    step = 1e-5 * np.eye(len(at))
    ahead, behind = (component.points(*np.split(at + sign * step, [n])) for sign in (1.0, -1.0))
    _, log_volume = np.linalg.slogdet((ahead - behind) / 2e-5)
    x = component.points(e, z)
    assert_allclose(component.log_density(x), component.noise_density(e, z) - log_volume, atol=1e-6)


def test_a_curve_below_zero_has_no_density(lattice):
    component = Component.around(lattice.best.mode)
    x = component.centre[:, None].copy()
    m = component.landscape.size
    x[:m] = -x[:m] - 2 * component.landscape.constants(np.array([component.u]))
    assert component.log_density(x)[0] < -1e6


def test_a_factor_fits_the_height_better_than_a_direction(lattice, monkeypatch):
    """The same evidence either way, but the Gaussian alone wastes most of its draws."""
    factor = weigh(lattice, 2000, np.random.default_rng(2), rounds=0)
    monkeypatch.setattr(components, "_KNOWN_HEIGHT", 0.0)
    direction = weigh(lattice, 2000, np.random.default_rng(2), rounds=0)
    error = np.sqrt(1 / factor.effective + 1 / direction.effective)
    assert abs(factor.log_evidence - direction.log_evidence) < 4 * error
    assert factor.effective > 1.5 * direction.effective
