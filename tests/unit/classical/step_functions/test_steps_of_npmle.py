"""Parts of the active-set Newton method and of the published smoothing iteration."""

import numpy as np
from numpy.testing import assert_allclose

from gp4c.classical.panel_rows import Grid
from gp4c.classical.smoothed.local_em_steps import EMSteps, LocalEMData
from gp4c.classical.smoothed.smoothing import Smoother
from gp4c.classical.step_functions.npmle import _concave
from gp4c.classical.visit_cells import Runs


def test_directions_of_the_wrong_curvature_are_turned_round(rng):
    basis = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    for values in ([3.0, 2.0, 1.0, 0.5], [3.0, 2.0, 1.0, -0.5], [-3.0, -2.0, -1.0, -0.5]):
        H = (basis * values) @ basis.T
        assert_allclose(_concave(H), (basis * np.abs(values)) @ basis.T, atol=1e-12)


def test_the_constant_start_explains_all_events():
    grid = Grid(np.array([0.0, 0.2, 0.5, 1.0]), Runs(np.array([0, 1, 0]), np.array([1, 3, 3]), 3))
    count = np.array([[2.0, 0.0], [5.0, 0.0], [0.0, 4.0]])
    exposure = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0]])
    steps = EMSteps(LocalEMData(grid, count, exposure), Smoother.of(grid.points, 0.3, (0.0, 1.0)))
    masses = steps.constant_start()
    # at risk: 0.2·1 + 0.8·3 in the first problem, 1·2 in the second
    assert_allclose(masses, np.outer([0.2, 0.3, 0.5], [7 / 2.6, 4 / 2.0]))
