"""When Newton's subproblem cannot be solved, the fit goes on by EM, or says that it has not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import LinAlgError
from test_npmle import random_case

from gp4c.classical.step_functions import npmle
from gp4c.classical.step_functions.jumps import (
    Gradient,
    PoissonExposure,
    kkt_residual,
    log_likelihood,
)
from gp4c.classical.step_functions.npmle import newton


@pytest.fixture
def problem():
    return random_case(3, {"n_subjects": 20}).pooled()


@pytest.mark.parametrize("error", [LinAlgError, RuntimeError])
def test_one_failure_is_cured_by_a_larger_ridge(problem, error, monkeypatch):
    calls = []

    def sometimes(*arguments):
        calls.append(arguments)
        if len(calls) % 2:
            raise error("rounding")
        return solve(*arguments)

    solve = npmle.nnls
    expected = newton(problem, PoissonExposure())
    monkeypatch.setattr(npmle, "nnls", sometimes)
    found = newton(problem, PoissonExposure())
    assert found.converged
    assert len(calls) > 4
    assert_allclose(found.jumps, expected.jumps, atol=1e-7)


def test_without_the_subproblem_em_climbs_to_the_same_maximum(problem, monkeypatch):
    def never(*arguments):
        raise RuntimeError("too many iterations")

    expected, term = newton(problem, PoissonExposure()), PoissonExposure()
    monkeypatch.setattr(npmle, "nnls", never)
    start = npmle.even_start(problem, term)
    found = newton(problem, term, start=start, max_iter=3000, tol=1e-4)
    assert found.converged
    assert np.all(np.diff(found.history) >= 0)
    # within 2 · total · residual nats of the maximum
    assert found.history[-1] > expected.history[-1] - 2e-4 * problem.total


def test_em_moves_nothing_to_where_nothing_is_and_that_is_no_convergence(problem, monkeypatch):
    monkeypatch.setattr(npmle, "_RIDGES", ())
    found = newton(problem, PoissonExposure(), max_iter=50)
    assert not found.converged


def test_a_target_that_promises_nothing_is_not_gone_to(problem):
    state = npmle._Ascent(problem, PoissonExposure(), npmle.even_start(problem, PoissonExposure()))
    before = state.jumps.copy()
    assert not npmle._towards(state, before)
    worse = before * (1 + np.sign(state.slopes.cost - state.slopes.gain))
    assert not npmle._towards(state, worse)
    assert_allclose(state.jumps, before)


def test_an_interval_with_events_and_no_mass_is_impossible(problem):
    assert log_likelihood(problem, PoissonExposure(), np.zeros(len(problem.sites))) == -np.inf


def test_nothing_to_place_violates_nothing():
    empty = np.zeros(0)
    assert kkt_residual(empty, Gradient(empty, empty, empty), 1.0) == 0.0
