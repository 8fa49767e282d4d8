"""Plain Poisson models say when subjects differ more than they allow."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import FitWarning, OverdispersionWarning
from gp4c.model.dispersion import poisson_dispersion

BLADDER = gp4c.load_dataset("bladder")
QUICK = {"count_term": "pointwise", "hyper": "optimize", "n_inducing": 8}


def simulated(frailty, seed=0):
    law = None if frailty is None else ("gamma", frailty)
    return gp4c.simulate_panel(0.1, n_subjects=60, frailty=law, random_state=seed)[0]


def test_the_statistic_is_standardised_under_poisson_counts(rng):
    expected = rng.uniform(0.1, 8.0, 50)
    found = [poisson_dispersion(rng.poisson(expected), expected) for _ in range(4000)]
    ratios = np.array([one.ratio for one in found])
    deviations = np.array([one.deviation for one in found])
    assert_allclose(ratios.mean(), 1.0, atol=4 * ratios.std() / np.sqrt(4000))
    assert_allclose(deviations.std(), 1.0, atol=0.06)
    assert np.mean([one.is_bad for one in found]) < 0.01


def test_without_expected_events_there_is_nothing_to_say():
    assert not poisson_dispersion(np.zeros(3), np.zeros(3)).is_bad


@pytest.mark.parametrize(
    "model",
    [gp4c.GP4C(effect=None, **QUICK), gp4c.HomogeneousPoisson()],
    ids=["GP4C", "HomogeneousPoisson"],
)
def test_overdispersed_counts_are_announced_with_number_and_remedy(model):
    with pytest.warns(OverdispersionWarning, match="effect='gamma'") as caught:
        model.fit(BLADDER)
    assert caught[0].filename == __file__
    # the number, by hand
    rows = BLADDER.exposure * model.expected_counts(BLADDER.start, BLADDER.stop)
    expected = np.bincount(BLADDER.subject_index, rows)
    totals = np.bincount(BLADDER.subject_index, BLADDER.count)
    ratio = ((totals - expected) ** 2).sum() / expected.sum()
    assert f"vary {ratio:.1f} times as much" in str(caught[0].message)


@pytest.mark.parametrize(
    "model",
    [
        gp4c.GP4C(effect="gamma", **QUICK),
        gp4c.GP4C(effect="auto", **QUICK),
        gp4c.GP4C(effect="weight", **QUICK),
        gp4c.GP4C.paper(n_inducing=8, random_state=0),
        gp4c.HomogeneousPoisson(effect="gamma"),
        gp4c.LocalEM(bandwidth=8.0),
        gp4c.NPMLE(),
    ],
    ids=lambda m: repr(m)[:40],
)
def test_models_that_allow_for_it_or_do_not_rely_on_it_are_quiet(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverdispersionWarning)
        warnings.simplefilter("ignore", FitWarning)  # bursts within subjects: said apart
        model.fit(BLADDER)


@pytest.mark.parametrize("seed", range(5))
def test_poisson_counts_are_no_reason_to_warn(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverdispersionWarning)
        gp4c.HomogeneousPoisson().fit(simulated(None, seed))


def test_cross_validation_lets_the_scores_speak():
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverdispersionWarning)
        gp4c.cross_validate({"plain": gp4c.HomogeneousPoisson()}, BLADDER, n_splits=2)


def test_differences_that_covariates_explain_are_none():
    # two groups of very different rates: overdispersed together, not within
    panel, _ = gp4c.simulate_panel(
        0.1, n_subjects=80, covariates={"arm": ["a", "b"] * 40},
        coefficients={"arm": {"b": 2.0}}, random_state=1,
    )  # fmt: skip
    with pytest.warns(OverdispersionWarning):
        gp4c.GP4C(effect=None, **QUICK).fit(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OverdispersionWarning)
        gp4c.GP4C(effect=None, formula="arm").fit(panel)
