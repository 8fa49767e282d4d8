"""The whitened prior against its dense, unwhitened definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gp4c.model.kernels import KERNELS
from gp4c.model.sparse_prior import JITTER, Hyper, SparsePrior
from tolerances import FINITE_DIFFERENCE, ROUNDING

X = np.linspace(0.0, 1.0, 31)


def prior_of(name: str, length_scale: float = 0.21, size: int = 7) -> SparsePrior:
    return SparsePrior(KERNELS[name], np.linspace(0.0, 1.0, size), length_scale)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_features_factorise_the_sparse_covariance(name: str) -> None:
    prior = prior_of(name)
    z = prior.inducing
    K = KERNELS[name](np.abs(z[:, None] - z), 0.21) + JITTER * np.eye(len(z))
    cross = KERNELS[name](np.abs(X[:, None] - z), 0.21)
    B = prior.features(X)
    assert_allclose(B @ B.T, cross @ np.linalg.solve(K, cross.T), rtol=1e-9, atol=1e-10)


@given(
    name=st.sampled_from(sorted(KERNELS)),
    length_scale=st.floats(0.02, 2.0),
    size=st.integers(2, 24),
)
def test_the_unexplained_variance_is_never_negative(
    name: str, length_scale: float, size: int
) -> None:
    # b(x)ᵀb(x) ≤ k(x, x) = 1: the jitter only takes away from what the inducing inputs explain
    B = prior_of(name, length_scale, size).features(X)
    assert (1.0 - (B**2).sum(axis=1)).min() > -1e-9


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_inducing_inputs_explain_themselves_up_to_the_jitter(name: str) -> None:
    prior = prior_of(name)
    B = prior.features(prior.inducing)
    residual = 1.0 - (B**2).sum(axis=1)
    assert np.all(residual > 0.0)
    assert np.all(residual <= JITTER * (1 + 1e-6))


@pytest.mark.parametrize("name", sorted(KERNELS))
@pytest.mark.parametrize("length_scale", [0.08, 0.21, 0.9])
def test_derivative_of_the_features(name: str, length_scale: float) -> None:
    # the derivative goes through the Cholesky factor, whose condition number is up to 1e6
    h = 1e-4
    prior = prior_of(name, length_scale)
    ours = prior.features_derivative(X, prior.features(X))
    up, down = (prior_of(name, length_scale * np.exp(s * h)).features(X) for s in (1, -1))
    up2, down2 = (prior_of(name, length_scale * np.exp(s * h / 2)).features(X) for s in (1, -1))
    coarse, fine = (up - down) / (2 * h), (up2 - down2) / h
    expected = (4 * fine - coarse) / 3  # Richardson: truncation h⁴
    assert_allclose(ours, expected, rtol=1e-6, atol=2e-6)


def test_derivative_of_the_covariance() -> None:
    h, prior = 1e-5, prior_of("matern52")
    up, down = (prior_of("matern52", 0.21 * np.exp(s * h)).covariance(X, X) for s in (1, -1))
    ours = prior.covariance_derivative(X, X)
    assert_allclose(ours, (up - down) / (2 * h), **FINITE_DIFFERENCE)


def test_covariances_broadcast_over_intervals() -> None:
    prior = prior_of("matern32")
    nodes = X[:30].reshape(5, 6)
    stacked = np.stack([prior.covariance(row, row) for row in nodes])
    assert_allclose(prior.covariance(nodes, nodes), stacked, **ROUNDING)


@given(
    a=st.floats(1e-3, 10.0),
    gamma=st.floats(1e-8, 1e2),
    g=st.floats(-3.0, 3.0),
    alpha=st.one_of(st.floats(1e-3, 1e6), st.just(np.inf)),
)
def test_hyper_parameters_survive_their_coordinates(
    a: float, gamma: float, g: float, alpha: float
) -> None:
    hyper = Hyper(a, gamma, g, alpha)
    back = Hyper.from_vector(hyper.to_vector())
    expected = (a, gamma, g, alpha)
    assert_allclose((back.length_scale, back.variance, back.mean, back.shape), expected, rtol=1e-13)
    moved = hyper.with_length_scale(2.0 * a)
    assert (moved.length_scale, moved.variance, moved.mean) == (2.0 * a, gamma, g)
