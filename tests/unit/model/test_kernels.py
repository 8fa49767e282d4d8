"""Covariances: against scikit-learn's, finite differences, and adaptive quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad

from gp4c.model.kernels import KERNELS, SquaredExponential
from tolerances import CLOSED_FORM, FINITE_DIFFERENCE, ROUNDING

LENGTH_SCALES = [0.05, 0.3, 2.0]


@pytest.mark.parametrize("length_scale", LENGTH_SCALES)
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_are_those_of_another_library(name: str, length_scale: float) -> None:
    from sklearn.gaussian_process.kernels import RBF, Matern

    other = {
        "se": RBF(length_scale),
        "matern32": Matern(length_scale, nu=1.5),
        "matern52": Matern(length_scale, nu=2.5),
    }[name]
    x = np.linspace(0.0, 1.0, 17)
    ours = KERNELS[name](np.abs(x[:, None] - x), length_scale)
    assert_allclose(ours, other(x[:, None]), **ROUNDING)


@pytest.mark.parametrize("length_scale", LENGTH_SCALES)
@pytest.mark.parametrize("name", sorted(KERNELS))
def test_derivative_by_the_log_length_scale(name: str, length_scale: float) -> None:
    kernel, r, h = KERNELS[name], np.linspace(0.0, 1.0, 23), 1e-5
    up, down = kernel(r, length_scale * np.exp(h)), kernel(r, length_scale * np.exp(-h))
    expected = (up - down) / (2 * h)
    assert_allclose(kernel.log_derivative(r, length_scale), expected, **FINITE_DIFFERENCE)


@given(
    name=st.sampled_from(sorted(KERNELS)),
    length_scale=st.floats(0.02, 3.0),
    points=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8, unique=True),
)
def test_kernels_are_positive_semi_definite(
    name: str, length_scale: float, points: list[float]
) -> None:
    x = np.array(points)
    K = KERNELS[name](np.abs(x[:, None] - x), length_scale)
    assert_allclose(np.diag(K), 1.0, **ROUNDING)
    assert np.linalg.eigvalsh(K).min() > -1e-13 * len(x)


INTERVALS = [(0.0, 1.0), (0.2, 0.21), (0.31, 0.77), (0.5, 0.5 + 1e-7), (-0.4, 1.7)]


@pytest.mark.parametrize("interval", INTERVALS)
@pytest.mark.parametrize("length_scale", [0.07, 0.4])
def test_closed_form_integrals_agree_with_quadrature(
    interval: tuple[float, float], length_scale: float
) -> None:
    kernel, z = SquaredExponential(), np.linspace(0.0, 1.0, 4)
    low, high = interval
    ends = (np.array([low]), np.array([high]))

    def bump(x: float, i: int) -> float:
        return float(np.exp(-0.5 * ((x - z[i]) / length_scale) ** 2))

    options = {"epsabs": 1e-14, "epsrel": 1e-13, "limit": 200, "points": [z[1], z[2]]}
    single = [quad(bump, low, high, args=(i,), **options)[0] for i in range(4)]
    double = [
        [
            quad(lambda x, i=i, j=j: bump(x, i) * bump(x, j), low, high, **options)[0]
            for j in range(4)
        ]
        for i in range(4)
    ]
    assert_allclose(kernel.integral(z, *ends, length_scale)[0], single, **CLOSED_FORM)
    assert_allclose(kernel.overlap(z, *ends, length_scale)[0], double, **CLOSED_FORM)


def test_an_extra_visit_moves_no_kernel_mass() -> None:
    kernel, z = SquaredExponential(), np.linspace(0.0, 1.0, 6)
    whole = kernel.overlap(z, np.array([0.1]), np.array([0.9]), 0.2)[0]
    parts = kernel.overlap(z, np.array([0.1, 0.35]), np.array([0.35, 0.9]), 0.2)
    assert_allclose(parts.sum(axis=0), whole, **ROUNDING)
