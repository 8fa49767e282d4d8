"""The fast permutation test against the package's own, and against full enumeration."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from classical_panels import random_panel
from gp4c.analysis.permutation import (
    bin_weights,
    permutation_p_value,
    statistics,
    subject_scores,
)
from gp4c.analysis.planning.two_arm_test import n_above, score_and_variance, studentised
from tolerances import STANDARD_ERRORS


def scores_of(panel):
    return subject_scores(
        panel.start, panel.stop, panel.count.astype(float), panel.exposure,
        panel.subject_index, panel.n_subjects,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["level", "curve"])
def test_sums_over_subjects_give_the_statistic_of_the_package(kind, rng):
    panel = random_panel(3, n_subjects=25, gaps=True, exposure=True)
    scores = scores_of(panel)
    labels = rng.permuted(np.tile(np.arange(panel.n_subjects) % 3 == 0, (50, 1)), axis=1)
    weights = bin_weights(scores.edges, scores.rate, kind)
    slow = statistics(scores, np.where(labels, 0, 1), weights)
    fast = studentised(*score_and_variance(scores, labels.astype(float), kind))
    assert_allclose(fast, slow, rtol=1e-8)


@pytest.mark.parametrize("kind", ["level", "curve"])
def test_the_p_value_is_that_of_compare(kind):
    scores = scores_of(random_panel(5, n_subjects=30))
    first = np.arange(30) < 12
    above = n_above([(scores, first)], kind, 199, np.random.default_rng(1))
    _, p_value = permutation_p_value(
        scores, np.where(first, 0, 1), kind=kind, n_permutations=199, rng=np.random.default_rng(1)
    )
    assert (1 + above) / 200 == pytest.approx(p_value, abs=1e-12)


def test_labels_move_within_strata_only():
    parts = [scores_of(random_panel(seed, n_subjects=5)) for seed in (1, 2)]

    def statistic(*first_arms):
        score, variance = 0.0, 0.0
        for scores, members in zip(parts, first_arms, strict=True):
            labels = np.isin(np.arange(5), members).astype(float)[None]
            u, v = score_and_variance(scores, labels, "level")
            score, variance = score + u, variance + v
        return studentised(score, variance)[0]

    pairs = list(combinations(range(5), 2))
    values = np.array([statistic(*chosen) for chosen in product(pairs, repeat=2)])
    share = np.mean(values >= statistic((0, 2), (0, 2)) * (1 - 1e-9))
    n, first = 20_000, np.isin(np.arange(5), (0, 2))
    drawn = n_above([(s, first) for s in parts], "level", n, np.random.default_rng(0)) / n
    assert 0 < share < 1
    assert abs(drawn - share) < STANDARD_ERRORS * np.sqrt(share * (1 - share) / n)


def test_a_stratum_with_one_arm_only_changes_nothing():
    scores, alone = (scores_of(random_panel(seed, n_subjects=20)) for seed in (1, 2))
    first = np.arange(20) < 10
    pair = [(scores, first), (alone, np.zeros(20, dtype=bool))]
    found = n_above(pair, "level", 99, np.random.default_rng(3))
    assert found == n_above(pair[:1], "level", 99, np.random.default_rng(3))


def test_without_events_no_labelling_stands_out():
    panel = random_panel(4, n_subjects=12)
    empty = subject_scores(
        panel.start, panel.stop, np.zeros(panel.n_intervals), panel.exposure,
        panel.subject_index, panel.n_subjects,
    )  # fmt: skip
    assert n_above([(empty, np.arange(12) < 6)], "level", 49, np.random.default_rng(0)) == 49
