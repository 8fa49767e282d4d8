"""GP3 and mixed data: exact event times in the same model."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

import gp4c
from gp4c.data.events import RecurrentEvents


def truth(t: np.ndarray) -> np.ndarray:
    return 2.0 + np.sin(t / 3.0)


@pytest.fixture(scope="module")
def data() -> tuple[gp4c.PanelCounts, RecurrentEvents]:
    return gp4c.simulate_panel(truth, window=(0, 20), n_subjects=40, n_intervals=6, random_state=3)


def test_the_objective_is_the_expected_log_likelihood_minus_the_divergence(
    data: tuple[gp4c.PanelCounts, RecurrentEvents],
) -> None:
    events = data[1][np.arange(20)]
    # with a learned mean the posterior is widened by the spread of the level, and with few events
    # its level is sampled: the bound's q is neither
    model = gp4c.GP3(n_inducing=10, mean=1.5).fit(events)
    component = model.posterior_.components[0]
    scale = model.posterior_.scale

    def expected_log(t: float) -> float:
        mean, variance = component.moments(np.array([t / 20.0]))
        m, s = float(mean[0]), float(np.sqrt(variance[0]))

        def integrand(y: float) -> float:
            return float(np.log(scale * y * y) * norm.pdf(y, m, s))

        low, high = m - 12 * s, m + 12 * s
        points = [0.0] if low < 0 < high else None
        return quad(integrand, low, high, points=points, limit=200)[0]

    logs = sum(expected_log(float(t)) for t in events.time[:40])
    assert model.elbo_ == model.objective_
    assert model.elbo_gap() == 0.0  # event times need no bound of a count
    everything = sum(expected_log(float(t)) for t in events.time)
    exposure = 20 * model.cumulative(20.0)
    assert logs < everything  # rates above one per unit of time: more events, more log density
    assert_allclose(everything - exposure - model.terms_.kl, model.objective_, rtol=1e-6)


def test_exact_times_give_a_better_curve_than_counts(
    data: tuple[gp4c.PanelCounts, RecurrentEvents],
) -> None:
    panel, events = data
    t = np.linspace(0, 20, 201)
    fast = {"count_term": "pointwise", "hyper": "optimize", "effect": None}
    errors = [
        np.mean((model.intensity(t) - truth(t)) ** 2)
        for model in (gp4c.GP3().fit(events), gp4c.GP4C(**fast).fit(panel))
    ]
    assert errors[0] < 0.05
    assert errors[0] < errors[1]


def test_mixed_data_lie_between(data: tuple[gp4c.PanelCounts, RecurrentEvents]) -> None:
    panel, events = data
    half = np.arange(20)
    fast = {"count_term": "pointwise", "hyper": "optimize", "effect": None}
    mixed = gp4c.GP4C(**fast).fit(panel[half], events=events[half + 20])
    assert mixed.data_summary_["n_subjects"] == 40
    assert_allclose(mixed.cumulative(20.0), data[0].n_events / 40, rtol=0.05)
    # the exact subjects' log intensities are in the bound
    assert mixed.terms_.events != 0.0
    assert mixed.terms_.counts != 0.0


def test_save_and_load(data: tuple[gp4c.PanelCounts, RecurrentEvents], tmp_path: object) -> None:
    model = gp4c.GP3(n_inducing=10, effect="gamma").fit(data[1])
    path = f"{tmp_path}/gp3.json"
    model.save(path)
    again = gp4c.load_model(path)
    t = np.linspace(0, 20, 7)
    assert np.array_equal(model.intensity(t), again.intensity(t))
    assert model.score(data[0]) == again.score(data[0])
