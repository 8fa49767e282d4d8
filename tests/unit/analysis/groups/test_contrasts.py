"""Statistics of labellings against ψ written out subject by subject."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classical_panels import random_panel
from gp4c.analysis.groups.bin_scores import subject_scores
from gp4c.analysis.groups.contrasts import column_statistics, joint_watch, score_statistics


def influences(residual, exposure, weights, strata, labels, n_groups):
    """ψ (K, G) of one labelling, from its definition."""
    psi = np.zeros((len(labels), n_groups))
    for k in range(len(labels)):
        mine = strata == strata[k]
        for g in range(n_groups):
            share = exposure[mine & (labels == g)].sum(axis=0) / exposure[mine].sum(axis=0)
            psi[k, g] = (weights * ((labels[k] == g) - share) * residual[k]).sum()
    return psi


def problem(seed, n_groups, n_strata):
    rng = np.random.default_rng(seed)
    residual, exposure = rng.normal(size=(14, 3)), rng.uniform(0.2, 2.0, (14, 3))
    strata = np.arange(14) % n_strata
    labels = np.array([rng.permutation(np.arange(14) // n_strata % n_groups) for _ in range(5)])
    return residual, exposure, strata, labels


@pytest.mark.parametrize(("n_groups", "n_strata"), [(2, 1), (2, 3), (3, 1), (4, 2)])
def test_the_statistic_is_a_quadratic_form_of_influences(n_groups, n_strata):
    residual, exposure, strata, labels = problem(1, n_groups, n_strata)
    weights = np.array([1.0, 0.6, 0.2])
    found = score_statistics(residual, exposure, weights, strata, labels, n_groups)
    trend = np.array([0.0, 1.0, 5.0, 7.0])[:n_groups]
    along = score_statistics(residual, exposure, weights, strata, labels, n_groups, trend)
    for labelling, value, directed in zip(labels, found, along, strict=True):
        psi = influences(residual, exposure, weights, strata, labelling, n_groups)
        total = psi.sum(axis=0)
        sign = np.sign(total[0]) if n_groups == 2 else 1.0
        assert_allclose(value, sign * total @ np.linalg.pinv(psi.T @ psi) @ total, rtol=1e-8)
        one = psi @ trend
        assert_allclose(directed, np.sign(one.sum()) * one.sum() ** 2 / (one**2).sum(), rtol=1e-8)


@pytest.mark.parametrize(("n_groups", "n_strata"), [(2, 1), (3, 2)])
def test_the_variance_does_not_fall_below_the_least(n_groups, n_strata):
    residual, exposure, strata, labels = problem(3, n_groups, n_strata)
    weights, trend = np.array([1.0, 0.6, 0.2]), np.array([0.0, 1.0, 5.0])[:n_groups]
    args = residual, exposure, weights, strata, labels, n_groups, trend
    for size in (1e-6, 1e6):
        least = size * np.random.default_rng(0).uniform(1, 2, residual.shape)
        found = score_statistics(*args, least)
        for labelling, value in zip(labels, found, strict=True):
            one = influences(residual, exposure, weights, strata, labelling, n_groups) @ trend
            variance = sum(
                (influences(np.eye(3)[[b] * 14], exposure, weights, strata, labelling, n_groups)
                 @ trend) ** 2 @ least[:, b]
                for b in range(3)
            )  # fmt: skip
            expected = one.sum() ** 2 / max((one**2).sum(), variance)
            assert_allclose(value, np.sign(one.sum()) * expected, rtol=1e-8)


@pytest.mark.parametrize(("n_groups", "n_strata"), [(2, 1), (3, 2)])
def test_columns_by_themselves_are_the_same_form(n_groups, n_strata):
    residual, exposure, strata, labels = problem(2, n_groups, n_strata)
    found = column_statistics(residual, exposure, strata, labels, n_groups)
    for b in range(3):
        alone = score_statistics(
            residual[:, [b]], exposure[:, [b]], np.ones(1), strata, labels, n_groups
        )
        assert_allclose(found[:, b], np.abs(alone), rtol=1e-8)


def test_time_counts_while_groups_are_watched_together():
    watched = np.array([[2.0, 0.0, 1.0], [2.0, 3.0, 0.0], [0.0, 3.0, 3.0], [4.0, 0.0, 0.0]])
    labels = np.array([[0, 0, 1, 1]])
    # 8 units shared 4 : 4; 6 shared 3 : 3; 4 shared 1 : 3
    expected = [8 * 2 / 4, 6 * 2 / 4, 4 * 2 * 3 / 16]
    assert_allclose(joint_watch(watched, np.zeros(4, dtype=int), labels, 2)[0], expected)
    # strata by themselves: only the first bin has two groups in one of them
    apart = joint_watch(watched, np.array([0, 1, 1, 0]), labels, 2)[0]
    assert_allclose(apart, [6 * 2 * 2 * 4 / 36, 6 * 2 / 4, 0.0])


def test_the_statistic_is_the_robust_log_rank_score():
    # everybody watched all the time, one bin: U² / Σψ², with ψ the centred weighted residual
    rng = np.random.default_rng(4)
    n = 12
    count = rng.poisson(1.0, n).astype(float)
    scores = subject_scores(np.zeros(n), np.ones(n), count, np.ones(n), np.arange(n), n)
    groups = (np.argsort(np.argsort(count, kind="stable")) > 5).astype(np.intp)
    psi = ((groups == 0) - 0.5) * (count - count.mean())
    found = score_statistics(
        scores.residual, scores.exposure, np.ones(1), scores.strata, groups[None], 2
    )
    assert_allclose(found[0], np.sign(psi.sum()) * psi.sum() ** 2 / (psi**2).sum(), rtol=1e-9)


def test_rounding_is_no_difference():
    # counts of one interval for all say nothing about early and late
    rng = np.random.default_rng(4)
    n, groups = 40, np.arange(40)[None] % 2
    count = rng.poisson(3.0, n).astype(float)
    scores = subject_scores(np.zeros(n), np.ones(n), count, np.ones(n), np.arange(n), n)
    assert len(scores.edges) > 3
    weights = scores.time_weights("crossing")
    args = scores.residual, scores.exposure, weights, scores.strata
    assert score_statistics(*args, groups, 2)[0] == 0.0
    assert score_statistics(*args, np.arange(40)[None] % 3, 3)[0] == 0.0


def test_groups_may_be_named_in_any_order():
    panel = random_panel(5, n_subjects=18)
    scores = subject_scores(
        panel.start, panel.stop, panel.count.astype(float), panel.exposure, panel.subject_index, 18
    )
    groups = np.random.default_rng(0).integers(0, 3, 18)
    args = scores.residual, scores.exposure, scores.time_weights("late"), scores.strata
    one = score_statistics(*args, groups[None], 3)
    for names in ([1, 2, 0], [2, 1, 0]):
        assert_allclose(score_statistics(*args, np.array(names)[groups][None], 3), one, rtol=1e-8)
