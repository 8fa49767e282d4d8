"""Inverted tests: ratios known from theory, agreement with the test, coverage, edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.analysis.groups import inversion
from gp4c.analysis.groups.inversion import ShiftedTest
from gp4c.analysis.groups.panel_test import PanelTest


def shifted(count, groups, exposure=None, **options):
    n = len(count)
    rows = (
        np.zeros(n), np.ones(n), np.asarray(count, dtype=float),
        np.ones(n) if exposure is None else exposure, np.arange(n),
    )  # fmt: skip
    groups = np.asarray(groups)
    direction = options.pop("direction", np.array([0.0, 1.0]))
    return ShiftedTest(rows, groups, np.zeros(n, dtype=np.intp), None, direction, **options)


def test_the_estimate_is_the_ratio_of_rates():
    # one interval for everybody, Poisson: the score is zero at the ratio of mean counts
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 200)
    count = rng.poisson(np.where(groups == 0, 4.0, 2.0))
    means = [count[groups == g].mean() for g in (0, 1)]
    test = shifted(count, groups)
    assert_allclose(np.exp(test.estimate()), means[1] / means[0], rtol=0.01)
    assert test.p_value(test.estimate()) > 0.98


def test_the_interval_is_that_of_poisson_counts_in_large_samples():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], 300)
    count = rng.poisson(np.where(groups == 0, 3.0, 2.0))
    events = [count[groups == g].sum() for g in (0, 1)]
    low, high = shifted(count, groups, n_permutations=1999).interval(0.95)
    error = np.sqrt(1 / events[0] + 1 / events[1])
    assert_allclose((high - low) / (2 * 1.96 * error), 1.0, atol=0.1)
    assert_allclose((low + high) / 2, np.log(events[1] / events[0]), atol=0.2 * error)


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_intervals_hold_the_true_ratio(ratio):
    # frailty variance 0.5 and variance 3 times the mean; 25 per arm. 300 trials: 3 errors of 0.013
    groups, held = np.repeat([0, 1], 25), 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        mean = np.where(groups == 0, 3.0, 3.0 * ratio) * rng.gamma(2.0, 0.5, 50)
        test = shifted(rng.negative_binomial(mean / 2.0, 1 / 3), groups, n_permutations=199)
        held += test.p_value(np.log(ratio)) > 0.05
    assert abs(held / 300 - 0.95) < 0.039


def test_intervals_have_no_end_where_the_data_give_none():
    groups = np.repeat([0, 1], 8)
    none = shifted(np.zeros(16), groups).interval(0.95)
    assert none == (-np.inf, np.inf)
    assert np.isnan(shifted(np.zeros(16), groups).estimate())
    one_sided = shifted(np.where(groups == 0, 3, 0), groups).interval(0.95)
    assert one_sided[0] == -np.inf
    assert one_sided[1] < 0
    # no event against 24: up to 3.7/24 are not excluded by Poisson counts
    assert one_sided[1] > np.log(0.1)
    few = shifted([1, 2, 0, 1], [0, 0, 1, 1]).interval(0.95)  # six labellings: p ≥ 1/3 or so
    assert few == (-np.inf, np.inf)


def test_many_subjects_need_no_permutations(monkeypatch):
    rng = np.random.default_rng(2)
    groups = np.repeat([0, 1], 150)
    count = rng.poisson(np.where(groups == 0, 3.0, 2.0) * rng.gamma(2.0, 0.5, 300))
    test = shifted(count, groups)
    permuted, p_value = test.interval(0.9), test.p_value(0.0)
    monkeypatch.setattr(inversion, "_MOST_LABELS", 0)
    assert_allclose(test.interval(0.9), permuted, atol=0.01)
    assert test.p_value(0.0) == p_value


def test_ratios_that_the_law_keeps_are_not_permuted(monkeypatch):
    # p is the larger of two, so that the interval is the same to the last digit
    rng = np.random.default_rng(4)
    groups = np.repeat([0, 1], 40)
    count = rng.poisson(np.where(groups == 0, 3.0, 2.0) * rng.gamma(2.0, 0.5, 80))
    test, permute, asked, runs = (
        shifted(count, groups, n_permutations=199),
        ShiftedTest.p_value,
        [],
        [],
    )

    def p_value(self, delta, enough=1.0):
        asked.append(delta)
        return permute(self, delta)

    monkeypatch.setattr(ShiftedTest, "p_value", p_value)
    every = test.interval(0.95)
    monkeypatch.setattr(ShiftedTest, "p_value", permute)
    run = inversion.permutation_test
    monkeypatch.setattr(
        inversion, "permutation_test", lambda *a, **k: (runs.append(1), run(*a, **k))[1]
    )
    assert test.interval(0.95) == every
    assert len(runs) < 0.8 * len(asked)


def test_exposure_is_part_of_the_rate():
    rng = np.random.default_rng(3)
    groups = np.repeat([0, 1], 60)
    exposure = np.where(groups == 0, 1.0, 4.0)
    count = rng.poisson(3.0 * exposure)
    low, high = shifted(count, groups, exposure, n_permutations=499).interval(0.99)
    assert low < 0 < high


def trial(seed=1):
    dose = np.repeat([0.0, 5.0, 10.0], 20)
    return gp4c.simulate_panel(
        0.4, window=(0, 10), n_subjects=60, n_intervals=3, random_state=seed,
        covariates={"dose": dose, "centre": np.tile(["x", "y"], 30)},
        coefficients={"dose": -0.06, "centre": {"y": 1.5}},
    )[0]  # fmt: skip


def test_a_trend_has_a_factor_per_unit_of_the_score():
    test = PanelTest.of(trial(), "dose", test="trend", strata="centre", n_permutations=999)
    factor, low, high = test.trend_interval(0.95)
    assert low < np.exp(-0.06) < high
    assert low < factor < high
    assert (low <= 1 <= high) == (test.overall.p_value > 0.05)


def test_the_ratio_of_a_pair_turns_round_with_the_pair():
    test = PanelTest.of(trial(), "dose", n_permutations=199)
    low, high = test.interval(0.9, 0, 2)
    back = test.interval(0.9, 2, 0)
    # ends are found to 0.001, and the weights of subjects depend on the unit of exposure
    assert_allclose([1 / back[1], 1 / back[0]], [low, high], rtol=5e-3)
    assert_allclose(test.ratio(0, 2) * test.ratio(2, 0), 1.0, rtol=1e-4)
