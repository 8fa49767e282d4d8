"""Integration over hyper-parameters against brute-force grids of the same bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Optimum, Problem, free_coordinates, solve_q
from gp4c.inference.importance import log_evidence
from gp4c.inference.integrate import Integration, _Point, _with_turns, integrate
from gp4c.inference.parts import Weighted, level_shift
from gp4c.inference.patterns import Turns
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


def points_around(task: Problem, best: Optimum) -> list[_Point]:
    """Points at nine hyper-parameters around an optimum, all as probable."""
    a, gamma, g = best.hyper.length_scale, best.hyper.variance, best.hyper.mean
    hypers = [Hyper(a * x, gamma * y, g) for x in (0.5, 1.0, 2.0) for y in (0.5, 1.0, 2.0)]
    return [_Point(replace(best, hyper=hyper), 0.0) for hyper in hypers]


def test_the_number_of_patterns_is_extended_linearly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that are linear in (ln a, s) are found everywhere from three points."""
    task = problem()
    best = search(task, log_prior=weak_prior)[0]
    points = points_around(task, best)

    def log_total(point: Optimum) -> float:
        s = np.log(np.sqrt(point.hyper.variance) / point.hyper.mean)
        return 4.0 - 0.7 * np.log(point.hyper.length_scale) + 1.1 * float(s)

    def counted(problem: Problem, base: Optimum) -> Turns:
        asked.append(base)
        return Turns([], np.zeros(0), log_total(base))

    asked: list[Optimum] = []
    monkeypatch.setattr(Turns, "at", counted)
    heaviest = points[4]
    here = Turns([], np.zeros(0), log_total(heaviest.optimum))
    found = _with_turns(task, points, heaviest, here)
    assert len(asked) == 2
    expected = [log_total(point.optimum) - here.log_total for point in points]
    assert_allclose([point.log_density for point in found], expected, atol=1e-12)
    # never more than double, however far the line is extended
    few = Turns([], np.zeros(0), 1.05)
    gains = [point.log_density for point in _with_turns(task, points, heaviest, few)]
    assert_allclose([min(gains), max(gains)], [-1.05, 1.05], atol=1e-12)
    # and few patterns are not looked for elsewhere
    asked.clear()
    assert _with_turns(task, points, heaviest, Turns([], np.zeros(0), 0.9)) is points
    assert not asked


def test_curves_that_cross_zero_and_that_do_not_are_weighed_by_evidence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = problem()
    best = search(task, log_prior=weak_prior)[0]
    # four peaks, told apart by their log prior, the last the best
    crossing = {0.0: True, 1.0: False, 2.0: True, 3.0: False}
    evidence = {True: -2.0, False: 0.5}
    peaks = [
        replace(
            best,
            log_prior=number,
            estep=replace(best.estep, evaluation=replace(best.estep.evaluation)),
        )
        for number in crossing
    ]
    of_evaluation = {id(peak.estep.evaluation): crossing[peak.log_prior] for peak in peaks}
    families: list[list[float]] = []

    def around(problem: Problem, family: list[Optimum], *settings: object) -> Integration:
        families.append([peak.log_prior for peak in family])
        parts = [Weighted(peak, 1 / len(family)) for peak in family]
        return Integration(parts, evidence[crossing[families[-1][0]]])

    monkeypatch.setattr("gp4c.inference.integrate.crosses", lambda at: of_evaluation[id(at)])
    monkeypatch.setattr("gp4c.inference.integrate._around", around)
    found = integrate(task, peaks, free=free_coordinates(task, None), log_prior=weak_prior)
    assert families == [[1.0, 3.0], [0.0, 2.0]]
    assert_allclose(found.log_evidence, np.logaddexp(-2.0, 0.5))
    share = 1 / (1 + np.exp(-2.5))
    weights = {part.optimum.log_prior: part.weight for part in found.parts}
    assert_allclose([weights[i] for i in (1.0, 3.0)], share / 2)
    assert_allclose([weights[i] for i in (0.0, 2.0)], (1 - share) / 2)
