"""Events in bursts: counts are a negative-binomial process, whatever the visits.

Seeds are fixed; each threshold would be missed by a correct program for fewer than one seed in
1,000 (p-values) or one in 15,000 (4 standard errors).
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import gp4c
from gp4c.data.simulate.burst_sizes import bursts_per_event, spread_bursts
from gp4c.exceptions import PanelDataError

RARE = 1e-3
STANDARD_ERRORS = 4.0


def counts(n_intervals, *, phi=3.0, rate=0.1, n_subjects=4000, **options):
    """Counts on even intervals of (0, 60], one row per subject."""
    panel, events = gp4c.simulate_panel(
        rate, n_subjects=n_subjects, n_intervals=n_intervals, visits="fixed", bursts=phi, **options
    )
    assert panel.n_events == events.n_events
    return panel.count.reshape(n_subjects, n_intervals)


def p_value(count, mean, phi):
    """Chi-square test of counts against the negative binomial, the tail in one cell."""
    law = stats.nbinom(mean / phi, 1 / (1 + phi))
    top = int(law.isf(5 / count.size))
    observed = np.bincount(np.minimum(count.ravel(), top), minlength=top + 1)
    expected = np.append(law.pmf(np.arange(top)), law.sf(top - 1)) * count.size
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("phi", [0.3, 3.0, 20.0])
def test_moments_are_those_of_the_law(phi):
    count = counts(1, phi=phi, n_subjects=20_000, random_state=1).ravel()
    law = stats.nbinom(6 / phi, 1 / (1 + phi))
    mean, variance, excess = law.stats("mvk")
    assert_allclose([mean, variance], [6.0, 6.0 * (1 + phi)])
    n = len(count)
    assert abs(count.mean() - mean) < STANDARD_ERRORS * np.sqrt(variance / n)
    error = variance * np.sqrt((excess + 2) / n)
    assert abs(count.var() - variance) < STANDARD_ERRORS * error


@pytest.mark.parametrize("n_intervals", [1, 2, 6])
def test_a_split_interval_has_parts_of_the_same_law(n_intervals):
    count = counts(n_intervals, random_state=2)
    assert p_value(count, 6 / n_intervals, 3.0) > RARE
    assert p_value(count.sum(axis=1), 6.0, 3.0) > RARE


def test_parts_of_an_interval_are_independent():
    count = counts(2, n_subjects=20_000, random_state=3)
    r = np.corrcoef(count.T)[0, 1]
    assert abs(r) < STANDARD_ERRORS / np.sqrt(len(count))


def test_frailty_adds_its_variance():
    # given υ the variance is 4 υ 6; over υ ~ Gamma(2, 2) it is 4 · 6 + 36/2
    count = counts(1, frailty=0.5, n_subjects=20_000, random_state=4).ravel()
    assert_allclose(count.mean(), 6.0, rtol=0.05)
    assert_allclose(count.var(), 24 + 18, rtol=0.1)


def test_events_of_a_burst_share_their_time():
    _, events = gp4c.simulate_panel(0.5, n_subjects=300, bursts=4.0, random_state=5)
    both = np.stack([events.subject_index, events.time], axis=1)
    _, sizes = np.unique(both, axis=0, return_counts=True)
    law = stats.logser(0.8)
    assert_allclose(law.mean(), 1 / bursts_per_event(4.0))
    assert abs(sizes.mean() - law.mean()) < STANDARD_ERRORS * law.std() / np.sqrt(len(sizes))
    again = gp4c.RecurrentEvents.from_frame(events.to_frame(), start="start", stop="stop")
    assert_array_equal(again.time, events.time)


def test_sizes_go_to_the_subjects_of_their_bursts():
    time, n_events = spread_bursts(
        np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), 50.0, np.random.default_rng(0)
    )
    size = np.random.default_rng(0).logseries(50 / 51, 3)
    assert_array_equal(time, np.repeat([1.0, 2.0, 3.0], size))
    assert_array_equal(n_events, [size[:2].sum(), 0, size[2]])


def test_a_seed_fixes_the_data_and_no_bursts_leave_the_stream_as_it_was():
    once, again = (counts(3, random_state=6) for _ in range(2))
    assert_array_equal(once, again)
    assert not np.array_equal(once, counts(3, random_state=7))
    plain, _ = gp4c.simulate_panel("square_wave", frailty=0.5, dropout=0.01, random_state=8)
    for none in (None, 0, 0.0):
        same, _ = gp4c.simulate_panel(
            "square_wave", frailty=0.5, dropout=0.01, bursts=none, random_state=8
        )
        assert_array_equal(same.count, plain.count)
        assert_array_equal(same.stop, plain.stop)
    with_bursts, _ = gp4c.simulate_panel(
        "square_wave", frailty=0.5, dropout=0.01, bursts=2.0, random_state=8
    )
    assert_array_equal(with_bursts.stop, plain.stop)


def test_a_generator_is_left_where_it_was_without_bursts():
    one, other = np.random.default_rng(9), np.random.default_rng(9)
    gp4c.simulate_panel(0.1, n_subjects=3, random_state=one)
    other.spawn(4)
    assert one.spawn(1)[0].random() == other.spawn(1)[0].random()


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf, 1e9, "two", True])
def test_wrong_bursts_are_named(wrong):
    with pytest.raises(PanelDataError, match="bursts must be φ, a number from 0"):
        gp4c.simulate_panel(0.1, n_subjects=3, bursts=wrong)
