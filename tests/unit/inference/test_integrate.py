"""Integration over hyper-parameters against brute-force grids of the same bound."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Optimum, Problem, free_coordinates, solve_q
from gp4c.inference.importance import log_evidence
from gp4c.inference.integrate import Integration, integrate
from gp4c.inference.parts import level_shift
from gp4c.inference.priors import weak_prior
from gp4c.inference.search import search
from gp4c.inference.shape import shape_laplace
from gp4c.inference.sparse_prior import Hyper
from problems import log_integral_over_shape, observed, visits_panel
from tolerances import ROUNDING


def problem(effect: str | None = None) -> Problem:
    data = observed(visits_panel(5, 12, 5, level=4.0))
    return Problem(data, KERNELS["se"], "pointwise", effect=effect, n_inducing=8)


def fitted(task: Problem) -> Integration:
    peaks = search(task, log_prior=weak_prior)
    return integrate(task, peaks, free=free_coordinates(task, None), log_prior=weak_prior)


@pytest.fixture(scope="module")
def grid() -> dict[str, np.ndarray]:
    """ln p(D, θ) on a dense grid of (ln a, ln γ, g), in the coordinates of the search."""
    task = problem()
    axes = (np.linspace(np.log(0.1), np.log(2.0), 13), np.linspace(-7, 2.5, 17),
            np.linspace(0.05, 2.2, 15))  # fmt: skip
    values = np.empty([len(axis) for axis in axes])
    means = np.empty((*values.shape, 3))
    times = np.array([0.1, 0.5, 0.9])
    for i, log_a in enumerate(axes[0]):
        work = task.workspace(float(np.exp(log_a)))
        features = work.prior.features(times)
        left = np.maximum(1 - (features**2).sum(axis=1), 0)
        for j, log_gamma in enumerate(axes[1]):
            near = None
            for k, g in enumerate(axes[2]):
                vector = np.array([log_a, log_gamma, g, np.inf])
                hyper = Hyper.from_vector(vector)
                near = solve_q(work, hyper, near, 1e-3)
                here = Optimum(hyper, work, near, weak_prior(vector)[0], (), True)
                values[i, j, k] = log_evidence(here, 256) + here.log_prior
                mean = g + np.sqrt(hyper.variance) * features @ near.q.mean
                spread = ((features @ near.q.root) ** 2).sum(axis=1)
                means[i, j, k] = mean**2 + hyper.variance * (left + spread)
    steps = np.prod([axis[1] - axis[0] for axis in axes])
    weights = np.exp(values - values.max())
    return {
        "log_evidence": np.log(weights.sum() * steps) + values.max(),
        "intensity": np.tensordot(weights / weights.sum(), means, 3),
    }


def test_evidence_and_mean_agree_with_a_dense_grid(grid: dict[str, np.ndarray]) -> None:
    task = problem()
    found = fitted(task)
    # the level by Laplace's approximation, and noise of importance sampling: a fraction of a nat
    assert abs(found.log_evidence - grid["log_evidence"]) < 0.25
    times = np.array([0.1, 0.5, 0.9])
    ours = np.zeros(3)
    for part in found.parts:
        o = part.optimum
        # as on the grid, the level at fixed hyper-parameters is that of the optimum
        q = o.estep.q.widened(part.deviation * level_shift(o, o.estep.q))
        features = o.work.prior.features(times)
        mean = o.hyper.mean + np.sqrt(o.hyper.variance) * features @ q.mean
        left = np.maximum(1 - (features**2).sum(axis=1), 0)
        spread = ((features @ q.root) ** 2).sum(axis=1)
        ours += part.weight * (mean**2 + o.hyper.variance * (left + spread))
    assert_allclose(ours, grid["intensity"], rtol=0.03)


def test_weights_sum_to_one_and_the_mode_is_among_the_parts() -> None:
    task = problem("gamma")
    peaks = search(task, log_prior=weak_prior)
    found = integrate(task, peaks, free=free_coordinates(task, None), log_prior=weak_prior)
    assert_allclose(sum(part.weight for part in found.parts), 1.0, **ROUNDING)
    heaviest = max(found.parts, key=lambda part: part.weight).optimum.hyper
    assert_allclose(heaviest.length_scale, peaks[0].hyper.length_scale, rtol=0.6)
    assert len({part.optimum.hyper.length_scale for part in found.parts}) > 2


def test_laplace_over_the_shape_agrees_with_quadrature() -> None:
    task = problem("gamma")
    best = search(task, log_prior=weak_prior)[0]
    brute = log_integral_over_shape(best, weak_prior)
    assert abs(shape_laplace(best, weak_prior) - brute) < 0.3
    assert shape_laplace(search(problem(), log_prior=weak_prior)[0], weak_prior) == 0.0
