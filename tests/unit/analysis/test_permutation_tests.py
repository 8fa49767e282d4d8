"""The permutation test: against full enumeration, joint distributions, and its size."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from classical_panels import random_panel
from gp4c.analysis import permutation
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.analysis.permutation import (
    LabelledStatistics,
    permutation_test,
    statistics,
    subject_scores,
)


def scores_of(panel, strata=None):
    return subject_scores(
        panel.start, panel.stop, panel.count.astype(float), panel.exposure,
        panel.subject_index, panel.n_subjects, strata,
    )  # fmt: skip


def rng(seed=1):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", ["level", "curve"])
def test_few_labellings_are_all_taken(kind):
    scores = scores_of(random_panel(8, n_subjects=10))
    groups = np.array([0] * 4 + [1] * 6)
    every = np.ones((210, 10), dtype=np.intp)
    for row, chosen in zip(every, combinations(range(10), 4), strict=True):
        row[list(chosen)] = 0
    values = statistics(scores, every, kind)
    found = permutation_test(scores, groups, kind=kind, rng=rng())
    assert found.exact
    assert found.n_labellings == 210
    observed = statistics(scores, groups[None], kind)[0]
    assert found.statistic == abs(observed)
    if kind == "curve":  # has no direction
        assert found.p_value == np.mean(values >= observed * (1 - 1e-9))
        return

    def extreme(one):
        """The smaller of two tails; the distance from 0 where two labellings share it."""
        near = 1e-9 * abs(one)
        tail = min(np.mean(values >= one - near), np.mean(values <= one + near))
        return round(tail, 9), -round(abs(one), 9)

    assert found.p_value == np.mean([extreme(one) <= extreme(observed) for one in values])


@pytest.mark.parametrize("kind", ["level", "curve", "any"])
def test_random_permutations_agree_with_all_of_them(kind, monkeypatch):
    scores = scores_of(random_panel(8, n_subjects=10), np.repeat([0, 1], 5))
    groups = np.array([0, 1] * 5)
    exact = permutation_test(scores, groups, kind=kind, rng=rng()).p_value
    monkeypatch.setattr(permutation, "ENUMERATED", 0)
    drawn = [
        permutation_test(scores, groups, kind=kind, n_permutations=99, rng=rng(seed)).p_value
        for seed in range(60)
    ]
    # 60 × 99 permutations; each p has its own (1 + #)/100 instead of #/99
    expected = (1 + 99 * exact) / 100
    assert abs(np.mean(drawn) - expected) < 4 * np.sqrt(exact * (1 - exact) / 5940) + 0.003


def test_any_is_the_smallest_p_value_of_its_parts_judged_by_all_labellings():
    scores = scores_of(random_panel(12, n_subjects=10, level=3.0))
    groups = np.array([0] * 5 + [1] * 5)
    found = permutation_test(scores, groups, kind="any", rng=rng())
    for part, p in found.parts.items():
        kind, when = (part, "even") if part in ("level", "curve") else ("level", part)
        alone = permutation_test(scores, groups, kind=kind, weights=when, rng=rng())
        assert p == alone.p_value
    smallest = min(found.parts.values())
    assert smallest <= found.p_value <= 5 * smallest
    # its own distribution: over all labellings the p-value is never too small
    each = [
        permutation_test(scores, labels, kind="any", rng=rng()).p_value
        for labels in permutation.every_labelling(groups, scores.strata)[::9]
    ]
    assert np.mean(np.array(each) <= 0.1) <= 0.1 + 3 * np.sqrt(0.09 / len(each))


def test_the_next_smallest_p_value_decides_where_the_smallest_are_equal():
    values = np.random.default_rng(4).exponential(size=(3, 20))
    values[:, 7] = values[:, 3]  # one labelling like another
    labelled = LabelledStatistics(
        values[:, 3], values, ("level", "early", "late"), (False,) * 3, True, np.array([[3, 3]])
    )
    _, found = labelled.p_values()
    each = [tuple(sorted(np.mean(values >= one[:, None], axis=1))) for one in values.T]
    assert_allclose(found, [np.mean([other <= mine for other in each]) for mine in each])
    assert labelled.test().p_value == found[3] == found[7]
    assert len(np.unique(found)) == 19  # the smallest alone has only a few values
    assert len({mine[0] for mine in each}) < 12


def test_both_directions_have_the_same_chance_however_unequal_the_groups():
    # twice as many in one group, counts with a long tail: the statistic has a long tail on one side
    n, law = 30, np.random.default_rng(3)
    groups = np.repeat([0, 1], [10, 20])
    found = {1: 0, -1: 0}
    n_trials = 400
    for _ in range(n_trials):
        count = law.poisson(4.0 * law.gamma(1.0, 1.0, n)).astype(float)
        scores = subject_scores(np.zeros(n), np.ones(n), count, np.ones(n), np.arange(n), n)
        if permutation_test(scores, groups, n_permutations=199, rng=law).p_value <= 0.1:
            found[int(np.sign(count[:10].mean() - count[10:].mean()))] += 1
    for each in found.values():  # 5% each, within three binomial errors
        assert abs(each / n_trials - 0.05) < 3 * np.sqrt(0.05 * 0.95 / n_trials)


def test_p_values_are_never_zero_and_depend_on_the_seed_alone():
    scores = scores_of(random_panel(9, n_subjects=30, level=3.0))
    order = np.argsort(scores.residual.sum(axis=1))
    groups = np.zeros(30, dtype=np.intp)
    groups[order[15:]] = 1  # the most different groups there are
    one, other = (
        permutation_test(scores, groups, n_permutations=99, rng=np.random.default_rng(2))
        for _ in range(2)
    )
    assert (one.statistic, one.p_value) == (other.statistic, other.p_value)
    assert one.p_value == 0.01


def test_the_level_of_a_stratum_is_taken_off():
    panel = random_panel(10, n_subjects=20)
    strata, groups = np.repeat([0, 1], 10), np.tile([0, 1], 10)
    factor = np.where(strata == 1, 50.0, 1.0)[panel.subject_index]
    quieter = panel._like(exposure=panel.exposure * factor)  # a fiftieth of the rate
    one, other = (
        permutation_test(scores_of(each, strata), groups, n_permutations=499, rng=rng())
        for each in (panel, quieter)
    )
    assert_allclose(other.statistic, one.statistic, rtol=1e-6)
    assert other.p_value == one.p_value


def test_a_trend_is_found_in_its_direction():
    doses = np.repeat([0.0, 1.0, 2.0], 15)
    panel, _ = gp4c.simulate_panel(
        0.3, window=(0, 10), n_subjects=45, n_intervals=3, random_state=2,
        covariates={"dose": doses}, coefficients={"dose": 0.35},
    )  # fmt: skip
    scores, groups = scores_of(panel), doses.astype(np.intp)
    how = {"kind": "trend", "n_permutations": 1999}
    straight = permutation_test(scores, groups, trend=np.arange(3.0), rng=rng(), **how)
    bent = permutation_test(scores, groups, trend=np.array([0.0, 1.0, 0.0]), rng=rng(), **how)
    assert straight.p_value < 0.01
    assert bent.p_value > 0.05
    # only differences of scores matter, and their unit does not
    other = permutation_test(scores, groups, trend=3.0 - 7.0 * np.arange(3.0), rng=rng(), **how)
    assert_allclose(other.statistic, straight.statistic, rtol=1e-8)
    assert other.p_value == straight.p_value


def null_trials(n_trials):
    """Two arms in eight centres whose rates differ tenfold and whose shares of arms differ."""
    for seed in range(n_trials):
        one = np.random.default_rng(seed)
        centre = np.repeat(np.arange(8), 5)
        share = np.where(centre < 4, 1, 4)  # subjects of arm b among the five of a centre
        arm = (np.tile(np.arange(5), 8) < share).astype(np.intp)
        level = np.where(centre < 4, 0.3, 3.0) * one.gamma(1.0, 1.0, 40)
        count = one.negative_binomial(level, 0.25).astype(float)  # variance 4 times the mean
        yield np.zeros(40), np.ones(40), count, arm, centre


def rejected(n_trials, stratified, kind="level"):
    found = []
    for seed, (start, stop, count, arm, centre) in enumerate(null_trials(n_trials)):
        strata = centre if stratified else None
        scores = subject_scores(start, stop, count, np.ones(40), np.arange(40), 40, strata)
        test = permutation_test(scores, arm, kind=kind, n_permutations=199, rng=rng(seed))
        found.append(test.p_value <= 0.05)
    return np.mean(found)


@pytest.mark.parametrize("kind", ["level", "curve", "any"])
def test_the_size_is_five_percent_where_strata_matter(kind):
    # 400 trials: 4 binomial errors of 0.011
    assert abs(rejected(400, stratified=True, kind=kind) - 0.05) < 0.044


def test_ignored_strata_that_matter_give_false_findings():
    assert rejected(200, stratified=False) > 0.3


def test_the_arms_of_the_bladder_trial_part_and_meet_again():
    panel = gp4c.load_dataset("bladder")
    p = {
        test: PanelTest.of(panel, "treatment", test=test, n_permutations=4999).overall.p_value
        for test in ("level", "curve", "any")
    }
    assert 0.11 < p["level"] < 0.17
    assert p["curve"] < 0.01
    assert p["curve"] < p["any"] < 0.03


def test_the_curve_test_agrees_with_that_of_sun_and_fang_on_the_bladder_trial():
    # Σ over visits of N(t) − Λ(t), with the pooled NPMPLE for Λ, and permuted labels
    panel = gp4c.load_dataset("bladder")
    so_far = np.cumsum(panel.count)
    first = np.searchsorted(panel.subject_index, panel.subject_index)
    so_far = so_far - (so_far - panel.count)[first]
    residual = so_far - gp4c.NPMPLE().fit(panel).cumulative(panel.stop)
    each = np.bincount(panel.subject_index, residual)
    arm = (panel.covariates["treatment"] == "thiotepa").to_numpy(dtype=float)
    centred = each - each.mean()
    labels = rng().permuted(np.tile(arm, (9999, 1)), axis=1)
    p = (1 + (np.abs(labels @ centred) >= abs(arm @ centred)).sum()) / 10_000
    assert p < 0.01
    ours = PanelTest.of(panel, "treatment", test="curve").overall.p_value
    assert ours < 0.01
