"""Models whose posterior is sampled: the same questions, answered as by the approximation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import ConvergenceWarning

QUICK = {"method": "mcmc", "n_inducing": 6, "random_state": 0}


@pytest.fixture(scope="module")
def panel():
    return gp4c.simulate_panel(
        lambda t: 1 + np.sin(t / 3), window=(0, 12), n_subjects=15, n_intervals=4, random_state=1
    )[0]


@pytest.fixture(scope="module")
def sampled(panel):
    return gp4c.GP4C(effect=None, hyper="optimize", **QUICK).fit(panel)


@pytest.mark.parametrize(("start", "stop"), [(12.0, 15.0), (10.0, 20.0), (-6.0, 3.0)])
def test_a_rate_that_is_held_stays_as_it_is_at_the_end(sampled, start, stop):
    first, last = sampled.intensity([0.0, 12.0])
    inside = sampled.expected_counts(max(start, 0.0), min(stop, 12.0)) if start < 12 else 0.0
    expected = inside + first * max(-start, 0.0) + last * max(stop - 12.0, 0.0)
    held = sampled.forecast(start, stop, beyond="hold", n_draws=40_000, random_state=1)
    assert_allclose(held.mean, expected, rtol=1e-6)
    # the draws have that mean, within five standard errors of it
    assert abs(held.draws.mean() - held.mean) < 5 * held.draws.std() / 200
    assert "returns" not in held.note


def test_a_rate_that_returns_to_its_prior_gets_there(sampled):
    far = sampled.forecast(100.0, 101.0)
    assert_allclose(far.mean, sampled.posterior_.long_run_rate, rtol=1e-6)
    assert f"its long-run level, {far.mean:.3g} per" in far.note


def test_free_weights_are_not_sampled(panel):
    with pytest.raises(ValueError, match="method='mcmc' goes with count_term=None"):
        gp4c.GP4C(effect="weight", **QUICK).fit(panel)


def test_the_summary_says_how_far_to_trust_the_draws(sampled):
    report = sampled.sampler_
    assert f"R̂ at most {report.curve_r_hat:.3f}" in sampled.summary()["posterior"].text
    assert report.curve_r_hat == max(report.r_hat[:6])  # five rates and the mean number
    assert report.curve_ess == min(report.ess[:6])


def test_populations_that_disagree_are_said_to(panel, monkeypatch):
    monkeypatch.setattr("gp4c.estimators.engine_fit.MOST_R_HAT", 0.9)
    with pytest.warns(ConvergenceWarning, match="runs of the sampler disagree about the curve"):
        gp4c.GP4C(effect=None, hyper="optimize", **QUICK).fit(panel)


def test_sampled_paths_are_the_draws_of_the_intensity(sampled):
    from gp4c.posterior.forecasting import intensity_paths

    times, seed = np.array([1.0, 6.0, 11.0]), np.random.SeedSequence(4)
    paths = intensity_paths(sampled.posterior_, times, 4000, seed)
    assert_allclose(intensity_paths(sampled.posterior_, times[1:2], 4000, seed), paths[:, 1:2])
    error = paths.std(axis=0) / np.sqrt(4000)
    assert np.all(np.abs(paths.mean(axis=0) - sampled.intensity(times)) < 5 * error)


def test_hyper_parameters_are_sampled_too(panel):
    few = panel[:2]
    model = gp4c.GP4C(effect=None, hyper="integrate", **{**QUICK, "n_inducing": 3}).fit(few)
    assert len(np.unique(model.posterior_.length_scale)) > 5
    assert np.std(np.log(model.posterior_.variance)) > 0.1
    low, high = model.intensity_band(6.0)
    assert low < model.intensity(6.0) < high


def test_the_number_of_processes_changes_nothing(panel, sampled):
    two = gp4c.GP4C(effect=None, hyper="optimize", n_jobs=2, **QUICK).fit(panel)
    for one, other in zip(two.posterior_.groups, sampled.posterior_.groups, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
    assert two.sampler_.log_evidence == sampled.sampler_.log_evidence
