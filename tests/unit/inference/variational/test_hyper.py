"""Hyper-parameters: the envelope theorem by finite differences, and the search by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from gp4c.data.panel import PanelCounts
from gp4c.inference.variational.estep import EStep
from gp4c.inference.variational.hyper import (
    MAX_INDUCING,
    MAX_LENGTH_SCALE,
    MIN_INDUCING,
    Climb,
    Problem,
    positive_start,
    solve_q,
)
from gp4c.inference.variational.search import length_scale_grid, search
from gp4c.model.kernels import KERNELS
from gp4c.model.sparse_prior import Hyper
from problems import central_difference, observed, visits_panel
from tolerances import NEVER_DOWN, RE_OPTIMISED

DATA = observed(visits_panel(31, 8, 4, level=2.0))


def problem(**options: object) -> Problem:
    options = {"n_inducing": 6, "tol": 1e-11, **options}
    kernel = KERNELS[str(options.pop("kernel", "se"))]
    return Problem(DATA, kernel, **options)  # type: ignore[arg-type]


def best_value(
    task: Problem, vector: np.ndarray, near: EStep | None = None, tol: float = 1e-12
) -> float:
    """The bound maximised over q at these hyper-parameters."""
    hyper = Hyper.from_vector(vector)
    work = task.workspace(hyper.length_scale)
    return solve_q(work, hyper, near, tol).evaluation.bound.total


@pytest.mark.parametrize("effect", [None, "weight", "gamma"])
@pytest.mark.parametrize(
    ("count_term", "kernel"),
    [("lemma2", "se"), ("pointwise", "matern52"), ("exact", "se"), ("lemma2", "matern32")],
)
def test_the_partial_gradient_is_the_total_one_at_the_optimal_q(
    count_term: str, kernel: str, effect: str | None
) -> None:
    task = problem(count_term=count_term, kernel=kernel, effect=effect)
    hyper = Hyper(0.35, 0.25, 0.9, 1.2 if effect == "gamma" else np.inf)
    work = task.workspace(hyper.length_scale)
    found = solve_q(work, hyper, None, 1e-12)
    ours = work.hyper_gradient(hyper, found.q, found.evaluation)
    free, vector = 4 if effect == "gamma" else 3, hyper.to_vector()

    def value(x: np.ndarray) -> float:
        return best_value(task, np.concatenate([x, vector[free:]]), found)

    expected = central_difference(value, vector[:free], 1e-3)
    assert_allclose(ours[:free], expected, rtol=1e-4, atol=1e-4)
    finer = (4 * central_difference(value, vector[:free], 5e-4) - expected) / 3
    assert_allclose(ours[:free], finer, **RE_OPTIMISED)


@pytest.mark.parametrize(
    ("count_term", "starts", "evaluations"),
    [("lemma2", (0.2, 0.8), 300), ("pointwise", (0.2, 0.8), 300), ("exact", (0.4,), 80)],
)
def test_the_search_finds_what_brute_force_finds(
    count_term: str, starts: tuple[float, ...], evaluations: int
) -> None:
    task = problem(count_term=count_term, tol=1e-8)
    found = search(task, tol=1e-7)
    assert found.converged

    def negative(x: np.ndarray) -> float:
        return -best_value(task, np.array([x[0], x[1], x[2], np.inf]), tol=1e-8)

    bounds = [(np.log(0.14), np.log(MAX_LENGTH_SCALE)), (-15.0, 4.0), (0.0, 5.0)]
    others = [
        minimize(negative, [np.log(a), -1.0, 0.9], method="Nelder-Mead", bounds=bounds,
                 options={"xatol": 1e-3, "fatol": 1e-5, "maxfev": evaluations})
        for a in starts
    ]  # fmt: skip
    assert found.value >= max(-o.fun for o in others) - 1e-3


def test_a_climb_never_steps_down_and_keeps_fixed_what_is_fixed() -> None:
    task = problem()
    start = Hyper(0.4, 0.1, 0.7)
    found = Climb(task, start, free=(True, True, False, False)).to(1e-7)
    assert np.diff(found.path).min(initial=0.0) >= -NEVER_DOWN
    assert found.hyper.mean == 0.7
    assert found.hyper.shape == np.inf
    assert found.value >= found.path[-1] - NEVER_DOWN
    gradient = found.work.hyper_gradient(found.hyper, found.estep.q, found.estep.evaluation)
    assert np.abs(gradient[:2]).max() < 1e-2


def uneven_panel() -> PanelCounts:
    """Ten subjects on a common set of intervals; two of them have most of the events."""
    rng, cuts = np.random.default_rng(8), np.linspace(0.0, 1.0, 5)
    levels = np.array([1.0, 0.2, 0.6, 15.0, 1.4, 0.1, 0.5, 9.0, 0.3, 0.8])
    rows = {
        "subject": np.repeat(np.arange(10), 4),
        "start": np.tile(cuts[:-1], 10),
        "stop": np.tile(cuts[1:], 10),
        "count": rng.poisson(np.repeat(levels, 4) * np.tile([1.0, 2.0, 1.5, 0.8], 10)),
    }
    return PanelCounts.from_frame(rows)


def test_the_frailty_shape_is_where_its_derivative_vanishes() -> None:
    task = Problem(observed(uneven_panel()), KERNELS["se"], effect="gamma", n_inducing=6)
    found = search(task, tol=1e-8)
    gradient = found.work.hyper_gradient(found.hyper, found.estep.q, found.estep.evaluation)
    assert 0.1 < found.hyper.shape < 3.0
    assert abs(gradient[3]) < 1e-2
    vector = found.hyper.to_vector()
    for step in (-0.3, 0.3):
        moved = np.array([*vector[:3], vector[3] + step])
        assert best_value(task, moved, found.estep) < found.value


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_number_of_inducing_inputs_follows_the_length_scale(kernel: str) -> None:
    task = Problem(DATA, KERNELS[kernel])
    for length_scale in (0.02, 0.1, 0.5, 2.0):
        size = task.size_for(length_scale)
        assert MIN_INDUCING <= size <= MAX_INDUCING
        spacing = 1.0 / (size - 1) / length_scale
        assert spacing <= KERNELS[kernel].spacing + 1e-12 or size == MAX_INDUCING
    assert Problem(DATA, KERNELS[kernel], n_inducing=11).size_for(0.1) == 11


@pytest.mark.parametrize("n_inducing", [None, 2, 3, 30])
def test_profiled_length_scales_can_be_carried(n_inducing: int | None) -> None:
    task = Problem(DATA, KERNELS["se"], n_inducing=n_inducing)
    down, up = length_scale_grid(task)
    lowest = task.smallest_length_scale(n_inducing)
    profiled = np.array([*down[::-1], *up])
    assert np.all(np.diff(profiled) > 0)
    assert np.diff(np.log(profiled)).max() < np.log(1.7)
    assert_allclose(profiled[0], lowest, rtol=0.06)
    assert profiled[-1] <= MAX_LENGTH_SCALE or lowest > 1.0


@pytest.mark.parametrize("count_term", ["lemma2", "exact"])
def test_the_positive_start_is_positive(count_term: str) -> None:
    task = problem(count_term=count_term)
    for variance in (1e-3, 0.5, 20.0):
        hyper = Hyper(0.3, variance, 0.0)
        work = task.workspace(0.3)
        mean, _ = work.moments(hyper, positive_start(work, hyper))
        assert mean.min() > 0


@pytest.mark.parametrize("count_term", ["exact", "pointwise"])
@pytest.mark.parametrize("n_inducing", [None, 6])
def test_a_sketch_has_the_same_optimum_with_fewer_nodes(
    count_term: str, n_inducing: int | None
) -> None:
    task = problem(count_term=count_term, n_inducing=n_inducing, effect="gamma")
    rough, hyper = task.sketch(), Hyper(0.25, 0.3, 0.9, 1.2)
    full, fewer = task.workspace(0.25), rough.workspace(0.25)
    assert len(fewer.features) < len(full.features)
    values = [solve_q(work, hyper, None, 1e-6).evaluation.bound.total for work in (full, fewer)]
    assert_allclose(values[1], values[0], rtol=0, atol=1e-4)


def test_a_neighbours_optimum_is_a_better_start() -> None:
    task, hyper = problem(), Hyper(0.35, 0.25, 0.9)
    work = task.workspace(0.35)
    there = solve_q(work, Hyper(0.35, 0.26, 0.92), None, 1e-10)
    cold, warm = solve_q(work, hyper, None, 1e-10), solve_q(work, hyper, there, 1e-10)
    assert warm.path[0] > cold.path[0]
    assert_allclose(warm.path[-1], cold.path[-1], atol=1e-7)
