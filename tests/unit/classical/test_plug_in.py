"""Scores against SciPy's distributions; the scikit-learn contract; saved models."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import gamma as gamma_law
from scipy.stats import multinomial, nbinom, poisson
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

import gp4c
from classical_panels import random_panel, toy
from gp4c.classical.parametric.homogeneous import HomogeneousPoisson
from gp4c.classical.smoothed.local_em import LocalEM
from gp4c.classical.step_functions.step import NPMLE, NPMPLE, NPMPLGF

POISSON = [NPMPLE(), NPMLE(), LocalEM(bandwidth=3.0), HomogeneousPoisson()]
FRAILTY = [NPMPLGF(), NPMLE(effect="gamma"), HomogeneousPoisson(effect="gamma")]


@pytest.fixture(scope="module")
def train():
    return random_panel(21, n_subjects=60)


@pytest.fixture(scope="module")
def test_set():
    return random_panel(22, n_subjects=25, exposure=True).with_window((0.0, 20.0))


def means(model, panel):
    """Expected counts of the rows, floored as documented where events meet no mass."""
    mass = model.expected_counts(panel.start, panel.stop)
    events = 1e-20 if isinstance(model, LocalEM) else 0.5
    floor = events * (panel.stop - panel.start) / model.time_at_risk_
    return panel.exposure * np.where(panel.count > 0, np.maximum(mass, floor), mass)


@pytest.mark.filterwarnings("ignore:.*intervals with events")
@pytest.mark.parametrize("model", POISSON, ids=repr)
def test_score_is_the_poisson_likelihood(model, train, test_set):
    model = clone(model).fit(train.with_window((0.0, 20.0)))
    wanted = poisson.logpmf(test_set.count, means(model, test_set)).sum()
    assert_allclose(model.score(test_set, constant=True), wanted, rtol=1e-10)
    assert_allclose(model.score(test_set), wanted + test_set.log_factorials, rtol=1e-10)
    assert model.score(test_set, joint=False) == model.score(test_set)


@pytest.mark.filterwarnings("ignore:.*intervals with events")
@pytest.mark.parametrize("model", FRAILTY, ids=repr)
def test_score_integrates_the_frailty_of_a_new_subject(model, train, test_set):
    model = clone(model).fit(train.with_window((0.0, 20.0)))
    assert np.isfinite(model.frailty_shape_)
    mean = means(model, test_set)
    wanted = []
    for subject in range(test_set.n_subjects):
        mine = test_set.subject_index == subject
        count, mu = test_set.count[mine], mean[mine]
        total, rate = count.sum(), mu.sum()
        a = model.frailty_shape_
        # the total is negative binomial, and given the total the rows are multinomial
        value = nbinom.logpmf(total, a, a / (a + rate))
        value += multinomial.logpmf(count, total, mu / rate) if total else 0.0
        wanted.append(value)
    per_subject = model.score_subjects(test_set)
    assert per_subject.shape == (test_set.n_subjects,)
    assert_allclose(model.score(test_set, constant=True), sum(wanted), rtol=1e-9)


def test_one_subject_by_integration_over_the_frailty(train):
    model = HomogeneousPoisson(effect="gamma").fit(train)
    panel = train[3]
    a, mu = model.frailty_shape_, means(model, panel)
    integral = quad(
        lambda g: np.prod(poisson.pmf(panel.count, g * mu)) * gamma_law.pdf(g, a, scale=1 / a),
        0.0,
        np.inf,
        epsabs=0.0,
        epsrel=1e-10,
    )[0]
    assert_allclose(model.score(panel, constant=True), np.log(integral), rtol=1e-7)


@pytest.mark.parametrize("model", [*POISSON, *FRAILTY, LocalEM()], ids=repr)
def test_saved_models_answer_to_the_last_bit(model, tmp_path):
    panel = gp4c.load_dataset("bladder").where(treatment="thiotepa")
    model = clone(model).fit(panel)
    model.bootstrap(4, random_state=1)
    model.save(tmp_path / "fit.json")
    loaded = gp4c.load_model(tmp_path / "fit.json")
    assert loaded.get_params() == model.get_params()
    times = np.linspace(*panel.window, 50)
    assert_array_equal(loaded.cumulative(times), model.cumulative(times))
    assert_array_equal(loaded.cumulative_band(times), model.cumulative_band(times))
    half = panel[:20]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gp4c.classical.plug_in.warnings.warn", lambda *a, **k: None)
        assert_array_equal(loaded.score_subjects(half), model.score_subjects(half))
    if hasattr(model, "bandwidth_") or hasattr(model, "rate_"):
        assert_array_equal(loaded.intensity(times), model.intensity(times))
        assert_array_equal(loaded.intensity_band(times), model.intensity_band(times))
    with pytest.raises(gp4c.exceptions.NotFittedError, match="fit it again"):
        loaded.bootstrap(3)


@pytest.mark.parametrize("model", [*POISSON, *FRAILTY, LocalEM.paper()], ids=repr)
def test_scikit_learn_contract(model):
    twin = clone(model)
    assert twin is not model
    assert type(twin) is type(model)
    assert twin.get_params() == model.get_params()
    assert repr(twin) == repr(model)


@pytest.mark.filterwarnings("ignore:.*intervals with events")
@pytest.mark.parametrize("model", [NPMLE(), HomogeneousPoisson(effect="gamma")], ids=repr)
def test_cross_val_score(model):
    panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    scores = cross_val_score(model, panel, cv=KFold(3, shuffle=True, random_state=0))
    assert scores.shape == (3,)
    assert np.all(np.isfinite(scores))


def test_grid_search_over_the_bandwidth():
    panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(LocalEM(), {"bandwidth": [2.0, 6.0]}, cv=folds).fit(panel)
    assert search.best_params_ == {"bandwidth": 6.0}
    assert isinstance(search.best_estimator_, LocalEM)
    assert search.best_estimator_.bandwidth_ == 6.0


@pytest.mark.parametrize("model", [*POISSON, *FRAILTY], ids=repr)
def test_what_summaries_and_forecasts_need_is_kept(model):
    panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    model = clone(model).fit(panel)
    assert model.data_summary_ == {
        "n_subjects": 47,
        "n_intervals": 407,
        "n_events": 283,
        "exposure_time": 1484.0,
        "observed_time": 1484.0,
    }
    assert_array_equal(model.subjects_, panel.subjects)
    assert_array_equal(model.subject_totals_, np.bincount(panel.subject_index, panel.count))
    if model.effect_ is None:
        assert model.subject_expected_ is None
    else:
        last = np.array([panel.stop[panel.subject_index == k].max() for k in range(47)])
        assert_allclose(model.subject_expected_, model.cumulative(last), rtol=1e-9)
    assert type(model).__name__ in str(model.summary())


def test_shapes_follow_the_times():
    model = HomogeneousPoisson().fit(toy())
    assert isinstance(model.cumulative(1), float)
    assert model.cumulative([[0.0, 1.0, 2.0]]).shape == (1, 3)
    assert model.expected_counts(0.0, [1.0, 2.0]).shape == (2,)
    with pytest.raises(ValueError, match="finite"):
        model.cumulative(np.nan)
