"""Parts of the integration over hyper-parameters: grids outwards, levels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from gp4c.design.kernels import KERNELS
from gp4c.inference.coordinates import Coordinates
from gp4c.inference.estep import Anderson
from gp4c.inference.hyper import Optimum, Problem, climb, solve_q
from gp4c.inference.integrate import TAIL, _levels, _outwards, _Point, _settled
from gp4c.inference.parts import level_shift
from gp4c.inference.priors import weak_prior
from gp4c.inference.response import frailty_response
from gp4c.inference.shape import shape_laplace
from gp4c.inference.sparse_prior import Hyper
from problems import log_integral_over_shape, observed, visits_panel


def optimum(place: float) -> Optimum:
    """A stand-in that carries a number."""
    return Optimum(Hyper(1.0, 1.0, place), None, None, 0.0, (), True)  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [0.5, 1.3])
def test_points_go_outwards_until_they_do_not_matter(step: float) -> None:
    """A normal density around 2: the grid covers it on both sides and stops just behind it."""

    def at(near: Optimum, place: float) -> _Point:
        assert abs(near.hyper.mean - place) == pytest.approx(step)  # started from its neighbour
        return _Point(optimum(place), -((place - 2.0) ** 2) / 2)

    points = _outwards(_Point(optimum(2.0), 0.0), 2.0, step, at)
    places = np.sort([point.optimum.hyper.mean for point in points])
    reach = np.sqrt(2 * TAIL)
    assert_allclose(np.diff(places), step)
    assert_allclose(places + places[::-1], 4.0)  # as far to the left as to the right
    assert reach < places[-1] - 2.0 <= reach + step
    total = step * np.exp([point.log_density for point in points]).sum()
    assert_allclose(total, np.sqrt(2 * np.pi), rtol=0.01)


def test_an_end_of_the_space_ends_the_grid_on_its_side_only() -> None:
    def at(near: Optimum, place: float) -> _Point | None:
        return _Point(optimum(place), 0.0) if place > 1.0 else None

    points = _outwards(_Point(optimum(2.0), 0.0), 2.0, 0.4, at, most=5)
    assert_allclose(
        np.sort([p.optimum.hyper.mean for p in points]), [1.2, 1.6, *np.arange(2.0, 4.1, 0.4)]
    )


@pytest.fixture(scope="module")
def with_frailty() -> Optimum:
    data = observed(visits_panel(5, 40, 5, level=4.0, frailty=1.5))
    task = Problem(data, KERNELS["se"], "pointwise", effect="gamma", n_inducing=8)
    free = (False, True, True, True)
    return climb(task, Hyper(0.3, 0.1, 1.0, 1.0), free=free, log_prior=weak_prior)


def test_a_grid_of_levels_has_the_mass_of_the_normal_it_replaces(with_frailty: Optimum) -> None:
    # with many subjects the level is nearly normal; its grid adds the integral over α, which the
    # point itself leaves to the caller
    coordinates = Coordinates(with_frailty.hyper, True)
    s, _ = coordinates.of(with_frailty.hyper)
    memory = Anderson(with_frailty.work.size)
    point = _settled(with_frailty, coordinates, s, weak_prior, memory)
    assert point is not None
    over_shape = shape_laplace(point.optimum, weak_prior)
    assert abs(over_shape) > 0.3
    for at_best in (0.0, 1.7):
        grid = _levels(point, weak_prior, at_best)
        assert len(grid) >= 5
        mass = logsumexp([there.log_density for there in grid])
        assert_allclose(mass, point.log_density + over_shape - at_best, atol=0.25)


def test_the_shift_is_what_the_curve_does_when_its_level_rises(with_frailty: Optimum) -> None:
    at, step = with_frailty, 0.05
    coordinates = Coordinates(at.hyper, True)
    s, level = coordinates.of(at.hyper)
    features = at.work.prior.features(np.linspace(0.0, 1.0, 21))
    curves = []
    for side in (1, -1):
        hyper = coordinates.hyper(s, level + side * step)
        assert hyper is not None
        mean = solve_q(at.work, hyper, at.estep, 1e-9).q.mean
        curves.append(hyper.mean + np.sqrt(hyper.variance) * features @ mean)
    moved = (curves[0] - curves[1]) / (2 * step)
    ours = np.sqrt(at.hyper.variance) * features @ level_shift(at, frailty_response(at))
    # q's covariance stands for the curvature of the bound, so that it is near, not exact
    assert np.corrcoef(ours, moved)[0, 1] > 0.95
    assert np.linalg.norm(ours - moved) < 0.5 * np.linalg.norm(moved)


def test_laplace_s_integral_over_the_shape_is_that_of_quadrature(with_frailty: Optimum) -> None:
    brute = log_integral_over_shape(with_frailty, weak_prior)
    assert_allclose(shape_laplace(with_frailty, weak_prior), brute, atol=0.05)
