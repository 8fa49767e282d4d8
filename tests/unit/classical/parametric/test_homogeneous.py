"""The constant rate, with and without frailty."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import chi2, nbinom

import gp4c
from classical_panels import panel_of, random_panel, toy
from gp4c.classical.parametric.homogeneous import HomogeneousPoisson
from gp4c.exceptions import NotFittedError


def test_rate_is_events_over_time_at_risk():
    model = HomogeneousPoisson().fit(toy())
    assert model.rate_ == 7 / 8
    assert model.intensity(2.0) == 7 / 8
    assert_allclose(model.intensity([0.0, 3.0]), 7 / 8)
    assert_allclose(model.cumulative([0.0, 1.0, 3.0]), [0.0, 0.875, 2.625])
    assert_allclose(model.cumulative(5.0, extrapolate=True), 5 * 7 / 8)
    assert model.frailty_shape_ == np.inf
    assert model.subject_effects_ is None
    assert_allclose(model.objective_, model.score(toy()), rtol=1e-13)


def test_exact_interval_in_chi_square_form():
    panel = random_panel(1, exposure=True)
    model = HomogeneousPoisson().fit(panel)
    time = (panel.exposure * (panel.stop - panel.start)).sum()
    low, high = model.rate_interval(0.9)
    assert_allclose(low, chi2.ppf(0.05, 2 * panel.n_events) / 2 / time, rtol=1e-9)
    assert_allclose(high, chi2.ppf(0.95, 2 * panel.n_events + 2) / 2 / time, rtol=1e-9)
    assert_allclose(model.intensity_band(1.0, 0.9), (low, high))
    bands = model.cumulative_band([0.0, 10.0], 0.9, "simultaneous")
    assert_allclose(bands, [[0, 10 * low], [0, 10 * high]])
    assert isinstance(model.intensity_band(1.0)[0], float)


@pytest.mark.parametrize("name", ["nausea", "bladder", "skin"])
def test_frailty_on_real_data_is_the_negative_binomial_maximum(name):
    panel = gp4c.load_dataset(name)
    panel = panel.total() if panel.event_types else panel
    model = HomogeneousPoisson(effect="gamma").fit(panel)
    assert model.converged_
    assert np.all(np.diff(model.history_) >= 0)
    total = np.bincount(panel.subject_index, panel.count)
    time = np.bincount(panel.subject_index, panel.stop - panel.start)

    def cost(x):
        shape, mean = np.exp(x[1]), np.exp(x[0]) * time
        return -nbinom.logpmf(total, shape, shape / (shape + mean)).sum()

    ours = np.log([model.rate_, model.frailty_shape_])
    theirs = minimize(cost, ours + 0.2, method="Nelder-Mead", options={"xatol": 1e-9})
    assert_allclose(ours, theirs.x, atol=1e-5)
    assert_allclose(model.objective_, model.score(panel), rtol=1e-12)
    assert model.objective_ > HomogeneousPoisson().fit(panel).objective_ + 20
    low, high = model.rate_interval()
    assert low < model.rate_ < high
    plain = HomogeneousPoisson().fit(panel).rate_interval()
    assert high - low > plain[1] - plain[0]
    a, mean = model.frailty_shape_, model.rate_ * time
    assert_allclose(model.subject_effects_, (a + total) / (a + mean), rtol=1e-9)


def test_no_overdispersion_is_reported_as_such():
    panel = panel_of([(k, 0.0, 2.0, 3) for k in range(5)])
    model = HomogeneousPoisson(effect="gamma").fit(panel)
    assert model.frailty_shape_ == np.inf
    assert model.rate_ == 1.5
    assert_allclose(model.subject_effects_, 1.0)
    assert model.score(panel) == pytest.approx(HomogeneousPoisson().fit(panel).score(panel))


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_no_events(effect):
    panel = panel_of([("a", 0.0, 4.0, 0), ("b", 0.0, 6.0, 0)])
    model = HomogeneousPoisson(effect=effect).fit(panel)
    assert model.rate_ == 0.0
    assert model.objective_ == 0.0
    low, high = model.intensity_band([1.0, 2.0], 0.9)
    assert_array_equal(low, 0.0)
    assert_allclose(high, -np.log(0.05) / 10)
    assert model.score(panel) == 0.0


def test_two_copies_of_the_data_shrink_the_band():
    panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    twice = panel_of(
        [
            (f"{copy}{panel.subjects[k]}", a, b, m)
            for copy in "xy"
            for k, a, b, m in zip(
                panel.subject_index, panel.start, panel.stop, panel.count, strict=True
            )
        ]
    )
    for effect, exponent in ((None, 0.5), ("gamma", 0.5)):
        widths = [
            np.diff(np.log(HomogeneousPoisson(effect=effect).fit(p).rate_interval()))[0]
            for p in (panel, twice)
        ]
        assert_allclose(widths[0] / widths[1], 2**exponent, rtol=0.05)


def test_unit_of_time():
    panel = random_panel(4, n_subjects=30)
    days = panel_of(
        [
            (k, 30 * a, 30 * b, m)
            for k, a, b, m in zip(
                panel.subject_index, panel.start, panel.stop, panel.count, strict=True
            )
        ]
    )
    for effect in (None, "gamma"):
        months, other = (HomogeneousPoisson(effect=effect).fit(p) for p in (panel, days))
        assert_allclose(months.rate_, 30 * other.rate_, rtol=1e-10)
        assert_allclose(months.frailty_shape_, other.frailty_shape_, rtol=1e-8)
        assert_allclose(months.rate_interval(), 30 * np.array(other.rate_interval()), rtol=1e-7)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="effect must be"):
        HomogeneousPoisson(effect="normal").fit(toy())
    model = HomogeneousPoisson().fit(toy())
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        model.intensity_band(1.0, 1.0)
    with pytest.raises(ValueError, match="kind must be"):
        model.cumulative_band(1.0, 0.9, "global")
    with pytest.raises(NotFittedError):
        HomogeneousPoisson().rate_interval()
