"""scikit-learn's own tools run on panels: a sample is a subject."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.utils import resample

import gp4c


class ConstantRate(BaseEstimator):
    """Events per unit of exposure time, shrunk; scored by squared error."""

    def __init__(self, *, shrink=1.0):
        self.shrink = shrink

    def fit(self, X, y=None):
        assert isinstance(X, gp4c.PanelCounts)
        self.rate_ = self.shrink * X.n_events / np.sum(X.exposure * (X.stop - X.start))
        self.window_ = X.window
        self.n_subjects_ = len(X)
        return self

    def score(self, X, y=None):
        return -float(np.mean((X.count - self.rate_ * X.exposure * (X.stop - X.start)) ** 2))


@pytest.fixture(scope="module")
def panel():
    return gp4c.load_dataset("bladder").where(group="B")


def test_cross_val_score_equals_a_loop_over_folds(panel):
    folds = KFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(ConstantRate(), panel, cv=folds)
    expected = [
        ConstantRate().fit(panel[train]).score(panel[test])
        for train, test in folds.split(np.arange(len(panel)))
    ]
    assert scores.tolist() == expected


def test_folds_keep_the_window_and_part_the_subjects(panel):
    result = cross_validate(ConstantRate(), panel, cv=4, return_estimator=True)
    assert {fit.window_ for fit in result["estimator"]} == {panel.window}
    assert sorted(fit.n_subjects_ for fit in result["estimator"]) == [35, 35, 35, 36]


def test_grid_search_finds_the_better_parameter(panel):
    search = GridSearchCV(ConstantRate(), {"shrink": [0.0, 1.0, 50.0]}, cv=3).fit(panel)
    assert search.best_params_ == {"shrink": 1.0}
    assert search.best_estimator_.n_subjects_ == len(panel)


def test_splitters_and_samplers_take_panels(panel):
    train, test = next(ShuffleSplit(1, test_size=10, random_state=0).split(panel))
    assert len(panel[train]) == 37
    assert len(panel[test]) == 10
    one, two = train_test_split(panel, test_size=0.5, random_state=0)
    assert isinstance(one, gp4c.PanelCounts)
    assert len(one) + len(two) == len(panel)
    drawn = resample(panel, random_state=0)
    assert len(drawn) == len(panel)
    assert len(set(drawn.subjects)) < len(panel)
    assert drawn.n_events == sum(panel[k].n_events for k in _drawn(panel, drawn))


def _drawn(panel, sample):
    position = {label: k for k, label in enumerate(panel.subjects.tolist())}
    return [position[label] for label in sample.subjects.tolist()]
