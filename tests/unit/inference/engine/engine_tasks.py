"""Small tasks for the tests of the engine."""

import numpy as np
from numpy.testing import assert_allclose

import gp4c
from gp4c.inference.engine.landscape import Task
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.effect_integral import Rule
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells

#: a rule so fine that moving its nodes changes nothing
EXACT = Rule.stretched(0.3, -14.0, 12.0, 0.4)
COMBINATIONS = [(law, effect) for law in ("poisson", "bursts") for effect in (None, "gamma")]


def task_of(panel, law, effect, z=None, **options):
    """A task with these laws."""
    chosen = LAWS[law], EFFECTS[effect]
    cells = observe_cells(panel, None, panel.window, *chosen, z)
    return Task(CountLikelihood(cells, *chosen), KERNELS["se"], **options)


def thiotepa():
    return gp4c.load_dataset("bladder").where(treatment="thiotepa")


def tiny_panel():
    """Four subjects, ten intervals."""
    import pandas as pd

    rows = [(1, 0, 3, 0), (1, 3, 8, 4), (1, 8, 10, 1), (2, 0, 5, 2), (2, 5, 10, 0), (3, 1, 4, 0),
            (3, 4, 9, 1), (4, 0, 2, 0), (4, 2, 6, 7), (4, 6, 10, 3)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["subject", "start", "stop", "count"])
    return gp4c.PanelCounts.from_frame(frame, window=(0, 10))


def random_points(landscape, size, seed=0):
    rng = np.random.default_rng(seed)
    return 0.5 * rng.standard_normal((landscape.dimension, size)), rng.uniform(-2, 1, size)


def assert_derivatives(land, x, u, h=1e-5):
    """Gradient and Hessian of a landscape are the differences of its values and gradients."""
    at = land.derivatives(x, u)
    sides = [
        (land.derivatives(x + s[:, None], u), land.derivatives(x - s[:, None], u))
        for s in h * np.eye(land.dimension)
    ]
    gradient = np.array([(up.value - down.value) / (2 * h) for up, down in sides]).T
    hessian = np.array([(up.gradient - down.gradient) / (2 * h) for up, down in sides])
    scale = np.abs(at.hessian).max()
    assert_allclose(at.gradient, gradient, atol=1e-6 * scale)
    assert_allclose(at.hessian, hessian.transpose(1, 0, 2), atol=1e-6 * scale)
    assert_allclose(at.hessian, at.hessian.transpose(0, 2, 1), atol=1e-10 * scale)
