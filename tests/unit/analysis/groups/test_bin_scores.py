"""Scores of subjects: likelihoods, counts minus expectations, sums that vanish, strata apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from classical_panels import random_panel
from gp4c.analysis.groups.bin_scores import (
    CountMoments,
    count_moments,
    subject_scores,
    time_bins,
)
from gp4c.analysis.groups.null_regression import pooled_rate
from gp4c.analysis.permutation import statistics


def scores_of(panel, strata=None):
    return subject_scores(
        panel.start, panel.stop, panel.count.astype(float), panel.exposure,
        panel.subject_index, panel.n_subjects, strata,
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
    expected = (overlap @ scores.rate[0]) * panel.exposure
    totals = np.bincount(panel.subject_index, panel.count, panel.n_subjects)
    means = np.bincount(panel.subject_index, expected, panel.n_subjects)
    # summed over time a residual is events minus expected, times the subject's weight
    assert np.all(scores.residual.sum(axis=1) * (totals - means) >= 0)
    ratio = scores.residual.sum(axis=1) / (totals - means)
    assert np.all((ratio > 0) & (ratio <= 1 + 1e-9))
    # a subject of whom more was seen tells more, but weighs less per event
    assert stats.spearmanr(ratio, means).statistic < -0.99
    assert_allclose(scores.residual.sum(axis=0), 0.0, atol=0.05)


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


def test_early_and_late_weights_are_shares_of_events_that_add_up():
    scores = scores_of(random_panel(6, n_subjects=40, level=3.0))
    early, late = scores.time_weights("early"), scores.time_weights("late")
    assert_allclose(early + late, scores.time_weights("even"))
    assert np.all(np.diff(late) > 0)
    # half of the events come before and half after: the weights have mean 1/2 over them
    expected = (scores.rate[0] * scores.exposure).sum(axis=0)
    assert_allclose(late @ expected / expected.sum(), 0.5)


def test_numbers_so_far_are_those_of_the_mean_function_by_hand():
    # everybody watched to the end, no frailty: N(t) − mean N(t) at the ends of bins
    rng = np.random.default_rng(1)
    n = 30
    start, stop = np.tile([0.0, 1.0, 2.0], n), np.tile([1.0, 2.0, 3.0], n)
    count = rng.poisson(2.0, 3 * n).astype(float)
    subject = np.repeat(np.arange(n), 3)
    scores = subject_scores(start, stop, count, np.ones(3 * n), subject, n)
    last = scores.so_far[:, -1]
    totals = count.reshape(n, 3).sum(axis=1)
    weight = 1 / (scores.law.dispersion + scores.law.frailty_variance * totals.mean())
    assert_allclose(last, weight * (totals - totals.mean()), rtol=1e-3, atol=1e-3)
    assert_allclose(scores.watched.sum(axis=1), 3.0)


def test_residuals_so_far_vanish_in_every_stratum_at_every_time():
    panel = random_panel(7, n_subjects=24, gaps=True, exposure=True)
    strata = np.arange(24) % 3
    scores = scores_of(panel, strata)
    for s in range(3):
        assert_allclose(scores.so_far[strata == s].sum(axis=0), 0.0, atol=1e-12)


def test_a_stratum_has_the_rate_of_its_own_subjects():
    # everybody watched for the same time, one bin: the mean count of the stratum
    rng = np.random.default_rng(5)
    strata = np.repeat([0, 1, 2], [4, 3, 5])
    count = rng.poisson(np.array([0.5, 3.0, 0.0])[strata]).astype(float)
    scores = subject_scores(
        np.zeros(12), np.ones(12), count, np.ones(12), np.arange(12), 12, strata
    )
    means = [count[strata == s].mean() for s in range(3)]
    assert_allclose(scores.rate.mean(axis=1), means, rtol=1e-4)
    assert_allclose(np.sign(scores.residual.sum(axis=1)), np.sign(count - np.array(means)[strata]))


@pytest.mark.parametrize("variance", [0.0, 0.8])
@pytest.mark.parametrize("phi", [0.0, 2.0])
def test_bursts_and_frailty_are_told_apart_by_moments(variance, phi, rng):
    n, n_rows = 20_000, 4
    effect = rng.gamma(1 / variance, variance, n) if variance else np.ones(n)
    mean = rng.uniform(0.5, 3.0, (n, n_rows))
    rate = effect[:, None] * mean
    if phi:
        rate = rng.gamma(rate / phi, phi)  # negative binomial counts, 1 + φ times their mean
    count, subject = rng.poisson(rate).astype(float), np.repeat(np.arange(n), n_rows)
    found = count_moments(count.ravel(), mean.ravel(), subject, n)
    assert found.dispersion == pytest.approx(1 + phi, abs=0.06)
    assert found.frailty_variance == pytest.approx(variance, abs=0.05)
    # what they stand for: the variance of a subject's total, in eight classes of its mean
    total, expected = count.sum(axis=1), mean.sum(axis=1)
    for some in np.array_split(np.argsort(expected), 8):
        law = expected[some].mean() / found.weights(expected[some]).mean()
        assert ((total - expected)[some] ** 2).mean() == pytest.approx(law, rel=0.12)


def test_moments_of_subjects_seen_once_or_without_events():
    once = count_moments(np.array([3.0, 0.0]), np.array([1.0, 2.0]), np.arange(2), 2)
    assert once.dispersion == 1.0
    assert_allclose(once.frailty_variance, ((3 - 1) ** 2 + (0 - 2) ** 2 - 3) / 5)
    assert count_moments(np.zeros(3), np.zeros(3), np.array([0, 0, 1]), 2) == CountMoments(1.0, 0.0)


def test_without_events_nobody_differs():
    start, stop = np.array([0.0, 1.0, 0.0]), np.array([1.0, 2.0, 2.0])
    scores = subject_scores(start, stop, np.zeros(3), np.ones(3), np.array([0, 0, 1]), 2)
    assert_allclose(scores.rate, 0.0)
    assert_allclose(scores.residual, 0.0)
    for part in ("level", "early", "curve"):
        assert_allclose(statistics(scores, np.array([[0, 1]]), part), 0.0)
