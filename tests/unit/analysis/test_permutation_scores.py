"""The permutation test: scores by hand, invariances, and p-values against full enumeration."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from classical_panels import random_panel
from gp4c.analysis.permutation import (
    bin_weights,
    frailty_variance,
    permutation_p_value,
    pooled_rate,
    statistics,
    subject_scores,
    time_bins,
)


def scores_of(panel):
    return subject_scores(
        panel.start, panel.stop, panel.count.astype(float), panel.exposure,
        panel.subject_index, panel.n_subjects,
    )  # fmt: skip


def test_the_pooled_rate_maximises_the_weighted_likelihood(rng):
    at_risk = rng.uniform(0, 2, (30, 3)) * (rng.random((30, 3)) < 0.7)
    at_risk[at_risk.sum(axis=1) == 0] = 1.0
    count, weights = rng.poisson(2.0, 30).astype(float), rng.uniform(0.2, 1.0, 30)
    rate = pooled_rate(at_risk, count, weights)
    rate = pooled_rate(at_risk, count, weights, rate)

    def loss(log_rate):
        mean = at_risk @ np.exp(log_rate)
        return -(weights * (count * np.log(mean) - mean)).sum()

    from scipy.optimize import minimize

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert loss(np.log(rate)) <= best.fun + 1e-4


def test_residuals_are_counts_minus_expectations():
    panel = random_panel(3, n_subjects=20, gaps=True, exposure=True)
    scores = scores_of(panel)
    overlap = np.minimum(panel.stop[:, None], scores.edges[1:])
    overlap = np.maximum(overlap - np.maximum(panel.start[:, None], scores.edges[:-1]), 0)
    expected = (overlap @ scores.rate) * panel.exposure
    totals = np.bincount(panel.subject_index, panel.count, panel.n_subjects)
    means = np.bincount(panel.subject_index, expected, panel.n_subjects)
    # summed over time a residual is events minus expected, times the subject's weight
    assert np.all(scores.residual.sum(axis=1) * (totals - means) >= 0)
    ratio = scores.residual.sum(axis=1) / (totals - means)
    assert np.all((ratio > 0) & (ratio <= 1 + 1e-9))
    # a subject of whom more was seen tells more, but weighs less per event
    assert stats.spearmanr(ratio, means).statistic < -0.99
    assert_allclose(scores.residual.sum(axis=0), 0.0, atol=0.05)


def test_the_statistic_is_the_robust_log_rank_score():
    # everybody watched all the time, one bin: U² / Σψ², with ψ the centred weighted residual
    rng = np.random.default_rng(4)
    n = 12
    count = rng.poisson(1.0, n).astype(float)
    start, stop = np.zeros(n), np.ones(n)
    scores = subject_scores(start, stop, count, np.ones(n), np.arange(n), n)
    groups = (np.argsort(np.argsort(count, kind="stable")) % 12 > 5).astype(np.intp)
    member = (groups == 0).astype(float)
    psi = (member - 0.5) * (count - count.mean())
    found = statistics(scores, groups[None], np.ones((1, 1)))[0]
    assert_allclose(found, psi.sum() ** 2 / (psi**2).sum(), rtol=1e-9)


def test_groups_may_be_named_in_any_order():
    panel = random_panel(5, n_subjects=18)
    scores, rng = scores_of(panel), np.random.default_rng(0)
    weights = bin_weights(scores.edges, scores.rate, "curve")
    groups = rng.integers(0, 3, 18)
    one = statistics(scores, groups[None], weights)
    for names in ([1, 2, 0], [2, 1, 0]):
        other = statistics(scores, np.array(names)[groups][None], weights)
        assert_allclose(other, one, rtol=1e-2)  # the pooled rate is found to 1e-5 only


def test_random_permutations_agree_with_all_of_them():
    panel = random_panel(8, n_subjects=10)
    scores = scores_of(panel)
    groups = np.array([0] * 4 + [1] * 6)
    weights = bin_weights(scores.edges, scores.rate, "level")
    every = []
    for chosen in combinations(range(10), 4):
        labels = np.ones(10, dtype=np.intp)
        labels[list(chosen)] = 0
        every.append(labels)
    values = statistics(scores, np.array(every), weights)
    observed, p = permutation_p_value(
        scores, groups, n_permutations=20_000, rng=np.random.default_rng(1)
    )
    exact = np.mean(values >= observed * (1 - 1e-9))
    assert abs(p - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)
    assert_allclose(observed, statistics(scores, groups[None], weights)[0])


def test_p_values_are_never_zero_and_depend_on_the_seed_alone():
    panel = random_panel(9, n_subjects=30, level=3.0)
    scores = scores_of(panel)
    order = np.argsort(scores.residual.sum(axis=1))
    groups = np.zeros(30, dtype=np.intp)
    groups[order[15:]] = 1  # the most different groups there are
    runs = [
        permutation_p_value(scores, groups, n_permutations=99, rng=np.random.default_rng(2))
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert runs[0][1] == 0.01


def test_bins_share_the_events():
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 9, 500)
    stop = start + rng.uniform(0.1, 1.0, 500)
    count = rng.poisson(3.0, 500).astype(float)
    edges = time_bins(start, stop, count)
    assert len(edges) == 11
    assert edges[0] == start.min()
    assert edges[-1] == stop.max()
    share = (
        np.maximum(np.minimum(stop[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1]), 0)
        / (stop - start)[:, None]
    )
    assert_allclose(count @ share, count.sum() / 10, rtol=1e-6)
    assert time_bins(start, stop, np.zeros(500)).tolist() == [start.min(), stop.max()]


def test_the_trend_is_orthogonal_to_the_level_under_the_pooled_rate():
    weights = bin_weights(np.array([0.0, 1.0, 3.0, 4.0]), np.array([2.0, 1.0, 3.0]), "curve")
    mass = np.array([2.0, 2.0, 3.0])
    assert abs(weights[:, 1] @ mass) < 1e-12
    assert np.all(np.diff(weights[:, 1]) > 0)


@pytest.mark.parametrize("variance", [0.0, 0.8])
def test_the_frailty_variance_is_estimated_by_moments(variance, rng):
    expected = rng.uniform(1, 8, 40_000)
    effect = rng.gamma(1 / variance, variance, 40_000) if variance else np.ones(40_000)
    found = frailty_variance(rng.poisson(effect * expected).astype(float), expected)
    assert found == pytest.approx(variance, abs=0.04)
    assert frailty_variance(np.zeros(3), np.zeros(3)) == 0.0


def test_without_events_nobody_differs():
    start, stop = np.array([0.0, 1.0, 0.0]), np.array([1.0, 2.0, 2.0])
    scores = subject_scores(start, stop, np.zeros(3), np.ones(3), np.array([0, 0, 1]), 2)
    assert_allclose(scores.rate, 0.0)
    assert_allclose(scores.residual, 0.0)
    assert_allclose(statistics(scores, np.array([[0, 1]]), np.ones((1, 1))), 0.0)
