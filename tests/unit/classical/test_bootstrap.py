"""Subject-level bootstrap."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gp4c
from classical_panels import panel_of, random_rows, toy
from gp4c.classical import bootstrap as module
from gp4c.classical.bootstrap import resampled_weights
from gp4c.classical.parametric.homogeneous import HomogeneousPoisson
from gp4c.classical.smoothed.local_em import LocalEM
from gp4c.classical.step_functions.step import NPMLE, NPMPLE, NPMPLGF
from gp4c.exceptions import ConvergenceWarning, NotFittedError

MODELS = [
    NPMPLE(),
    NPMLE(),
    NPMLE(effect="gamma"),
    NPMPLGF(),
    LocalEM(bandwidth=3.0),
    HomogeneousPoisson(effect="gamma"),
]


@pytest.fixture(scope="module")
def thiotepa():
    return gp4c.load_dataset("bladder").where(treatment="thiotepa")


def fitted(model, panel):
    return type(model)(**model.get_params()).fit(panel)


def copies(panel, weights):
    """Panel in which subjects are repeated under new names."""
    rows = []
    for subject, weight in enumerate(weights.astype(int)):
        mine = panel.subject_index == subject
        for copy in range(weight):
            rows += [
                (f"{subject} {copy}", a, b, m)
                for a, b, m in zip(
                    panel.start[mine], panel.stop[mine], panel.count[mine], strict=True
                )
            ]
    return panel_of(rows, window=panel.window)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_draw_is_the_fit_to_the_resampled_subjects(model, thiotepa):
    found = fitted(model, thiotepa).bootstrap(3, random_state=5)
    times = np.linspace(*thiotepa.window, 25)
    curves = found._cumulative_draws(times)
    for k in range(3):
        weights = np.empty(thiotepa.n_subjects)
        weights[found._rows.order] = resampled_weights(thiotepa.n_subjects, 5, k)
        refit = fitted(model, copies(thiotepa, weights))
        tolerance = 0.1 if isinstance(model, LocalEM) else 1e-6  # other cells there
        assert_allclose(curves[k], refit.cumulative(times), atol=tolerance)


def test_bandwidth_is_chosen_again_in_each_sample(thiotepa):
    model = LocalEM().fit(thiotepa).bootstrap(6, random_state=0)
    assert len(np.unique(model.bootstrap_["bandwidth"])) > 1
    assert set(model.bootstrap_["bandwidth"]) <= set(model.bandwidths_)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_bands_nest_and_hold_the_estimate(model, thiotepa):
    found = fitted(model, thiotepa).bootstrap(40, random_state=1)
    times = np.linspace(*thiotepa.window, 40)
    low, high = found.cumulative_band(times)
    inner = found.cumulative_band(times, level=0.5)
    outer = found.cumulative_band(times, kind="simultaneous")
    assert np.all(low <= inner[0])
    assert np.all(inner[0] <= inner[1])
    assert np.all(inner[1] <= high)
    assert np.all(outer[0] <= low + 1e-12)
    assert np.all(high <= outer[1] + 1e-12)
    estimate = found.cumulative(times)
    assert np.mean((low <= estimate) & (estimate <= high)) > 0.85
    assert np.all(np.diff(low) >= 0)
    assert isinstance(found.cumulative_band(3.0)[0], float)
    assert found.cumulative_band([[1.0, 2.0]])[1].shape == (1, 2)


def test_simultaneous_band_holds_the_share_of_curves_it_says(thiotepa):
    model = NPMLE().fit(thiotepa).bootstrap(200, random_state=2)
    times = np.linspace(*thiotepa.window, 201)
    low, high = model.cumulative_band(times, level=0.8, kind="simultaneous")
    curves = model._cumulative_draws(times)
    inside = np.all((low <= curves) & (curves <= high), axis=1).mean()
    assert 0.8 <= inside <= 0.86


def test_a_band_at_one_time_does_not_depend_on_the_others(thiotepa):
    model = LocalEM(bandwidth=4.0).fit(thiotepa).bootstrap(20, random_state=3)
    for kind in ("pointwise", "simultaneous"):
        alone = model.intensity_band(7.0, kind=kind)
        among = model.intensity_band([1.0, 7.0, 30.0], kind=kind)
        assert_allclose(alone, [among[0][1], among[1][1]], rtol=1e-12)


def test_standard_error_of_the_constant_rate(thiotepa):
    model = HomogeneousPoisson().fit(thiotepa).bootstrap(2000, random_state=4)
    events = np.bincount(thiotepa.subject_index, thiotepa.count)
    time = np.bincount(thiotepa.subject_index, thiotepa.stop - thiotepa.start)
    # linearised variance of a ratio of sums over subjects
    wanted = np.sqrt(((events - model.rate_ * time) ** 2).sum()) / time.sum()
    assert_allclose(model.bootstrap_["rate"].std(), wanted, rtol=0.1)
    low, high = model.intensity_band(1.0)
    assert high - low > 1.8 * np.diff(HomogeneousPoisson().fit(thiotepa).rate_interval())[0]


def test_labels_change_no_draw():
    rows = random_rows(6, n_subjects=12)
    first = NPMLE().fit(panel_of(rows)).bootstrap(5, random_state=0)
    renamed = [(f"z{97 * row[0] % 101}", *row[1:]) for row in reversed(rows)]
    second = NPMLE().fit(panel_of(renamed)).bootstrap(5, random_state=0)
    assert_array_equal(first.bootstrap_["values"], second.bootstrap_["values"])


def test_more_samples_keep_those_there_are(thiotepa):
    model = NPMPLE().fit(thiotepa).bootstrap(4, random_state=9)
    few = model.bootstrap_["values"].copy()
    model.bootstrap(10, random_state=9)
    assert_array_equal(model.bootstrap_["values"][:4], few)
    fresh = NPMPLE().fit(thiotepa).bootstrap(10, random_state=9)
    assert_array_equal(model.bootstrap_["values"], fresh.bootstrap_["values"])
    model.bootstrap(10, random_state=10)
    assert not np.array_equal(model.bootstrap_["values"], fresh.bootstrap_["values"])


def test_processes_change_nothing(thiotepa):
    one = NPMLE().fit(thiotepa).bootstrap(6, random_state=1)
    two = NPMLE().fit(thiotepa).bootstrap(6, n_jobs=2, random_state=1)
    assert_array_equal(one.bootstrap_["values"], two.bootstrap_["values"])


def test_an_interruption_keeps_what_is_done(thiotepa, monkeypatch):
    model = NPMPLE().fit(thiotepa)
    whole = NPMPLE().fit(thiotepa).bootstrap(16, random_state=3).bootstrap_["values"]
    plain = module._replicates

    def interrupted(estimator, rows, indices, seed):
        if indices[0] >= 8:
            raise KeyboardInterrupt
        return plain(estimator, rows, indices, seed)

    monkeypatch.setattr(module, "_replicates", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.bootstrap(16, random_state=3)
    done = len(model.bootstrap_["values"])
    assert 0 < done < 16
    monkeypatch.setattr(module, "_replicates", plain)
    model.bootstrap(16, random_state=3)
    assert_array_equal(model.bootstrap_["values"], whole)


def test_random_state_may_be_a_generator_or_nothing(thiotepa):
    first = NPMPLE().fit(thiotepa).bootstrap(3, random_state=np.random.default_rng(1))
    second = NPMPLE().fit(thiotepa).bootstrap(3, random_state=np.random.default_rng(1))
    assert_array_equal(first.bootstrap_["values"], second.bootstrap_["values"])
    third = NPMPLE().fit(thiotepa).bootstrap(3)
    assert third.bootstrap_["values"].shape == first.bootstrap_["values"].shape


def test_progress_is_shown_on_request(thiotepa, capsys):
    NPMPLE().fit(thiotepa).bootstrap(4, random_state=0, progress=True)
    assert "bootstrap" in capsys.readouterr().out
    NPMPLE().fit(thiotepa).bootstrap(4, random_state=0)
    assert capsys.readouterr().out == ""


def test_without_a_bootstrap_the_error_names_it():
    with pytest.raises(NotFittedError, match=r"call bootstrap\(200\) first"):
        NPMPLE().fit(toy()).cumulative_band(1.0)
    with pytest.raises(NotFittedError, match=r"call bootstrap\(200\) first"):
        LocalEM(bandwidth=1.0).fit(toy()).intensity_band(1.0)
    with pytest.raises(NotFittedError):
        NPMPLE().bootstrap(10)


def test_wrong_arguments():
    model = NPMPLE().fit(toy())
    for n in (0, 2.5, "many"):
        with pytest.raises(ValueError, match="n must be a positive integer"):
            model.bootstrap(n)
    model.bootstrap(3, random_state=0)
    with pytest.raises(ValueError, match="level must be between"):
        model.cumulative_band(1.0, level=0.0)
    with pytest.raises(ValueError, match="kind must be"):
        model.cumulative_band(1.0, kind="wide")


def test_unfinished_fits_are_announced(thiotepa):
    with pytest.warns(ConvergenceWarning, match="NPMLE stopped"):
        model = NPMLE(method="em", max_iter=1).fit(thiotepa)
    with pytest.warns(ConvergenceWarning, match="of 3 bootstrap fits did not converge"):
        model.bootstrap(3, random_state=0)


def test_one_subject_has_one_bootstrap_sample():
    model = HomogeneousPoisson().fit(panel_of([("a", 0.0, 2.0, 4)])).bootstrap(3, random_state=0)
    assert_allclose(model.intensity_band(1.0), 2.0)
