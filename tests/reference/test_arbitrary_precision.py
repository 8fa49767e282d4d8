"""Special functions against arbitrary precision, where arguments are extreme or nearly cancel.

The functions with tests of their own against mpmath (test_log_square, test_log_quadratic,
test_gamma_frailty, test_smoothing, test_npmle) are asked here only what is not asked there.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from mpmath import mpf
from numpy.testing import assert_allclose

from gp4c.classical.parametric.constant_rate import exact_interval
from gp4c.inference.variational.count_terms import Pointwise
from gp4c.inference.variational.count_terms.lemma2 import LEMMA2_CONSTANT, theorem1
from gp4c.inference.variational.expected_logs.laplace_rules import (
    concentrated_rule,
    concentration_limit,
    panel_rules,
)
from gp4c.inference.variational.expected_logs.log_quadratic import expected_log_quadratic
from gp4c.inference.variational.expected_logs.log_square import expected_log_square
from gp4c.inference.variational.exposure import SMALLEST_WEIGHT, GammaFrailty, PaperWeights
from gp4c.inference.variational.hyper import SHAPE_BOUNDS
from gp4c.model.gamma_frailty import frailty_mean, log_marginal, variance_score
from gp4c.model.hyper_priors import LENGTH_SCALE, soft_uniform_log_density
from gp4c.model.kernels import SquaredExponential
from gp4c.model.quadrature import Grid, IntervalIntegrals
from gp4c.posterior.forecasting import count_cdf
from gp4c.posterior.quantiles import quadratic_form_cdf, solve_quantiles
from gp4c.posterior.scoring import log_mean_exp


def one(value: float) -> np.ndarray:
    return np.array([float(value)])


# -- E ln y² ---------------------------------------------------------------------------------

TINY_AND_HUGE = [1e-300, 1e-200, 1e-160, 1e-20, 1.0, 1e20, 1e150, 1e300]


@pytest.mark.parametrize("variance", [1e-320, *TINY_AND_HUGE])
@pytest.mark.parametrize("mean", [*TINY_AND_HUGE, 11.3, 11.32])
def test_the_expected_logarithm_of_a_square_anywhere(mean: float, variance: float) -> None:
    value, by_mean, _ = expected_log_square(mean, variance)
    assert by_mean == -expected_log_square(-mean, variance)[1]
    with mpmath.workdps(60):
        m, v = mpf(mean), mpf(variance)
        x = m * m / (2 * v)
        if x < 3000:
            exact = mpmath.log(2 * v) + mpmath.digamma(mpf("0.5"))
            exact += 2 * x * mpmath.hyp2f2(1, 1, mpf("1.5"), 2, -x)
        else:  # the logarithm at the mean, and what little its curvature adds
            exact = mpmath.log(m * m) - mpmath.fsum(
                mpmath.fac2(2 * k - 1) / (2 * x) ** k / k for k in range(1, 25)
            )
    assert_allclose(value, float(exact), rtol=1e-14, atol=1e-13)


# -- E ln Q ----------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [1, 2, 3, 8])
@pytest.mark.parametrize("scale", [1e-290, 1e-150, 1.0, 1e150, 1e290])
def test_chi_square_forms_of_any_size(degrees: int, scale: float) -> None:
    value, _, grad = expected_log_quadratic(np.zeros((1, degrees)), scale * np.eye(degrees)[None])
    with mpmath.workdps(40):
        exact = mpmath.digamma(mpf(degrees) / 2) + mpmath.log(2) + mpmath.log(mpf(scale))
    assert_allclose(value[0], float(exact), rtol=1e-14, atol=2e-8)
    if degrees > 2:  # else infinite in null directions, and merely large here
        assert_allclose(scale * np.trace(grad[0]), 1.0, rtol=1e-6)


@pytest.mark.parametrize("tol", [1e-5, 1e-8, 1e-12])
@pytest.mark.parametrize("shape", [0.5, 0.51, 1.0, 3.7, 12.0, 40.0, 1e4, 1e9])
def test_the_rules_integrate_gamma_transforms(shape: float, tol: float) -> None:
    """M(t) = (1 + t/k)^−k is the transform of a gamma variable: ∫(e^−t − M)dt/t = ψ(k) − ln k.

    At k = 1/2 it decays as slowly as any; for large k the two terms nearly cancel.
    """
    with mpmath.workdps(40):
        exact = float(mpmath.digamma(mpf(shape)) - mpmath.log(mpf(shape)))

    def by(t: np.ndarray, weight: np.ndarray) -> float:
        return float((np.exp(-t) - np.exp(-shape * np.log1p(t / shape))) @ weight)

    total = sum(by(*rule) for rule in panel_rules(tol))
    assert_allclose(total, exact, rtol=0.0, atol=tol / 4)  # of what all panels may err together
    if shape >= concentration_limit(tol):
        assert_allclose(by(*concentrated_rule(tol)), exact, rtol=0.0, atol=tol)


# -- the count terms -------------------------------------------------------------------------


@pytest.mark.parametrize("b", [0.0, 1e-12, 0.3, 1.0])
@pytest.mark.parametrize("phi", [1e-12, 1e-3, 1.0, 300.0, 1e12])
def test_what_the_papers_bound_gives_away(phi: float, b: float) -> None:
    """h(φ, b) = ln(φ + b) − E ln(y/σ)²: the bound minus the truth is h − C − ln 2 ≤ 0.

    With moments that do not change over the interval both count terms are closed forms.
    """
    integrals = IntervalIntegrals(Grid.on(np.linspace(0, 1, 3), 8), one(0.2), one(0.7))
    sigma = 1e-3
    nodes = len(integrals.transpose(one(1.0)))
    mean, variance = np.full(nodes, sigma * np.sqrt(phi)), np.full(nodes, sigma**2)
    ours = theorem1(integrals, one(1.0), mean, variance, b).value
    truth = Pointwise().at_nodes(integrals, one(1.0), mean, variance, b).value
    with mpmath.workdps(50):
        x = mpf(float(mean[0])) ** 2 / (2 * mpf(float(variance[0])))
        if x < 3000:
            series = 2 * x * mpmath.hyp2f2(1, 1, mpf("1.5"), 2, -x)
            expected = mpmath.log(2) + mpmath.digamma(mpf("0.5")) + series
        else:
            expected = mpmath.log(2 * x) - 1 / (2 * x)
        h = float(mpmath.log(2 * x + mpf(b)) - expected)
        # digits that ln ∫(…) cannot keep beside ln σ²
        lost = float(abs(mpmath.log(mpf(sigma) ** 2 * (2 * x + mpf(b)))))
    assert_allclose(ours - truth, h, rtol=1e-11, atol=1e-14 * lost)
    assert h <= LEMMA2_CONSTANT + 1e-12


def test_the_constant_of_lemma_2() -> None:
    with mpmath.workdps(30):
        assert_allclose(LEMMA2_CONSTANT, float(mpmath.euler + mpmath.log(2)), rtol=1e-15)


# -- subject effects -------------------------------------------------------------------------

TOTALS = [0, 1, 5, 1000, 10**6]
EXPECTED = [1e-300, 1e-10, 1.0, 5.0 + 1e-9, 1000.0, 1e6, 1e15]


@pytest.mark.parametrize("shape", [*SHAPE_BOUNDS, 0.1, 1.0, 37.0, 1e4])
@pytest.mark.parametrize("total", TOTALS)
def test_the_cost_of_expected_counts_with_frailty(total: int, shape: float) -> None:
    cost = GammaFrailty()
    expected, totals = np.array(EXPECTED), np.full(len(EXPECTED), float(total))
    ours = cost.cost(totals, expected, shape)
    slopes = [cost.shape_gradient(one(total), one(R), shape) for R in EXPECTED]
    with mpmath.workdps(60):
        a, m = mpf(shape), mpf(total)
        rising = mpmath.loggamma(a + m) - mpmath.loggamma(a) - m * mpmath.log(a)
        exact = [float((a + m) * mpmath.log(1 + mpf(R) / a) - rising) for R in EXPECTED]
        by_shape = [
            a * (mpmath.digamma(a + m) - mpmath.digamma(a) - mpmath.log(1 + mpf(R) / a))
            + a * (mpf(R) - m) / (a + mpf(R))
            for R in EXPECTED
        ]
    # ln Γ(α + m) − ln Γ(α) of numbers of size α ln α cancels to about their last digits
    size = abs(float(mpmath.loggamma(shape + total))) + total * abs(np.log(shape)) + 1.0
    assert_allclose(ours, exact, rtol=1e-14, atol=4e-16 * size)
    assert_allclose(
        slopes, [float(x) for x in by_shape], rtol=1e-10, atol=1e-15 * size * max(shape, 1.0)
    )
    assert_allclose(cost.weight(totals, expected, shape), (shape + total) / (shape + expected))


def test_paper_weights_where_nothing_or_everything_is_expected() -> None:
    weights = PaperWeights()
    totals, expected = np.array([0.0, 3.0, 3.0, 1e15]), np.array([1e300, 1e300, 1e-300, 1e-10])
    found = weights.weight(totals, expected, np.inf)
    assert_allclose(found, [SMALLEST_WEIGHT, SMALLEST_WEIGHT, 3e300, 1e25])
    cost = weights.cost(totals[2:], expected[2:], np.inf)
    with mpmath.workdps(40):
        exact = [
            float(mpf(m) - mpf(m) * mpmath.log(mpf(m) / mpf(R)))
            for m, R in zip(totals[2:], expected[2:], strict=True)
        ]
    assert_allclose(cost, exact, rtol=1e-14)


@pytest.mark.parametrize("variance", [1e-300, 1e-30, 1e-13, 0.0333, 0.0334, 1e10])
@pytest.mark.parametrize("events", [0, 1, 2, 40])
@pytest.mark.parametrize("exposure", [0.0, 1e-300, 1e-12, 3.0, 1e12])
def test_the_marginal_of_a_frailty_of_any_variance(
    variance: float, events: int, exposure: float
) -> None:
    ours = log_marginal(variance, one(events), one(exposure))[0]
    slope = variance_score(variance, one(events), one(exposure))[0]
    with mpmath.workdps(700):
        v, L = mpf(variance), mpf(exposure)
        exact = mpmath.fsum(mpmath.log1p(k * v) for k in range(events))
        exact -= (1 / v + events) * mpmath.log1p(v * L)
        by_variance = mpmath.fsum(k / (1 + k * v) for k in range(events))
        by_variance += mpmath.log1p(v * L) / v**2 - (1 / v + events) * L / (1 + v * L)
    assert_allclose(ours, float(exact), rtol=1e-13, atol=1e-13)
    size = max(events, exposure) ** 2 / (1.0 + variance * max(events, exposure))
    assert_allclose(slope, float(by_variance), rtol=1e-11, atol=1e-15 * size + 1e-12)
    assert np.isfinite(frailty_mean(variance, one(events), one(exposure))[0])


# -- intervals and probabilities of counts -----------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-9, 1 - 1e-14])
@pytest.mark.parametrize("events", [0, 1, 7, 1000, 100_000])
def test_exact_intervals_have_the_tails_they_say(events: int, level: float) -> None:
    low, high = exact_interval(float(events), 1.0, level)
    with mpmath.workdps(50):
        tail = (1 - mpf(level)) / 2
        above = mpmath.gammainc(events + 1, high, mpmath.inf, regularized=True)
        assert_allclose(float(above / tail), 1.0, rtol=1e-9)
        if events:
            below = mpmath.gammainc(events, 0, low, regularized=True)
            assert_allclose(float(below / tail), 1.0, rtol=1e-9)
    assert low <= events <= high < np.inf


@pytest.mark.parametrize("shape", [1e-3, 0.7, 40.0, 1e6, np.inf])
@pytest.mark.parametrize(("count", "mean"), [(0, 1e-12), (3, 1e-3), (2, 40.0), (900, 1000.0)])
def test_probabilities_of_counts_to_the_last_digits(count: int, mean: float, shape: float) -> None:
    ours = count_cdf(one(count), one(mean), shape, totals=4.0, expected=1.5)[0]
    with mpmath.workdps(60):
        if np.isinf(shape):
            terms = [
                mpmath.exp(k * mpmath.log(mpf(mean)) - mpf(mean) - mpmath.loggamma(k + 1))
                for k in range(count + 1)
            ]
        else:
            a, rate = mpf(shape) + 4, mpf(shape) + mpf("1.5")
            p = rate / (rate + mpf(mean))
            terms = [
                mpmath.exp(
                    mpmath.loggamma(a + k) - mpmath.loggamma(a) - mpmath.loggamma(k + 1)
                    + a * mpmath.log(p) + k * mpmath.log(1 - p)
                )
                for k in range(count + 1)
            ]  # fmt: skip
        exact = float(mpmath.fsum(terms))
    assert_allclose(ours, exact, rtol=1e-9)


# -- distributions of curves -----------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-90, 1e-30, 1.0, 1e30, 1e90])
def test_the_law_of_a_quadratic_form_has_no_unit(scale: float) -> None:
    x = np.array([0.1, 1.0, 3.0, 10.0])
    ours = quadratic_form_cdf(scale * x, one(3 * scale), one(6 * scale**2), one(24 * scale**3))
    with mpmath.workdps(30):  # Wilson and Hilferty's cube root for χ² on three degrees
        spread = mpf(2) / 27
        roots = [(mpf(v) / 3) ** (mpf(1) / 3) for v in x]
        exact = [float(mpmath.ncdf((r - 1 + spread) / mpmath.sqrt(spread))) for r in roots]
    assert_allclose(ours, exact, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1.0, 1e150, 1e300])
def test_quantiles_of_any_size(scale: float) -> None:
    """Exponential variables: −ln(1 − p), for p from 1e-12 to 1 − 1e-12, in any unit."""
    levels = np.array([1e-12, 1e-6, 0.025, 0.5, 0.975, 1 - 1e-12])
    found = solve_quantiles(lambda x: -np.expm1(-x / scale), one(0.0), one(100 * scale), levels)
    with mpmath.workdps(40):
        exact = [float(-mpmath.log1p(-mpf(p)) * mpf(scale)) for p in levels]
    assert_allclose(found[:5, 0], exact[:5], rtol=1e-10)
    assert_allclose(found[5, 0], exact[5], rtol=1e-4)  # the last digit of 1 − 1e-12


def test_means_of_likelihoods_beyond_floats() -> None:
    values = np.array([-2000.0, -2001.0, -1e5, -np.inf])
    with mpmath.workdps(40):
        exact = float(mpmath.log(mpmath.fsum(mpmath.exp(mpf(v)) for v in values[:3]) / 4))
    assert_allclose(log_mean_exp(values)[0], exact, rtol=1e-15)


# -- kernels and priors ----------------------------------------------------------------------


@pytest.mark.parametrize("length_scale", [1e-4, 0.01, 0.3, 1e4])
def test_integrals_of_the_kernel_over_very_short_and_very_long_intervals(
    length_scale: float,
) -> None:
    z, kernel = np.array([0.0, 0.5, 1.0]), SquaredExponential()
    start = np.array([0.0, 0.5 - 1e-12, 0.3, 0.2])
    stop = np.array([1.0, 0.5 + 1e-12, 0.300001, 0.9])
    ours = kernel.integral(z, start, stop, length_scale)
    both = kernel.overlap(z, start, stop, length_scale)

    def exactly(width: mpf, start: float, stop: float, at: float) -> float:
        """∫ exp(−(x − at)²/width²) dx."""
        upper, lower = ((mpf(float(x)) - mpf(at)) / width for x in (stop, start))
        return float(mpmath.sqrt(mpmath.pi) / 2 * width * (mpmath.erf(upper) - mpmath.erf(lower)))

    # differences of erf keep the digits of 1, no more
    digits = {"rtol": 1e-13, "atol": 3e-16 * length_scale}
    with mpmath.workdps(50):
        a = mpf(length_scale)
        for j, ends in enumerate(zip(start, stop, strict=True)):
            for i, at in enumerate([0.0, 0.5, 1.0]):
                assert_allclose(ours[j, i], exactly(mpmath.sqrt(2) * a, *ends, at), **digits)
                assert_allclose(both[j, i, i], exactly(a, *ends, at), **digits)


def test_the_prior_of_the_length_scale_has_its_tails() -> None:
    """A uniform plus a normal variable in ln a: far out, a difference of two tiny tails."""
    low, high, softness = LENGTH_SCALE
    with mpmath.workdps(50):
        for x in (-60.0, -9.0, low, -1.5, high, 9.0, 20.0, 60.0):
            # ∫ of the normal density of x − y over y in [low, high], from the tail that is small
            ends = sorted(abs((mpf(x) - end) / softness) for end in (low, high))
            inside = low < x < high
            tails = [mpmath.erfc(end / mpmath.sqrt(2)) / 2 for end in ends]
            mass = 1 - tails[0] - tails[1] if inside else tails[0] - tails[1]
            exact = mpmath.log(mass / (mpf(high) - mpf(low)))
            found = soft_uniform_log_density(x, low, high, softness)
            assert_allclose(found, float(exact), rtol=1e-12)
