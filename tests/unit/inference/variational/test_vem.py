"""The paper's optimiser: its start, its gradients, its stop, and that it seeks the same optimum."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.inference.variational.bound import theorem2
from gp4c.inference.variational.count_terms.lemma2 import LEMMA2_CONSTANT
from gp4c.inference.variational.estep import natural_e_step
from gp4c.inference.variational.hyper import Problem
from gp4c.inference.variational.vem import (
    SMALLEST_DIAGONAL,
    InducingValues,
    e_objective,
    fit_vem,
    m_objective,
    paper_mean,
    paper_start,
    rate_scale,
    vem_e_step,
    vem_m_step,
)
from gp4c.model.kernels import KERNELS
from gp4c.model.observations import observe
from gp4c.model.sparse_prior import JITTER, Hyper

#: nats that a converged run may lie below the natural-gradient run started from it
AGREEMENT = 1e-3


def square_wave_panel(seed=0, n_subjects=50):
    panel, _ = gp4c.simulate_panel(
        "square_wave", window=(0, 60), n_subjects=n_subjects, n_intervals=10, random_state=seed
    )
    return panel


def bladder(arm):
    panel = gp4c.load_dataset("bladder")
    return panel.where(treatment=arm)


def problem_for(panel, size, *, count_term="lemma2", b=0.3, effect=None):
    data = observe(panel, None, panel.window)
    return Problem(data, KERNELS["se"], count_term, b, effect, size)


def rough_values(problem, seed=3):
    """A start with random off-diagonal entries, so that no gradient entry is special."""
    rng = np.random.default_rng(seed)
    hyper, values = paper_start(problem, None, rng)
    noise = np.tril(0.1 * rng.standard_normal(values.factor.shape), -1)
    return hyper, InducingValues(values.mean, np.diag(0.2 + np.diag(values.factor)) + noise)


def central_difference(function, x, step):
    slopes = []
    for i in range(len(x)):
        ahead, behind = x.copy(), x.copy()
        ahead[i] += step
        behind[i] -= step
        slopes.append((function(ahead) - function(behind)) / (2 * step))
    return np.array(slopes)


CASES = [
    ("lemma2", 0.3, None),
    ("lemma2", 1.0, "weight"),
    ("pointwise", 0.0, "gamma"),
    ("exact", 0.0, None),
]


@pytest.mark.parametrize(("count_term", "b", "effect"), CASES)
def test_gradient_by_mean_and_factor_is_the_slope(count_term, b, effect):
    problem = problem_for(bladder("placebo"), 6, count_term=count_term, b=b, effect=effect)
    hyper, values = rough_values(problem)
    work, scale = problem.workspace(hyper.length_scale, 6), rate_scale(problem.data)

    def value(x):
        return e_objective(work, hyper, scale, InducingValues.from_vector(x, 6))[0]

    x = values.to_vector()
    slope = central_difference(value, x, 1e-5)
    gradient = e_objective(work, hyper, scale, values)[1]
    assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize(("count_term", "b", "effect"), CASES)
def test_gradient_by_hyper_parameters_holds_the_values_fixed(count_term, b, effect):
    problem = problem_for(bladder("placebo"), 6, count_term=count_term, b=b, effect=effect)
    hyper, values = rough_values(problem)
    scale, free = rate_scale(problem.data), [0, 1] if effect != "gamma" else [0, 1, 3]

    def value(vector):
        there = Hyper.from_vector(vector)
        work = problem.workspace(there.length_scale, 6)
        return m_objective(work, there, scale, values)[0]

    slope = central_difference(value, hyper.to_vector(), 1e-5)[free]
    work = problem.workspace(hyper.length_scale, 6)
    gradient = m_objective(work, hyper, scale, values)[1][free]
    assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_whitening_keeps_the_divergence_from_the_prior():
    """KL(N(μ, CCᵀ) ‖ N(g, γK)) in the data's units, by its textbook formula."""
    problem = problem_for(bladder("placebo"), 6)
    hyper, values = rough_values(problem)
    scale, z = rate_scale(problem.data), np.linspace(0, 1, 6)
    work = problem.workspace(hyper.length_scale, 6)
    gaps = z[:, None] - z
    K = np.exp(-(gaps**2) / (2 * hyper.length_scale**2)) + JITTER * np.eye(6)
    K *= scale**2 * hyper.variance
    S, away = values.factor @ values.factor.T, values.mean - scale * hyper.mean
    expected = (
        np.trace(np.linalg.solve(K, S)) + away @ np.linalg.solve(K, away) - 6
        + np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
    ) / 2  # fmt: skip
    assert_allclose(values.whiten(work, hyper, scale).kl(), expected, rtol=1e-9)


def test_start_is_the_papers_in_the_datas_units():
    panel = bladder("placebo")
    problem = problem_for(panel, 18)
    hyper, values = paper_start(problem, None, np.random.default_rng(1))
    table = panel.to_frame()
    per_subject = table.assign(length=table["stop"] - table["start"]).groupby("subject")
    totals = per_subject[["count", "length"]].sum()
    g = np.sqrt((totals["count"] / totals["length"]).mean())
    scale, length = rate_scale(problem.data), panel.window[1] - panel.window[0]
    assert_allclose(hyper.mean * scale, g, rtol=1e-12)
    assert_allclose(hyper.variance * scale**2, g**2 / 2, rtol=1e-12)
    assert_allclose(hyper.length_scale * length, np.sqrt(length), rtol=1e-12)
    assert np.all(values.mean >= 0.1 * np.sqrt(0.5) * g)
    assert np.all(values.mean <= 1.1 * np.sqrt(0.5) * g)
    assert np.ptp(values.mean) > 0.3 * g
    z = np.linspace(0, length, 18)
    K = g**2 / 2 * np.exp(-((z[:, None] - z) ** 2) / (2 * length))
    # Σ = K but for the jitter and the floor on the diagonal of its factor
    assert_allclose(values.factor @ values.factor.T, K, atol=1.1 * SMALLEST_DIAGONAL**2)


def test_given_mean_is_kept_and_zero_is_allowed():
    problem = problem_for(bladder("placebo"), 8)
    optimum = fit_vem(problem, mean=0.0, random_state=0)
    assert optimum.hyper.mean == 0.0
    assert np.isfinite(optimum.value)


def test_rounds_never_lose_and_stop_at_the_papers_rule():
    problem = problem_for(square_wave_panel(), 30)
    optimum = fit_vem(problem, random_state=0)
    assert optimum.converged
    assert np.all(np.diff(optimum.path) >= 0)
    free = np.array(optimum.path) + LEMMA2_CONSTANT * problem.data.total
    change = np.abs(np.diff(free) / free[1:])
    assert change[-1] <= 1e-4
    assert np.all(change[:-1] > 1e-4)
    assert optimum.hyper.mean == paper_mean(problem.data)
    assert optimum.value == optimum.path[-1]


def test_few_rounds_are_reported_as_not_converged():
    optimum = fit_vem(problem_for(square_wave_panel(), 30), random_state=0, max_rounds=2)
    assert not optimum.converged
    assert len(optimum.path) == 2


def test_seed_decides_the_fit():
    panel = square_wave_panel()
    first, again, other = (
        fit_vem(problem_for(panel, 30), random_state=seed).value for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_number_of_inducing_inputs_defaults_to_the_papers():
    assert fit_vem(problem_for(square_wave_panel(), None), random_state=0).work.size == 30


def test_factor_keeps_its_floor():
    problem = problem_for(bladder("placebo"), 18)
    hyper, values = paper_start(problem, None, np.random.default_rng(0))
    hyper = replace(hyper, length_scale=2 * hyper.length_scale)
    work, scale = problem.workspace(hyper.length_scale, 18), rate_scale(problem.data)
    for evaluations in (10, 200):
        values, _ = vem_e_step(work, hyper, scale, values, evaluations=evaluations)
        assert np.diag(values.factor).min() >= SMALLEST_DIAGONAL
    # at this length-scale the floor binds: K leaves far less than 0.01 to most inducing inputs
    assert np.diag(values.factor).min() == SMALLEST_DIAGONAL


def test_m_step_moves_the_hyper_parameters_only():
    problem = problem_for(square_wave_panel(), 12)
    hyper, values = paper_start(problem, None, np.random.default_rng(0))
    scale, before = rate_scale(problem.data), values.to_vector()
    start = m_objective(problem.workspace(hyper.length_scale, 12), hyper, scale, values)[0]
    found, converged = vem_m_step(problem, hyper, scale, values, evaluations=None)
    work = problem.workspace(found.length_scale, 12)
    value, gradient = m_objective(work, found, scale, values)
    assert converged
    assert value > start
    assert found.mean == hyper.mean
    assert_allclose(gradient[:2], 0.0, atol=1e-3 * abs(value))
    assert_allclose(values.to_vector(), before, rtol=0)


@pytest.mark.parametrize(
    ("panel", "length_scale", "size", "b", "effect"),
    [
        (square_wave_panel(0), 2.8, 30, 0.3, None),
        (square_wave_panel(1), 6.0, 15, 0.3, None),
        (square_wave_panel(2), 2.8, 20, 0.0, None),
        (bladder("placebo"), np.sqrt(53), 8, 0.3, None),
        (bladder("thiotepa"), np.sqrt(53), 8, 1.0, None),
        (bladder("placebo"), np.sqrt(53), 8, 0.3, "weight"),
    ],
    ids=["wave", "wave-long", "wave-b0", "bladder", "bladder-b1", "bladder-weight"],
)
def test_natural_gradients_find_nothing_above_a_converged_run(panel, length_scale, size, b, effect):
    problem = problem_for(panel, size, b=b, effect=effect)
    hyper, values = paper_start(problem, None, np.random.default_rng(0))
    hyper = hyper.with_length_scale(length_scale / (panel.window[1] - panel.window[0]))
    work, scale = problem.workspace(hyper.length_scale, size), rate_scale(problem.data)
    values, converged = vem_e_step(work, hyper, scale, values, evaluations=None)
    q = values.whiten(work, hyper, scale)
    here = theorem2(work, hyper, q).bound.total
    there = natural_e_step(work, hyper, q).evaluation.bound.total
    assert converged
    assert here <= there < here + AGREEMENT


def test_where_the_floor_binds_it_alone_parts_the_two():
    """The free optimum has a diagonal down to 0.046; a floor of 0.1 costs, one of 1e-6 does not."""
    problem = problem_for(bladder("placebo"), 8)
    hyper, start = paper_start(problem, None, np.random.default_rng(0))
    work, scale = problem.workspace(hyper.length_scale, 8), rate_scale(problem.data)
    gaps = []
    for floor in (0.1, 1e-6):
        values, _ = vem_e_step(work, hyper, scale, start, evaluations=None, floor=floor)
        assert np.diag(values.factor).min() >= floor
        q = values.whiten(work, hyper, scale)
        here = theorem2(work, hyper, q).bound.total
        gaps.append(natural_e_step(work, hyper, q).evaluation.bound.total - here)
    assert gaps[0] > AGREEMENT
    assert 0 <= gaps[1] < AGREEMENT


def test_windows_of_any_length_give_a_finite_fit():
    frame = bladder("placebo").to_frame()
    for unit in (1e-6, 1e6):
        scaled = frame.assign(start=frame["start"] * unit, stop=frame["stop"] * unit)
        panel = gp4c.PanelCounts.from_frame(scaled, start="start", stop="stop", count="count")
        optimum = fit_vem(problem_for(panel, 12), random_state=0)
        assert np.isfinite(optimum.value)
        assert np.all(np.isfinite(optimum.estep.q.root))
