"""The law of the level at fixed hyper-parameters against quadrature and the tempered sampler."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from gp4c.data.events import RecurrentEvents
from gp4c.data.panel import PanelCounts
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import observe
from gp4c.inference import importance, parts
from gp4c.inference.hyper import Optimum, Problem, solve_q
from gp4c.inference.importance import log_likelihood
from gp4c.inference.level import (
    GRID,
    _along,
    _direction,
    event_moments,
    shift_and_stretch,
    with_level,
)
from gp4c.inference.mcmc import sample_posterior
from gp4c.inference.response import frailty_response
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Gaussian, Workspace
from gp4c.models.fitting import no_event_optimum
from problems import observed, visits_panel


def solved(
    effect: str | None,
    hyper: Hyper,
    *,
    n_inducing: int = 2,
    level: float = 3.0,
    count_term: str = "exact",
    tol: float = 1e-8,
) -> Optimum:
    data = observed(visits_panel(3, 10, 4, level=level, frailty=1.0 if effect else None))
    task = Problem(data, KERNELS["se"], count_term, effect=effect, n_inducing=n_inducing)
    work = task.workspace(hyper.length_scale)
    return Optimum(hyper, work, solve_q(work, hyper, None, tol), 0.0, (), True)


def events(at: Optimum, v: np.ndarray) -> np.ndarray:
    """Expected events of each column of v over all that was seen, by the nodes' values of f."""
    f = at.hyper.mean + np.sqrt(at.hyper.variance) * at.work.features @ v
    left = at.hyper.variance * at.work.residual[:, None]
    return np.asarray(at.work.likelihood.exposure.base_weights @ (f**2 + left))


def moments_by_quadrature(at: Optimum, q: Gaussian, line: np.ndarray) -> tuple[float, float]:
    """Mean and deviation of the expected events under likelihood × prior, by a dense plane rule."""
    side = np.linspace(-9, 9, 601)
    v = np.stack(np.meshgrid(side, side), 0).reshape(2, -1)
    near = np.abs(line @ q.precision @ (v - q.mean[:, None])) < 4.5  # −f is far below
    v = v[:, near]
    share = softmax(log_likelihood(at.work, at.hyper, v) - (v**2).sum(axis=0) / 2)
    mean = float(share @ events(at, v))
    return mean, float(np.sqrt(share @ (events(at, v) - mean) ** 2))


def moments_of(at: Optimum, q: Gaussian) -> tuple[float, float]:
    """Mean and standard deviation of the expected events under q, by many draws."""
    normals = np.random.default_rng(7).standard_normal((len(q.mean), 400_000))
    drawn = events(at, q.mean[:, None] + q.root @ normals)
    return float(drawn.mean()), float(drawn.std())


def direction(at: Optimum, q: Gaussian) -> tuple[np.ndarray, float, float]:
    found = _direction(at, q)
    assert found is not None
    return found


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_the_expected_events_have_the_law_of_the_posterior(effect: str | None) -> None:
    at = solved(effect, Hyper(0.8, 0.3, 0.9, 0.7 if effect else np.inf), level=0.5)
    q = frailty_response(at)
    line, slope, _ = direction(at, q)
    assert_allclose(line @ q.precision @ line, 1.0)
    found, plain = event_moments(at, q, line, 2048, 0)
    expected = moments_by_quadrature(at, q, line)
    assert_allclose(found, expected, atol=0.03 * slope)
    assert_allclose(plain, moments_of(at, q), atol=0.03 * slope)
    assert_allclose(moments_of(at, with_level(at, q, 2048, 0)), expected, atol=0.05 * slope)
    # and it matters: the Gaussian around the optimum has another
    if effect:
        assert max(abs(np.subtract(plain, expected))) > 0.1 * slope


def moments_of_parabola(
    shift: float, stretch: float, slope: float, bend: float, other: float
) -> tuple[float, float]:
    """Mean and standard deviation of slope t + bend t² + other r, by Gauss's rule over t."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    t = shift + stretch * nodes
    values = slope * t + bend * t**2
    mean = float(weights @ values)
    return mean, float(np.sqrt(weights @ (values - mean) ** 2 + other**2))


@pytest.mark.parametrize("gain", [-1.0, 0.0, 0.8])
@pytest.mark.parametrize("wider", [0.8, 1.0, 1.3])
@pytest.mark.parametrize("bend", [0.0, 0.05, 0.3])
def test_a_shift_and_a_stretch_give_the_moments_asked_for(
    gain: float, wider: float, bend: float
) -> None:
    slope, other = 2.0, 0.5
    mean, spread = moments_of_parabola(0.0, 1.0, slope, bend, other)
    found = shift_and_stretch(gain, wider * spread, spread, slope, bend)
    reached = moments_of_parabola(*found, slope, bend, other)
    assert_allclose(reached, (mean + gain, wider * spread), atol=1e-9)


@pytest.mark.parametrize("bend", [0.0, 0.2, 1.0, 1.5, 40.0])
def test_nothing_to_make_up_for_changes_nothing(bend: float) -> None:
    _, spread = moments_of_parabola(0.0, 1.0, 2.0, bend, 0.5)
    assert_allclose(shift_and_stretch(0.0, spread, spread, 2.0, bend), (0.0, 1.0), atol=1e-9)


@pytest.mark.parametrize("bend", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("gain", [-50.0, -3.0, 0.0, 5.0])
@pytest.mark.parametrize("deviation", [0.0, 1e-9, 1.0, 40.0])
def test_where_no_law_gives_both_the_mean_goes_first(
    gain: float, deviation: float, bend: float
) -> None:
    slope = 2.0
    before, spread = moments_of_parabola(0.0, 1.0, slope, bend, 0.0)
    found = shift_and_stretch(gain, deviation, spread, slope, bend)
    assert 0.2 - 1e-9 < found[1] < 100
    lowest = -np.inf if bend == 0 else -(slope**2) / (4 * bend) + 0.2**2 * bend - before
    mean, _ = moments_of_parabola(*found, slope, bend, 0.0)
    assert_allclose(mean - before, max(gain, lowest), atol=1e-9)


def test_without_events_q_is_the_posterior_and_stays() -> None:
    panel = visits_panel(3, 10, 4, level=0.5)
    data = observed(PanelCounts.from_frame(panel.to_frame().assign(count=0), window=panel.window))
    at = no_event_optimum(Problem(data, KERNELS["se"], "exact"))
    q = with_level(at, at.estep.q, 512, 0)
    assert_allclose(q.mean, at.estep.q.mean, atol=1e-6)
    assert_allclose(q.covariance, at.estep.q.covariance, atol=1e-6)


def test_weights_of_subjects_leave_the_level_alone() -> None:
    at = solved("weight", Hyper(0.8, 0.3, 0.9), level=0.5)
    assert with_level(at, at.estep.q, 128, 0) is at.estep.q


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_along_the_direction_the_likelihood_is_that_of_the_curves(effect: str | None) -> None:
    panel = visits_panel(3, 10, 4, level=2.0)
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"subject": [f"e{k % 3}" for k in range(9)], "time": rng.random(9)})
    data = observe(panel, RecurrentEvents.from_frame(frame, window=panel.window), panel.window)
    hyper = Hyper(0.8, 0.3, 0.9, 0.7 if effect else np.inf)
    work = Problem(data, KERNELS["se"], "exact", effect=effect).workspace(hyper.length_scale)
    at = Optimum(hyper, work, solve_q(work, hyper, None, 1e-4), 0.0, (), True)
    v, line = rng.standard_normal((work.size, 6)), rng.standard_normal(work.size)
    log_joint, expected = _along(at, v, line)
    for t, joint, number in zip(GRID, log_joint, expected, strict=True):
        there = v + t * line[:, None]
        assert_allclose(joint, log_likelihood(work, hyper, there) - (there**2).sum(axis=0) / 2)
        assert_allclose(number, events(at, there))


def test_a_rough_optimum_has_the_level_of_the_posterior() -> None:
    """q may stop early: what it lacks in the level is made up for."""
    hyper = Hyper(0.8, 0.3, 0.9, 0.7)
    fine, rough = solved("gamma", hyper, level=1.0), solved("gamma", hyper, level=1.0, tol=1.0)
    apart = [
        float(np.linalg.norm(one.mean - two.mean))
        for one, two in (
            (rough.estep.q, fine.estep.q),
            (
                with_level(rough, frailty_response(rough), 2048, 0),
                with_level(fine, frailty_response(fine), 2048, 0),
            ),
        )
    ]
    assert apart[0] > 0.05
    assert apart[1] < apart[0] / 2


def test_the_expected_events_are_those_of_the_sampler() -> None:
    at = solved("gamma", Hyper(0.3, 0.4, 0.8, 0.7), level=0.5, n_inducing=8)
    data = observed(visits_panel(3, 10, 4, level=0.5, frailty=1.0))
    task = Problem(data, KERNELS["se"], "exact", effect="gamma", n_inducing=8)
    draws, _ = sample_posterior(task, at.hyper, size=8, n_draws=4000, random_state=0)
    times = np.linspace(*data.window, 101)
    sampled = draws.intensities(times).mean(axis=0)
    mean = float(sampled @ draws.weights / draws.weights.sum())

    def expected(q: Gaussian) -> float:
        features = at.work.prior.features(np.linspace(0, 1, 101))
        f = at.hyper.mean + np.sqrt(at.hyper.variance) * features @ q.mean
        left = np.maximum(1 - (features**2).sum(axis=1), 0)
        spread = at.hyper.variance * (left + ((features @ q.root) ** 2).sum(axis=1))
        return float((f**2 + spread).mean() * data.rate)

    plain = frailty_response(at)
    assert_allclose(expected(with_level(at, plain, 4096, 0)), mean, rtol=0.02)
    assert abs(expected(plain) - mean) > abs(expected(with_level(at, plain, 4096, 0)) - mean)


def test_a_rescaled_gaussian_keeps_its_law_given_the_place_on_the_line() -> None:
    rng = np.random.default_rng(4)
    root = np.tril(rng.standard_normal((4, 4))) + 3 * np.eye(4)
    q = Gaussian(rng.standard_normal(4), root, 2 * float(np.log(np.diag(root)).sum()))
    functional = rng.standard_normal(4)
    deviation = np.sqrt(functional @ q.covariance @ functional)
    line = q.covariance @ functional / deviation
    other = q.rescaled(line, 0.7, 1.3)
    assert_allclose(functional @ (other.mean - q.mean), 0.7 * deviation)
    assert_allclose(functional @ other.covariance @ functional, (1.3 * deviation) ** 2)
    assert_allclose(np.linalg.slogdet(other.covariance)[1], other.log_det)
    # regression on the functional, and what it leaves
    for moved in (q, other):
        slope = moved.covariance @ functional / (functional @ moved.covariance @ functional)
        assert_allclose(slope, line / deviation)
        rest = moved.covariance - np.outer(slope, functional @ moved.covariance)
        assert_allclose(rest, q.covariance - np.outer(line, line), atol=1e-12)


def test_levels_that_are_known_the_papers_bound_and_coarse_inputs_stay() -> None:
    known = solved(None, Hyper(0.8, 0.3, 0.9), level=300.0)
    assert with_level(known, known.estep.q, 128, 0) is known.estep.q
    paper = solved(None, Hyper(0.8, 0.3, 0.9), level=0.5, count_term="lemma2")
    assert with_level(paper, paper.estep.q, 128, 0) is paper.estep.q
    coarse = solved(None, Hyper(0.4, 0.3, 0.9), level=0.5)  # two inputs leave a fifth of f open
    assert with_level(coarse, coarse.estep.q, 128, 0) is coarse.estep.q


def test_parts_have_draws_in_proportion_to_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    at, asked = solved(None, Hyper(0.8, 0.3, 0.9), level=0.5), []

    def watched(optimum: Optimum, q: Gaussian, n_draws: int, seed: int) -> Gaussian:
        asked.append((n_draws, seed))
        return q

    monkeypatch.setattr(parts, "with_level", watched)
    parts.gaussians([parts.Weighted(at, weight) for weight in (0.75, 0.24, 0.01)])
    assert asked == [(3072, 0), (983, 1), (128, 2)]


def test_many_subjects_are_treated_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    at = solved("gamma", Hyper(0.8, 0.3, 0.9, 0.7), level=0.5)
    q = frailty_response(at)
    line, slope, _ = direction(at, q)
    together = event_moments(at, q, line, 2048, 0)
    sizes = []
    plain = importance.square_integrals

    def watched(work: Workspace, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(square.shape[1])
        return plain(work, square)

    monkeypatch.setattr("gp4c.inference.importance.square_integrals", watched)
    monkeypatch.setattr(importance, "_MOST_NUMBERS", 100 * at.work.likelihood.largest)
    assert_allclose(event_moments(at, q, line, 2048, 0), together, atol=0.03 * slope)
    assert max(sizes) == 100
