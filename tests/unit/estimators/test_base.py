"""The estimator contract, judged by its owner scikit-learn, and the checks every model shares."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.exceptions import NotFittedError, OutsideWindowError
from problems import visits_panel

PANEL = visits_panel(51, 9, 3, level=3.0, window=(0.0, 24.0))
QUICK = {"count_term": "lemma2", "effect": None, "hyper": "optimize", "n_inducing": 6, "tol": 1e-3}


@pytest.fixture(scope="module")
def fitted() -> gp4c.GP4C:
    return gp4c.GP4C(**QUICK).fit(PANEL)


# -- scikit-learn --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [gp4c.GP4C(b=0.7, kernel="matern52"), gp4c.GP4CW(n_inducing=9)])
def test_clones_have_the_same_parameters_and_no_fit(model: gp4c.GP4C) -> None:
    from sklearn.base import clone

    copy = clone(model)
    assert copy is not model
    assert type(copy) is type(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "window_")


def test_a_clone_of_a_fitted_model_is_not_fitted(fitted: gp4c.GP4C) -> None:
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError as SklearnNotFittedError
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(fitted)
    with pytest.raises(SklearnNotFittedError):
        check_is_fitted(clone(fitted))


def test_every_parameter_can_be_set_and_read() -> None:
    for cls in (gp4c.GP4C, gp4c.GP4CW):
        model = cls()
        for name in model.get_params():
            marker = object()
            assert getattr(model.set_params(**{name: marker}), name) is marker


def test_a_parameter_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"no parameter 'bandwidth'; it has n_inducing"):
        gp4c.GP4C().set_params(bandwidth=3)


def test_the_constructor_only_assigns() -> None:
    # nonsense is kept until fit, which names it
    model = gp4c.GP4C(b=7.0, kernel="rbf")
    assert (model.b, model.kernel) == (7.0, "rbf")
    with pytest.raises(ValueError, match=r"b must be in \[0, 1\], not 7\.0"):
        model.fit(PANEL)


def test_the_representation_shows_what_differs_from_the_defaults() -> None:
    assert repr(gp4c.GP4C()) == "GP4C()"
    assert repr(gp4c.GP4C(b=0.5, n_inducing=12)) == "GP4C(n_inducing=12, b=0.5)"


def test_cross_val_score_scores_every_fold() -> None:
    from sklearn.model_selection import KFold, cross_val_score

    folds = KFold(3, shuffle=True, random_state=1)
    scores = cross_val_score(gp4c.GP4C(**QUICK), PANEL, cv=folds)
    assert scores.shape == (3,)
    for (train, test), score in zip(folds.split(PANEL), scores, strict=True):
        assert score == gp4c.GP4C(**QUICK).fit(PANEL[train]).score(PANEL[test])


def test_grid_search_picks_the_best_held_out_score() -> None:
    from sklearn.model_selection import GridSearchCV

    grid = {"b": [0.0, 1.0], "kernel": ["se", "matern32"]}
    search = GridSearchCV(gp4c.GP4C(**QUICK), grid, cv=2).fit(PANEL)
    table = search.cv_results_
    assert len(table["params"]) == 4
    assert np.all(np.isfinite(table["mean_test_score"]))
    assert search.best_params_ == table["params"][int(np.argmax(table["mean_test_score"]))]
    assert search.best_estimator_.get_params()["b"] == search.best_params_["b"]
    assert np.isfinite(search.score(PANEL))


# -- windows, shapes, errors ---------------------------------------------------------------------


def test_before_fit_every_question_gets_the_same_answer() -> None:
    model = gp4c.GP4C()
    for ask in (
        lambda: model.intensity(1.0),
        lambda: model.cumulative([1.0]),
        lambda: model.intensity_band(1.0),
        lambda: model.cumulative_band(1.0),
        lambda: model.sample_intensity(1.0, 3),
        lambda: model.expected_counts(0.0, 1.0),
        lambda: model.score(PANEL),
        lambda: model.elbo_gap(),
        lambda: model.save("nowhere.json"),
    ):
        with pytest.raises(NotFittedError, match="this GP4C is not fitted yet; call fit first"):
            ask()


def test_a_scalar_gives_a_float_and_an_array_its_shape(fitted: gp4c.GP4C) -> None:
    grid = np.linspace(1.0, 20.0, 6).reshape(2, 3)
    for function in (fitted.intensity, fitted.cumulative):
        assert isinstance(function(3.0), float)
        assert isinstance(function(np.float64(3.0)), float)
        assert function(grid).shape == (2, 3)
        assert function([4.0]).shape == (1,)
        assert function(np.zeros(0)).shape == (0,)
        assert_allclose(function(grid)[1, 2], function(20.0), rtol=1e-12)
    for function in (fitted.intensity_band, fitted.cumulative_band):
        low, high = function(3.0)
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert function(grid)[0].shape == (2, 3)
    assert fitted.sample_intensity(grid, 4).shape == (4, 6)
    assert isinstance(fitted.expected_counts(0.0, 4.0), float)
    assert fitted.expected_counts(0.0, grid).shape == (2, 3)


@pytest.mark.parametrize("t", [-0.1, 24.1, [3.0, 30.0]])
def test_outside_the_window_is_an_error_that_names_the_time(fitted: gp4c.GP4C, t: object) -> None:
    for function in (fitted.intensity, fitted.cumulative, fitted.intensity_band):
        with pytest.raises(OutsideWindowError, match=r"outside the observation window \[0, 24\]"):
            function(t)
        function(t, extrapolate=True)


@pytest.mark.parametrize("t", [np.nan, np.inf, [1.0, np.nan]])
def test_times_must_be_numbers(fitted: gp4c.GP4C, t: object) -> None:
    with pytest.raises(ValueError, match="times must be finite numbers"):
        fitted.intensity(t, extrapolate=True)


def test_intervals_must_run_forwards(fitted: gp4c.GP4C) -> None:
    with pytest.raises(ValueError, match="stop must not be before its start"):
        fitted.expected_counts(5.0, 4.0)


def test_a_panel_outside_the_window_cannot_be_scored(fitted: gp4c.GP4C) -> None:
    with pytest.raises(OutsideWindowError):
        fitted.score(visits_panel(1, window=(0.0, 30.0)))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 2.0, np.nan])
def test_levels_are_probabilities(fitted: gp4c.GP4C, level: float) -> None:
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        fitted.intensity_band(3.0, level)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"count_term": "lemma3"}, "count_term must be"),
        ({"kernel": "rbf"}, "kernel must be 'se', 'matern32' or 'matern52'; found 'rbf'"),
        ({"effect": "normal"}, "effect must be"),
        ({"b": np.nan}, r"b must be in \[0, 1\]"),
        ({"mean": "zero"}, "mean must be 'learn' or a number, not 'zero'"),
        ({"n_inducing": 1}, "n_inducing must be at least 2, not 1"),
        ({"hyper": "sample"}, "hyper must be"),
        ({"optimizer": "adam"}, "optimizer must be"),
    ],
)
def test_bad_parameters_are_named_by_fit(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gp4c.GP4C(**parameters).fit(PANEL)
