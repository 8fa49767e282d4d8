"""Evidence by importance sampling against quadrature, closed forms and the tempered sampler."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gp4c.design.kernels import KERNELS
from gp4c.inference.hyper import Optimum, Problem, solve_q
from gp4c.inference.importance import _normals, log_evidence, log_likelihood
from gp4c.inference.mcmc import sample_posterior
from gp4c.inference.sparse_prior import Hyper
from gp4c.inference.variational import Gaussian
from problems import observed, visits_panel


def solved(task: Problem, hyper: Hyper) -> Optimum:
    work = task.workspace(hyper.length_scale)
    estep = solve_q(work, hyper, None, 1e-8)
    return Optimum(hyper, work, estep, 0.0, (), True)


def task(effect: str | None = None, n_inducing: int = 2) -> Problem:
    data = observed(visits_panel(3, 10, 4, level=3.0))
    return Problem(data, KERNELS["se"], "exact", effect=effect, n_inducing=n_inducing)


@pytest.mark.parametrize("effect", [None, "gamma"])
def test_evidence_is_the_integral_over_v(effect: str | None) -> None:
    """Two inducing inputs: the integral over v by a dense rule in the plane."""
    at = solved(task(effect), Hyper(0.8, 0.3, 0.9, 2.0 if effect else np.inf))
    side = np.linspace(-8, 8, 401)
    v = np.stack(np.meshgrid(side, side), 0).reshape(2, -1)
    log_joint = log_likelihood(at.work, at.hyper, v) - (v**2).sum(axis=0) / 2 - np.log(2 * np.pi)
    step = side[1] - side[0]
    brute = np.log(np.exp(log_joint - log_joint.max()).sum()) + 2 * np.log(step) + log_joint.max()
    # few standard errors of 4096 draws whose weights vary little
    assert abs(log_evidence(at, 4096) - brute) < 0.03
    assert brute > at.estep.evaluation.bound.total - 1e-3


def test_likelihood_is_that_of_poisson_counts() -> None:
    """At one v: Σ m ln μ − μ with μ by adaptive quadrature of E[f² | v], row by row."""
    from scipy.integrate import quad

    panel = visits_panel(3, 10, 4, level=3.0)
    data = observed(panel)
    problem = Problem(data, KERNELS["se"], "exact", n_inducing=9)
    hyper = Hyper(0.4, 0.5, 0.8)
    work = problem.workspace(hyper.length_scale)
    v = np.random.default_rng(1).standard_normal((work.size, 1))

    def rate(x: float) -> float:
        b = work.prior.features(np.array([x]))[0]
        f = hyper.mean + np.sqrt(hyper.variance) * (b @ v[:, 0])
        return float(f**2 + hyper.variance * max(1 - b @ b, 0.0))

    t0, t1 = panel.window
    total = 0.0
    for start, stop, count, exposure in zip(
        panel.start, panel.stop, panel.count, panel.exposure, strict=True
    ):
        inside = quad(rate, (start - t0) / (t1 - t0), (stop - t0) / (t1 - t0), epsabs=1e-12)[0]
        expected = data.rate * exposure * inside
        total += count * np.log(expected) - expected
    assert_allclose(log_likelihood(work, hyper, v), [total], rtol=1e-8)


def test_any_q_near_the_posterior_gives_the_same_evidence() -> None:
    at = solved(task(n_inducing=6), Hyper(0.5, 0.3, 0.9))
    q = at.estep.q
    wider = Gaussian(q.mean, 1.2 * q.root, q.log_det + 2 * 6 * np.log(1.2))
    other = replace(at, estep=replace(at.estep, q=wider))
    assert abs(log_evidence(at, 8192) - log_evidence(other, 8192)) < 0.05


def test_evidence_agrees_with_the_tempered_sampler() -> None:
    problem = task(n_inducing=10)
    hyper = Hyper(0.2, 0.4, 0.8)
    _, report = sample_posterior(problem, hyper, n_draws=800, random_state=0)
    ours = log_evidence(solved(problem, hyper), 4096)
    assert abs(ours - report.log_evidence) < 0.1 + 4 * report.log_evidence_error


def test_widening_adds_an_outer_product() -> None:
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(np.cov(rng.standard_normal((4, 20))))
    direction = rng.standard_normal(4)
    wide = Gaussian(np.zeros(4), root, 2 * np.log(np.diag(root)).sum()).widened(direction)
    expected = root @ root.T + np.outer(direction, direction)
    assert_allclose(wide.covariance, expected, rtol=1e-12)
    assert_allclose(wide.log_det, np.linalg.slogdet(expected)[1], rtol=1e-12)


def test_draws_are_standard_normal_and_half_are_mirror_images() -> None:
    draws = _normals(40, 4096)
    assert draws.shape == (40, 4096)
    assert_allclose(draws.sum(axis=1), 0.0, atol=1e-9)
    assert_allclose(draws.var(), 1.0, atol=0.02)
    assert len(np.unique(draws[0])) == 4096
