"""Lemma 1, Lemma 2 and Theorem 1 of the paper, and the pointwise bound, as property tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import norm, poisson

import gp4c
from gp4c.inference.variational.count_terms import (
    COUNT_TERMS,
    CountTerm,
    Pointwise,
    count_term,
)
from gp4c.inference.variational.count_terms.lemma2 import LEMMA2_CONSTANT, lemma2, theorem1
from gp4c.inference.variational.expected_logs.log_square import expected_log_square
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.reporting.fit_rows import posterior_sentence
from problems import central_difference, visits_panel
from tolerances import CLOSED_FORM, FINITE_DIFFERENCE

SHARES = st.floats(0.0, 1.0)
LOG_RATIOS = st.floats(-6.0, 6.0)  # log10 of φ = (μ/σ)², the range of the paper's section 4.3


def lemma_1_series(mean: float, variance: float) -> float:
    """ln 2σ² + E ψ(J + ½), J Poisson with mean φ/2; summed where J has any mass."""
    half_phi = mean**2 / variance / 2
    spread = 12.0 * np.sqrt(half_phi) + 60.0
    j = np.arange(max(0.0, np.floor(half_phi - spread)), np.ceil(half_phi + spread))
    return float(np.log(2 * variance) + poisson.pmf(j, half_phi) @ digamma(j + 0.5))


@given(log_phi=st.floats(-6.0, 5.0), variance=st.floats(1e-3, 1e3))
def test_lemma_1_series_is_the_expected_log_square(log_phi: float, variance: float) -> None:
    mean = float(np.sqrt(10.0**log_phi * variance))
    value, _, _ = expected_log_square(mean, variance)
    # SciPy's Poisson probabilities lose digits in proportion to φ
    assert_allclose(value, lemma_1_series(mean, variance), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (0.3, 2.0), (2.0, 0.5), (-1.0, 0.04)])
def test_lemma_1_series_agrees_with_quadrature(mean: float, variance: float) -> None:
    # an oracle for the oracle: E ln y² from the density, split at the singularity
    density = norm(mean, np.sqrt(variance)).pdf
    far = abs(mean) + 12.0 * np.sqrt(variance)
    pieces = [
        quad(lambda y: np.log(y * y) * density(y), low, high, epsabs=1e-13, limit=400)[0]
        for low, high in [(-far, 0.0), (0.0, far)]
    ]
    assert_allclose(sum(pieces), lemma_1_series(mean, variance), rtol=1e-9, atol=1e-9)


@given(log_phi=LOG_RATIOS, b=SHARES)
def test_lemma_2_holds_for_every_b_and_phi(log_phi: float, b: float) -> None:
    phi = 10.0**log_phi
    value, _, _ = expected_log_square(np.sqrt(phi), 1.0)
    assert lemma2(np.sqrt(phi), np.array(1.0), b) <= value + 1e-14


def test_lemma_2_is_sharp_at_b_one_for_a_centred_variable() -> None:
    value, _, _ = expected_log_square(0.0, 1.0)
    assert_allclose(value, lemma2(np.array(0.0), np.array(1.0), 1.0), rtol=1e-14)


def test_lemma_2_gives_away_its_constant_for_a_certain_variable() -> None:
    value, _, _ = expected_log_square(1.0, 1e-9)
    bound = lemma2(np.array(1.0), np.array(1e-9), 0.3)
    assert_allclose(value - bound, LEMMA2_CONSTANT, atol=1e-8)
    assert_allclose(LEMMA2_CONSTANT, 1.270362845461478, rtol=1e-14)


def test_the_best_b_of_the_papers_figure_comes_back() -> None:
    # section 4.3: 5000 log-spaced φ, 50 values of b, the variance of h(φ, b) is least at 0.3061
    phi, shares = np.logspace(-6, 6, 5000), np.linspace(0.0, 1.0, 50)
    value, _, _ = expected_log_square(np.sqrt(phi), 1.0)
    spread = [np.var(lemma2(np.sqrt(phi), np.array(1.0), b) - value) for b in shares]
    assert_allclose(shares[int(np.argmin(spread))], 0.3061, atol=5e-5)


# -- the terms on a grid -------------------------------------------------------------------------

GRID = Grid.on(np.linspace(0.0, 1.0, 6), 14)
START, STOP = np.array([0.0, 0.15, 0.4, 0.7]), np.array([1.0, 0.16, 0.83, 0.9])
COUNT = np.array([3.0, 1.0, 4.0, 2.0])
INTEGRALS = IntervalIntegrals(GRID, START, STOP)


def mean_at(x: np.ndarray) -> np.ndarray:
    return 0.8 + 0.5 * np.sin(5.0 * x)


def variance_at(x: np.ndarray) -> np.ndarray:
    return 0.1 + 0.05 * np.cos(3.0 * x)


MEAN, VARIANCE = mean_at(GRID.nodes), variance_at(GRID.nodes)


@pytest.mark.parametrize("b", [0.0, 0.3, 1.0])
def test_theorem_1_value_by_quadrature(b: float) -> None:
    masses = [
        quad(lambda x: mean_at(x) ** 2 + b * variance_at(x), low, high, epsabs=1e-14)[0]
        for low, high in zip(START, STOP, strict=True)
    ]
    ours = theorem1(INTEGRALS, COUNT, MEAN, VARIANCE, b)
    assert_allclose(ours.value, COUNT @ np.log(masses), **CLOSED_FORM)


@pytest.mark.parametrize("b", [0.0, 0.3, 1.0])
def test_theorem_1_is_the_pointwise_inequality_with_lemma_2(b: float) -> None:
    geometric = np.exp(lemma2(MEAN, VARIANCE, b))
    ours = theorem1(INTEGRALS, COUNT, MEAN, VARIANCE, b)
    expected = COUNT @ np.log(INTEGRALS.apply(geometric))
    assert_allclose(ours.value + ours.constant, expected, **CLOSED_FORM)


def test_pointwise_value_by_quadrature() -> None:
    def geometric(x: float) -> float:
        return float(np.exp(expected_log_square(mean_at(x), variance_at(x))[0]))

    masses = [
        quad(geometric, low, high, epsabs=1e-14)[0] for low, high in zip(START, STOP, strict=True)
    ]
    value = Pointwise().at_nodes(INTEGRALS, COUNT, MEAN, VARIANCE, 0.3).value
    assert_allclose(value, COUNT @ np.log(masses), **CLOSED_FORM)


@pytest.mark.parametrize("name", ["lemma2", "pointwise"])
def test_derivatives_by_moments_at_the_nodes(name: str) -> None:
    def value(mean: np.ndarray, variance: np.ndarray) -> float:
        return count_term(name).at_nodes(INTEGRALS, COUNT, mean, variance, 0.3).value

    ours = count_term(name).at_nodes(INTEGRALS, COUNT, MEAN, VARIANCE, 0.3)
    by_mean = central_difference(lambda m: value(m, VARIANCE), MEAN)
    by_variance = central_difference(lambda v: value(MEAN, v), VARIANCE)
    assert_allclose(ours.by_mean, by_mean, **FINITE_DIFFERENCE)
    assert_allclose(ours.by_variance, by_variance, **FINITE_DIFFERENCE)


@given(low=SHARES, high=SHARES)
def test_the_paper_bound_grows_with_b(low: float, high: float) -> None:
    low, high = sorted((low, high))
    below = theorem1(INTEGRALS, COUNT, MEAN, VARIANCE, low).value
    assert below <= theorem1(INTEGRALS, COUNT, MEAN, VARIANCE, high).value


@given(b=SHARES, scale=st.floats(1e-4, 1e3))
def test_the_paper_bound_is_below_the_pointwise_bound(b: float, scale: float) -> None:
    variance = scale * VARIANCE
    below = theorem1(INTEGRALS, COUNT, MEAN, variance, b)
    above = Pointwise().at_nodes(INTEGRALS, COUNT, MEAN, variance, b).value
    assert below.value + below.constant <= above + 1e-12


@pytest.mark.parametrize("name", ["lemma2", "pointwise"])
def test_an_interval_that_the_nodes_do_not_resolve_is_worth_nothing(name: str) -> None:
    # a parabola through the squares of f is below 0 between the two nodes where f is 0
    grid = Grid.on(np.array([0.0, 1.0]), 4)
    short = IntervalIntegrals(grid, np.array([0.5]), np.array([0.5 + 1e-6]))
    mean, variance = np.array([1.0, 1e-6, -1e-6, -1.0]), np.full(4, 1e-16)
    assert short.apply(mean**2)[0] < 0.0
    ours = count_term(name).at_nodes(short, np.array([3.0]), mean, variance, 0.0)
    assert ours.value == -np.inf  # which every search turns away from, as it could not from NaN
    assert np.all(np.isfinite(ours.by_mean) & np.isfinite(ours.by_variance))


# -- the registry --------------------------------------------------------------------------------


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=f"one of {', '.join(COUNT_TERMS)}, not 'lemma3'"):
        count_term("lemma3")


def test_stand_ins_are_cheap_and_known() -> None:
    for term in COUNT_TERMS.values():
        if term.stand_in is not None:
            assert not count_term(term.stand_in).within


@pytest.fixture
def toy():
    """A term from outside: Theorem 1 at b = 1, whatever b is asked for."""

    class Toy(CountTerm):
        name = "toy"
        words = "with a toy"

        def at_nodes(self, integrals, count, mean, variance, b):
            return theorem1(integrals, count, mean, variance, 1.0)

    yield Toy.name
    del COUNT_TERMS[Toy.name]


def test_a_term_joins_by_being_defined(toy: str) -> None:
    panel = visits_panel(5, 6, 3)
    options = {"effect": None, "n_inducing": 5}
    ours = gp4c.GP4C(count_term=toy, b=0.2, **options).fit(panel)
    theirs = gp4c.GP4C(count_term="lemma2", b=1.0, **options).fit(panel)
    assert ours.objective_ == theirs.objective_
    assert "variational inference, with a toy." in posterior_sentence(ours)
