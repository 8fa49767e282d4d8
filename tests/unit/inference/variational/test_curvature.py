"""The expected curvature against second differences of an expected Gaussian log evidence."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from gp4c.inference.variational.bound import Gaussian
from gp4c.inference.variational.curvature import RIDGE, expected_curvature
from gp4c.inference.variational.hyper import Problem
from gp4c.model.kernels import KERNELS
from gp4c.model.sparse_prior import JITTER, Hyper
from problems import observed, visits_panel

SIZE = 5


def prior_covariance(a: float, gamma: float) -> np.ndarray:
    z = np.linspace(0.0, 1.0, SIZE)
    return gamma * (np.exp(-((z[:, None] - z) ** 2) / (2 * a**2)) + JITTER * np.eye(SIZE))


def test_it_is_the_information_of_noisy_observations_of_f() -> None:
    """E ln N(y; g, C(θ)), y ~ N(g₀, C(θ₀)), C = γK + noise: minus its Hessian at θ₀."""
    hyper = Hyper(0.3, 0.4, 0.9)
    noise = np.diag(np.random.default_rng(1).uniform(0.02, 0.5, SIZE))
    C0, one = prior_covariance(0.3, 0.4) + noise, np.ones(SIZE)

    def expected_log_evidence(x: np.ndarray) -> float:
        C = prior_covariance(np.exp(x[0]), np.exp(x[1])) + noise
        away = (x[2] - 0.9) * one
        inner = np.trace(np.linalg.solve(C, C0)) + away @ np.linalg.solve(C, away)
        return -float(np.linalg.slogdet(C)[1] + inner) / 2

    x, step, hessian = hyper.to_vector()[:3], 1e-3, np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            e, d = step * np.eye(3)[i], step * np.eye(3)[j]
            hessian[i, j] = (
                expected_log_evidence(x + e + d) - expected_log_evidence(x + e - d)
                - expected_log_evidence(x - e + d) + expected_log_evidence(x - e - d)
            ) / (4 * step**2)  # fmt: skip
    work = Problem(observed(visits_panel(1, 5, 3)), KERNELS["se"], n_inducing=SIZE).workspace(0.3)
    R = np.sqrt(hyper.variance) * work.prior.factor  # u = g + R v
    q = Gaussian.from_natural(np.eye(SIZE) + R.T @ np.linalg.solve(noise, R), np.zeros(SIZE))
    assert q is not None
    ours = expected_curvature(work, hyper, q)[:3, :3] - RIDGE * np.eye(3)
    assert_allclose(ours, -hessian, rtol=1e-4, atol=1e-4)
