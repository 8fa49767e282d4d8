"""Effects of subjects: intervals against draws written out, closed forms, and the truth."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from gp4c.estimators.forecasts.subject_effects import mixture_quantile, subject_effect_table
from gp4c.exceptions import PanelDataError

QUICK = {"count_term": "pointwise", "hyper": "optimize"}


@pytest.fixture(scope="module")
def truth():
    return np.random.default_rng(8).gamma(2.0, 0.5, 250)


@pytest.fixture(scope="module")
def panel(truth):
    return gp4c.simulate_panel(
        ([0, 20, 40], [0.05, 0.2, 0.1]), window=(0, 40), n_subjects=len(truth), n_intervals=4,
        frailty=truth, dropout=0.02, random_state=8,
    )[0]  # fmt: skip


@pytest.fixture(scope="module")
def model(panel):
    return gp4c.GP4C(effect="gamma", **QUICK).fit(panel)


def test_intervals_hold_the_true_effects_as_often_as_they_say(model, panel, truth):
    for level in (0.5, 0.9):
        table = model.subject_effect_table(level)
        inside = np.mean((table["low"] < truth) & (truth < table["high"]))
        # three standard errors of 250 independent intervals
        assert abs(inside - level) < 3 * np.sqrt(level * (1 - level) / len(truth))
    assert table["subject"].tolist() == panel.subjects.tolist()
    assert_allclose(table["effect"], model.subject_effects_)
    assert_allclose(table["events"], np.bincount(panel.subject_index, panel.count))
    assert ((table["low"] < table["effect"]) & (table["effect"] < table["high"])).all()


def test_intervals_agree_with_draws_of_curve_and_effect(model, panel):
    rng, size, few = np.random.default_rng(1), 40_000, [0, 7, 100]
    own = panel[few]
    each = model.posterior_.sample_integrals(own.start, own.stop, size, rng)
    expected = np.stack([each[:, own.subject_index == k].sum(axis=1) for k in range(3)], axis=1)
    totals = np.bincount(own.subject_index, own.count)
    alpha = model.frailty_shape_
    draws = rng.gamma(alpha + totals, 1 / (alpha + expected))
    table = model.subject_effect_table(0.8).iloc[few]
    assert_allclose(table[["low", "high"]].T, np.quantile(draws, [0.1, 0.9], axis=0), rtol=0.03)
    assert_allclose(table["expected"], expected.mean(axis=0), rtol=0.02)


def test_a_mixture_of_one_is_the_gamma_law_and_of_two_is_scipys():
    shape, rate = np.array([0.4, 3.0]), np.array([[2.0, 5.0], [3.0, 4.0]])
    assert_allclose(
        mixture_quantile(shape, rate[:1], 0.3), stats.gamma(shape, scale=1 / rate[0]).ppf(0.3)
    )
    x = mixture_quantile(shape, rate, 0.9)
    law = stats.gamma(shape, scale=1 / rate)
    assert_allclose(law.cdf(x).mean(axis=0), 0.9, rtol=1e-10)


def test_covariates_are_allowed_for(panel):
    age = np.random.default_rng(2).normal(size=panel.n_subjects)
    frame = panel.to_frame()
    frame["age"] = age[panel.subject_index]
    adjusted = gp4c.GP4C(effect="gamma", bursts=False, formula="age").fit(
        gp4c.PanelCounts.from_frame(frame, window=panel.window)
    )
    table = adjusted.subject_effect_table()
    beta = adjusted.effects_["coefficient"].item()
    plain = adjusted.expected_counts(panel.start, panel.stop)
    by_hand = np.bincount(panel.subject_index, plain) * np.exp(beta * (age - age.mean()))
    # an average of 200 draws, in which curve and coefficient vary together
    assert_allclose(table["expected"], by_hand, rtol=0.08)


def test_classical_models_plug_their_curve_in(panel):
    constant = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    table = subject_effect_table(constant, 0.9)
    watched = np.bincount(panel.subject_index, panel.stop - panel.start)
    alpha = constant.frailty_shape_
    events = table["events"].to_numpy()
    law = stats.gamma(alpha + events, scale=1 / (alpha + constant.rate_ * watched))
    assert_allclose(table["low"], law.ppf(0.05), rtol=1e-8)
    assert_allclose(table["high"], law.ppf(0.95), rtol=1e-8)
    assert_allclose(table["effect"], law.mean(), rtol=1e-6)


def test_draws_with_their_own_shapes_mix_exactly(panel):
    """Weighted draws of curve and α; each gives a gamma law of the effect."""
    model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel[np.arange(30)])
    table = model.subject_effect_table(0.9)
    rng = np.random.default_rng(3)
    start, stop = model.histories_.span_start, model.histories_.span_stop
    each, params, _ = model._curve_draws(start, stop, 20_000, rng, "prior")
    alpha = np.exp(params[0])
    expected = model.histories_.expected(each.T).T
    drawn = rng.gamma(alpha + model.histories_.totals[:, None]) / (alpha + expected)
    assert_allclose(
        table[["low", "high"]].T, np.quantile(drawn, [0.05, 0.95], axis=1), rtol=0.15, atol=0.01
    )


def test_intervals_with_bursts_by_brute_force():
    """Three visits of each subject; the effect on a fine grid, at one curve, α and φ."""
    panel = gp4c.simulate_panel(
        0.3, window=(0, 30), n_subjects=40, n_intervals=3, frailty=1.0, bursts=2.0, random_state=6
    )[0]
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    assert model.law_ == "bursts"
    table = subject_effect_table(model, 0.8)
    alpha, phi = model.frailty_shape_, model.dispersion_ - 1
    v = np.exp(np.linspace(-12, 4, 40_000))
    busiest = int(np.argmax(np.bincount(panel.subject_index, panel.count)))
    for k in (busiest, 0, 1, 2):
        weight = stats.gamma(alpha, scale=1 / alpha).pdf(v) * v
        for row in np.flatnonzero(panel.subject_index == k):
            mean = model.rate_ * (panel.stop[row] - panel.start[row])
            weight = weight * stats.nbinom(v * mean / phi, 1 / (1 + phi)).pmf(panel.count[row])
        below = np.cumsum(weight) / weight.sum()
        levels = np.interp(table.loc[k, ["low", "high"]].astype(float), v, below)
        assert_allclose(levels, [0.1, 0.9], atol=0.025)  # 2,000 draws of υ
        assert_allclose(table["effect"][k], np.average(v, weights=weight), rtol=0.01)


def test_intervals_with_bursts_hold_the_true_effects(truth):
    panel = gp4c.simulate_panel(
        0.3, window=(0, 40), n_subjects=len(truth), n_intervals=4, frailty=truth, bursts=2.0,
        random_state=9,
    )[0]  # fmt: skip
    model = gp4c.GP4C(effect="gamma", bursts=True).fit(panel)
    table = model.subject_effect_table(0.8)
    inside = np.mean((table["low"] < truth) & (truth < table["high"]))
    assert abs(inside - 0.8) < 3 * np.sqrt(0.16 / len(truth))


def test_weights_have_no_interval_and_equal_subjects_no_effects(panel):
    some = panel[np.arange(20)]
    weighted = gp4c.GP4C(effect="weight", n_inducing=8, **QUICK).fit(some)
    table = weighted.subject_effect_table()
    assert table[["low", "high"]].isna().all(axis=None)
    assert_allclose(table["effect"], weighted.subject_effects_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gp4c.exceptions.OverdispersionWarning)
        equal = gp4c.GP4C(effect=None, **QUICK).fit(some)
    with pytest.raises(PanelDataError, match="no subject effects"):
        equal.subject_effect_table()
    with pytest.raises(ValueError, match="level"):
        weighted.subject_effect_table(1.5)
