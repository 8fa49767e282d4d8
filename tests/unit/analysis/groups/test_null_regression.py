"""Covariates taken out of the groups' scores: other libraries, sums written out, enumeration."""

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

from gp4c.analysis.groups.bin_scores import subject_scores
from gp4c.analysis.groups.contrasts import column_statistics, score_statistics, taken_out
from gp4c.analysis.groups.labellings import every_labelling
from gp4c.analysis.groups.null_regression import fit_null
from gp4c.analysis.permutation import statistics


def rows(rng, n=40, visits=3, p=2):
    """Subjects with several visits, covariates that matter, one that changes between visits."""
    edges = np.sort(rng.uniform(0, 10, (n, visits)), axis=1)
    start = np.concatenate([np.zeros((n, 1)), edges[:, :-1]], axis=1).ravel()
    subject = np.repeat(np.arange(n), visits)
    z = rng.standard_normal((n, p))[subject]
    z[:, -1] += rng.standard_normal(len(subject))
    mean = (edges.ravel() - start) * np.exp(z @ np.linspace(0.5, -0.3, p))
    count = rng.poisson(mean * rng.gamma(2.0, 0.5, n)[subject]).astype(float)
    return start, edges.ravel(), count, np.ones(len(subject)), subject, z


def test_coefficients_are_those_of_a_poisson_regression(rng):
    # one bin of time: a weighted Poisson regression with the time at risk as offset
    start, stop, count, _, _, z = rows(rng)
    weights = rng.uniform(0.3, 1.0, len(count))
    null = fit_null((stop - start)[:, None], count, weights, np.zeros(len(count), dtype=int), z)
    glm = sm.GLM(
        count, sm.add_constant(z), sm.families.Poisson(), offset=np.log(stop - start),
        freq_weights=weights,
    ).fit(tol=1e-12)  # fmt: skip
    assert_allclose(null.beta, glm.params[1:], atol=1e-5)
    assert_allclose(null.rate[0, 0], np.exp(glm.params[0]), rtol=1e-5)


def test_coefficients_of_strata_are_those_of_a_regression_with_intercepts(rng):
    start, stop, count, _, subject, z = rows(rng)
    stratum = (subject % 3).astype(np.intp)
    null = fit_null((stop - start)[:, None], count, np.ones(len(count)), stratum, z)
    design = np.concatenate([z, np.eye(3)[stratum]], axis=1)
    glm = sm.GLM(count, design, sm.families.Poisson(), offset=np.log(stop - start)).fit(tol=1e-12)
    assert_allclose(null.beta, glm.params[:2], atol=1e-5)
    assert_allclose(np.log(null.rate[:, 0]), glm.params[2:], atol=1e-4)


def written_out(scores, weights, groups, n_groups):
    """ψ of each subject and group by loops over the definition."""
    known = scores.covariates
    n, q = len(groups), n_groups - 1
    psi = np.zeros((n, q))
    for g in range(q):
        drift = sum(known.drift(weights)[k] for k in range(n) if groups[k] == g)
        for k in range(n):
            same = scores.strata == scores.strata[k]
            share = scores.exposure[same & (groups == g)].sum(axis=0)
            share = share / np.maximum(scores.exposure[same].sum(axis=0), 1e-300)
            each = ((groups[k] == g) - share) * weights * scores.residual[k]
            psi[k, g] = each.sum() - drift @ known.score[k]
    return psi


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("when", ["even", "late"])
def test_scores_are_the_sums_of_the_definition(rng, n_groups, when):
    *panel, subject, z = rows(rng)
    strata = (np.arange(40) % 2).astype(np.intp)
    scores = subject_scores(*panel, subject, 40, strata, z)
    assert_allclose(scores.covariates.score.sum(axis=0), 0, atol=1e-4)
    groups, weights = rng.integers(n_groups, size=40), scores.time_weights(when)
    psi = written_out(scores, weights, groups, n_groups)
    total = psi.sum(axis=0)
    expected = total @ np.linalg.solve(psi.T @ psi, total)
    found = score_statistics(
        scores.residual, scores.exposure, weights, strata, groups[None], n_groups,
        taken=taken_out(scores, weights),
    )  # fmt: skip
    assert_allclose(found[0], expected, rtol=1e-7)


def test_slopes_are_derivatives_of_what_covariates_move(rng):
    # with one visit in each bin nothing is unseen: residuals so far at β + h, levels following
    n, edges = 30, np.linspace(0.0, 10.0, 4)
    subject = np.repeat(np.arange(n), 3)
    start, stop = np.tile(edges[:-1], n), np.tile(edges[1:], n)
    z = rng.standard_normal((n, 1))[subject]
    count = rng.poisson(3.0 * np.exp(0.4 * z[:, 0])).astype(float)
    scores = subject_scores(start, stop, count, np.ones(3 * n), subject, n, None, z)
    groups = rng.integers(2, size=(1, n))
    found = column_statistics(
        scores.so_far, scores.expected_so_far, scores.strata, groups, 2, taken_out(scores, None)
    )
    plain = column_statistics(scores.so_far, scores.expected_so_far, scores.strata, groups, 2)
    assert found.shape == plain.shape
    # Γ = I⁻¹ Σ_g slope: a group that is the covariate itself has no score left
    known = scores.covariates
    itself = known.drift(np.ones(known.slope.shape[1]))[:, 0] @ z[::3, 0]
    assert_allclose(itself, 1.0, rtol=1e-6)


def test_all_labellings_are_equally_likely(rng):
    # exact: over all labellings of 8 subjects, p ≤ α for at most a share α of them
    *panel, subject, z = rows(rng, n=8)
    scores = subject_scores(*panel, subject, 8, None, z)
    labels = every_labelling(np.repeat([0, 1], 4), np.zeros(8, dtype=np.intp))
    for part in ("level", "curve"):
        values = statistics(scores, labels, part)
        size = np.abs(values)
        p = np.array([(size >= v * (1 - 1e-9)).mean() for v in size])
        for alpha in (0.1, 0.2, 0.5):
            assert (p <= alpha).mean() <= alpha


def test_a_covariate_that_makes_the_groups_is_taken_out():
    # groups differ in a covariate that doubles the rate: rejected without it, not with it
    from gp4c.analysis.permutation import permutation_test

    found = {True: [], False: []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        age = rng.standard_normal(80)
        groups = (age + rng.standard_normal(80) > 0).astype(np.intp)
        mean = 3.0 * np.exp(0.7 * age) * rng.gamma(2.0, 0.5, 80)
        count = rng.poisson(mean).astype(float)
        one = np.zeros(80), np.ones(80), count, np.ones(80), np.arange(80), 80, None
        for adjusted, p_values in found.items():
            scores = subject_scores(*one, age[:, None] if adjusted else None)
            test = permutation_test(scores, groups, n_permutations=199, rng=rng)
            p_values.append(test.p_value)
    assert np.mean(np.array(found[False]) <= 0.05) > 0.5
    # three binomial errors of 60 trials above 0.05
    assert np.mean(np.array(found[True]) <= 0.05) < 0.135
