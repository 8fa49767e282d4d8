"""Weights: evidence and curves against brute force from the prior; smoothing of weights."""

import numpy as np
import pytest
from engine_tasks import COMBINATIONS, task_of, tiny_panel
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from gp4c.inference.engine.landscape import split_level
from gp4c.inference.engine.lattice import LENGTHS, find_modes
from gp4c.inference.engine.pareto import pareto_smoothed
from gp4c.inference.engine.weigh import weigh
from gp4c.model.hyper_priors import VARIATION

#: length-scales of the brute-force sum, and draws from the prior at each
N_LENGTHS, N_DRAWS = 25, 8000


def brute_force(task, times):
    """Log evidence with its error, and E f² at times, by draws from the prior."""
    rng = np.random.default_rng(11)
    lengths = np.linspace(*LENGTHS, N_LENGTHS)
    step = lengths[1] - lengths[0]
    both = (*task.likelihood.effect.parameters, *task.likelihood.law.parameters)
    logs, curves = [], []
    for log_length in lengths:
        land = task.landscape(log_length)
        x = rng.standard_normal((land.dimension, N_DRAWS))
        for k, parameter in enumerate(both):
            row = land.size + 1 + k
            x[row] = parameter.mean + parameter.deviation * x[row]
        u = rng.normal(*VARIATION, N_DRAWS)
        density = land.log_density(x, u) - land.log_prior(x, u) + land.log_prior_length
        logs.append(density + np.log(step / N_DRAWS))
        curves.append(np.exp(x[land.size]) * land.curve_at(times, x, u) ** 2)
    logs, curves = np.concatenate(logs), np.concatenate(curves, axis=1)
    evidence = logsumexp(logs)
    weight = np.exp(logs - evidence)
    effective = 1 / (weight**2).sum()
    return (
        evidence,
        1 / np.sqrt(effective),
        curves @ weight,
        curves.std(axis=1) / np.sqrt(effective),
    )


def curves_of(found, times):
    """E f² at times from weighted draws."""
    total, first = 0.0, 0
    for sheaf in found.sheaves:
        n = sheaf.x.shape[1]
        land = sheaf.point.mode.landscape
        square = land.curve_at(times, sheaf.x, np.full(n, sheaf.u)) ** 2
        total = total + (np.exp(sheaf.x[land.size]) * square) @ found.weights[first : first + n]
        first += n
    return total


@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_evidence_and_mean_agree_with_draws_from_the_prior(law, effect):
    task = task_of(tiny_panel(), law, effect)
    times = np.linspace(0.05, 0.95, 5)
    expected, error, mean, mean_error = brute_force(task, times)
    # a lattice of some sixty points on data that say little: few draws each, and heavy tails
    found = weigh(find_modes(task), 30_000, np.random.default_rng(0))
    # the lattice of the brute-force sum is as coarse as ours: 0.05 nat between the two
    assert abs(found.log_evidence - expected) < 4 * error + 0.08
    assert_allclose(curves_of(found, times), mean, atol=5 * mean_error.max() + 0.02 * mean.max())


def test_weights_do_not_depend_on_the_mixture():
    """Two proposals, one posterior: without and with extra components."""
    task = task_of(tiny_panel(), "bursts", "gamma")
    lattice = find_modes(task)
    few, many = (
        weigh(lattice, 6000, np.random.default_rng(seed), rounds=rounds)
        for seed, rounds in ((1, 0), (2, 4))
    )
    assert abs(few.log_evidence - many.log_evidence) < 0.1


def test_pareto_smoothing_knows_the_tail():
    rng = np.random.default_rng(5)
    for k in (0.2, 0.5, 0.9):
        weights = rng.pareto(1 / k, 20_000) + 1
        smoothed, found = pareto_smoothed(np.log(weights))
        assert abs(found - k) < 0.15
        assert smoothed.max() <= np.log(weights).max()


def test_pareto_smoothing_agrees_with_arviz():
    arviz = pytest.importorskip("arviz")
    log_weights = 0.8 * np.random.default_rng(6).standard_normal(4000)
    ours, k = pareto_smoothed(log_weights)
    theirs, their_k = arviz.psislw(log_weights.copy())
    assert_allclose(k, float(their_k), atol=0.02)
    assert_allclose(ours - logsumexp(ours), np.asarray(theirs), atol=0.02)


def test_levels_split_into_mean_and_deviation():
    k, mean = split_level(np.array([-3.0, 0.0, 2.0]))
    assert_allclose(k**2 + mean**2, 1.0)
    assert_allclose(k / mean, np.exp([-3.0, 0.0, 2.0]))


def test_draws_that_called_for_components_are_not_kept(monkeypatch):
    """A component takes weight from the heavy draw that it was added for: tails get too light."""
    monkeypatch.setattr("gp4c.inference.engine.weigh.GOOD_K", -10.0)  # never good enough
    lattice = find_modes(task_of(tiny_panel(), "poisson", None))
    first, last = (
        weigh(lattice, 3000, np.random.default_rng(4), rounds=rounds) for rounds in (0, 4)
    )
    assert sum(len(s.components) for s in last.sheaves) > sum(
        len(s.components) for s in first.sheaves
    )
    old = {tuple(column) for sheaf in first.sheaves for column in sheaf.x.T}
    assert not any(tuple(column) in old for sheaf in last.sheaves for column in sheaf.x.T)
    assert abs(last.size - 3000) < 0.1 * 3000
