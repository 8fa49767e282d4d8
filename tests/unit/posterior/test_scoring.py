"""Held-out likelihood: SciPy's laws row by row, integration over frailties, log-mean-exp."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import gamma as gamma_law
from scipy.stats import nbinom, poisson

from gp4c.model.laws import EFFECTS
from gp4c.posterior.scoring import ScoredRows, log_mean_exp, subject_log_likelihoods
from tolerances import ROUNDING, STANDARD_ERRORS

COUNT = np.array([2.0, 0.0, 5.0, 1.0, 3.0])
EXPOSURE = np.array([1.0, 2.0, 0.5, 1.0, 1.5])
SUBJECT = np.array([0, 0, 1, 2, 2])
INTERVAL = np.array([0, 1, 2, 0, 2])
ROWS = ScoredRows(COUNT, EXPOSURE, SUBJECT, INTERVAL, 3)
INTEGRALS = np.array([[1.3, 0.4, 2.2], [0.7, 0.9, 3.1]])  # two draws, three intervals
GAMMA = EFFECTS["gamma"]
FACTORIALS = np.bincount(SUBJECT, gammaln(COUNT + 1))


def by_subject(rows: np.ndarray) -> np.ndarray:
    return np.stack([np.bincount(SUBJECT, row) for row in rows])


def test_without_effects_rows_are_poisson() -> None:
    expected = by_subject(poisson.logpmf(COUNT, EXPOSURE * INTEGRALS[:, INTERVAL]))
    ours = subject_log_likelihoods(ROWS, INTEGRALS) - FACTORIALS
    assert_allclose(ours, expected, **ROUNDING)


def test_weights_multiply_the_intensity() -> None:
    weights = np.array([0.3, 2.0, 1.1])
    means = weights[SUBJECT] * EXPOSURE * INTEGRALS[:, INTERVAL]
    ours = subject_log_likelihoods(ROWS, INTEGRALS, weights=weights) - FACTORIALS
    assert_allclose(ours, by_subject(poisson.logpmf(COUNT, means)), **ROUNDING)


@pytest.mark.parametrize("shape", [0.2, 1.0, 8.0])
def test_the_frailty_of_a_new_subject_is_integrated_out(shape: float) -> None:
    law, ours = gamma_law(shape, scale=1 / shape), None
    ours = subject_log_likelihoods(ROWS, INTEGRALS, effect=GAMMA, psi=np.log([shape])) - FACTORIALS
    for s in range(2):
        for k in range(3):
            mine = k == SUBJECT
            means = EXPOSURE[mine] * INTEGRALS[s, INTERVAL[mine]]

            def integrand(y: float, mine: np.ndarray = mine, means: np.ndarray = means) -> float:
                u = np.exp(y)
                return float(np.prod(poisson.pmf(COUNT[mine], u * means)) * law.pdf(u) * u)

            likelihood = quad(integrand, -60.0, 6.0, points=[-2.0, 0.0, 2.0], limit=400)[0]
            assert_allclose(ours[s, k], np.log(likelihood), rtol=1e-6)


def test_one_row_with_a_frailty_is_negative_binomial() -> None:
    rows = ScoredRows(np.array([4.0]), np.array([1.5]), np.array([0]), np.array([0]), 1)
    ours = subject_log_likelihoods(rows, np.array([[2.0]]), effect=GAMMA, psi=np.log([0.7]))
    expected = nbinom.logpmf(4, 0.7, 0.7 / (0.7 + 3.0)) + gammaln(5.0)
    assert_allclose(ours[0, 0], expected, rtol=1e-12)


def test_frailties_without_variance_are_none() -> None:
    plain = subject_log_likelihoods(ROWS, INTEGRALS)
    nearly = subject_log_likelihoods(ROWS, INTEGRALS, effect=GAMMA, psi=np.log([1e7]))
    assert_allclose(nearly, plain, atol=1e-5)  # the difference is of the order of 1/α


def test_events_where_the_intensity_is_zero_are_impossible() -> None:
    nothing = np.array([[0.0, 0.4, 2.2]])
    ours = subject_log_likelihoods(ROWS, nothing)[0]
    assert ours[0] == -np.inf
    assert np.isfinite(ours[1])


def test_zero_counts_where_the_intensity_is_zero_are_certain() -> None:
    rows = ScoredRows(np.zeros(1), np.ones(1), np.array([0]), np.array([0]), 1)
    assert subject_log_likelihoods(rows, np.zeros((1, 1)))[0, 0] == 0.0


@given(
    values=st.lists(st.floats(-50.0, 50.0), min_size=2, max_size=30),
    shift=st.sampled_from([0.0, -1e4, 1e5]),
)
def test_log_mean_exp_is_stable(values: list[float], shift: float) -> None:
    x = np.array(values)
    ours, _ = log_mean_exp(x + shift)
    assert_allclose(ours - shift, np.log(np.mean(np.exp(x))), rtol=1e-9, atol=1e-9)


def test_the_standard_error_is_the_spread_of_repeated_scores() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(-300.0, 0.5, (2000, 400))  # 2000 repetitions of 400 draws
    scores = np.array([log_mean_exp(row) for row in values])
    observed, stated = scores[:, 0].std(), scores[:, 1].mean()
    assert_allclose(stated, observed, rtol=STANDARD_ERRORS / np.sqrt(2 * 2000))


def test_one_draw_has_no_standard_error() -> None:
    value, error = log_mean_exp(np.array([[1.0, 2.0]]))
    assert_allclose(value, [1.0, 2.0])
    assert np.all(np.isnan(error))


def test_impossible_data_score_minus_infinity_without_a_warning() -> None:
    value, _ = log_mean_exp(np.full(5, -np.inf))
    assert value == -np.inf
