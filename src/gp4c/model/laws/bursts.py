"""Events that come in bursts: the negative-binomial process.

Bursts are a Poisson process, and their sizes follow the logarithmic law (docs/maths.md, section
on bursts). Given the effect υ, a cell with mean υ r has variance υ r (1 + φ). The law is divisible:
cutting an interval in two changes nothing. φ → 0 is the Poisson law.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gp4c.model.laws.count_law import CountLaw, Parameter, Remainder

Floats = NDArray[np.float64]

#: counts below this are summed term by term; the rest by Euler and Maclaurin's formula, whose
#: next term, 31/80640 x⁻⁵, is below 1e-6 from 3.5 on
_TERM_BY_TERM = 9
#: the first point of the formula, and the exact terms before it
_HALF, _EXACT = 3.5, 3


class Bursts(CountLaw):
    """ln p = ln υr + Σ_{i<m} ln(υr + iφ) − m ln(1 + φ) − c υr − ln m!, c = ln(1 + φ)/φ.

    The power is 1 for every positive count. With x = υr/φ the remainder is Σ_{i=1}^{m−1} ln(x + i),
    and (m − 1) ln φ goes to the static part. θ = ln φ.
    """

    name = "bursts"
    title = "events come in bursts"
    method = (
        "Events may come in bursts: given the rate, counts of a subject are those of a "
        "negative-binomial process."
    )
    noun = "bursts"
    parameters = (Parameter("log_excess", float(np.log(0.5)), 2.0, natural=1.0),)  # φ

    def power(self, count: Floats) -> Floats:
        """n = 1 where anything was seen."""
        return np.asarray((count > 0).astype(float))

    def has_remainder(self, count: Floats) -> NDArray[np.bool_]:
        """Counts from 2 on."""
        return np.asarray(count > 1)

    def remainder_value(self, mean: Floats, count: Floats, theta: Floats) -> Floats:
        """Σ_{i=1}^{m−1} ln(x + i)."""
        return log_rising(mean / np.exp(theta[0]), count)

    def at_points(self, count: Floats) -> float:
        """Σ ln (m − 1)!, the remainder at mean 0."""
        from scipy.special import gammaln

        return float(gammaln(count).sum())

    def slopes(self, mean: Floats, count: Floats, theta: Floats) -> tuple[Floats, Floats]:
        """x S₁ and x S₁ − x² S₂ by one term of the midpoint rule, close enough for a mode."""
        x = mean / np.exp(theta[0])
        low = x + 0.5
        high = x + (count - 0.5).reshape((-1,) + (1,) * (x.ndim - 1))
        slope = x * np.log(high / low)
        return slope, slope - x * x * (1.0 / low - 1.0 / high)

    def remainder(self, mean: Floats, count: Floats, theta: Floats) -> Remainder:
        """Derivatives in ln x; ∂/∂ln φ = −∂/∂ln x, because x = mean/φ."""
        value, slope, curve = rising_terms(mean / np.exp(theta[0]), count)
        return Remainder(value, slope, curve, -slope[None], -curve[None], curve[None, None])

    def hazard(self, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """c = ln(1 + φ)/φ, bursts per event, and its derivatives in ln φ."""
        phi = np.exp(theta[0])
        c = np.log1p(phi) / phi
        first = 1.0 / (1.0 + phi) - c
        second = -phi / (1.0 + phi) ** 2 - first
        return c, first[None], second[None, None]

    def static(self, count: Floats, weight: Floats, theta: Floats) -> tuple[Floats, Floats, Floats]:
        """Σ (m − 1) ln φ − m ln(1 + φ) over positive counts."""
        seen = count > 0
        events = float(weight @ count)
        beyond_first = events - float(weight @ seen)
        phi = np.exp(theta[0])
        share = phi / (1.0 + phi)
        value = beyond_first * theta[0] - events * np.log1p(phi)
        first = beyond_first - events * share
        second = -events * share / (1.0 + phi)
        return value, first[None], second[None, None]

    def draw(self, mean: Floats, theta: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
        """Negative-binomial counts: Poisson with a gamma mean of shape mean/φ and scale φ."""
        phi = np.exp(theta[0])
        return np.asarray(rng.poisson(rng.standard_gamma(mean / phi) * phi))

    def cdf(self, count: Floats, mean: Floats, theta: Floats) -> Floats:
        """The regularised incomplete beta function with shape mean/φ and probability 1/(1 + φ)."""
        from scipy.special import betainc

        phi = np.exp(theta[0])
        shape = np.maximum(mean, 1e-300) / phi
        value = betainc(shape, np.maximum(count, 0.0) + 1.0, 1.0 / (1.0 + phi))
        return np.asarray(np.where(count < 0, 0.0, value))

    def dispersion(self, theta: Floats) -> Floats:
        """1 + φ."""
        return np.asarray(1.0 + np.exp(theta[0]))

    def burst_size(self, theta: Floats) -> float:
        """φ / ln(1 + φ)."""
        return mean_burst(float(np.exp(theta[0])))

    def words(self, theta: Floats) -> str:
        """Mean size of a burst, and the dispersion, at the median of the draws."""
        phi = float(np.exp(np.median(theta[0])))
        return (
            f"events come in bursts of {mean_burst(phi):.2g} on average "
            f"(variance {1 + phi:.2g} times the mean)"
        )


def mean_burst(phi: float) -> float:
    """Mean number of events in a burst, φ / ln(1 + φ)."""
    return float(phi / np.log1p(phi)) if phi > 0 else 1.0


def log_rising(x: Floats, count: Floats) -> Floats:
    """Σ_{i=1}^{m−1} ln(x + i) for rows x (J, ...) in the order of falling m ≥ 2."""
    product = x + 1.0
    large = _n_large(count)
    for i, rows in _rows_by_term(count, large):
        product[rows] *= x[rows] + i
    value = np.log(product, out=product)
    if large:
        low, high, gap = _ends(x[:large], count[:large])
        p, q = 1 / low, 1 / high
        value[:large] += _midpoint_rule(low, high, gap, p, q, np.log1p(gap * p))
    return value


def rising_terms(x: Floats, count: Floats) -> tuple[Floats, Floats, Floats]:
    """The same sum with its first two derivatives in ln x: x S₁ and x S₁ − x² S₂.

    S₁ = Σ 1/(x + i) and S₂ = Σ 1/(x + i)², i = 1, …, m − 1.
    """
    product = x + 1.0
    first = 1.0 / product
    second = first * first
    large = _n_large(count)
    for i, rows in _rows_by_term(count, large):
        term = x[rows] + i
        product[rows] *= term
        np.reciprocal(term, out=term)
        first[rows] += term
        second[rows] += term * term
    value = np.log(product, out=product)
    if large:
        low, high, gap = _ends(x[:large], count[:large])
        p, q = 1 / low, 1 / high
        growth, p2, q2 = np.log1p(gap * p), p * p, q * q
        p3, q3 = p2 * p, q2 * q
        value[:large] += _midpoint_rule(low, high, gap, p, q, growth)
        first[:large] += growth + (q2 - p2) * (1 / 24 - 7 / 960 * (q2 + p2))
        second[:large] += gap * p * q + (q3 - p3) / 12 - 7 / 240 * (q3 * q2 - p3 * p2)
    slope = x * first
    return value, slope, slope - x * x * second


def _n_large(count: Floats) -> int:
    """How many counts, the first ones, are not summed term by term."""
    return int(np.searchsorted(-count, -_TERM_BY_TERM, side="left"))


def _rows_by_term(count: Floats, large: int) -> Iterator[tuple[int, slice]]:
    """Terms i ≥ 2, and rows whose sum has them exactly: m > i; of large counts the first terms."""
    terms = np.arange(2, _TERM_BY_TERM)
    for i, stop in zip(terms, np.searchsorted(-count, -terms, side="left"), strict=True):
        start = 0 if i <= _EXACT else large
        if stop <= start:
            return
        yield int(i), slice(start, int(stop))


def _midpoint_rule(
    low: Floats, high: Floats, gap: Floats, p: Floats, q: Floats, growth: Floats
) -> Floats:
    """Σ ln(x + i) of the large counts' last terms; p = 1/low, q = 1/high, growth = ln(high/low).

    ∫ ln from low to high is written so that nothing cancels as φ → 0. Powers are products: a call
    of pow takes as long as all the rest.
    """
    squares = p * p + p * q + q * q  # (p³ − q³)/(p − q)
    integral = gap * (np.log(high) - 1) + low * growth
    return np.asarray(integral + (p - q) * (1 / 24 - 7 / 2880 * squares))


def _ends(x: Floats, count: Floats) -> tuple[Floats, Floats, Floats]:
    """Ends of Euler and Maclaurin's midpoint rule for large counts, and their distance."""
    gap = (count - 1.0 - _EXACT).reshape((-1,) + (1,) * (x.ndim - 1))
    low = x + _HALF
    return low, low + gap, gap
