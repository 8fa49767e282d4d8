"""Frailty's share of uncertainty: derivatives by differences, and the level's known variance."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.inference.forecasting import SubjectHistories
from gp4c.inference.frailty_spread import _expected_and_slopes, spread_by_frailty
from problems import central_difference
from tolerances import FINITE_DIFFERENCE

SHAPE = 0.8


@pytest.fixture(scope="module")
def fitted():
    panel = gp4c.simulate_panel(
        ([0, 50], [0.05, 0.25]), window=(0, 50), n_subjects=40, n_intervals=5, frailty=SHAPE,
        dropout=0.005, random_state=4,
    )[0]  # fmt: skip
    model = gp4c.GP4C(count_term="pointwise", hyper="optimize", effect="gamma").fit(panel)
    return panel, model


def test_slopes_are_derivatives_of_expected_counts(fitted):
    panel, model = fitted
    component, known = model.posterior_.components[0], SubjectHistories.of(panel)
    _, slopes = _expected_and_slopes(component, model.posterior_, known)
    for k in (0, 11):

        def expected(mean, k=k):
            moved = replace(component, mean=mean)
            return float(_expected_and_slopes(moved, model.posterior_, known)[0][k])

        by_differences = central_difference(expected, component.mean)
        assert_allclose(slopes[k], by_differences, **FINITE_DIFFERENCE)


def test_expected_counts_are_the_models(fitted):
    panel, model = fitted
    known = SubjectHistories.of(panel)
    expected, _ = _expected_and_slopes(model.posterior_.components[0], model.posterior_, known)
    each = model.expected_counts(panel.start, panel.stop)
    by_hand = np.bincount(panel.subject_index, each * panel.exposure)
    assert_allclose(expected, by_hand, rtol=1e-9)


def test_the_precision_is_that_of_the_integrated_likelihood(fitted):
    # Σ (α + m) ln(α + R(m)) along any direction u: the concave part −Σ w (hᵀu)² by differences
    panel, model = fitted
    component, known = model.posterior_.components[0], SubjectHistories.of(panel)
    wider = spread_by_frailty(model.posterior_, known, SHAPE).components[0]
    expected, slopes = _expected_and_slopes(component, model.posterior_, known)
    weights = (SHAPE + known.totals) / (SHAPE + expected) ** 2
    before = component.root @ component.root.T
    after = wider.root @ wider.root.T
    lost = np.linalg.inv(before) - np.linalg.inv(after)
    assert_allclose(lost, slopes.T * weights @ slopes, rtol=1e-5, atol=1e-6 * np.abs(lost).max())


def test_the_level_gets_the_variance_of_the_frailties(fitted):
    panel, model = fitted
    known, shape = SubjectHistories.of(panel), model.frailty_shape_
    span = np.array([0.0]), np.array([50.0])

    def relative_deviation(posterior):
        deviation = np.sqrt(posterior.integral_variance(*span))
        return float((deviation / posterior.expected_integral(*span))[0])

    narrow = relative_deviation(model.posterior_)
    wide = relative_deviation(spread_by_frailty(model.posterior_, known, shape))
    # of K subjects seen throughout: 1/N + 1/(K α)
    theory = np.sqrt(1 / panel.n_events + 1 / (panel.n_subjects * shape))
    assert narrow < 0.5 * theory
    assert_allclose(wide, theory, rtol=0.15)


def test_without_frailty_nothing_changes(fitted):
    panel, model = fitted
    same = spread_by_frailty(model.posterior_, SubjectHistories.of(panel), np.inf)
    assert same is model.posterior_
