"""Pearson's test of growth models: size, power, and which rows make a class."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from classical_panels import panel_of
from gp4c.classical.parametric.goodness import _classes
from gp4c.exceptions import PanelDataError


def simulated(seed, rate, variance=0.0, phi=0.0, n=25):
    rng = np.random.default_rng(seed)
    edges, rows = np.linspace(0.0, 12.0, 13), []
    for k in range(n):
        effect = rng.gamma(1 / variance) * variance if variance else 1.0
        mean = effect * rate(edges[1:])
        count = rng.poisson(rng.gamma(mean / phi) * phi if phi else mean)
        rows += list(zip([k] * 12, edges[:-1], edges[1:], count.tolist(), strict=True))
    return panel_of(rows)


def flat(t):
    return np.full_like(t, 0.8)


def turning(t):
    return 0.2 + 1.5 * np.exp(-((t - 6) ** 2) / 4)


def test_rows_of_one_time_stay_together_and_classes_are_large():
    rng = np.random.default_rng(0)
    middle, expected = rng.integers(0, 30, 400) / 2.0, rng.gamma(1.0, 0.3, 400)
    classes = _classes(middle, expected)
    assert np.bincount(classes, expected).min() >= 5.0
    assert len(np.unique(np.stack([middle, classes]), axis=1).T) == len(np.unique(middle))
    assert np.all(np.diff(classes[np.argsort(middle)]) >= 0)


def test_the_size_is_right_without_and_with_overdispersion():
    plain = [
        gp4c.LogLinear().fit(simulated(seed, flat)).goodness_of_fit().p_value for seed in range(120)
    ]
    assert 3 <= sum(p <= 0.1 for p in plain) <= 23  # of 120 at 0.1: one in 1000 outside
    wild = []
    for seed in range(24):
        model = gp4c.LogLinear(effect="gamma", bursts=True).fit(simulated(seed, flat, 0.5, 1.5))
        found = model.goodness_of_fit(39)
        assert "bootstrap" in found.method or model.dispersion_ == 1.0
        wild.append(found.p_value)
    assert sum(p <= 0.1 for p in wild) <= 8  # of 24 at 0.1: one in 1000 above


def test_a_rate_that_turns_is_found():
    plain = gp4c.PowerLaw().fit(simulated(1, turning)).goodness_of_fit()
    assert plain.p_value < 1e-6
    assert "speak against" in str(plain)
    assert_allclose(plain.table["observed"].sum(), plain.table["expected"].sum())
    panel = simulated(1, turning, 0.5, 1.0, n=60)
    assert gp4c.PowerLaw(effect="gamma", bursts=True).fit(panel).goodness_of_fit(99).p_value < 0.05


def test_too_few_classes_are_said():
    panel = panel_of([("a", 0.0, 1.0, 3), ("a", 1.0, 2.0, 5)])
    with pytest.raises(PanelDataError, match="a test of this curve takes 3"):
        gp4c.LogLinear().fit(panel).goodness_of_fit()
