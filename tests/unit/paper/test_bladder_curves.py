"""Curves on one split of the bladder data, with estimators that are quick."""

import numpy as np
import pytest

import gp4c
from gp4c.paper.studies import trial_curves as curves

QUICK = {"hyper": "optimize", "n_inducing": 6, "count_term": "pointwise"}


@pytest.fixture
def quick(monkeypatch):
    made = {
        "LocalEM": lambda: gp4c.LocalEM(bandwidth=10.0),
        "GP4C": lambda: gp4c.GP4C(effect=None, **QUICK),
        "GP4CW": lambda: gp4c.GP4CW(**QUICK),
        "default": lambda: gp4c.GP4C(effect="gamma", **QUICK),
    }
    monkeypatch.setattr(curves, "real_estimators", lambda seed: made)


def test_bladder_curves_and_scores(quick):
    found = curves.bladder_curves(seed=0)
    assert set(found["curves"]) == {"LocalEM", "GP4C", "GP4CW", "default"}
    assert set(found["scores"]) == {*found["curves"], "GP4CW honest"}
    assert not set(found["train"]) & set(found["test"])
    assert len(found["test_events"]) == len(found["test"])
    for scores in found["scores"].values():
        assert len(scores) == len(found["test"])
        assert np.all(np.isfinite(scores))
    # weights refitted on the scored subjects know their counts; honest ones do not
    assert sum(found["scores"]["GP4CW"]) > sum(found["scores"]["GP4CW honest"])


def test_a_split_that_is_nowhere_is_an_error(monkeypatch):
    monkeypatch.setattr(curves, "_MOST_SPLITS", 0)
    with pytest.raises(RuntimeError, match="none of 0 splits"):
        curves.bladder_split(0)
