"""Paths that do not depend on which times are asked for: their law at every time."""

import numpy as np
import pytest

import gp4c
from gp4c.posterior.forecasting import intensity_paths
from gp4c.posterior.sparse_posterior import Posterior


@pytest.fixture(scope="module")
def model():
    panel, _ = gp4c.simulate_panel(
        lambda t: 1 + np.sin(t), window=(0, 8), n_subjects=5, n_intervals=3, random_state=2
    )
    # few inducing inputs for a short length-scale: what they leave open is not small
    return gp4c.GP4C(effect=None, hyper="optimize", count_term="pointwise", n_inducing=4).fit(panel)


def test_paths_have_the_law_of_the_posterior_at_every_time(model):
    times, n = np.array([0.4, 3.0, 5.1, 8.0]), 60_000
    paths = intensity_paths(model.posterior_, times, n, np.random.SeedSequence(3))
    error = paths.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(paths.mean(axis=0) - model.intensity(times)) < 5 * error)
    for level in (0.5, 0.9):
        low, high = model.intensity_band(times, level=level)
        inside = ((paths > low) & (paths < high)).mean(axis=0)
        assert np.all(np.abs(inside - level) < 5 * np.sqrt(level * (1 - level) / n))


def test_a_path_is_the_same_whatever_else_is_asked_for(model):
    seed = np.random.SeedSequence(4)
    both = intensity_paths(model.posterior_, np.array([1.0, 6.0]), 50, seed)
    one = intensity_paths(model.posterior_, np.array([6.0]), 50, seed)
    np.testing.assert_allclose(both[:, 1:], one)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_any_root_of_the_covariance_gives_the_same_law(sign):
    inducing = np.linspace(0.0, 1.0, 5)
    root = sign * (0.4 * np.eye(5) + 0.2 * np.tri(5, k=-1))
    mean, times, n = np.full(5, 0.3), np.array([0.7, 5.0, 9.0]), 40_000
    posterior = Posterior("se", 0.4, 0.6, 0.8, inducing, mean, root, (0.0, 10.0), 20.0)
    paths = intensity_paths(posterior, times, n, np.random.SeedSequence(5))
    error = paths.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(paths.mean(axis=0) - posterior.intensity(times)) < 5 * error)
