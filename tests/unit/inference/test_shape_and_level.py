"""α and the level given the other hyper-parameters, against grids, differences and refits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from gp4c.design.kernels import KERNELS
from gp4c.inference.coordinates import Coordinates
from gp4c.inference.hyper import Optimum, Problem, free_coordinates, solve_q
from gp4c.inference.integrate import integrate
from gp4c.inference.parts import level_shift
from gp4c.inference.priors import weak_prior
from gp4c.inference.search import search
from gp4c.inference.shape import shape_mode
from gp4c.inference.sparse_prior import Hyper
from problems import observed, visits_panel

HYPER = Hyper(0.25, 0.2, 0.85)


def solved(hyper: Hyper, effect: str | None = None) -> Optimum:
    task = Problem(
        observed(visits_panel(5, 12, 5, level=4.0)), KERNELS["se"], "exact", effect=effect,
        n_inducing=10,
    )  # fmt: skip
    work = task.workspace(hyper.length_scale)
    return Optimum(hyper, work, solve_q(work, hyper, None, 1e-10), 0.0, (), True)


@pytest.mark.parametrize("hyper", [HYPER, Hyper(0.1, 2.0, 0.3), Hyper(0.4, 0.01, 1.0)])
def test_coordinates_there_and_back(hyper: Hyper) -> None:
    coordinates = Coordinates(hyper, True)
    back = coordinates.hyper(*coordinates.of(hyper))
    assert back is not None
    assert_allclose([back.variance, back.mean], [hyper.variance, hyper.mean], rtol=1e-12)


def test_directions_and_jacobian_by_differences() -> None:
    coordinates = Coordinates(HYPER, True)
    s, level = coordinates.of(HYPER)
    along, up = coordinates.direction(HYPER)

    def vector(ds: float, dl: float) -> np.ndarray:
        there = coordinates.hyper(s + ds, level + dl)
        assert there is not None
        return there.to_vector()[:3]

    h = 1e-6
    by_s = (vector(h, 0) - vector(-h, 0)) / (2 * h)
    by_level = (vector(0, h) - vector(0, -h)) / (2 * h)
    assert_allclose(along[:3], by_s, atol=1e-8)
    assert_allclose(up[:3], by_level, atol=1e-8)
    jacobian = np.linalg.det(np.stack([by_s[1:], by_level[1:]]))
    assert_allclose(abs(jacobian), HYPER.mean, rtol=1e-7)


def test_the_mean_follows_the_level_as_with_the_same_sites() -> None:
    """Without frailty: the shift against the posteriors of the same sites at two levels."""
    at = solved(HYPER)
    coordinates = Coordinates(HYPER, True)
    s, level = coordinates.of(HYPER)
    step = 1e-4
    curves = []
    for side in (-step, step):
        hyper = coordinates.hyper(s, level + side)
        assert hyper is not None
        q = at.work.from_sites(hyper, at.estep.evaluation.sites())
        assert q is not None
        curves.append(at.work.moments(hyper, q)[0])
    shift = level_shift(at, at.estep.q)
    ours = np.sqrt(HYPER.variance) * (at.work.features @ shift)
    # a constant is not quite in the span of ten features: half a percent of the largest shift
    assert_allclose(ours, (curves[1] - curves[0]) / (2 * step), atol=5e-4)


def test_shape_mode_is_the_maximum_by_brute_force() -> None:
    at = solved(Hyper(0.25, 0.2, 0.85, 3.0), "gamma")
    exposure, evaluation = at.work.likelihood.exposure, at.estep.evaluation
    moment = evaluation.mean**2 + evaluation.variance

    def negative(log_shape: float) -> float:
        vector = at.hyper.to_vector()
        vector[3] = log_shape
        return exposure(moment, float(np.exp(log_shape)))[0] - weak_prior(vector)[0]

    brute = minimize_scalar(negative, bounds=(-6, 12), method="bounded", options={"xatol": 1e-8})
    assert_allclose(np.log(shape_mode(at, weak_prior)), brute.x, atol=0.02)


def test_levels_of_frail_subjects_are_spread_and_their_shapes_follow() -> None:
    """A higher level goes with a smaller α: the frail ones were not seen."""
    task = Problem(
        observed(visits_panel(5, 25, 5, level=4.0)), KERNELS["se"], "pointwise", effect="gamma",
        n_inducing=8,
    )  # fmt: skip
    peaks = search(task, log_prior=weak_prior)
    parts = integrate(task, peaks, free=free_coordinates(task, None), log_prior=weak_prior).parts
    levels = np.array([p.optimum.hyper.mean**2 + p.optimum.hyper.variance for p in parts])
    weights = np.array([p.weight for p in parts])
    mean = weights @ np.log(levels)
    deviation = np.sqrt(weights @ (np.log(levels) - mean) ** 2)
    subjects, shape = len(task.data.totals), peaks[0].hyper.shape
    # the asymptotic variance of a mean with frailties
    assert deviation > 0.6 * np.sqrt(1 / task.data.total + 1 / (subjects * shape))
