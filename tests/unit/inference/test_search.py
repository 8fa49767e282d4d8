"""The search: two optima in the length-scale are both seen, and its points say where to climb."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gp4c
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference.hyper import Problem, climb, flat_prior, free_coordinates
from gp4c.inference.search import ROUGH_GAIN, profile, search, starting_points
from gp4c.inference.sparse_prior import Hyper


def square_wave(seed: int, b: float = 0.3) -> Problem:
    panel, _ = gp4c.simulate_panel(
        "square_wave", window=(0, 60), n_subjects=100, n_intervals=10, random_state=seed
    )
    train, _ = panel.split(test_size=0.5, random_state=seed)
    return Problem(observe(train, None, train.window), KERNELS["se"], "lemma2", b, None, 30)


@pytest.mark.parametrize(("seed", "b"), [(7, 0.3), (9, 0.3), (6, 0.0), (1, 0.0)])
def test_the_better_of_two_length_scales_is_found(seed: int, b: float) -> None:
    """Optima near 2.8 and 5.5 within two nats of each other, either of them the higher."""
    problem = square_wave(seed, b)
    best = max(
        climb(problem, Hyper(a / 60, 0.1, 0.95), free=(True, True, True, False)).value
        for a in (2.2, 6.0)
    )
    found = search(problem)[0]
    assert found.converged
    assert found.value > best - 1e-3
    assert np.all(np.diff(found.path) > -1e-9)


def test_profile_values_and_slopes_are_those_of_the_maximised_bound() -> None:
    problem = square_wave(3)
    free = free_coordinates(problem, None)
    points = profile(problem, free, None, flat_prior)
    best = max(point.value for point in points)
    good = [point for point in points if point.value > best - 4]
    assert len(good) >= 2
    for point in good:
        exact = [
            climb(problem, point.optimum.hyper.with_length_scale(a), near=point.optimum.estep,
                  free=(False, True, True, False), tol=1e-7).value
            for a in point.optimum.hyper.length_scale * np.exp([-0.01, 0.0, 0.01])
        ]  # fmt: skip
        # the profile is rough: good to ROUGH_GAIN nats, and slopes to half of themselves
        assert_allclose(point.value, exact[1], atol=1.5 * ROUGH_GAIN)
        assert_allclose(point.slope, (exact[2] - exact[0]) / 0.02, rtol=0.5, atol=2.0)


def test_climbs_start_near_a_maximum_between_two_points() -> None:
    problem = square_wave(3)
    points = profile(problem, free_coordinates(problem, None), None, flat_prior)
    start = starting_points(points)[0]
    summit = search(problem)[0]
    assert abs(np.log(start.hyper.length_scale / summit.hyper.length_scale)) < 0.2
