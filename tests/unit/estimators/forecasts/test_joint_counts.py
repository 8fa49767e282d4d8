"""Sums over pairs of subjects and windows, against loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
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


@pytest.fixture(scope="module")
def panel():
    return gp4c.simulate_panel(
        0.1, window=(0, 40), n_subjects=30, n_intervals=4, frailty=("gamma", 1.0), random_state=2
    )[0]


def test_a_subject_named_for_two_windows_has_one_effect_in_both(panel):
    """Spread of the sum of pairs, against counts simulated from the subject's gamma law."""
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    busy, other = panel.subjects[np.argsort(-model.subject_totals_)[:2]].tolist()
    found = model.forecast([40, 40, 60], [60, 60, 100], subjects=[busy, other, busy], n_draws=40000)
    assert found.subjects == [busy, other, busy]
    assert found.draws.shape == (40000, 3)
    at = panel.subjects.tolist().index(busy)
    rng, shape = np.random.default_rng(1), model.frailty_shape_
    known, expected = shape + model.subject_totals_[at], shape + 40 * model.rate_
    effect = rng.gamma(known, 1 / expected, 400_000)
    simulated = rng.poisson(60 * model.rate_ * effect)
    together = found.draws[:, [0, 2]].sum(axis=1)
    assert_allclose(together.mean(), simulated.mean(), rtol=0.02)
    assert_allclose(together.var(), simulated.var(), rtol=0.05)
    apart = np.corrcoef(found.draws.T)
    assert abs(apart[0, 1]) < 0.03  # another subject, and a curve without uncertainty


@pytest.mark.parametrize("options", [{"bursts": False}, {"bursts": True}], ids=["exact", "bursts"])
def test_pairs_of_one_subject_are_those_of_each_window_for_it(panel, options):
    """Two routes to one law: the subject once with two windows, and named twice."""
    model = gp4c.GP4C(effect="gamma", **options).fit(panel)
    label = panel.subjects[0].item()
    windows = [40, 50], [50, 60]
    once = model.forecast(*windows, subjects=label, random_state=1)
    twice = model.forecast(*windows, subjects=[label, label], random_state=1)
    assert twice.pairs
    np.testing.assert_array_equal(twice.draws, once.draws)
