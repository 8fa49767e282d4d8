"""A rate with factors that change within intervals: derivatives, and an independent likelihood."""

import numpy as np
import pytest
from engine_tasks import COMBINATIONS, EXACT, assert_derivatives, random_points, thiotepa
from numpy.testing import assert_allclose
from scipy.integrate import quad

from gp4c.inference.engine.landscape import Task, split_level
from gp4c.inference.engine.terrain import Terrain
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.modulation import TRENDS, Modulation, OverTime, Season
from gp4c.model.observed_cells import observe_cells


def modulation(kind, window):
    """One sheet (a trend beside a season on the data's clock), or many."""
    if kind == "one sheet":
        return Modulation((TRENDS["loglinear"](window), Season(window, 13.25, 0.1, "year")))
    over = OverTime("arm", ("arm[b]",), (0,), np.array([1.0]))
    return Modulation((TRENDS["power"](window), Season(window, 13.25, -1.0, "year"), over))


def inputs_of(panel, parts):
    """Phases and covariates of the rows; the covariate changes within subjects."""
    if not len(parts.neutral):
        return np.zeros((panel.n_intervals, 0))
    phase = (panel.subject_index % 5) / 5
    z = np.where(np.arange(panel.n_intervals) % 7 < 4, 0.4, -0.6)
    return np.column_stack([phase, z])


def modulated_task(panel, law, effect, kind, z=None):
    parts, chosen = modulation(kind, panel.window), (LAWS[law], EFFECTS[effect])
    inputs = inputs_of(panel, parts)
    cells = observe_cells(panel, None, panel.window, *chosen, z, modulated=(parts, inputs))
    return Task(CountLikelihood(cells, *chosen), KERNELS["se"])


@pytest.mark.parametrize("kind", ["one sheet", "many sheets"])
@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_derivatives_agree_with_differences(law, effect, kind, monkeypatch):
    monkeypatch.setattr("gp4c.model.effect_integral.RULE", EXACT)
    monkeypatch.setattr("gp4c.model.effect_integral._DEGREES", 12)
    panel = thiotepa()
    z = np.random.default_rng(4).standard_normal((panel.n_subjects, 1))[panel.subject_index]
    task = modulated_task(panel, law, effect, kind, z if law == "bursts" else None)
    land = task.landscape(np.log(0.3))
    assert_derivatives(land, *random_points(land, 2))


@pytest.mark.parametrize("kind", ["one sheet", "many sheets"])
def test_the_terrain_has_the_same_value_and_slope(kind):
    """The fall-back of the engine goes another way to the same numbers."""
    task = modulated_task(thiotepa(), "poisson", "gamma", kind)
    terrain = Terrain.over(task, np.log([0.2, 0.3]), np.array([-1.0, 0.0]))
    land, here = terrain.landscapes[1], np.array([1, 1])
    x, _ = random_points(land, 2)
    u = terrain.u[here]
    value, slope = terrain.slopes(here, here, x)
    at = land.derivatives(x, u)
    assert_allclose(value + land.log_prior(x, u), at.value, rtol=1e-10)
    assert_allclose(terrain.evaluated(here, here, x).value, value, rtol=1e-10)
    prior = np.zeros((2, land.dimension))
    land._add_prior(x, u, prior, np.zeros((2, land.dimension, land.dimension)))
    assert_allclose(slope.T + prior, at.gradient, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", ["one sheet", "many sheets"])
def test_integrals_are_those_of_adaptive_quadrature(kind):
    """Cells and times at risk, each integrated anew from the formula of the rate."""
    panel = thiotepa()
    task = modulated_task(panel, "poisson", "gamma", kind)
    land, cells = task.landscape(np.log(0.3)), task.likelihood.cells
    x, u = random_points(land, 1, seed=3)
    w, (k, mean) = land.coefficients(x)[:, 0], split_level(u)

    def rate(s, inputs):
        h = mean + k * (land.prior.features(np.array([s])) @ x[: land.size, 0])
        factor = land.modulation.features(np.array([s]), inputs)[0] @ w
        return float(np.exp(x[land.size, 0] + factor) * h[0] ** 2)

    found = land.nodes.apply(land.squares(land.curve(x, u), x))[:, 0]
    some = np.linspace(0, len(cells.start) - 1, 12).astype(int)
    for i in some:
        inputs = cells.sheets[cells.cell_sheet[i]]
        exact = quad(rate, cells.start[i], cells.stop[i], args=(inputs,), limit=200)[0]
        assert_allclose(found[i], exact, rtol=2e-3)
    total = np.zeros(cells.n_owners)
    for i in range(len(cells.span_start)):
        args = (cells.sheets[cells.span_sheet[i]],)
        area = quad(rate, cells.span_start[i], cells.span_stop[i], args=args, limit=200)[0]
        total[cells.span_owner[i]] += cells.span_factor[i] * area
    assert_allclose(found[len(cells.start) :], total, rtol=5e-4)
