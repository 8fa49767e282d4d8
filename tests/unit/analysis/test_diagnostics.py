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
    how = {"window": (0, 50), "n_intervals": 6, "dropout": 0.01, **options}
    how.setdefault("frailty", ("gamma", 1.2))
    return gp4c.simulate_panel(
        ([0, 50], [0.05, 0.25]), n_subjects=n_subjects, random_state=seed, **how
    )[0]


def training():
    return simulated(150, 1)


@pytest.fixture(scope="module")
def smooth():
    return gp4c.GP4C(count_term="pointwise", effect="gamma").fit(training())


@pytest.fixture(scope="module")
def bursty():
    return simulated(420, 12, bursts=2.0)


@pytest.fixture(scope="module")
def with_bursts():
    return gp4c.GP4C(effect="gamma", bursts=True).fit(simulated(400, 11, bursts=2.0))


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
    # the level is known to 8% (150 subjects, variance 1/1.2 of their effects)
    assert_allclose(table["expected"].sum(), table["count"].sum(), rtol=0.15)


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
    # expected numbers are averages over draws, the weights are at the posterior mean
    assert_allclose(table["expected"][busy], table["count"][busy], rtol=0.03)
    assert np.isfinite(contributions(model, some)["score"]).all()
    assert (next_visit_pit(model, some)["upper"] <= 1).all()


# -- events in bursts ----------------------------------------------------------------------------


def test_counts_in_bursts_are_calibrated(with_bursts, bursty):
    assert uniform(pit(with_bursts, bursty, per="subject")["pit"]) > 0.01
    rows = pit(with_bursts, bursty)  # counts of one subject share its effect: one count of each
    assert uniform(rows.groupby("subject").sample(1, random_state=1)["pit"]) > 0.01
    table = next_visit_pit(with_bursts, bursty)
    assert uniform(table["pit"]) > 0.01
    assert uniform(table["pit"][table["earlier"] > 0]) > 0.01
    assert table["earlier"].equals(
        table.groupby("subject")["count"].cumsum() - table["count"]
    )  # fmt: skip


def test_a_model_without_bursts_is_seen_through(bursty):
    plain = gp4c.GP4C(effect="gamma", bursts=False).fit(simulated(400, 11, bursts=2.0))
    assert uniform(next_visit_pit(plain, bursty)["pit"]) < 1e-6


def test_tables_of_a_model_with_bursts_agree_with_its_data(with_bursts, bursty):
    fitted = dispersion(with_bursts, bursty).set_index("reference").loc["model"]
    assert fitted["low"] < fitted["statistic"] < fitted["high"]
    check = predictive_check(with_bursts, bursty)
    assert check["p_value"].between(0.005, 0.995).all()
    for per, size in (("interval", bursty.n_intervals), ("subject", bursty.n_subjects)):
        table = rootogram(with_bursts, bursty, per=per, largest=8)
        assert_allclose(table["expected"].sum(), size, rtol=1e-9)
        # the counts of one subject may move together: at most as if it were one with six visits
        together = 6 if per == "interval" else 1
        spread = np.sqrt(together * (table["expected"] + 1))
        assert (np.abs(table["observed"] - table["expected"]) < 4 * spread).all()


def burst_law(mean, phi):
    return stats.nbinom(mean / phi, 1 / (1 + phi))


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_probabilities_with_bursts_are_scipys(effect, bursty):
    model = gp4c.HomogeneousPoisson(effect=effect, bursts=True).fit(bursty)
    table = pit(model, bursty)
    alpha, phi = model.frailty_shape_, model.dispersion_ - 1
    for k in (0, 3, 40):
        mean = model.rate_ * (bursty.stop[k] - bursty.start[k])
        for column, n in (("upper", bursty.count[k]), ("lower", bursty.count[k] - 1)):
            if effect is None:
                direct = burst_law(mean, phi).cdf(n)
            else:
                law = stats.gamma(alpha, scale=1 / alpha)
                direct = law.expect(lambda v, m=mean, n=n: burst_law(v * m, phi).cdf(n))
            assert_allclose(table[column][k], direct, atol=1e-6)


def test_next_visits_with_bursts_by_brute_force(bursty):
    """Earlier counts reweigh a fine grid of effects; the next count is averaged over it."""
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(bursty)
    table = next_visit_pit(model, bursty)
    alpha, phi = model.frailty_shape_, model.dispersion_ - 1
    v = stats.gamma(alpha, scale=1 / alpha).ppf((np.arange(20_000) + 0.5) / 20_000)
    mean = model.rate_ * (bursty.stop - bursty.start)
    busiest = np.argmax(np.bincount(bursty.subject_index, bursty.count))
    for subject in (busiest, 0, 5):
        weight = np.ones_like(v)
        for k in np.flatnonzero(bursty.subject_index == subject):
            law, count = burst_law(v * mean[k], phi), bursty.count[k]
            expected = np.average(law.cdf(count), weights=weight)
            assert_allclose(table["upper"][k], expected, atol=1e-3)
            average = np.average(v * mean[k], weights=weight)
            assert_allclose(table["expected"][k], average, rtol=5e-3)
            weight = weight * law.pmf(count)


def test_some_rows_stand_for_many(with_bursts, bursty, monkeypatch):
    whole = rootogram(with_bursts, bursty, largest=8)["expected"]
    monkeypatch.setattr("gp4c.analysis.diagnostics._MOST_MEANS", 200)
    some = rootogram(with_bursts, bursty, largest=8)["expected"]
    assert_allclose(some, whole, rtol=0.01)


def test_contributions_with_bursts_are_scores(with_bursts):
    panel = simulated(60, 13, bursts=2.0)
    table = contributions(with_bursts, panel)
    assert_allclose(table["score"], with_bursts.score_subjects(panel), atol=0.05)
    assert table["effective_draws"].min() > 100


def test_covariates_of_new_rows_count():
    """A treatment that triples the rate: without it in the means the arms would not fit."""
    arm = np.arange(300) % 2
    panel = simulated(
        300, 21, bursts=1.0, covariates={"arm": arm.astype(float)}, coefficients={"arm": np.log(3)}
    )
    train, new = panel[np.arange(150)], panel[np.arange(150, 300)]
    model = gp4c.GP4C(formula="arm", effect="gamma", bursts=True).fit(train)
    table, treated = pit(model, new, per="subject"), arm[150:] == 1
    beta = model.effects_["coefficient"].item()
    expected = [table["expected"][treated == who].sum() for who in (True, False)]
    watched = [
        np.sum(model.expected_counts(new.start, new.stop)[treated[new.subject_index] == who])
        for who in (True, False)
    ]
    ratio = (expected[0] / watched[0]) / (expected[1] / watched[1])
    assert_allclose(np.log(ratio), beta, atol=0.1)  # an average of the draws
    assert uniform(table["pit"][treated]) > 0.01
    assert uniform(table["pit"][~treated]) > 0.01
    assert uniform(next_visit_pit(model, new)["pit"]) > 0.01
    assert_allclose(contributions(model, new)["score"], model.score_subjects(new), atol=0.05)


@pytest.mark.parametrize("function", [pit, rootogram])
def test_unknown_units_are_refused(function, held_out):
    model = gp4c.HomogeneousPoisson().fit(held_out)
    with pytest.raises(ValueError, match="per must be 'interval' or 'subject'"):
        function(model, held_out, per="visit")
