"""Coefficients and curve fitted together: slopes, monotone steps, curvature."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference import regression
from gp4c.inference.covariates import RegressionRows
from gp4c.inference.hyper import Optimum, Problem, flat_prior, free_coordinates, solve_q
from gp4c.inference.priors import weak_prior
from gp4c.inference.regression import RegressionProblem, climb_with_coefficients
from gp4c.inference.search import search
from gp4c.inference.sparse_prior import Hyper
from problems import central_difference, visits_panel
from tolerances import NEVER_DOWN, RE_OPTIMISED

HYPER = {None: Hyper(0.3, 0.4, 0.8), "gamma": Hyper(0.3, 0.4, 0.8, 1.5)}
BETA = np.array([0.3, -0.2])


@cache
def task(effect=None, count_term="pointwise", n_subjects=12):
    """Six inducing inputs, one covariate of subjects and one of intervals."""
    panel = visits_panel(5, n_subjects, 4, level=3.0, with_exposure=True, frailty=1.5)
    rng = np.random.default_rng(2)
    z = np.column_stack(
        [rng.normal(size=n_subjects)[panel.subject_index], rng.normal(size=panel.n_intervals)]
    )
    rows = RegressionRows(
        z, panel.count.astype(float), panel.exposure, panel.subject_index,
        panel.distinct().inverse, panel.n_subjects,
    )  # fmt: skip
    data = observe(panel, None, panel.window)
    problem = Problem(data, KERNELS["se"], count_term, 0.3, effect, n_inducing=6)
    return RegressionProblem(problem, rows, data.rate)


def solved(problem, beta, hyper):
    """Optimal q at fixed hyper-parameters."""
    work = problem.at(beta).workspace(hyper.length_scale)
    estep = solve_q(work, hyper, None, 1e-12)
    return Optimum(hyper, work, estep, 0.0, (), True)


@pytest.mark.parametrize("count_term", ["pointwise", "exact", "lemma2"])
@pytest.mark.parametrize("effect", [None, "gamma"])
def test_the_score_is_the_slope_of_the_re_optimised_bound(effect, count_term):
    problem, hyper = task(effect, count_term), HYPER[effect]
    here = solved(problem, BETA, hyper)
    slope = central_difference(lambda b: solved(problem, b, hyper).value, BETA, 1e-4)
    assert_allclose(problem.collapse(here, BETA).score, slope, **RE_OPTIMISED)


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_efficient_information_is_nearly_the_curvature_of_the_profile(effect):
    problem, hyper, step = task(effect, "exact", 60), HYPER[effect], 0.02
    here = solved(problem, BETA, hyper)
    found = problem.efficient(here, BETA, free_level=False).information
    fixed = problem.efficient(here, BETA, free_level=True).information
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, -1.0]):
        d = np.array(direction)
        values = [solved(problem, BETA + s * step * d, hyper).value for s in (1, 0, -1)]
        curvature = -(values[0] - 2 * values[1] + values[2]) / step**2
        # ln ∫f² is linearised in f, its variance left alone
        assert_allclose(d @ found @ d, curvature, rtol=0.03)
    assert np.linalg.eigvalsh(found - fixed).min() > -1e-9  # a free level costs information


@pytest.mark.parametrize("effect", [None, "gamma"])
@pytest.mark.parametrize("log_prior", [flat_prior, weak_prior])
def test_climbs_never_go_down_and_end_at_a_maximum(effect, log_prior):
    problem = task(effect)
    start = np.zeros(2)
    first = search(problem.at(start), log_prior=log_prior, tol=1e-4, n_climbs=1)[0]
    free = free_coordinates(problem.base, None)
    found = climb_with_coefficients(problem, first, start, free=free, log_prior=log_prior, tol=1e-8)
    assert found.converged
    turns = np.array(found.optimum.path[len(first.path) :])
    assert np.all(np.diff(turns) >= -NEVER_DOWN)
    assert found.optimum.value >= first.value - NEVER_DOWN
    assert_allclose(problem.collapse(found.optimum, found.beta).score, 0.0, atol=1e-3)
    # elsewhere, with everything re-optimised, the objective is lower
    for shift in ([0.05, 0.0], [0.0, -0.05]):
        beta = found.beta + np.array(shift)
        there = search(problem.at(beta), log_prior=log_prior, tol=1e-6, n_climbs=1)[0]
        assert there.value < found.optimum.value


def test_where_a_climb_starts_makes_no_difference():
    problem = task("gamma")
    free = free_coordinates(problem.base, None)
    found = []
    for start in (np.zeros(2), np.array([1.0, 1.0]), np.array([-0.5, 0.4])):
        first = search(problem.at(start), log_prior=weak_prior, tol=1e-4, n_climbs=1)[0]
        found.append(
            climb_with_coefficients(
                problem, first, start, free=free, log_prior=weak_prior, tol=1e-8
            ).beta
        )
    assert_allclose(found[1], found[0], atol=1e-4)
    assert_allclose(found[2], found[0], atol=1e-4)


def test_a_climb_that_ran_out_of_turns_is_not_converged(monkeypatch):
    problem = task()
    start = search(problem.at(np.zeros(2)), n_climbs=1, tol=1e-3)[0]
    options = {"free": free_coordinates(problem.at(BETA), None), "log_prior": flat_prior}
    monkeypatch.setattr(regression, "MOST_TURNS", 1)
    short = climb_with_coefficients(problem, start, np.zeros(2), **options)
    assert not short.converged
    assert not short.optimum.converged
    monkeypatch.undo()
    whole = climb_with_coefficients(problem, start, np.zeros(2), **options)
    assert whole.converged
    assert len(whole.optimum.path) - len(start.path) < regression.MOST_TURNS
    # and at a maximum: another climb from there gains nothing
    again = climb_with_coefficients(problem, whole.optimum, whole.beta, **options)
    assert again.optimum.value - whole.optimum.value < 1e-4
    assert_allclose(again.beta, whole.beta, atol=1e-3)


@pytest.mark.parametrize("free_level", [True, False])
def test_slopes_of_the_curve_are_those_of_differences(free_level):
    problem, hyper = task(), HYPER[None]
    at = solved(problem, BETA, hyper)
    integrals, q = problem.integrals(at), at.estep.q

    def log_mass(v):
        f = hyper.mean + np.sqrt(hyper.variance) * at.work.features @ v
        return np.log(integrals.apply(f**2 + at.estep.evaluation.variance))

    step = 1e-5 * np.eye(at.work.size)
    slopes = np.array([(log_mass(q.mean + h) - log_mass(q.mean - h)) / 2e-5 for h in step]).T
    found = problem.nuisance(at, free_level)
    level = [np.ones((len(slopes), 1))] if free_level else []
    assert_allclose(found.slopes, np.column_stack([*level, slopes]), rtol=1e-6, atol=1e-7)
    assert found.penalty.tolist() == [0.0] * free_level + [1.0] * at.work.size
