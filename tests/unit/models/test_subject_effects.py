"""Effects of subjects: intervals against draws written out, closed forms, and the truth."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

import gp4c
from gp4c.exceptions import PanelDataError
from gp4c.models.subject_effects import mixture_quantile, subject_effect_table

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
    adjusted = gp4c.GP4C(effect="gamma", formula="age", **QUICK).fit(
        gp4c.PanelCounts.from_frame(frame, window=panel.window)
    )
    table = adjusted.subject_effect_table()
    beta = adjusted.effects_["coefficient"].item()
    plain = adjusted.expected_counts(panel.start, panel.stop)
    by_hand = np.bincount(panel.subject_index, plain) * np.exp(beta * (age - age.mean()))
    assert_allclose(table["expected"], by_hand, rtol=0.02)  # an average of 200 draws


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
