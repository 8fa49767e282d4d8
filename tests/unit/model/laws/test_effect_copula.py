"""Effects of several types: the nested integral against brute force, and the scores' laws."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr
from scipy.stats import gamma, multivariate_normal, nbinom, poisson

from gp4c import PanelCounts
from gp4c.model.laws import EFFECTS, LAWS, SubjectEffect
from gp4c.model.laws.effect_copula import (
    NODES,
    ScoredSubjects,
    draw_scores,
    effects_at,
    joint_ratios,
    score_laws,
    transition,
)
from gp4c.posterior.subject_counts import SubjectCounts

EVERYBODY = np.arange(3)


def scored(rows, law, params, rate):
    """Scores of subjects with these counts in intervals of length 1, of one draw."""
    table = pd.DataFrame(
        [(k, j, j + 1, m) for k, counts in enumerate(rows) for j, m in enumerate(counts)],
        columns=["subject", "start", "stop", "count"],
    )
    counts = SubjectCounts.of(PanelCounts.from_frame(table), LAWS[law], EFFECTS["gamma"])
    integrals = rate * (counts.stop - counts.start)[:, None]
    known = (*counts.expected_rows(integrals), np.array(params)[:, None])
    return ScoredSubjects.of(counts.likelihood).resolved(*known).scores(*known)


def likelihood(counts, law, params, rate, z):
    """p(counts | score), from SciPy's laws."""
    alpha = np.exp(params[0])
    effect = np.where(
        z < 0,
        gamma.ppf(ndtr(z), alpha, scale=1 / alpha),
        gamma.isf(ndtr(-z), alpha, scale=1 / alpha),
    )
    value = np.ones_like(z)
    for m in counts:
        if law == "poisson":
            value = value * poisson.pmf(m, effect * rate)
        else:
            phi = np.exp(params[1])
            value = value * nbinom.pmf(m, effect * rate / phi, 1 / (1 + phi))
    return value


def brute_force(cases, correlation):
    """ln of the joint over independent probabilities, on a fine grid of all scores."""
    size = {2: 401, 3: 101}[len(cases)]
    z = np.linspace(-8, 8, size)
    each = [likelihood(*case, z) for case in cases]
    prior = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    points = np.stack(np.meshgrid(*[z] * len(cases), indexing="ij"), axis=-1)
    density = multivariate_normal(np.zeros(len(cases)), correlation).pdf(points)
    for axis, value in enumerate(each):
        shape = [1] * len(cases)
        shape[axis] = -1
        density = density * value.reshape(shape)
    joint = density.sum() * (z[1] - z[0]) ** len(cases)
    return np.log(joint / np.prod([prior @ value for value in each]))


FIRST = ([(0, 0, 0), (1, 0, 2), (6, 3, 5)], "bursts", (0.2, -0.7), 0.8)
SECOND = ([(0, 1, 0), (0, 0, 0), (4, 1, 2)], "poisson", (-0.5,), 1.3)
THIRD = ([(2, 0, 0), (0, 1, 0), (0, 0, 0)], "poisson", (1.0,), 0.6)


def subject_case(case, k):
    return (case[0][k], *case[1:])


@pytest.mark.parametrize("rho", [-0.9, -0.3, 0.0, 0.6, 0.95])
def test_two_types_agree_with_a_double_sum(rho):
    scores = [scored(*FIRST), scored(*SECOND)]
    expected = [
        brute_force([subject_case(FIRST, k), subject_case(SECOND, k)], [[1, rho], [rho, 1]])
        for k in range(3)
    ]
    anchored = joint_ratios(scores, [EVERYBODY] * 2, np.array([[rho], [1.0]]), 3)
    assert_allclose(anchored[:, 0], expected, atol=2e-4)
    root = np.sqrt(abs(rho))
    shared = np.array([[root], [np.sign(rho) * root]])
    assert_allclose(joint_ratios(scores, [EVERYBODY] * 2, shared, 3)[:, 0], expected, atol=5e-4)


def test_three_types_agree_with_a_triple_sum():
    loadings = np.array([0.9, -0.5, 0.7])
    correlation = np.outer(loadings, loadings)
    np.fill_diagonal(correlation, 1.0)
    cases = [FIRST, SECOND, THIRD]
    found = joint_ratios([scored(*c) for c in cases], [EVERYBODY] * 3, loadings[:, None], 3)
    expected = [brute_force([subject_case(c, k) for c in cases], correlation) for k in range(3)]
    assert_allclose(found[:, 0], expected, atol=1e-3)


def test_a_subject_without_a_type_is_as_with_the_others_alone():
    scores = [scored(*FIRST), scored(*SECOND), scored([(1, 1)], "poisson", (0.0,), 1.0)]
    places = [EVERYBODY, EVERYBODY, np.array([-1, 0, -1])]
    loadings = np.array([[0.8], [0.6], [0.9]])
    three = joint_ratios(scores, places, loadings, 3)[:, 0]
    two = joint_ratios(scores[:2], places[:2], loadings[:2], 3)[:, 0]
    assert_allclose(three[[0, 2]], two[[0, 2]], atol=1e-6)
    assert abs(three[1] - two[1]) > 1e-3


@pytest.mark.parametrize("rho", [-0.5, 0.8])
def test_scores_that_the_grid_does_not_resolve(rho):
    """Hundreds of events pin a score down to less than a step: the normal law takes over."""
    many = ([(200, 150), (20, 30), (0, 1)], "poisson", (0.3,), 100.0)
    few = ([(3, 2), (0, 0), (1, 0)], "poisson", (0.0,), 1.0)
    scores = [scored(*many), scored(*few)]
    assert 0 in scores[0].narrow
    expected = [
        brute_force([subject_case(many, k), subject_case(few, k)], [[1, rho], [rho, 1]])
        for k in range(3)
    ]
    found = joint_ratios(scores, [EVERYBODY] * 2, np.array([[rho], [1.0]]), 3)
    assert_allclose(found[:, 0], expected, atol=5e-3)


def test_laws_of_scores_given_all_types_agree_with_the_double_sum():
    rho, z = 0.7, np.linspace(-8, 8, 401)
    scores = [scored(*FIRST), scored(*SECOND)]
    loadings = np.array([[rho], [1.0]])
    laws = score_laws(scores, [EVERYBODY] * 2, loadings, 3)
    points = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1)
    prior = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).pdf(points)
    for k, e in product(range(3), range(2)):
        one, two = (likelihood(*subject_case(c, k), z) for c in (FIRST, SECOND))
        joint = prior * one[:, None] * two
        own = joint.sum(axis=1 - e) / joint.sum()
        for power in (1, 2):
            assert_allclose(laws[e][0, :, k] @ NODES**power, own @ z**power, atol=2e-3)


def test_draws_of_scores_have_the_moments_of_their_laws():
    rho, size = 0.7, 6_000
    scores = [scored(*FIRST), scored(*SECOND)]
    loadings = np.array([[rho], [1.0]])
    laws = score_laws(scores, [EVERYBODY] * 2, loadings, 3)
    rng = np.random.default_rng(1)
    drawn = list(draw_scores(scores, [EVERYBODY] * 2, loadings, 3, rng, size))
    for e in range(2):
        z = np.array([pair[e][:, 0] for pair in drawn])
        mean = np.einsum("n,nk->k", NODES, laws[e][0])
        variance = np.einsum("n,nk->k", NODES**2, laws[e][0]) - mean**2
        assert_allclose(z.mean(axis=0), mean, atol=5 * np.sqrt(variance.max() / size))
        assert_allclose(z.var(axis=0), variance, rtol=0.1)
    together = np.corrcoef([[pair[e][0, 0] for pair in drawn] for e in range(2)])[0, 1]
    assert together > 0.3  # of a subject with few events


def test_kernels_are_laws_of_scores():
    for loading in (-0.9, 0.0, 0.5, 0.97):
        kernel = transition(np.array([loading]))[0]
        inside = np.abs(NODES) < 3
        assert_allclose(kernel.sum(axis=1)[inside], 1.0, atol=2e-3)
        assert_allclose(kernel[inside] @ NODES, loading * NODES[inside], atol=1e-2)


@pytest.mark.parametrize("alpha", [0.05, 0.7, 4.0, 300.0])
def test_scores_of_gamma_effects_against_scipy(alpha):
    psi = np.log([[alpha]])
    z = np.array([-4.0, -1.0, 0.0, 0.5, 3.0])
    law = gamma(alpha, scale=1 / alpha)
    y = EFFECTS["gamma"].log_quantile(z, psi)[0]
    expected = np.where(z < 0, law.ppf(ndtr(z)), law.isf(ndtr(-z)))
    assert_allclose(np.exp(y), expected, rtol=1e-9)
    assert_allclose(EFFECTS["gamma"].score(y[:, None], psi)[:, 0], z, atol=1e-6)


def test_a_law_of_effects_without_quantiles_is_summed_up():
    psi = np.log([[0.7, 4.0]])
    z = np.array([-2.5, -0.4, 0.0, 2.0])
    exact = EFFECTS["gamma"]
    y = SubjectEffect.log_quantile(exact, z, psi)
    assert_allclose(y, exact.log_quantile(z, psi), atol=1e-3)
    assert_allclose(SubjectEffect.score(exact, y.T, psi), np.stack([z, z], axis=1), atol=2e-3)


def test_effects_between_nodes():
    y = EFFECTS["gamma"].log_quantile(NODES, np.zeros((1, 1)))
    z = np.array([[-1.234], [0.777]])
    expected = -np.log(ndtr(-z[:, 0]))  # exponential
    assert_allclose(effects_at(y, z)[:, 0], expected, rtol=0.02)
