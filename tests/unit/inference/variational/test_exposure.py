"""Subject effects, collapsed: against direct optimisation and integration over the effect."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import gamma as gamma_law
from scipy.stats import nbinom

from gp4c.inference.variational.exposure import SMALLEST_WEIGHT, GammaFrailty, PaperWeights
from gp4c.inference.variational.likelihood import Likelihood
from gp4c.model.quadrature import Grid
from problems import central_difference, observed, visits_panel
from tolerances import FINITE_DIFFERENCE, ROUNDING

TOTALS = st.integers(0, 200)
EXPECTED = st.floats(0.01, 300.0)
SHAPES = st.floats(0.05, 200.0)


def one(value: float) -> np.ndarray:
    return np.array([float(value)])


@given(total=TOTALS, expected=EXPECTED)
def test_paper_weight_minimises_the_poisson_cost(total: int, expected: float) -> None:
    def cost(log_weight: float) -> float:
        return float(np.exp(log_weight) * expected - total * log_weight)

    low, high = np.log(SMALLEST_WEIGHT), np.log(1e6)
    best = minimize_scalar(cost, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    ours = PaperWeights().cost(one(total), one(expected), np.inf)[0]
    assert ours <= best.fun + 1e-9 * (1 + abs(ours))
    assert ours >= min(best.fun, cost(low)) - 1e-9 * (1 + abs(ours))


@pytest.mark.parametrize("total", [0, 1, 7, 60])
@pytest.mark.parametrize("shape", [0.1, 0.43, 2.0, 50.0])
@pytest.mark.parametrize("expected", [0.2, 5.0, 80.0])
def test_gamma_cost_is_the_integral_over_the_frailty(
    total: int, shape: float, expected: float
) -> None:
    # ∫ υ^m e^{−υR} Gamma(υ; α, α) dυ in y = ln υ, scaled by its value at the mode
    law = gamma_law(shape, scale=1 / shape)

    def log_integrand(y: float) -> float:
        return float(total * y - np.exp(y) * expected + law.logpdf(np.exp(y)) + y)

    mode = np.log((shape + total) / (shape + expected))
    top, width = log_integrand(mode), 12.0 / np.sqrt(shape + total)
    area = sum(
        quad(lambda y: np.exp(log_integrand(y) - top), low, high, epsabs=1e-13, limit=400)[0]
        for low, high in [(mode - 6 * width - 40, mode - width), (mode - width, mode + width),
                          (mode + width, mode + 3 * width)]
    )  # fmt: skip
    cost = GammaFrailty().cost(one(total), one(expected), shape)[0]
    assert_allclose(-cost, top + np.log(area), rtol=1e-8, atol=1e-9)


@given(total=TOTALS, expected=EXPECTED, shape=SHAPES)
def test_one_interval_with_a_frailty_is_negative_binomial(
    total: int, expected: float, shape: float
) -> None:
    cost = GammaFrailty().cost(one(total), one(expected), shape)[0]
    ours = total * np.log(expected) - cost - gammaln(total + 1)
    theirs = nbinom.logpmf(total, shape, shape / (shape + expected))
    assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", [PaperWeights(), GammaFrailty()])
def test_the_weight_is_the_derivative_of_the_cost(kind: PaperWeights | GammaFrailty) -> None:
    totals, expected = np.array([0.0, 1.0, 9.0, 40.0]), np.array([3.0, 0.5, 12.0, 4.0])
    gradient = central_difference(lambda r: float(kind.cost(totals, r, 0.7).sum()), expected)
    assert_allclose(kind.weight(totals, expected, 0.7), gradient, **FINITE_DIFFERENCE)


def test_the_gamma_weight_is_the_posterior_mean_of_the_frailty() -> None:
    shape, total, expected = 0.8, 5.0, 11.0
    law = gamma_law(shape, scale=1 / shape)

    def moment(power: int) -> float:
        return float(
            quad(lambda u: u ** (power + total) * np.exp(-u * expected) * law.pdf(u), 0, 20)[0]
        )

    ours = GammaFrailty().weight(one(total), one(expected), shape)[0]
    assert_allclose(ours, moment(1) / moment(0), rtol=1e-8)


@pytest.mark.parametrize("shape", [0.05, 0.9, 30.0, 1e4])
def test_derivative_by_the_log_shape(shape: float) -> None:
    totals, expected = np.array([0.0, 1.0, 9.0, 40.0]), np.array([3.0, 0.5, 12.0, 4.0])
    frailty = GammaFrailty()
    gradient = central_difference(
        lambda x: -float(frailty.cost(totals, expected, float(np.exp(x[0]))).sum()),
        np.array([np.log(shape)]),
    )
    ours = frailty.shape_gradient(totals, expected, shape)
    assert_allclose(ours, gradient[0], rtol=1e-6, atol=1e-6)


def test_no_frailty_is_the_limit_of_large_shapes() -> None:
    totals, expected = np.array([0.0, 3.0, 40.0]), np.array([3.0, 0.5, 12.0])
    frailty = GammaFrailty()
    assert_allclose(frailty.cost(totals, expected, np.inf), expected, **ROUNDING)
    assert_allclose(frailty.weight(totals, expected, np.inf), 1.0, **ROUNDING)
    near = frailty.cost(totals, expected, 1e6)
    # −cost − (−R) = ((m − R)² − m)/2α to first order in 1/α
    first_order = -((totals - expected) ** 2 - totals) / 2e6
    assert_allclose(near - expected, first_order, rtol=1e-2, atol=1e-7)


@pytest.mark.parametrize("effect", [None, "weight", "gamma"])
def test_exposure_and_its_derivative_at_the_nodes(effect: str | None) -> None:
    data = observed(visits_panel(2, 5, 3, with_exposure=True))
    grid = Grid.on(np.linspace(0.0, 1.0, 5), 8)
    exposure = Likelihood.of(data, grid, "lemma2", 0.3, effect).exposure
    moment = 1.0 + 0.5 * np.sin(4 * grid.nodes)
    _, weights = exposure(moment, 0.6)
    gradient = central_difference(lambda h: exposure(h, 0.6)[0], moment)
    assert_allclose(weights, gradient, **FINITE_DIFFERENCE)


def test_exposure_without_effects_is_the_expected_number_of_events() -> None:
    panel = visits_panel(2, 5, 3, with_exposure=True)
    data, grid = observed(panel), Grid.on(np.linspace(0.0, 1.0, 5), 8)
    likelihood = Likelihood.of(data, grid, "lemma2", 0.3, None)
    total, _ = likelihood.exposure(np.exp(grid.nodes), np.inf)
    rows = panel.exposure * (np.exp(panel.stop) - np.exp(panel.start))
    assert_allclose(total, data.rate * rows.sum(), rtol=1e-10)
    assert likelihood.exposure.shape_gradient(np.exp(grid.nodes), np.inf) == 0.0


def test_expected_counts_of_subjects() -> None:
    panel = visits_panel(2, 5, 3, with_exposure=True)
    data, grid = observed(panel), Grid.on(np.linspace(0.0, 1.0, 5), 8)
    exposure = Likelihood.of(data, grid, "lemma2", 0.3, "gamma").exposure
    rows = panel.exposure * (np.exp(panel.stop) - np.exp(panel.start))
    each = np.bincount(panel.subject_index, rows)
    assert_allclose(exposure.expected(np.exp(grid.nodes)), data.rate * each, rtol=1e-10)
