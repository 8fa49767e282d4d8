"""Draws for ArviZ, quickly: how many, in which units, and likelihoods with free weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import poisson

import gp4c

arviz = pytest.importorskip("arviz")
PANEL, EVENTS = gp4c.simulate_panel(
    0.4, window=(3, 15), n_subjects=6, n_intervals=3, random_state=2
)
QUICK = {"hyper": "optimize", "n_inducing": 4, "count_term": "pointwise"}


@pytest.fixture(scope="module")
def weighted():
    return gp4c.GP4C(effect="weight", **QUICK).fit(PANEL)


def draws(data, name):
    values = data[name].to_numpy()
    return values.reshape(-1, *values.shape[2:])


@pytest.mark.parametrize(("asked", "got"), [({"n_draws": 40}, 40), ({"n_draws": 1}, 4), ({}, 2000)])
def test_as_many_draws_as_asked_for(weighted, asked, got):
    assert len(draws(weighted.to_arviz(n_points=5, **asked).posterior, "f")) == got


def test_hyper_parameters_are_in_the_data_s_units(weighted):
    constant = weighted.to_arviz(n_draws=8, n_points=5).constant_data
    assert_allclose(float(constant["length_scale"]), weighted.length_scale_)
    assert_allclose(float(constant["prior_variance"]), weighted.variance_)
    assert_allclose(float(constant["prior_mean"]), weighted.mean_)


def test_likelihoods_with_free_weights_are_poisson_probabilities(weighted):
    # the mean of each interval from the draw's own curve, by interpolation on a fine grid
    data = weighted.to_arviz(n_draws=4, n_points=6000)
    times = np.append(3.0, data.posterior["time"].to_numpy())
    found = draws(data.log_likelihood, "counts")
    for draw, curve in enumerate(draws(data.posterior, "cumulative_intensity")):
        at = np.interp(np.stack([PANEL.start, PANEL.stop]), times, np.append(0.0, curve))
        mean = weighted.subject_effects_[PANEL.subject_index] * (at[1] - at[0])
        terms = poisson.logpmf(PANEL.count, mean)
        expected = np.bincount(PANEL.subject_index, terms, PANEL.n_subjects)
        assert_allclose(found[draw], expected, rtol=1e-4)


def test_a_model_from_a_file_knows_its_subjects_and_takes_its_rows(weighted, tmp_path):
    weighted.save(tmp_path / "fit.json")
    read = gp4c.load_model(tmp_path / "fit.json")
    assert "interval_count" not in read.to_arviz(n_draws=8, n_points=5).constant_data
    found = read.to_arviz(PANEL, n_draws=8, n_points=5)
    assert_allclose(found.constant_data["interval_count"], PANEL.count)
    assert found.observed_data["counts"].to_numpy().tolist() == np.bincount(
        PANEL.subject_index, PANEL.count
    ).astype(int).tolist()  # fmt: skip


def test_draws_of_a_curve_without_a_sign_have_its_intensity():
    """With a prior mean of 0 and few events half of the draws are negative, and are turned."""
    few = gp4c.simulate_panel(0.05, window=(3, 15), n_subjects=3, n_intervals=2, random_state=1)[0]
    model = gp4c.GP4C(effect=None, mean=0.0, **QUICK).fit(few)
    posterior = model.to_arviz(n_draws=4000, n_points=7).posterior
    f = draws(posterior, "f")
    assert np.all(f.mean(axis=1) >= 0)
    assert (f[:, 0] < 0).mean() > 0.05  # though not everywhere
    assert_allclose(draws(posterior, "intensity"), f**2)
    error = (f**2).std(axis=0) / np.sqrt(len(f))
    truth = model.intensity(posterior["time"].to_numpy())
    assert np.all(np.abs((f**2).mean(axis=0) - truth) < 4 * error)
    mass = draws(posterior, "cumulative_intensity")
    error = mass.std(axis=0) / np.sqrt(len(mass))
    whole = model.cumulative(posterior["time"].to_numpy())
    assert np.all(np.abs(mass.mean(axis=0) - whole) <= 4 * error + 1e-12)
