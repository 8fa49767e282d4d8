"""Pseudo-likelihood estimators against scikit-learn's isotonic regression.

NPMPLE itself is compared in unit/classical/step_functions/test_step.py; here the one with
frailties, whose curve solves an isotonic regression in which every subject weighs its expected
frailty.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma
from sklearn.isotonic import IsotonicRegression

import gp4c
from classical_panels import random_panel


@pytest.mark.parametrize("seed", range(5))
def test_the_frailty_curve_is_a_weighted_isotonic_regression(seed: int) -> None:
    panel = random_panel(seed, n_subjects=25)
    model = gp4c.NPMPLGF().fit(panel)
    shape, effects = model.frailty_shape_, model.subject_effects_
    assert np.isfinite(shape)
    first = np.diff(panel.subject_index, prepend=-1) != 0
    running = np.cumsum(panel.count)
    totals = running - np.maximum.accumulate(np.where(first, running - panel.count, 0))
    weights = effects[panel.subject_index]
    theirs = IsotonicRegression().fit(panel.stop, totals / weights, sample_weight=weights)
    assert_allclose(model.cumulative(panel.stop), theirs.predict(panel.stop), rtol=1e-6, atol=1e-9)
    # frailties and their shape belong to that curve
    summed = np.bincount(panel.subject_index, totals)
    level = np.bincount(panel.subject_index, model.cumulative(panel.stop))
    assert_allclose(effects, (shape + summed) / (shape + level), rtol=1e-9)
    logs = digamma(shape + summed) - np.log(shape + level)
    score = np.log(shape) + 1.0 - digamma(shape) + np.mean(logs - effects)
    assert abs(score) < 1e-7
