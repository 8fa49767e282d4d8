"""A fit looks back at its data: quickly, without false alarms, and it sees bursts."""

from dataclasses import astuple
from time import perf_counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.analysis.fit_checks import check_fit
from gp4c.estimators.fit_warnings import look_back
from gp4c.exceptions import FitWarning, OverdispersionWarning

GAMMA = gp4c.HomogeneousPoisson(effect="gamma")


def simulated(seed, phi=None):
    return gp4c.simulate_panel(
        0.2, n_subjects=50, n_intervals=8, frailty=1.0, bursts=phi, random_state=seed
    )[0]


@pytest.mark.filterwarnings("ignore::gp4c.exceptions.FitWarning")
@pytest.mark.parametrize("bursts", [False, True])
def test_it_agrees_with_the_check_that_draws_replicates(bursts):
    panel = simulated(0, 2.0)
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=bursts).fit(panel)
    own, full = model.fit_check_, check_fit(model, panel)
    assert_allclose(own.dispersion, full.within.pooled, rtol=1e-9)
    assert_allclose(own.allowed, full.within.pooled_fitted, rtol=0.05)
    assert_allclose(own.time_p_value, full.over_time.p_value, atol=0.1)
    assert_allclose(own.nonparametric, full.mean.npmle, rtol=0.1)
    assert own.varies_more is not bursts


def test_p_values_are_about_uniform_where_the_law_is_right():
    found = np.array([GAMMA.fit(simulated(seed)).fit_check_.p_value for seed in range(80)])
    assert 0.35 < found.mean() < 0.65
    assert (found < 0.01).sum() <= 4


def test_a_warning_names_the_remedy():
    with pytest.warns(FitWarning, match="within subjects as the fitted model allows.*bursts=True"):
        GAMMA.fit(simulated(1, 3.0))
    assert issubclass(FitWarning, OverdispersionWarning)


def test_it_costs_next_to_nothing():
    panel = gp4c.load_dataset("bladder")
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    look_back(model, panel)
    times = []
    for _ in range(5):
        began = perf_counter()
        look_back(model, panel)
        times.append(perf_counter() - began)
    assert min(times) < 0.01


def test_it_is_saved_with_the_model(tmp_path):
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(simulated(2))
    model.save(tmp_path / "m.json")
    assert astuple(gp4c.load_model(tmp_path / "m.json").fit_check_) == astuple(model.fit_check_)


def test_data_that_say_nothing_pass():
    frame = {"subject": [1, 2], "start": [0, 0], "stop": [5, 8], "count": [0, 0]}
    check = gp4c.HomogeneousPoisson().fit(gp4c.PanelCounts.from_frame(frame)).fit_check_
    assert (check.dispersion, check.allowed, check.p_value) == (1.0, 1.0, 1.0)
    assert not check.varies_more
    assert not check.comes_at_other_times
