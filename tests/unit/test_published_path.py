"""The re-created path of the published program: its bound, its gradients, its optimiser."""

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime

import gp4c

FOLDER = Path(__file__).parents[2] / "benchmarks"
SIZE = 8


@pytest.fixture
def modules(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import naive_reference
    import published_path
    import two_metric

    yield published_path, naive_reference, two_metric
    for name in ("published_path", "naive_reference", "two_metric", "speed", "provenance"):
        sys.modules.pop(name, None)


@pytest.fixture
def setting(modules):
    _, naive_reference, _ = modules
    panel, _ = gp4c.simulate_panel(
        "square_wave", window=(0, 60), n_subjects=5, n_intervals=4, random_state=0
    )
    data = naive_reference.Intervals.of(panel.start, panel.stop, panel.count.astype(float))
    rng = np.random.default_rng(0)
    C = np.tril(0.1 * rng.normal(size=(SIZE, SIZE))) + 0.3 * np.eye(SIZE)
    return data, np.linspace(0, 60, SIZE), 2 + rng.random(SIZE), C


def test_with_g_everywhere_the_bound_is_that_of_the_slow_program(modules, setting):
    published_path, naive_reference, _ = modules
    data, z, mu, C = setting
    slow = naive_reference.NaiveBound(data, z, 2.1, 0.6, remember=False)
    expected = slow.by_q(naive_reference.Prior(z, 6.0, 1.3), mu, C)
    prior = published_path.Prior(data, z, 6.0, 1.3, 1.3e-6)
    found = published_path.Bound(data, 2.1, 0.6, mean_everywhere=True).by_q(prior, mu, C)
    for one, other in zip(found, expected, strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("everywhere", [False, True])
def test_gradients_against_differences(modules, setting, everywhere):
    published_path, _, _ = modules
    data, z, mu, C = setting
    bound = published_path.Bound(data, 2.1, 0.6, everywhere)

    def over_hyper(theta):
        return bound.by_hyper(published_path.Prior(data, z, *np.exp(theta), 1e-6), mu, C)

    theta = np.log([6.0, 1.3])
    numeric = approx_fprime(theta, lambda t: over_hyper(t)[0], 1e-6)
    assert_allclose(over_hyper(theta)[1], numeric, rtol=1e-4)
    prior = published_path.Prior(data, z, 6.0, 1.3, 1e-6)
    numeric = approx_fprime(mu, lambda m: bound.by_q(prior, m, C)[0], 1e-6)
    assert_allclose(bound.by_q(prior, mu, C)[1], numeric, rtol=1e-4, atol=1e-3)


def test_the_two_metric_projection_finds_an_optimum_on_its_bounds(modules):
    _, _, two_metric = modules
    peak, low = np.array([1.0, -2.0, 3.0]), np.array([-np.inf, -1.0, -np.inf])
    curve = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.0], [0.0, 0.0, 5.0]])

    def function(x):
        return -(x - peak) @ curve @ (x - peak) / 2, -curve @ (x - peak)

    x, value = two_metric.two_metric(function, np.zeros(3), low, np.full(3, np.inf), 200)
    # at x₂ = −1 the others solve the rest of the equations
    assert_allclose(x, [1 - 0.15, -1.0, 3.0], atol=1e-4)
    assert value == function(x)[0]
