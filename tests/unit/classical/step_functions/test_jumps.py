"""Where exposure changes, and fits of jumps that stop when they are done."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from test_npmle import random_case

from gp4c.classical.step_functions.frailty_npmle import fit_jumps_and_frailty
from gp4c.classical.step_functions.isotonic import fenchel_residual
from gp4c.classical.step_functions.jumps import Exposure
from gp4c.classical.visit_cells import Runs
from gp4c.inference.variational.exposure import PaperWeights


def exposure_of(first, last, rate, subject, size):
    runs = Runs(np.array(first), np.array(last), size)
    return Exposure(runs, np.array(rate), np.array(subject), max(subject) + 1)


def test_rises_and_falls_are_those_of_any_subject():
    # subject 0 is seen in cells 0-2, subject 1 in cells 1-3 with twice the units in the last
    found = exposure_of([0, 1, 3], [3, 3, 4], [1.0, 1.0, 2.0], [0, 1, 1], 5)
    rises, falls = found.moves()
    assert_array_equal(rises, [True, False, True, False])
    assert_array_equal(falls, [False, False, True, True])


def test_exposures_that_add_up_do_not_change():
    # 0.1 + 0.2 units until the second cell, then 0.3: rounding is no change
    found = exposure_of([0, 0, 1], [1, 1, 2], [0.1, 0.2, 0.3], [0, 0, 0], 2)
    rises, falls = found.moves()
    assert not rises.any()
    assert not falls.any()


def test_a_gradient_that_only_asks_for_less_violates_nothing_above():
    # all tails are below zero and the fit is zero: the maximum is at the boundary
    assert fenchel_residual(np.array([-2.0, -3.0]), np.zeros(2), 1.0) == 0.0
    # and where the fit is positive, what counts is g·Λ
    assert fenchel_residual(np.array([1.0, -3.0]), np.array([6.0, 2.0]), 2.0) == 0.0


@pytest.mark.parametrize("seed", [410, 411])
def test_a_fit_with_frailty_stops_when_it_has_converged(seed):
    case = random_case(seed, {"n_subjects": 16})
    events = np.bincount(case.subject, case.count)
    fit = fit_jumps_and_frailty(case.by_subject(), events, np.ones(case.n_subjects), max_iter=60)
    assert fit.converged
    assert fit.n_iter < 60
    short = fit_jumps_and_frailty(case.by_subject(), events, np.ones(case.n_subjects), max_iter=1)
    assert not short.converged


def test_free_weights_have_no_shape():
    assert PaperWeights().shape_gradient(np.ones(2), np.ones(2), np.inf) == 0.0
