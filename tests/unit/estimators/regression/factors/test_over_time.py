"""An effect that changes over time: its ratio curve, bands, test, forecasts and file."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.formulas.changing_terms import changing_terms
from gp4c.exceptions import PanelDataError
from gp4c.model.modulation.over_time import DEVIATION, LENGTH, deviations

MONTHS = 24


def trial(n, seed, late):
    """Two arms: arm b has half the rate at first, and `late` times it at the end."""
    rng, rows = np.random.default_rng(seed), []
    for k in range(n):
        arm, effect = "ab"[k % 2], rng.gamma(2.0, 0.5)
        age = rng.uniform(40, 70)
        for start in range(0, MONTHS, 3):
            share = (start + 1.5) / MONTHS
            ratio = np.exp((1 - share) * np.log(0.5) + share * np.log(late)) if arm == "b" else 1
            mean = effect * 0.9 * ratio * np.exp(0.02 * (age - 55))
            rows.append((k, start, start + 3, rng.poisson(mean), arm, age))
    names = ["subject", "start", "stop", "count", "arm", "age"]
    return gp4c.PanelCounts.from_frame(pd.DataFrame(rows, columns=names), time_unit="months")


@pytest.fixture(scope="module")
def fitted():
    panel = trial(100, 1, late=1.8)
    model = gp4c.GP4C(formula="age + over_time(arm)", effect="gamma", bursts=False)
    return model.fit(panel), panel


def truth(times):
    share = np.asarray(times) / MONTHS
    return np.exp((1 - share) * np.log(0.5) + share * np.log(1.8))


def test_the_ratio_curve_holds_the_truth(fitted):
    model, _ = fitted
    times = np.linspace(1, 23, 12)
    low, high = model.effect_over_time_band("arm", times, 0.95, "simultaneous")
    narrow = model.effect_over_time_band("arm[b]", times, 0.95)
    assert ((low < truth(times)) & (truth(times) < high)).all()
    assert ((low <= narrow[0]) & (narrow[1] <= high)).all()
    assert model.effect_over_time("arm", 23.0) > 2 * model.effect_over_time("arm", 1.0)
    assert list(model.effects_["covariate"]) == ["age", "arm[b]"]


def test_the_mean_of_the_log_ratio_is_the_coefficient(fitted):
    """δ has mean 0 over the window, so β is the average effect."""
    model, _ = fitted
    x, weights = np.polynomial.legendre.leggauss(30)
    logs = np.log(model.effect_over_time("arm", (x + 1) * MONTHS / 2))
    beta = float(model.effects_.set_index("covariate").loc["arm[b]", "coefficient"])
    assert_allclose(weights @ logs / 2, beta, atol=0.02)


def test_a_constant_ratio_is_tested(fitted):
    model, _ = fitted
    changing = model.constant_ratio_test("arm")
    assert changing.p_value < 0.01
    steady = gp4c.GP4C(formula="over_time(arm)", effect="gamma", bursts=False)
    found = steady.fit(trial(100, 2, late=0.5)).constant_ratio_test("arm")
    assert found.p_value > 0.02
    assert 1 <= found.df <= 5


def test_curves_and_forecasts_differ_by_arm_as_the_ratio_says(fitted):
    """Three routes to the ratio of two arms: curves, forecasts of new subjects, the effect."""
    model, panel = fitted
    times = np.array([2.0, 12.0, 22.0])
    curves = [model.intensity(times, covariates={"arm": arm}) for arm in "ab"]
    ratio = model.effect_over_time("arm", times)
    assert_allclose(curves[1] / curves[0], ratio, rtol=0.05)
    counts = [
        model.forecast(times - 1, times + 1, subjects=None, covariates={"arm": arm}).mean
        for arm in "ab"
    ]
    assert_allclose(counts[1] / counts[0], ratio, rtol=0.1)
    own = model.intensity(times, subjects=[panel.subjects[0], panel.subjects[1]])
    assert own.shape == (2, 3)


def test_scores_expected_numbers_and_files_know_the_rows(fitted, tmp_path):
    model, panel = fitted
    model.save(tmp_path / "fit.json")
    loaded = gp4c.load_model(tmp_path / "fit.json")
    assert_allclose(loaded.constant_ratio_test("arm"), model.constant_ratio_test("arm"))
    assert loaded.score_subjects(panel).sum() == model.score_subjects(panel).sum()
    constant = gp4c.GP4C(formula="age + arm", effect="gamma", bursts=False).fit(panel)
    assert model.score_subjects(panel).sum() > constant.score_subjects(panel).sum() + 5
    assert model.log_evidence_ > constant.log_evidence_ + 3
    assert model.fit_check_.time_p_value > 0.001
    assert "goes from" in str(model.summary())


def test_the_features_are_those_of_the_centred_process():
    """Their products are the covariance of a process given that its mean is 0, by Monte Carlo."""
    x = np.linspace(0, 1, 201)
    k = DEVIATION**2 * np.exp(-0.5 * ((x[:, None] - x) / LENGTH) ** 2)
    weights = np.full(201, 1 / 200)
    weights[[0, -1]] /= 2
    mean = k @ weights
    exact = k - np.outer(mean, mean) / (weights @ mean)
    features = deviations(x)
    assert_allclose(features @ features.T, exact, atol=3e-4)
    assert_allclose(weights @ features, 0, atol=1e-4)


@pytest.mark.parametrize(
    "formula",
    ["over_time(arm) * age", "over_time(arm + age)", "age + over_time()", "over_time(arm"],
)
def test_misplaced_calls_are_one_sentence(formula):
    with pytest.raises(PanelDataError, match=r"over_time\(\) takes one covariate"):
        changing_terms(formula)


def test_terms_are_found():
    assert changing_terms("age + over_time(C(arm, contr.treatment('b')))") == (
        "age + C(arm, contr.treatment('b'))", ("C(arm, contr.treatment('b'))",),
    )  # fmt: skip
    assert changing_terms("arm:age") == ("arm:age", ())


def test_growth_models_refuse_it(fitted):
    with pytest.raises(PanelDataError, match="goes with GP4C"):
        gp4c.LogLinear(formula="over_time(arm)").fit(fitted[1])
    with pytest.raises(PanelDataError, match="no effect over time is called"):
        fitted[0].effect_over_time("age", 1.0)


def test_a_category_keeps_its_order_of_levels():
    """A labelled file brings levels in the order of its codes, which need not be the sorted one."""
    rng = np.random.default_rng(5)
    rows = pd.DataFrame(
        [(k, t, t + 4, rng.poisson(1.0), k % 3) for k in range(45) for t in range(0, 12, 4)],
        columns=["subject", "start", "stop", "count", "arm"],
    )
    order = ["placebo", "5 mg", "10 mg"]
    fits = {}
    for names in (order, ["a", "b", "c"]):
        arm = pd.Categorical.from_codes(rows["arm"], categories=names)
        panel = gp4c.PanelCounts.from_frame(rows.assign(arm=arm))
        fits[names[0]] = gp4c.GP4C(formula="over_time(arm)", effect=None, bursts=False).fit(panel)
    labelled, sorted_ = fits["placebo"], fits["a"]
    assert labelled.effects_["covariate"].tolist() == ["arm[5 mg]", "arm[10 mg]"]
    for ours, theirs in (("arm[5 mg]", "arm[b]"), ("arm[10 mg]", "arm[c]")):
        assert_allclose(
            labelled.effect_over_time(ours, [1.0, 11.0]),
            sorted_.effect_over_time(theirs, [1.0, 11.0]),
        )
    said = [words for section, _, words, _ in labelled.facts() if section == "Effects over time"]
    assert len(said) == 2
    assert all("all ratios of arm are constant" in words for words in said)
