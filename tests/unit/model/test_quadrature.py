"""Grid integrals: exact for polynomials, spectral for kernels, accurate for tiny intervals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import Polynomial
from numpy.testing import assert_allclose
from scipy.integrate import quad

from gp4c.inference.variational.hyper import COARSE_ORDER, FINE_ORDER, MAX_SPACING, STRETCH
from gp4c.model import quadrature
from gp4c.model.kernels import KERNELS, SquaredExponential
from gp4c.model.quadrature import Grid, IntervalIntegrals, gauss_legendre
from tolerances import CLOSED_FORM, ROUNDING


def random_intervals(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
    ends = np.sort(rng.uniform(0.0, 1.0, (size, 2)), axis=1)
    return ends[:, 0], ends[:, 1]


def test_gauss_legendre_rule_is_scipys() -> None:
    from scipy.special import roots_legendre

    for order in (1, 2, 7, 16):
        nodes, weights = gauss_legendre(order)
        expected_nodes, expected_weights = roots_legendre(order)
        assert_allclose(nodes, expected_nodes, **ROUNDING)
        assert_allclose(weights, expected_weights, **ROUNDING)


def test_a_grid_lays_its_nodes_panel_by_panel() -> None:
    grid = Grid.on(np.array([0.0, 0.3, 1.0]), 5)
    assert np.all(np.diff(grid.nodes) > 0)
    assert np.all(grid.nodes[:5] < 0.3)
    assert np.all(grid.nodes[5:] > 0.3)
    assert_allclose(grid.weights.reshape(2, 5).sum(axis=1), [0.3, 0.7], **ROUNDING)


@given(
    order=st.integers(2, 16),
    panels=st.integers(1, 6),
    ends=st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)),
    seed=st.integers(0, 1000),
)
def test_polynomials_below_the_order_are_integrated_exactly(
    order: int, panels: int, ends: tuple[float, float], seed: int
) -> None:
    low, high = sorted(ends)
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[0.0], np.sort(rng.uniform(0.05, 0.95, panels - 1)), [1.0]])
    if np.diff(edges).min() < 1e-3:
        edges = np.linspace(0.0, 1.0, panels + 1)
    polynomial = Polynomial(rng.normal(size=order))  # degree order − 1, the interpolant's
    grid = Grid.on(edges, order)
    ours = IntervalIntegrals(grid, np.array([low]), np.array([high])).apply(polynomial(grid.nodes))
    primitive = polynomial.integ()
    assert_allclose(ours[0], primitive(high) - primitive(low), rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize(
    ("spacing", "order"),
    [(STRETCH * KERNELS["se"].spacing, FINE_ORDER), (MAX_SPACING, COARSE_ORDER)],
)
def test_grid_integrals_of_the_squared_exponential_are_its_closed_forms(
    spacing: float, order: int, rng: np.random.Generator
) -> None:
    size = 9
    z = np.linspace(0.0, 1.0, size)
    length_scale = 1.0 / (size - 1) / spacing
    start, stop = random_intervals(rng, 50)
    start[:3], stop[:3] = [0.0, z[2], z[3]], [1.0, z[3], z[5]]  # ends on panel edges
    kernel, grid = SquaredExponential(), Grid.on(z, order)
    integrals = IntervalIntegrals(grid, start, stop)
    k = kernel(np.abs(grid.nodes[:, None] - z), length_scale)
    assert_allclose(
        integrals.apply(k), kernel.integral(z, start, stop, length_scale), **CLOSED_FORM
    )
    products = (k[:, :, None] * k[:, None, :]).reshape(len(k), -1)
    overlap = kernel.overlap(z, start, stop, length_scale).reshape(50, -1)
    assert_allclose(integrals.apply(products), overlap, **CLOSED_FORM)


@pytest.mark.parametrize("name", ["matern32", "matern52"])
@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.13, 0.41), (0.26, 0.27), (0.6, 0.6 + 1e-8)])
def test_grid_integrals_of_matern_kernels_agree_with_quadrature(
    name: str, interval: tuple[float, float]
) -> None:
    # each factor has a kink at its own inducing input; panels end there, so nothing is lost
    size, kernel = 9, KERNELS[name]
    z = np.linspace(0.0, 1.0, size)
    length_scale = 1.0 / (size - 1) / kernel.spacing
    grid = Grid.on(z, FINE_ORDER)
    integrals = IntervalIntegrals(grid, np.array([interval[0]]), np.array([interval[1]]))
    inside = z[(z > interval[0]) & (z < interval[1])]
    for i, j in [(0, 0), (2, 3), (4, 4), (8, 1)]:

        def product(x: float, i: int = i, j: int = j) -> float:
            distance = np.abs(np.array([x - z[i], x - z[j]]))
            return float(np.prod(kernel(distance, length_scale)))

        edges = [interval[0], *inside, interval[1]]
        expected = sum(
            quad(product, low, high, epsabs=1e-15, epsrel=1e-13)[0] for low, high in pairwise(edges)
        )
        values = np.array([product(x) for x in grid.nodes])
        assert_allclose(integrals.apply(values)[0], expected, **CLOSED_FORM)


def test_integrals_add_up_over_consecutive_intervals(rng: np.random.Generator) -> None:
    grid = Grid.on(np.linspace(0.0, 1.0, 8), 12)
    values = np.exp(np.sin(9.0 * grid.nodes))
    cuts = np.concatenate([[0.0], np.sort(rng.uniform(size=30)), [1.0]])
    parts = IntervalIntegrals(grid, cuts[:-1], cuts[1:]).apply(values)
    whole = IntervalIntegrals(grid, np.array([0.0]), np.array([1.0])).apply(values)
    assert_allclose(parts.sum(), whole[0], **ROUNDING)


@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-9, 1e-12])
def test_tiny_intervals_keep_their_relative_accuracy(width: float) -> None:
    grid = Grid.on(np.linspace(0.0, 1.0, 8), 12)
    low = np.linspace(0.01, 0.98, 40)
    high = low + width
    ours = IntervalIntegrals(grid, low, high).apply(np.exp(grid.nodes))
    # ∫ e^x = e^low · (e^width − 1) with the width that is left after rounding
    expected = np.exp(low) * np.expm1(high - low)
    assert_allclose(ours, expected, rtol=1e-11)


def test_an_empty_interval_has_no_mass() -> None:
    grid = Grid.on(np.linspace(0.0, 1.0, 5), 8)
    at = np.array([0.0, 0.25, 0.3, 1.0])
    integrals = IntervalIntegrals(grid, at, at)
    assert integrals.size == 4
    assert_allclose(integrals.apply(np.exp(grid.nodes)), 0.0, rtol=0, atol=1e-300)


def test_transpose_is_the_adjoint(rng: np.random.Generator) -> None:
    grid = Grid.on(np.linspace(0.0, 1.0, 7), 10)
    integrals = IntervalIntegrals(grid, *random_intervals(rng, 25))
    values, coefficients = rng.normal(size=len(grid.nodes)), rng.normal(size=25)
    left, right = coefficients @ integrals.apply(values), integrals.transpose(coefficients) @ values
    assert_allclose(left, right, **ROUNDING)


def test_several_functions_at_once_are_the_functions_one_by_one(rng: np.random.Generator) -> None:
    grid = Grid.on(np.linspace(0.0, 1.0, 5), 8)
    integrals = IntervalIntegrals(grid, *random_intervals(rng, 6))
    values = rng.normal(size=(len(grid.nodes), 3))
    each = np.stack([integrals.apply(values[:, s]) for s in range(3)], axis=1)
    assert_allclose(integrals.apply(values), each, **ROUNDING)


def test_chunks_change_nothing(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    grid, ends = Grid.on(np.linspace(0.0, 1.0, 5), 8), random_intervals(rng, 23)
    values, coefficients = rng.normal(size=len(grid.nodes)), rng.normal(size=23)
    whole = IntervalIntegrals(grid, *ends)
    monkeypatch.setattr(quadrature, "_CHUNK", 5)
    chunked = IntervalIntegrals(grid, *ends)
    assert_allclose(chunked.apply(values), whole.apply(values), **ROUNDING)
    assert_allclose(chunked.transpose(coefficients), whole.transpose(coefficients), **ROUNDING)


def test_interpolation_is_exact_for_polynomials_and_at_the_ends(rng: np.random.Generator) -> None:
    grid = Grid.on(np.linspace(0.0, 1.0, 4), 6)
    times = np.concatenate([[0.0, 1.0], grid.edges, rng.uniform(size=20)])
    polynomial = Polynomial(rng.normal(size=6))
    ours = grid.interpolation(times) @ polynomial(grid.nodes)
    assert_allclose(ours, polynomial(times), **ROUNDING)


def test_products_of_functions_are_integrated_as_a_whole():
    # polynomials, whose integrals are known: ∫ tᵃ tᵇ = (hᵃ⁺ᵇ⁺¹ − lᵃ⁺ᵇ⁺¹)/(a + b + 1)
    grid = Grid.on(np.array([-0.5, 0.0, 0.2, 0.7, 1.0]), 6)
    low = np.array([-0.5, 0.0, 0.05, 0.1, 0.3, 0.7, -0.4])
    high = np.array([1.0, 0.2, 0.15, 0.9, 0.3, 0.7001, -0.1])
    powers = np.arange(3)
    found = IntervalIntegrals(grid, low, high).products(grid.nodes[:, None] ** powers)
    degree = powers[:, None] + powers + 1
    ends = (x[:, None, None] ** degree for x in (high, low))
    assert_allclose(found, np.subtract(*ends) / degree, rtol=1e-12, atol=1e-16)
