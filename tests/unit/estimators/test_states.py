"""What a fit leaves in a model, and what scikit-learn is told about it."""

import numpy as np
import pytest

import gp4c
from gp4c.exceptions import OutsideWindowError

PANEL = gp4c.simulate_panel(0.5, window=(0, 10), n_subjects=6, n_intervals=3, random_state=3)[0]


def test_the_state_is_what_the_fit_found_and_nothing_private():
    model = gp4c.HomogeneousPoisson(effect=None).fit(PANEL)
    model._private = model._also_private_ = 1
    state = model._state()
    assert "rate_" in state
    assert not {"effect", "_private", "_also_private_"} & set(state)


def test_scikit_learn_needs_no_target():
    tags = gp4c.NPMLE().__sklearn_tags__()
    assert tags.target_tags.required is False
    assert tags.input_tags.two_d_array is False


def test_a_curve_is_not_continued_unless_asked():
    model = gp4c.NPMLE().fit(PANEL).bootstrap(5, random_state=0)
    inside = model.cumulative_band(10.0)
    for question in (model.cumulative, model.cumulative_band):
        with pytest.raises(OutsideWindowError):
            question(11.0)
    assert np.all(np.isfinite(inside))
