"""Groups that share hyper-parameters: smoothness and frailty in common, levels of their own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.models.sharing import fit_shared

BLADDER = gp4c.load_dataset("bladder")
MODEL = gp4c.GP4C(count_term="pointwise", effect="gamma")


@pytest.fixture(scope="module")
def pooled():
    return gp4c.GP4C(**MODEL.get_params()).fit(BLADDER)


@pytest.fixture(scope="module")
def shared(pooled):
    arms = {arm: BLADDER.where(treatment=arm) for arm in ("placebo", "thiotepa")}
    return fit_shared(pooled, BLADDER, arms)


def test_smoothness_and_frailty_are_shared_and_levels_are_not(shared, pooled):
    placebo, thiotepa = shared.models.values()
    assert placebo.length_scale_ == thiotepa.length_scale_
    assert placebo.frailty_shape_ == thiotepa.frailty_shape_ == pooled.frailty_shape_
    variation = [model.variance_ / model.mean_**2 for model in (placebo, thiotepa)]
    assert_allclose(variation[0], variation[1], rtol=1e-9)
    assert placebo.cumulative(53.0) != thiotepa.cumulative(53.0)
    assert placebo.data_summary_["n_subjects"] == 47
    assert placebo.score(BLADDER.where(treatment="placebo")[:5]) < 0


def test_one_group_of_everybody_is_the_pooled_fit(pooled):
    alone = fit_shared(pooled, BLADDER, {"all": BLADDER})
    assert_allclose(alone.log_bayes_factor, 0.0, atol=1e-9)
    times = np.linspace(2.0, 50.0, 9)
    # sign patterns and the spread of the relative variation are left out
    assert_allclose(alone.models["all"].cumulative(times), pooled.cumulative(times), rtol=0.05)


def test_the_levels_have_the_spread_of_overdispersed_means(shared):
    # Var ln Λ = 1/N + 1/(K α) for N events of K subjects (docs/maths.md, section 6); subjects
    # who were seen shortly count for less, so that it is a lower limit
    for arm, model in shared.models.items():
        part = BLADDER.where(treatment=arm)
        low, high = model.cumulative_band(53.0, 0.95)
        spread = np.log(high / low) / (2 * 1.96)
        least = np.sqrt(1 / part.n_events + 1 / (part.n_subjects * model.frailty_shape_))
        assert least * 0.85 < spread < least * 1.5


def test_halves_of_one_population_speak_for_one_curve():
    panel, _ = gp4c.simulate_panel(0.1, n_subjects=60, frailty=2.0, random_state=2)
    together = gp4c.GP4C(**MODEL.get_params()).fit(panel)
    halves = {"odd": panel[np.arange(0, 60, 2)], "even": panel[np.arange(1, 60, 2)]}
    assert fit_shared(together, panel, halves).log_bayes_factor < -0.5


def test_groups_that_differ_speak_for_two():
    panel, _ = gp4c.simulate_panel(
        0.1, n_subjects=60, covariates={"arm": ["a", "b"] * 30}, coefficients={"arm": {"b": 1.5}},
        random_state=5,
    )  # fmt: skip
    found = gp4c.compare(panel, by="arm", model=MODEL, share="hyper", n_permutations=99)
    assert found.log_bayes_factor > 5
    low, high = found.ratio_band(30.0, curve="cumulative")
    assert low < np.exp(1.5) < high
    assert "one curve per group" in found.summary()


def test_maximised_hyper_parameters_are_shared_without_evidence():
    model = gp4c.GP4C(count_term="pointwise", effect="gamma", hyper="optimize")
    found = gp4c.compare(BLADDER, by="treatment", model=model, share="hyper", n_permutations=99)
    assert np.isnan(found.log_bayes_factor)
    placebo, thiotepa = found.models.values()
    assert placebo.length_scale_ == thiotepa.length_scale_


def test_what_cannot_be_shared_is_said():
    with pytest.raises(ValueError, match="share must be None or 'hyper'"):
        gp4c.compare(BLADDER, by="treatment", share="everything")
    model = gp4c.GP4C(
        count_term="pointwise", hyper="optimize", effect="gamma", formula="initial_number"
    )
    with pytest.raises(ValueError, match="interaction"):
        gp4c.compare(BLADDER, by="treatment", model=model, share="hyper")
