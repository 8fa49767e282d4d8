"""The log density and its derivatives, against differences and an independent likelihood."""

import numpy as np
import pytest
from engine_tasks import (
    COMBINATIONS,
    EXACT,
    assert_derivatives,
    random_points,
    task_of,
    thiotepa,
)
from numpy.testing import assert_allclose

from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.posterior.subject_counts import SubjectCounts


def covariates(panel, kind):
    if kind is None:
        return None
    rng = np.random.default_rng(4)
    by_subject = rng.standard_normal((panel.n_subjects, 2))[panel.subject_index]
    varying = 0.5 * (np.arange(panel.n_intervals) % 3 == 0)[:, None]
    return by_subject if kind == "fixed" else by_subject + varying


@pytest.mark.parametrize("kind", [None, "fixed", "varying"])
@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_derivatives_agree_with_differences(law, effect, kind, monkeypatch):
    monkeypatch.setattr("gp4c.model.effect_integral.RULE", EXACT)
    monkeypatch.setattr("gp4c.model.effect_integral._DEGREES", 12)
    panel = thiotepa()
    land = task_of(panel, law, effect, covariates(panel, kind)).landscape(np.log(0.15))
    assert_derivatives(land, *random_points(land, 2))


@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_the_density_is_prior_and_likelihood(law, effect):
    """The likelihood once more, subject by subject, on another grid."""
    panel = thiotepa()
    z = covariates(panel, "varying")
    task = task_of(panel, law, effect, z)
    land = task.landscape(np.log(0.2))
    x, u = random_points(land, 3, seed=2)
    _, level, params, beta = land.parts(x)
    counts = SubjectCounts.of(panel, task.likelihood.law, task.likelihood.effect, z)
    grid = Grid.on(np.linspace(0, 1, 30), 10)
    square = np.exp(level) * land.curve_at(grid.nodes, x, u) ** 2
    integrals = IntervalIntegrals(grid, counts.start / 53, counts.stop / 53).apply(square)
    each = counts.log_likelihoods(task.likelihood.cells.rate * integrals, params, beta)
    expected = each.sum(axis=0) + land.log_prior(x, u)
    assert_allclose(land.log_density(x, u), expected, rtol=0, atol=2e-2)


def test_values_with_and_without_derivatives_agree():
    land = task_of(thiotepa(), "poisson", "gamma").landscape(np.log(0.1))
    x, u = random_points(land, 4)
    assert_allclose(land.derivatives(x, u).value, land.log_density(x, u), rtol=1e-12)


def test_a_given_mean_leaves_no_level():
    task = task_of(thiotepa(), "poisson", None, mean=0.8)
    centre, deviation = task.level_prior(np.array([-1.0, 0.5]))
    mean = np.exp(centre / 2) / np.sqrt(1 + np.exp(2 * np.array([-1.0, 0.5])))
    assert_allclose(mean, 0.8)
    assert deviation == 0.01


def test_points_outside_the_range_of_numbers_are_impossible():
    land = task_of(thiotepa(), "bursts", "gamma").landscape(np.log(0.1))
    x, u = random_points(land, 1)
    x[land.size] = 800.0
    assert land.log_density(x, u)[0] == -np.inf
    with np.errstate(all="ignore"):
        assert land.derivatives(x, u).value[0] == -np.inf
