"""Sums over pairs of subjects and windows, against loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.estimators.forecasts.joint_counts import Asked


def by_loop(asked, effect, inside):
    """The definition: pair by pair."""
    start, stop, _ = asked.windows
    place = {pair: k for k, pair in enumerate(zip(start, stop, strict=True))}
    total = np.zeros((asked.n_cells, effect.shape[1]))
    for p in range(len(asked.subject)):
        window = place[asked.start[p], asked.stop[p]]
        total[asked.cell[p]] += asked.units[p] * effect[asked.subject[p]] * inside[window]
    return total


@pytest.mark.parametrize("kind", ["pairs", "sums", "cut"])
def test_means_are_sums_over_pairs(kind):
    rng = np.random.default_rng(2)
    n_subjects, n_windows = 7, 4
    who, which = np.divmod(np.arange(n_subjects * n_windows), n_windows)
    start, stop = which.astype(float), which + 1.0
    if kind == "cut":  # one subject leaves in the middle of a window
        stop = np.where(who == 3, np.clip(2.5, start, stop), stop)
    cell = np.arange(len(who)) if kind == "pairs" else which
    units = rng.uniform(0.5, 2, n_subjects)[who]
    asked = Asked(who, start, stop, units, cell, int(cell.max()) + 1)
    effect = rng.gamma(1, 1, (n_subjects, 5))
    inside = rng.uniform(0, 3, (len(asked.windows[0]), 5))
    assert_allclose(asked.means(effect, inside), by_loop(asked, effect, inside), rtol=1e-12)


def test_the_same_subjects_in_every_window_are_summed_once():
    who, which = np.divmod(np.arange(1000 * 24), 24)
    units = np.ones(len(who))
    asked = Asked(who, which * 1.0, which + 1.0, units, which, 24)
    assert asked._terms[2].shape == (1, 1000)
