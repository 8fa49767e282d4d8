"""Simulated trials have the moments, the visits and the drop-out that their design says."""

import numpy as np
import pytest
from trial_designs import design

from gp4c.analysis.planning.rate_ratio_formula import expected_events, observed_means
from gp4c.analysis.planning.simulated_trial import draw_trial, relabellings_above
from tolerances import STANDARD_ERRORS

N = 20_000


def totals_of(trial):
    return np.bincount(trial.subject, trial.count, len(trial.second))


@pytest.mark.parametrize(("variance", "dispersion"), [(0.0, 1.0), (0.5, 1.0), (0.5, 3.0)])
def test_totals_have_the_mean_and_variance_of_the_formula(variance, dispersion, rng):
    plan = design(frailty_variance=variance, dispersion=dispersion, visits=4)
    trial = draw_trial(plan, N, 0.5, rng)
    for second, mean in ((False, 4.8), (True, 2.4)):
        totals = totals_of(trial)[trial.second == second]
        expected = mean * dispersion + variance * mean**2
        assert abs(totals.mean() - mean) < STANDARD_ERRORS * np.sqrt(expected / N)
        spread = (totals - mean) ** 2
        assert abs(spread.mean() - expected) < STANDARD_ERRORS * spread.std() / np.sqrt(N)


def test_counts_of_a_subject_share_its_frailty_alone(rng):
    trial = draw_trial(design(frailty_variance=0.5, dispersion=3.0, visits=2), N, 1.0, rng)
    first, second = trial.count.reshape(-1, 2).T
    # covariance v μ₁μ₂ with μ = 2.4 each: the bursts of the two intervals are independent
    product = (first - 2.4) * (second - 2.4)
    assert abs(product.mean() - 0.5 * 2.4**2) < STANDARD_ERRORS * product.std() / np.sqrt(2 * N)


def test_last_visits_are_spread_as_the_formula_says(rng):
    plan = design(drop_out=0.4, visits=4)
    trial = draw_trial(plan, N, 1.0, rng)
    visits = np.bincount(trial.subject, minlength=2 * N)
    chance, reached = observed_means(plan)
    found = np.bincount(visits, minlength=5) / (2 * N)
    assert np.all(np.abs(found - chance) < STANDARD_ERRORS * np.sqrt(chance / (2 * N)))
    assert reached[-1] == pytest.approx(4.8)
    events = expected_events(plan, N, 1.0)
    assert abs(trial.count.sum() - events) < 0.02 * events


def test_visits_that_move_keep_their_order_and_the_last_its_time(rng):
    plan = design(jitter=1.0, visits=5)
    trial = draw_trial(plan, 50, 1.0, rng)
    stop = trial.stop.reshape(-1, 5)
    assert np.all(np.diff(stop, axis=1) > 0)
    assert np.all(stop[:, -1] == 24.0)
    assert np.abs(stop - plan.visit_times()).max() > 2.0
    assert np.array_equal(trial.start.reshape(-1, 5)[:, 1:], stop[:, :-1])


def test_arms_and_strata_are_as_large_as_planned(rng):
    plan = design(allocation=1.5, strata=(0.5, 1.0, 4.0))
    trial = draw_trial(plan, 20, 0.5, rng)
    assert np.bincount(trial.second).tolist() == [20, 30]
    assert np.bincount(trial.stratum[~trial.second]).tolist() == [7, 7, 6]
    assert np.bincount(trial.stratum[trial.second]).tolist() == [10, 10, 10]


def test_a_curve_puts_events_where_it_is_high(rng):
    from dataclasses import replace

    plan = replace(design(visits=2), times=(0.0, 12.0, 24.0), cumulative=(0.0, 4.0, 4.8))
    trial = draw_trial(plan, 5000, 1.0, rng)
    early = trial.count[trial.stop == 12.0].mean()
    assert early / trial.count[trial.stop == 24.0].mean() == pytest.approx(5.0, rel=0.1)


def test_a_trial_depends_on_its_number_and_the_seed_alone():
    plan = design(drop_out=0.2)
    found = [relabellings_above(plan, 20, 0.5, 1, k) for k in range(6)]
    assert [relabellings_above(plan, 20, 0.5, 1, k) for k in (5, 0)] == [found[5], found[0]]
    assert found != [relabellings_above(plan, 20, 0.5, 2, k) for k in range(6)]


def test_a_trial_that_everybody_leaves_at_once_shows_nothing():
    plan = design(drop_out=1.0, visits=1)
    assert relabellings_above(plan, 10, 0.5, 0, 0) == plan.n_permutations
