"""Diagnostics: laws against SciPy, calibration on data from the model, alarms on other data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from gp4c.analysis.diagnostics import (
    contributions,
    dispersion,
    next_visit_pit,
    pit,
    predictive_check,
    rootogram,
)
from tolerances import CLOSED_FORM, STANDARD_ERRORS


def simulated(n_subjects, seed, **options):
    how = {"window": (0, 50), "n_intervals": 6, "frailty": 1.2, "dropout": 0.01, **options}
    return gp4c.simulate_panel(
        ([0, 50], [0.05, 0.25]), n_subjects=n_subjects, random_state=seed, **how
    )[0]


def training():
    return simulated(150, 1)


@pytest.fixture(scope="module")
def smooth():
    return gp4c.GP4C(count_term="pointwise", effect="gamma").fit(training())


@pytest.fixture(scope="module")
def held_out():
    return simulated(420, 2)


def uniform(values):
    return stats.kstest(values, "uniform").pvalue


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_probabilities_of_a_constant_rate_are_scipys(effect, held_out):
    model = gp4c.HomogeneousPoisson(effect=effect).fit(held_out)
    table = pit(model, held_out)
    mean = model.rate_ * (held_out.stop - held_out.start)
    alpha = model.frailty_shape_
    law = stats.poisson(mean) if effect is None else stats.nbinom(alpha, alpha / (alpha + mean))
    assert_allclose(table["upper"], law.cdf(held_out.count), **CLOSED_FORM)
    assert_allclose(table["lower"], law.cdf(held_out.count - 1), **CLOSED_FORM)
    assert table["pit"].between(table["lower"], table["upper"]).all()
    assert np.array_equal(table["pit"], pit(model, held_out)["pit"])


def test_forecasts_of_next_visits_are_calibrated(smooth, held_out):
    # 2,000 forecasts from each subject's own earlier visits, curve and frailty learned elsewhere
    table = next_visit_pit(smooth, held_out).head(2000)
    assert len(table) == 2000
    assert uniform(table["pit"]) > 0.01
    assert uniform(pit(smooth, held_out, per="subject")["pit"]) > 0.01
    assert_allclose(table["expected"].sum(), table["count"].sum(), rtol=0.1)


def test_next_visits_use_what_was_seen_before(held_out):
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(held_out)
    table = next_visit_pit(model, held_out)
    full = np.flatnonzero(np.bincount(held_out.subject_index) == 6)[0]
    own = np.flatnonzero(held_out.subject_index == full)
    k = own[3]
    alpha, rate = model.frailty_shape_, model.rate_
    seen = alpha + rate * (held_out.start[k] - held_out.start[own[0]])
    shape = alpha + held_out.count[own[:3]].sum()
    mean = rate * (held_out.stop[k] - held_out.start[k])
    law = stats.nbinom(shape, seen / (seen + mean))
    assert_allclose(table["upper"][k], law.cdf(held_out.count[k]), rtol=1e-9)
    assert_allclose(table["expected"][k], law.mean(), rtol=1e-9)


def test_a_model_without_frailty_is_seen_through(held_out):
    model = gp4c.HomogeneousPoisson().fit(held_out)
    assert uniform(pit(model, held_out, per="subject")["pit"]) < 1e-6
    poisson, fitted = dispersion(model, held_out).itertuples(index=False)
    assert poisson.statistic > poisson.high
    assert fitted.p_value < 0.01
    check = predictive_check(model, held_out).set_index("feature")
    assert check.loc["variance", "p_value"] < 0.01
    assert check.loc["share of zeros", "observed"] > check.loc["share of zeros", "high"]


def test_the_right_model_passes(smooth, held_out):
    poisson, fitted = dispersion(smooth, held_out).itertuples(index=False)
    assert poisson.p_value < 0.01
    assert fitted.low < fitted.statistic < fitted.high
    check = predictive_check(smooth, training())
    assert check["p_value"].between(0.01, 0.99).all()


def test_the_dispersion_of_poisson_counts_follows_chi_square():
    panel = simulated(200, 5, frailty=None, dropout=0.0)
    model = gp4c.HomogeneousPoisson().fit(panel)
    row = dispersion(model, panel).iloc[0]
    expected = model.rate_ * 50
    by_hand = ((np.bincount(panel.subject_index, panel.count) - expected) ** 2 / expected).mean()
    assert_allclose(row["statistic"], by_hand, rtol=1e-10)
    # many events per subject: Σ(m − R)²/R is close to χ² with one degree per subject
    law = stats.chi2(200)
    assert_allclose([row["low"], row["high"]], law.ppf([0.025, 0.975]) / 200, rtol=0.03)


def test_rootograms_count_and_expect_everything(smooth, held_out):
    for per, size in (("interval", held_out.n_intervals), ("subject", held_out.n_subjects)):
        table = rootogram(smooth, held_out, per=per, largest=8)
        assert table["observed"].sum() == size
        assert_allclose(table["expected"].sum(), size, rtol=1e-9)
        assert table["count"].tolist() == [*map(str, range(9)), "above 8"]
        spread = np.sqrt(table["expected"] + 1)
        assert (np.abs(table["observed"] - table["expected"]) < 4 * spread).all()
        assert_allclose(table["hanging"], table["root_expected"] - table["root_observed"])
    model = gp4c.HomogeneousPoisson().fit(held_out)
    mean = model.rate_ * (held_out.stop - held_out.start)
    table = rootogram(model, held_out, largest=3)
    by_hand = [stats.poisson(mean).pmf(n).sum() for n in range(4)]
    assert_allclose(table["expected"][:4], by_hand, rtol=1e-10)


def test_contributions_add_up_and_show_who_pulls():
    panel = simulated(12, 3)
    model = gp4c.GP4C(count_term="pointwise", effect=None).fit(panel)
    table = contributions(model, panel)
    for k in range(12):
        value, error = model.score_with_error(panel[k], joint=False)  # 4,000 draws, ours 2,000
        assert abs(table["score"][k] - value) < STANDARD_ERRORS * np.sqrt(3) * error
    assert (table["score_without"] <= table["score"] + 1e-9).all()
    # refits without the busiest and without a quiet subject move the curve the way it says
    for k in (table["events"].idxmax(), table["events"].idxmin()):
        rest = gp4c.GP4C(count_term="pointwise", effect=None).fit(panel[np.arange(12) != k])
        moved = np.log(model.cumulative(50.0) / rest.cumulative(50.0))
        assert_allclose(table["influence"][k], moved, atol=0.03 + 0.25 * abs(moved))
    plain = contributions(gp4c.HomogeneousPoisson().fit(panel), panel)
    assert plain["influence"].isna().all()
    assert_allclose(plain["score"].sum(), gp4c.HomogeneousPoisson().fit(panel).score(panel))


def test_free_weights_explain_their_own_totals(held_out):
    some = held_out[np.arange(20)]
    model = gp4c.GP4CW(count_term="pointwise").fit(some)
    table = pit(model, some, per="subject")
    busy = table["count"] > 0
    assert_allclose(table["expected"][busy], table["count"][busy], rtol=1e-6)
    assert np.isfinite(contributions(model, some)["score"]).all()
    assert (next_visit_pit(model, some)["upper"] <= 1).all()


@pytest.mark.parametrize("function", [pit, rootogram])
def test_unknown_units_are_refused(function, held_out):
    model = gp4c.HomogeneousPoisson().fit(held_out)
    with pytest.raises(ValueError, match="per must be 'interval' or 'subject'"):
        function(model, held_out, per="visit")
