"""The joint score against quadrature over ξ, and its Newton steps against differences."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

import gp4c
from gp4c.model.laws import EFFECTS
from gp4c.posterior.joint_score import CountLaw, joint_log_likelihood
from gp4c.posterior.scoring import ScoredRows, log_mean_exp, subject_log_likelihoods
from gp4c.posterior.sparse_posterior import Posterior
from tolerances import STANDARD_ERRORS

START, STOP = np.array([0.0, 0.5, 1.0, 2.5]), np.array([1.0, 1.5, 2.5, 4.0])
WINDOW, RATE = (0.0, 4.0), 6.0
N_DRAWS = 4000
LAWS = {
    "poisson": {},
    "gamma": {"effect": EFFECTS["gamma"], "psi": np.log([0.7])},
    "weights": {"effect": EFFECTS["weight"], "weights": np.array([0.4, 2.0, 1.0])},
}
every_law = pytest.mark.parametrize("name", sorted(LAWS))


def smooth(mean: float = 0.8, spread: float = 0.5) -> Posterior:
    """Two inducing inputs and a smooth kernel: f is a function of two numbers."""
    centre, root = np.array([0.2, -0.6]), spread * np.array([[1.0, 0.0], [0.4, 0.9]])
    return Posterior("se", 40.0, 0.5, mean, np.array([0.0, 1.0]), centre, root, WINDOW, RATE)


def rows(times: float = 1.0) -> ScoredRows:
    """Three subjects; `times` as many events and as much exposure."""
    count = times * np.array([2.0, 1.0, 4.0, 0.0, 3.0, 6.0])
    exposure = times * np.array([1.0, 0.5, 1.0, 1.0, 2.0, 1.0])
    return ScoredRows(
        count, exposure, np.array([0, 0, 1, 1, 2, 2]), np.array([0, 2, 1, 3, 0, 3]), 3
    )


def by_quadrature(posterior: Posterior, law: CountLaw) -> float:
    """The trapezoid rule in both directions of ξ."""
    nodes, integrals = np.linspace(-6.0, 6.0, 481), posterior.integrals(START, STOP)
    mean, factor, _ = posterior.spread(integrals.grid.nodes)
    assert factor.shape[1] == 2
    xi = np.array(list(itertools.product(nodes, repeat=2))).T
    logs = norm.logpdf(xi).sum(axis=0) + 2 * np.log(nodes[1] - nodes[0])
    masses = posterior.rate * integrals.apply((mean[:, None] + factor @ xi) ** 2)
    return float(logsumexp(law.log_likelihood(masses.T) + logs))


@every_law
@pytest.mark.parametrize("times", [1.0, 30.0])
@pytest.mark.parametrize("posterior", [smooth(), smooth(1.3, 0.3)], ids=["wide", "narrow"])
def test_the_score_is_the_integral_over_f(name: str, times: float, posterior: Posterior) -> None:
    law = CountLaw(rows(times), **LAWS[name])
    rng = np.random.default_rng(1)
    ours, error = joint_log_likelihood(posterior, START, STOP, law, N_DRAWS, rng)
    assert 0 < error < 0.05
    assert_allclose(ours, by_quadrature(posterior, law), atol=STANDARD_ERRORS * error, rtol=0)


@every_law
def test_the_likelihood_is_that_of_the_subjects(name: str) -> None:
    law = CountLaw(rows(), **LAWS[name])
    masses = np.random.default_rng(0).uniform(0.2, 3.0, (5, 4))
    each = subject_log_likelihoods(law.rows, masses, **LAWS[name])
    assert_allclose(law.log_likelihood(masses), each.sum(axis=1), rtol=1e-12)


@every_law
def test_slopes_are_those_of_the_likelihood(name: str) -> None:
    law, rng = CountLaw(rows(), **LAWS[name]), np.random.default_rng(2)
    masses, jacobian = rng.uniform(0.5, 3.0, 4), rng.normal(size=(4, 3))
    slope, _ = law.slope_and_information(masses, jacobian)
    for k, step in enumerate(1e-6 * np.eye(3)):
        there = [law.log_likelihood((masses + s * (jacobian @ step))[None])[0] for s in (1, -1)]
        assert_allclose(slope[k], (there[0] - there[1]) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_the_information_is_the_curvature_where_counts_are_as_expected(effect: str | None) -> None:
    masses, jacobian = np.array([0.7, 1.9, 1.1, 2.4]), np.random.default_rng(3).normal(size=(4, 3))
    seen = rows()
    expected = seen.exposure * masses[seen.interval]
    as_expected = ScoredRows(expected, seen.exposure, seen.subject, seen.interval, 3)
    law = CountLaw(as_expected, EFFECTS[effect], np.log([0.7]) if effect else np.zeros(0))
    _, information = law.slope_and_information(masses, jacobian)
    for k, step in enumerate(1e-6 * np.eye(3)):
        slopes = [
            law.slope_and_information(masses + s * (jacobian @ step), jacobian)[0] for s in (1, -1)
        ]
        assert_allclose(-(slopes[0] - slopes[1]) / 2e-6, information[k], rtol=1e-5, atol=1e-8)
    assert np.all(np.linalg.eigvalsh(information) > -1e-10)


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_models_score_as_the_mean_over_draws_where_that_is_accurate(effect: str | None) -> None:
    panel, _ = gp4c.simulate_panel(0.2, n_subjects=30, random_state=3)
    model = gp4c.GP4C(hyper="optimize", count_term="pointwise", effect=effect).fit(panel)
    few = panel[:2]
    draws = model._log_likelihood_draws(few, 40_000, False).sum(axis=1)
    theirs, their_error = log_mean_exp(draws)
    ours, our_error = model.score_with_error(few)
    assert our_error < their_error
    assert_allclose(ours, theirs, atol=STANDARD_ERRORS * float(np.hypot(our_error, their_error)))
    assert model.score(few) == ours
    assert_allclose(model.score(few, constant=True), ours - few.log_factorials)


def test_counts_where_f_is_zero_have_a_finite_score() -> None:
    nowhere = replace(smooth(0.0), mean=np.zeros(2), root=np.zeros((2, 2)))
    law, rng = CountLaw(rows()), np.random.default_rng(0)
    score, _ = joint_log_likelihood(nowhere, START, STOP, law, 64, rng)
    assert np.isfinite(score)
    assert score < -1000
