"""A fit checks itself: size and power by simulation, and the real panels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2, multinomial

import gp4c
from gp4c import HomogeneousPoisson
from gp4c.analysis.fit_checks import (
    MeanCheck,
    check_fit,
    mean_against_npmle,
)
from gp4c.exceptions import OutsideWindowError
from gp4c.posterior.within_subjects import WithinDispersion, within_subject_dispersion

pytestmark = pytest.mark.filterwarnings("ignore::gp4c.exceptions.OverdispersionWarning")


def simulated(seed, *, phi=None, n_subjects=50, intensity=0.2, **options):
    return gp4c.simulate_panel(
        intensity, n_subjects=n_subjects, n_intervals=8, frailty=1.0, bursts=phi,
        random_state=seed, **options,
    )[0]  # fmt: skip


def arm(name, label):
    panel = gp4c.load_dataset(name)
    return panel.where(**{panel.covariates.columns[0]: label})


# -- dispersion within subjects -----------------------------------------------------------------


def test_the_statistic_is_pearsons():
    count = np.array([3.0, 1.0, 0.0, 2.0, 2.0, 0.0, 0.0])
    expected = np.array([1.0, 2.0, 1.0, 5.0, 5.0, 4.0, 4.0])
    subject = np.array([0, 0, 0, 1, 1, 2, 2])
    found = within_subject_dispersion(count, expected, subject, 3)
    by_hand = (3 - 1) ** 2 / 1 + (1 - 2) ** 2 / 2 + (0 - 1) ** 2 / 1
    assert found.degrees == 3  # the subject without events says nothing
    assert_allclose(found.ratio, by_hand / 3)
    by_hand = (4 + 1 + 1) / (1 * 3 / 4 + 2 / 2 + 1 * 3 / 4 + 2 * 2 / 2)
    assert_allclose(found.pooled, by_hand)
    assert found.fitted == found.pooled_fitted == 1.0


def test_the_p_value_is_that_of_the_multinomial():
    count, share = np.array([5, 0, 1]), np.array([0.2, 0.5, 0.3])
    found = within_subject_dispersion(
        count.astype(float), 7 * share, np.zeros(3, int), 1, n_replicates=20_000
    )
    every = np.array([(a, b, 6 - a - b) for a in range(7) for b in range(7 - a)])
    x2 = ((every - 6 * share) ** 2 / (6 * share)).sum(axis=1)
    p = multinomial(6, share).pmf(every)
    assert_allclose(
        found.p_value, p[x2 >= x2[(every == count).all(axis=1)] - 1e-9].sum(), atol=0.004
    )
    assert_allclose((p * x2).sum(), 2)  # what the ratio is divided by
    squares = ((every - 6 * share) ** 2).sum(axis=1)
    assert_allclose((p * squares).sum(), (6 * share * (1 - share)).sum())
    larger = squares >= squares[(every == count).all(axis=1)] - 1e-9
    assert_allclose(found.pooled_p_value, p[larger].sum(), atol=0.004)


def test_many_events_are_chi_square():
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(20), 5)
    expected = rng.uniform(50, 200, 100)
    count = rng.poisson(expected).astype(float)
    found = within_subject_dispersion(count, expected, subject, 20)
    assert found.degrees == 80
    assert_allclose(found.p_value, chi2.sf(80 * found.ratio, 80), atol=0.06)


def test_effects_and_units_do_not_matter_without_bursts():
    rng = np.random.default_rng(1)
    subject, expected = np.repeat(np.arange(10), 4), rng.gamma(2.0, 1.0, 40)
    count = rng.poisson(3 * expected).astype(float)
    one = within_subject_dispersion(count, expected, subject, 10)
    factor = rng.gamma(1.0, 1.0, 10)[subject]
    other = within_subject_dispersion(count, 100 * factor * expected, subject, 10)
    assert_allclose(one.ratio, other.ratio)
    assert_allclose(one.p_value, other.p_value, atol=0.01)


def test_the_fitted_dispersion_is_that_of_the_dirichlet_multinomial():
    # X² of a Dirichlet-multinomial has mean (J − 1)(M + A)/(1 + A), A the sum of its parameters
    expected = np.array([1.0, 2.0, 0.5, 1.5])
    count = np.array([9.0, 0.0, 1.0, 2.0])
    found = within_subject_dispersion(
        count, expected, np.zeros(4, int), 1, excess=2.0, effects=np.array([1.4]),
        n_replicates=40_000,
    )  # fmt: skip
    total, strength = 12.0, 1.4 * 5.0 / 2.0
    assert_allclose(found.fitted, (total + strength) / (1 + strength), rtol=0.02)
    assert_allclose(found.pooled_fitted, (total + strength) / (1 + strength), rtol=0.02)


def test_nothing_to_compare_and_events_where_none_can_be():
    one = within_subject_dispersion(np.array([3.0]), np.ones(1), np.zeros(1, int), 1)
    assert (one.ratio, one.p_value, one.degrees, one.is_bad) == (1.0, 1.0, 0, False)
    none = within_subject_dispersion(np.zeros(4), np.ones(4), np.array([0, 0, 1, 1]), 2)
    assert none.degrees == 0
    never = within_subject_dispersion(
        np.array([1.0, 2.0, 0.0]), np.array([0.0, 1.0, 2.0]), np.zeros(3, int), 1
    )
    assert never.ratio == np.inf
    assert never.is_bad


def test_a_small_excess_is_no_alarm():
    assert not WithinDispersion(1.2, 1.0, 0.001, 1.2, 1.0, 0.001, 10_000).is_bad
    assert not WithinDispersion(2.0, 1.0, 0.02, 2.0, 1.0, 0.02, 10).is_bad
    assert WithinDispersion(2.0, 1.0, 0.002, 1.1, 1.0, 0.4, 100).is_bad
    assert WithinDispersion(1.1, 1.0, 0.4, 2.0, 1.0, 0.002, 100).excess == 2.0


# -- size and power -------------------------------------------------------------------------------


def test_false_alarms_are_rare_and_bursts_are_seen():
    n = 40
    found = {
        phi: [
            check_fit(HomogeneousPoisson(effect="gamma").fit(panel), panel)
            for panel in (simulated(seed, phi=phi) for seed in range(n))
        ]
        for phi in (None, 3.0)
    }
    # 40 sets at 0.01 each: more than 4 alarms in fewer than one of 1,000 campaigns
    assert sum(check.within.is_bad for check in found[None]) <= 4
    assert sum(check.over_time.is_bad for check in found[None] + found[3.0]) <= 6
    assert sum(check.mean.is_bad for check in found[None]) <= 4
    assert sum(check.within.is_bad for check in found[3.0]) == n


def test_p_values_are_uniform_where_the_law_is_right():
    values = [
        check_fit(HomogeneousPoisson(effect="gamma").fit(panel), panel).within.p_value
        for panel in (simulated(100 + seed) for seed in range(60))
    ]
    assert 0.35 < np.mean(values) < 0.65


def test_a_fit_with_bursts_passes_where_there_are_bursts():
    bad = 0
    for seed in range(20):
        panel = simulated(seed, phi=3.0)
        model = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
        check = check_fit(model, panel)
        assert check.within.fitted > 1.5
        bad += check.within.is_bad
    assert bad <= 2


def test_a_rate_that_changes_is_seen_over_time():
    panel = simulated(3, intensity=lambda t: 0.05 + 0.01 * t, phi=1.0, n_subjects=80)
    model = HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    check = check_fit(model, panel)
    assert check.over_time.is_bad
    assert "fit a rate that varies over time, GP4C()" in str(check)
    table = check.over_time.table
    assert table["ratio"].iloc[0] < 0.7
    assert table["ratio"].iloc[-1] > 1.2
    assert_allclose(table["observed"].sum(), panel.n_events)
    assert_allclose(table["expected"].sum(), panel.n_events)


# -- real panels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label"), [("nausea", "A"), ("nausea", "B"), ("bladder", "A"), ("bladder", "B")]
)
def test_real_panels_ask_for_bursts(name, label):
    panel = arm(name, label)
    check = check_fit(HomogeneousPoisson(effect="gamma").fit(panel), panel)
    assert check.within.is_bad
    assert "within subjects as the fitted model allows" in check.warnings[0]
    assert check.warnings[0].endswith("fit with bursts=True")
    frame = check.to_frame()
    assert list(frame.columns) == ["check", "observed", "fitted", "p_value", "passed"]
    assert not frame["passed"][0]
    with_bursts = check_fit(HomogeneousPoisson(effect="gamma", bursts=True).fit(panel), panel)
    assert with_bursts.within.excess < 0.7 * check.within.excess


def test_the_placebo_arm_passes_with_bursts():
    panel = arm("bladder", "B")
    check = check_fit(HomogeneousPoisson(effect="gamma", bursts=True).fit(panel), panel)
    assert check.warnings == ()
    assert str(check) == "The fit passes its checks."


def test_a_gaussian_process_can_be_checked():
    panel = arm("bladder", "A")
    model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
    check = check_fit(model, panel)
    assert check.within.is_bad
    assert check.mean.low < check.mean.model < check.mean.high


# -- the mean, and what is refused ----------------------------------------------------------------


def test_the_mean_is_compared_where_a_quarter_is_seen():
    panel = arm("bladder", "B")
    model = HomogeneousPoisson().fit(panel)
    found = mean_against_npmle(model, panel)
    last = np.array([panel.stop[panel.subject_index == k].max() for k in range(panel.n_subjects)])
    assert np.mean(last >= found.time) >= 0.25
    assert_allclose(found.npmle, gp4c.NPMLE().fit(panel).cumulative(found.time))
    assert_allclose(found.model, model.cumulative(found.time))
    without_band = mean_against_npmle(gp4c.NPMPLE().fit(panel), panel)
    assert without_band.low is None
    assert not without_band.is_bad


def test_a_mean_outside_its_band_is_said():
    from gp4c.analysis.words.fit_words import warnings_about

    panel = arm("bladder", "B")
    model = HomogeneousPoisson().fit(panel)
    check = check_fit(model, panel)
    off = MeanCheck(43.0, 5.0, 4.0, 6.0, 9.0)
    fine = WithinDispersion(1.0, 1.0, 0.5, 1.0, 1.0, 0.5, 10)
    (said,) = (w for w in warnings_about(model, fine, check.over_time, off) if "mean" in w)
    assert "is 5 (99% band 4 to 6), and 9 by the nonparametric" in said
    assert said.endswith("differences between subjects")


def test_row_order_does_not_matter():
    panel = simulated(5, phi=2.0)
    model = HomogeneousPoisson(effect="gamma").fit(panel)
    order = np.random.default_rng(0).permutation(panel.n_subjects)
    frame = panel.to_frame()
    frame["subject"] = order[frame["subject"].to_numpy() - 1]
    other = gp4c.PanelCounts.from_frame(frame.sample(frac=1.0, random_state=0), window=panel.window)
    one, two = check_fit(model, panel), check_fit(model, other)
    assert one.within == two.within
    assert_allclose(one.over_time.p_value, two.over_time.p_value)


def test_refusals():
    panel = simulated(6)
    model = HomogeneousPoisson(effect="gamma").fit(panel)
    with pytest.raises(ValueError, match="n_bins must be at least 2, not 1"):
        check_fit(model, panel, n_bins=1)
    with pytest.raises(OutsideWindowError):
        check_fit(model, simulated(6, window=(0.0, 90.0)))


def test_few_subjects_are_no_error():
    panel = simulated(7, n_subjects=2)
    check = check_fit(HomogeneousPoisson(effect="gamma").fit(panel), panel)
    assert check.over_time.p_value == 1.0
    assert len(check.over_time.table) == 1
