"""Expansions of the likelihood of many rows: derivatives, closeness, repair."""

import numpy as np
import pytest
from large_panels import irregular_panel
from numpy.testing import assert_allclose

import gp4c
from gp4c.estimators.large_data import large_panels as in_memory
from gp4c.exceptions import ConvergenceWarning
from gp4c.inference.engine.lattice import find_modes
from gp4c.inference.engine.posterior_fit import task_for
from gp4c.large.expanded_cells import ManyRows, expand
from gp4c.large.many_landscape import ManyLandscape, of_prior, with_curvature_of
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells, panel_rows

COMBINATIONS = [(law, effect) for law in ("poisson", "bursts") for effect in (None, "gamma")]


@pytest.fixture(scope="module")
def panel():
    return irregular_panel(n_subjects=400, frailty=1.0)


def at_mode(panel, law, effect):
    laws = LAWS[law], EFFECTS[effect]
    task = task_for(observe_cells(panel, None, panel.window, *laws), *laws)
    return find_modes(task, rounds=1).best.mode


@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_derivatives_agree_with_differences(panel, law, effect):
    mode = at_mode(panel, law, effect)
    found = expand(mode.landscape, mode)
    square, params = found.point
    rng = np.random.default_rng(0)
    q = len(square)
    here = np.concatenate([square * rng.uniform(0.8, 1.2, q), params + 0.1])

    def value(x):
        return found(x[:q, None], x[q:, None])[0]

    gradient, hessian = found.derivatives(here[:q], here[q:])
    steps = 1e-5 * np.eye(len(here))
    assert_allclose(
        gradient, [(value(here + s) - value(here - s)) / 2e-5 for s in steps], rtol=1e-4, atol=1e-4
    )
    slopes = [
        (found.derivatives((here + s)[:q], (here + s)[q:])[0]
         - found.derivatives((here - s)[:q], (here - s)[q:])[0]) / 2e-5
        for s in steps
    ]  # fmt: skip
    assert_allclose(hessian, slopes, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_what_is_left_is_of_third_order(panel, law, effect):
    mode = at_mode(panel, law, effect)
    land, m = mode.landscape, mode.landscape.size
    found, u = expand(land, mode), np.array([mode.u])
    away = (
        np.random.default_rng(1).standard_normal(land.dimension)
        @ (mode.axes / np.sqrt(mode.precision)).T
    )
    left = []
    for step in (0.0, 0.05, 0.1):
        x = (mode.x + step * away)[:, None]
        curve = land.curve_at(land.prior.inducing, x, u)
        square = np.exp(x[m]) * curve**2
        exact = land.log_likelihood(land.curve(x, u), x)[0]
        left.append(exact - found(square, land.parts(x)[2])[0])
    assert abs(left[0]) < 1e-6
    assert abs(left[1]) < 0.02
    assert abs(left[2]) < 0.05 + 12 * abs(left[1])  # eight times, and noise of the rules


@pytest.mark.filterwarnings("ignore:the summary that stands for the rows")
def test_an_expansion_that_is_far_off_is_made_anew(monkeypatch, panel):
    """Expanded at a sample's mode alone it is far off; expanding anew brings it close."""

    def poor(self, laws, say=lambda text: None):
        mode = self._look(laws, say).best.mode
        return self._expanded_near(laws, mode, mode.landscape.log_length - 0.5)

    monkeypatch.setattr(ManyRows, "expanded", poor)
    monkeypatch.setattr("gp4c.large.expanded_cells.SAMPLE", 30)
    monkeypatch.setattr("gp4c.estimators.engine_fit.ORDINARY", 0)
    for name in ("MOST_CELLS", "MOST_ROWS", "MOST_HARD_ROWS", "MOST_EXACT_ROWS"):
        monkeypatch.setattr(in_memory, name, 0)
    monkeypatch.setattr(in_memory, "MOST_ERROR", 0.02)
    options = {"effect": "gamma", "bursts": True}
    told: list[str] = []
    repaired = gp4c.GP4C(**options).fit(panel, progress=told.append)
    monkeypatch.setattr(in_memory, "_MOST_REPAIRS", 0)
    with pytest.warns(ConvergenceWarning, match="the summary that stands for the rows has"):
        as_it_was = gp4c.GP4C(**options).fit(panel)
    assert any("expanding anew" in text for text in told)
    assert repaired.compression_["error"] < 0.7 * as_it_was.compression_["error"]


@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_a_sketch_has_the_slopes_of_all_and_the_curvature_of_a_sample(panel, law, effect):
    laws, log_length = (LAWS[law], EFFECTS[effect]), np.log(0.3)
    rows, n_subjects = panel_rows(panel, panel.window, None)
    many = ManyRows.of(rows, n_subjects, panel.window)
    quarter = many.sample(n_subjects // 4)
    whole, part = (ManyLandscape.of(some, laws, log_length) for some in (many, quarter))
    sketch = with_curvature_of(whole, quarter)
    x, u = 0.1 * np.ones((whole.dimension, 1)), np.array([-0.5])
    found, exact, of_part = (land.derivatives(x, u) for land in (sketch, whole, part))
    prior = of_prior(whole, x, u)[2]
    # slopes of the subjects' integrals are those at fixed effects, which the rule has less exactly
    close = 2e-2 if (law, effect) == ("bursts", "gamma") else 1e-10
    assert_allclose(found.value, exact.value, rtol=1e-6)
    assert_allclose(found.gradient, exact.gradient, atol=close * np.abs(exact.gradient).max())
    times = n_subjects / (n_subjects // 4)
    assert_allclose(found.hessian - prior, times * (of_part.hessian - prior))
