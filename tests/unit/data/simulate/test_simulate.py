"""Simulated panels against integration, SciPy's distributions and brute force.

Statistical tests have fixed seeds. Each states a threshold that a correct program would miss for
fewer than one seed in 1,000 (p-values) or one in 15,000 (4 standard errors), per comparison.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import gp4c
from gp4c.data.simulate.intensities import SquareWave, gp_squared
from gp4c.data.simulate.simulate_panel import count_between
from gp4c.data.simulate.thinning import events_until, find_envelope
from gp4c.exceptions import PanelDataError

RARE = 1e-3
STANDARD_ERRORS = 4.0


def wavy(time):
    """Rate with a known integral, as a plain callable."""
    return 1 + np.sin(time / 3)


def wavy_integral(time):
    return time + 3 * (1 - np.cos(time / 3))


def totals(panel):
    return np.bincount(panel.subject_index, weights=panel.count, minlength=panel.n_subjects)


# -- the events follow the intensity ------------------------------------------------------------


@pytest.mark.parametrize(
    "rate", [wavy, SquareWave(), gp_squared(random_state=9)], ids=["callable", "wave", "gp"]
)
def test_counts_are_poisson_with_the_integrated_rate(rate):
    n_subjects = 400
    panel, _ = gp4c.simulate_panel(
        rate, n_subjects=n_subjects, n_intervals=24, visits="fixed", random_state=11
    )
    # midpoint rule in steps of 1/1000: exact at the jumps, far below the sampling error elsewhere
    middle = (np.arange(60_000) + 0.5) / 1000
    mean = rate(middle).reshape(24, -1).sum(axis=1) / 1000
    count = panel.count.reshape(n_subjects, 24)
    # sums over subjects: Poisson(400 μ), nearly normal
    z = (count.sum(axis=0) - n_subjects * mean) / np.sqrt(n_subjects * mean)
    assert stats.chi2.sf(np.sum(z**2), 24) > RARE
    # dispersion of single cells: Σ (y − μ)²/μ has mean n and variance Σ (2 + 1/μ)
    cells = ((count - mean) ** 2 / mean).sum()
    spread = np.sqrt(np.sum(n_subjects * (2 + 1 / mean)))
    assert abs(cells - count.size) < STANDARD_ERRORS * spread


@pytest.mark.parametrize("window", [(0.0, 60.0), (7.0, 31.0), (1000.0, 1012.0)])
def test_event_times_follow_the_normalised_cumulative_rate(window):
    _, events = gp4c.simulate_panel(wavy, window=window, n_subjects=300, random_state=4)
    low, high = wavy_integral(np.array(window))
    test = stats.kstest(events.time, lambda t: (wavy_integral(t) - low) / (high - low))
    assert test.pvalue > RARE


def test_gaps_between_events_of_a_subject_are_exponential_in_operational_time():
    # a subject's Λ(t) are points of a unit-rate Poisson process: its gaps are exponential
    _, events = gp4c.simulate_panel(wavy, window=(0, 3000), n_subjects=1, random_state=6)
    gaps = np.diff(wavy_integral(events.time))
    assert stats.kstest(gaps, "expon").pvalue > RARE
    assert abs(stats.spearmanr(gaps[:-1], gaps[1:]).statistic) < STANDARD_ERRORS / np.sqrt(
        len(gaps)
    )


def test_a_spike_between_the_probes_is_found_and_simulated_exactly():
    # a bump a quarter as wide as the distance of probes, at its widest distance from any of them
    distance = 60 / 8192
    centre, width = 30 + distance / 2, distance / 5

    def spiky(time):
        return 1 + 500 * np.exp(-(((time - centre) / width) ** 2) / 2)

    assert find_envelope(spiky, (0.0, 60.0)).height.max() < 0.1 * spiky(centre)
    _, events = gp4c.simulate_panel(spiky, n_subjects=3000, random_state=8)
    share = 500 * width * np.sqrt(2 * np.pi) / (60 + 500 * width * np.sqrt(2 * np.pi))
    near = np.abs(events.time - centre) < 8 * width
    background = 16 * width / 60 * (1 - share)
    test = stats.binomtest(int(near.sum()), len(near), share + background)
    assert test.pvalue > RARE


def test_a_zero_rate_gives_no_events_and_zero_counts():
    panel, events = gp4c.simulate_panel(0.0, n_subjects=3, n_intervals=4)
    assert len(events.time) == 0
    assert_array_equal(panel.count, np.zeros(12))


def test_no_event_falls_where_the_rate_is_zero():
    _, events = gp4c.simulate_panel(lambda t: np.where(t < 30, 0.0, 2.0), random_state=2)
    assert events.time.min() > 30


# -- the panel is the exact censoring of the events ---------------------------------------------


def schemes():
    rng = np.random.default_rng(0)
    ragged = [np.sort(rng.uniform(1, 60, size)) for size in (1, 4, 9, 2, 5)]
    return {
        "dirichlet": "dirichlet",
        "fixed": "fixed",
        "common": np.array([0.0, 5.0, 20.0, 41.5]),
        "ragged": ragged,
        "padded": np.array([[10.0, 20.0, np.nan]] * 4 + [[30.0, np.nan, np.nan]]),
        "callable": lambda rng, n: np.sort(rng.uniform(0.1, 60, (n, 6)), axis=1),
    }


@pytest.mark.parametrize("scheme", schemes())
@pytest.mark.parametrize("dropout", [0.0, 0.03])
def test_the_panel_counts_the_events_between_visits(scheme, dropout):
    panel, events = gp4c.simulate_panel(
        "square_wave", n_subjects=5, visits=schemes()[scheme], dropout=dropout, random_state=3
    )
    counted = [
        sum(
            1
            for subject, time in zip(events.subject_index, events.time, strict=True)
            if subject == own and start < time <= stop
        )
        for own, start, stop in zip(panel.subject_index, panel.start, panel.stop, strict=True)
    ]
    assert_array_equal(panel.count, counted)
    assert panel.n_events == len(events.time)
    for k in range(5):
        own = panel.subject_index == k
        assert panel.start[own][0] == events.start[k] == 0.0
        assert panel.stop[own][-1] == events.stop[k]
        assert_array_equal(panel.start[own][1:], panel.stop[own][:-1])


def test_the_panel_is_what_the_events_censor_to():
    panel, events = gp4c.simulate_panel("square_wave", n_subjects=6, dropout=0.02, random_state=2)
    visits = {k + 1: panel.stop[panel.subject_index == k] for k in range(6)}
    censored = events.to_panel(visits)
    for name in ("subjects", "subject_index", "start", "stop", "count"):
        assert_array_equal(getattr(censored, name), getattr(panel, name))


def test_an_event_at_a_visit_belongs_to_the_interval_that_ends_there():
    index = np.array([0, 0, 1])
    start, stop = np.array([0.0, 1.0, 0.0]), np.array([1.0, 2.0, 2.0])
    time, n_events = np.array([0.5, 1.0, 1.0000001, 0.2]), np.array([3, 1])
    assert_array_equal(count_between(index, start, stop, time, n_events), [2, 1, 1])


def test_search_in_slices_agrees_with_searchsorted():
    rng = np.random.default_rng(1)
    size = rng.integers(0, 9, 200)
    time = np.concatenate([np.sort(rng.integers(0, 6, n) / 2.0) for n in size])
    last = np.cumsum(size)
    end = rng.integers(0, 6, 200) / 2.0
    expected = [
        a + np.searchsorted(time[a:b], t, side="right")
        for a, b, t in zip(last - size, last, end, strict=True)
    ]
    assert_array_equal(events_until(time, last - size, last, end), expected)


# -- visits and follow-up -----------------------------------------------------------------------


def test_dirichlet_widths_are_beta_distributed():
    panel, _ = gp4c.simulate_panel(0.0, n_subjects=800, n_intervals=10, random_state=5)
    share = ((panel.stop - panel.start) / 60).reshape(800, 10)
    assert_allclose(share.sum(axis=1), 1.0)
    for j in (0, 4, 9):  # each share of a Dirichlet(1) of ten is Beta(1, 9)
        assert stats.kstest(share[:, j], stats.beta(1, 9).cdf).pvalue > RARE


def test_fixed_visits_are_even():
    panel, _ = gp4c.simulate_panel(1.0, window=(2, 12), n_subjects=2, n_intervals=5, visits="fixed")
    assert_allclose(panel.stop, [4, 6, 8, 10, 12] * 2)
    assert panel.stop.max() == 12.0


def test_dropout_is_exponential_until_the_window_ends():
    rate, n_subjects = 0.02, 3000
    _, events = gp4c.simulate_panel(0.1, n_subjects=n_subjects, dropout=rate, random_state=7)
    stayed = events.stop == 60.0
    test = stats.binomtest(int(stayed.sum()), n_subjects, np.exp(-rate * 60))
    assert test.pvalue > RARE
    left = stats.truncexpon(60 * rate, scale=1 / rate)
    assert stats.kstest(events.stop[~stayed], left.cdf).pvalue > RARE


@pytest.mark.parametrize(
    ("visits", "message"),
    [
        ("weekly", "'dirichlet', 'fixed', arrays of times or a callable; it is 'weekly'"),
        ([10.0, 70.0], r"in the window \[0, 60\]; subject 1 has 70"),
        ([[1.0, 2.0], [4.0, 3.0]], "increase within a subject; subject 2 goes 4 → 3"),
        ([[1.0], [2.0], [3.0]], "for each of 2 subjects; there are 3"),
        ([[1.0], [np.nan]], "subject 2 has none"),
    ],
)
def test_impossible_visits_are_refused(visits, message):
    with pytest.raises(PanelDataError, match=message):
        gp4c.simulate_panel(1.0, n_subjects=2, visits=visits)


# -- frailty and covariates ---------------------------------------------------------------------


@pytest.mark.parametrize("frailty", [0.4, ("gamma", 2.5)])
def test_gamma_frailty_makes_totals_negative_binomial(frailty):
    alpha, mean = 2.5, 12.0
    panel, _ = gp4c.simulate_panel(
        mean / 60, n_subjects=5000, n_intervals=3, frailty=frailty, random_state=12
    )
    total = totals(panel)
    law = stats.nbinom(alpha, alpha / (alpha + mean))
    edges = law.ppf(np.linspace(0, 1, 11)[1:-1])
    observed = np.histogram(total, np.concatenate([[-0.5], edges + 0.5, [np.inf]]))[0]
    expected = 5000 * np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    assert stats.chisquare(observed, expected).pvalue > RARE


def test_lognormal_frailty_has_mean_one_and_the_right_variance():
    sigma, mean, n_subjects = 0.5, 12.0, 20000
    panel, _ = gp4c.simulate_panel(
        mean / 60,
        n_subjects=n_subjects,
        n_intervals=1,
        frailty=("lognormal", sigma),
        random_state=3,
    )
    total = totals(panel)
    variance = mean + mean**2 * (np.exp(sigma**2) - 1)
    assert abs(total.mean() - mean) < STANDARD_ERRORS * np.sqrt(variance / n_subjects)
    fourth = np.mean((total - total.mean()) ** 4)
    error = np.sqrt((fourth - variance**2) / n_subjects)
    assert abs(total.var(ddof=1) - variance) < STANDARD_ERRORS * error


def test_frailty_may_be_given_or_drawn_by_a_callable():
    weight = np.array([0.0, 1.0, 50.0])
    given, _ = gp4c.simulate_panel(1.0, n_subjects=3, frailty=weight, random_state=1)
    drawn, _ = gp4c.simulate_panel(1.0, n_subjects=3, frailty=lambda rng, n: weight, random_state=1)
    assert_array_equal(given.count, drawn.count)
    assert totals(given)[0] == 0
    assert totals(given)[2] > totals(given)[1]


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame])
def test_covariates_act_log_linearly(kind):
    n_subjects = 3000
    table = kind(
        {"dose": np.arange(n_subjects) % 3, "arm": np.where(np.arange(n_subjects) < 1500, "a", "b")}
    )
    panel, events = gp4c.simulate_panel(
        0.2,
        n_subjects=n_subjects,
        n_intervals=2,
        covariates=table,
        coefficients={"dose": -0.5, "arm": {"b": 0.7}},
        random_state=2,
    )
    assert list(panel.covariates.columns) == ["dose", "arm"]
    assert panel.covariates.equals(events.covariates)
    total = totals(panel)
    for dose in range(3):
        for arm, effect in (("a", 0.0), ("b", 0.7)):
            own = ((panel.covariates.dose == dose) & (panel.covariates.arm == arm)).to_numpy()
            mean = own.sum() * 12 * np.exp(-0.5 * dose + effect)
            assert abs(total[own].sum() - mean) < STANDARD_ERRORS * np.sqrt(mean)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"frailty": -1.0}, "must be positive; it is -1.0"),
        ({"frailty": ("weibull", 2.0)}, "it is \\('weibull', 2.0\\)"),
        ({"frailty": [1.0]}, "for each of 2 subjects"),
        ({"frailty": [1.0, -1.0]}, "not negative; subject 2 has -1"),
        ({"covariates": {"x": [1, 2, 3]}}, "there are 3 rows for 2 subjects"),
        ({"coefficients": {"x": 1.0}}, "no covariate 'x'"),
        ({"covariates": {"x": ["a", "b"]}, "coefficients": {"x": 1.0}}, "'x' is not a number"),
        ({"covariates": {"x": ["a", "b"]}, "coefficients": {"x": {"c": 1}}}, "no level 'c'"),
        ({"covariates": {"x": [1, np.nan]}, "coefficients": {"x": 1.0}}, "'x' has missing"),
        ({"dropout": -0.1}, "dropout must be a rate"),
        ({"n_intervals": 0}, "n_intervals must be at least 1"),
        ({"n_subjects": 0}, "n_subjects must be at least 1"),
        ({"window": (5, 5)}, "window must be finite with t0 < t1"),
    ],
)
def test_impossible_settings_are_refused(changes, message):
    with pytest.raises(PanelDataError, match=message):
        gp4c.simulate_panel(1.0, **{"n_subjects": 2, **changes})


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (lambda t: 1 - t / 30, "not negative; it is -.* at time 30.0"),
        (lambda t: np.where(t < 12, 1.0, np.nan), "finite and not negative; it is nan at time 12"),
        (lambda t: np.ones(3), "one rate per time; 8193 times gave an array of shape"),
        (lambda t: 1.0 if t < 3 else 2.0, "np.vectorize"),
        ("synthetic_d", "there is no intensity 'synthetic_d'"),
    ],
)
def test_badly_behaved_intensities_are_explained(rate, message):
    with pytest.raises(PanelDataError, match=message):
        gp4c.simulate_panel(rate)


def test_an_unbounded_rate_is_called_so():
    # its integral is infinite: candidates near the pole exceed every envelope
    pole = 30 + 60 / 8192 / 2
    with pytest.raises(PanelDataError, match=r"unbounded between times 30 and 30\.0\d+"):
        gp4c.simulate_panel(lambda t: 1 / (t - pole) ** 2, n_subjects=1)


# -- reproducibility ----------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_data():
    first, again, other = (
        gp4c.simulate_panel("synthetic_b", frailty=1.0, dropout=0.01, random_state=seed)
        for seed in (5, 5, 6)
    )
    assert_array_equal(first[0].count, again[0].count)
    assert_array_equal(first[1].time, again[1].time)
    assert len(first[1].time) != len(other[1].time)


def test_a_generator_moves_on():
    rng = np.random.default_rng(1)
    one, two = (gp4c.simulate_panel(1.0, n_subjects=5, random_state=rng)[1] for _ in range(2))
    assert len(one.time) != len(two.time) or not np.allclose(one.time, two.time)


def test_changing_the_frailty_leaves_the_visits_alone():
    plain, _ = gp4c.simulate_panel(1.0, n_subjects=9, random_state=1)
    frail, _ = gp4c.simulate_panel(1.0, n_subjects=9, frailty=0.5, random_state=1)
    assert_array_equal(plain.stop, frail.stop)
    assert not np.array_equal(plain.count, frail.count)


def test_window_unit_and_labels_are_kept():
    panel, events = gp4c.simulate_panel(1.0, window=(1, 9), n_subjects=3, time_unit="months")
    assert panel.window == events.window == (1.0, 9.0)
    assert panel.time_unit == events.time_unit == "months"
    assert_array_equal(panel.subjects, [1, 2, 3])
