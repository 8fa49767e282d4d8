"""Parts of the search over hyper-parameters, one by one: grids, sizes, starting points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import CubicHermiteSpline

from gp4c.design.kernels import KERNELS
from gp4c.inference import search as search_module
from gp4c.inference.estep import natural_e_step
from gp4c.inference.hyper import (
    MAX_INDUCING,
    MAX_LENGTH_SCALE,
    STRETCH,
    Optimum,
    Problem,
    free_coordinates,
    solve_q,
)
from gp4c.inference.search import (
    RoughPoint,
    _cubic_maximum,
    length_scale_grid,
    search,
    starting_points,
)
from gp4c.inference.sparse_prior import Hyper
from problems import observed, random_q, visits_panel, workspace

DATA = observed(visits_panel(31, 8, 4, level=2.0))


# -- how many inducing inputs ----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize("length_scale", [0.02, 0.05, 0.11, 0.3])
def test_inducing_inputs_are_just_close_enough(kernel: str, length_scale: float) -> None:
    task = Problem(DATA, KERNELS[kernel])
    size, widest = task.size_for(length_scale), task.kernel.spacing * length_scale
    if 8 < size < MAX_INDUCING:
        assert 1 / (size - 1) <= widest < 1 / (size - 2)
    shortest = task.smallest_length_scale(size)
    # a climb may go a fifth below what its inducing inputs were chosen for
    assert_allclose(1 / (size - 1), task.kernel.spacing * STRETCH * shortest)


def test_the_shortest_length_scale_takes_the_most_inducing_inputs() -> None:
    task = Problem(DATA, KERNELS["se"])
    shortest = task.smallest_length_scale()
    assert task.size_for(shortest * 1.001) == task.size_for(shortest / 9) == MAX_INDUCING == 128
    assert task.size_for(1.1 * shortest) < MAX_INDUCING


@pytest.mark.parametrize(
    ("effect", "mean", "expected"),
    [
        (None, None, (True, True, True, False)),
        (None, 1.0, (True, True, False, False)),
        ("gamma", None, (True, True, True, True)),
        ("weight", None, (True, True, False, False)),  # the scale of f is open
        ("weight", 1.0, (True, True, False, False)),
    ],
)
def test_what_is_learned(effect: str | None, mean: float | None, expected: tuple[bool]) -> None:
    assert free_coordinates(Problem(DATA, KERNELS["se"], effect=effect), mean) == expected


# -- the profile -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_inducing", [None, 10, 30])
def test_length_scales_go_in_even_steps_to_both_ends(n_inducing: int | None) -> None:
    task = Problem(DATA, KERNELS["se"], n_inducing=n_inducing)
    down, up = length_scale_grid(task, ratio=1.6)
    assert down[0] == max(0.1, task.smallest_length_scale(n_inducing))
    assert_allclose(down[-1], task.smallest_length_scale(n_inducing), rtol=0.05)
    whole = np.array([*down[::-1], *up])
    ratios = whole[1:] / whole[:-1]
    assert np.all(ratios > 1)
    assert_allclose(ratios[1:], 1.6)
    assert ratios[0] <= 1.6 + 1e-12
    assert MAX_LENGTH_SCALE / 1.2 / 1.6 < whole[-1] < MAX_LENGTH_SCALE / 1.2


def point(length_scale: float, value: float, slope: float = 0.0) -> RoughPoint:
    """A point of a profile; nothing but its place, value and slope is looked at."""
    hyper = Hyper(length_scale, 0.1, 1.0)
    return RoughPoint(Optimum(hyper, None, None, 0.0, (), False), value, slope)  # type: ignore[arg-type]


def test_the_cubic_is_that_of_values_and_slopes() -> None:
    short, long = point(0.1, 1.0, 3.0), point(0.25, 0.5, -2.0)
    x = np.log([0.1, 0.25])
    spline = CubicHermiteSpline(x, [1.0, 0.5], [3.0, -2.0])
    fine = np.linspace(*x, 4001)
    value, share = _cubic_maximum(short, long)
    top = np.argmax(spline(fine))
    assert_allclose(value, spline(fine)[top], atol=2e-3)
    assert_allclose(share, (fine[top] - x[0]) / (x[1] - x[0]), atol=1 / 40)


def starts(points: list[RoughPoint]) -> list[float]:
    return [found.hyper.length_scale for found in starting_points(points)]


def test_every_local_maximum_is_climbed_from_best_first() -> None:
    # longest length-scale first; slopes that point nowhere
    values = [0.0, 4.0, 1.0, 2.0, 5.0, 3.0, -9.0, -8.0]
    scales = [2.0 ** (1 - k) for k in range(len(values))]
    assert starts([point(a, v) for a, v in zip(scales, values, strict=True)]) == [0.125, 1.0]


def test_ends_of_the_profile_may_be_its_maxima() -> None:
    assert starts([point(1.0, 5.0), point(0.5, 3.0), point(0.25, 4.0)]) == [1.0, 0.25]


def test_between_slopes_that_point_at_each_other_there_is_one_start() -> None:
    points = [point(1.0, 0.0, -4.0), point(0.5, 1.0, -2.0), point(0.25, 1.0, 2.0),
              point(0.125, 0.0, 4.0)]  # fmt: skip
    # of the two that are equally high, one stands for the maximum between them
    found = starts(points)
    assert_allclose(found[0], np.sqrt(0.5 * 0.25), rtol=1e-6)
    assert 0.25 not in found
    assert set(found[1:]) <= {0.5}


# -- the E-step ------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 5])
def test_an_e_step_takes_no_more_steps_than_allowed(most: int) -> None:
    work = workspace(DATA, count_term="lemma2", b=0.9, size=5)
    found = natural_e_step(work, Hyper(0.3, 0.3, 0.5), random_q(5, 1), tol=1e-13, max_iter=most)
    assert not found.converged
    assert len(found.path) <= most + 1


def test_a_neighbour_with_other_inducing_inputs_is_no_start() -> None:
    hyper = Hyper(0.3, 0.3, 0.8)
    small, large = (workspace(DATA, size=n) for n in (5, 7))
    near = solve_q(small, hyper, None, 1e-9)
    cold, warm = solve_q(large, hyper, None, 1e-9), solve_q(large, hyper, near, 1e-9)
    assert warm.path == cold.path
    again = solve_q(small, hyper, near, 1e-9)
    assert again.path[0] == pytest.approx(near.path[-1], abs=1e-6)  # at once where it was


# -- the search as a whole -------------------------------------------------------------------------


def test_signs_are_tried_only_where_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def best_signs(work: object, hyper: object, estep: object, *rest: object) -> object:
        asked.append(hyper)
        return estep

    monkeypatch.setattr(search_module, "best_signs", best_signs)
    task = Problem(DATA, KERNELS["se"], "pointwise", n_inducing=6)
    search(task, tol=1e-2, n_climbs=1, signs=False)
    assert not asked
    search(task, tol=1e-2, n_climbs=1)
    assert asked
