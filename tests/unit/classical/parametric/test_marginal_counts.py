"""Counts with the subject's effect integrated out, against SciPy's laws and brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from scipy.stats import gamma, nbinom

from gp4c.classical.parametric.marginal_counts import LogMeans, MarginalCounts
from gp4c.model.gamma_frailty import log_marginal
from gp4c.model.laws import EFFECTS, LAWS, GammaEffect

BURSTS, POISSON = LAWS["bursts"], LAWS["poisson"]
GAMMA, NOBODY = EFFECTS["gamma"], EFFECTS[None]
NOTHING = np.zeros(0)
#: of the law's own sums over large counts
LAW = 2e-5


def example(seed=0, n=60, n_subjects=13):
    rng = np.random.default_rng(seed)
    count = (rng.poisson(2, n) * rng.poisson(1, n)).astype(float)
    subject = np.sort(rng.integers(0, n_subjects - 1, n))
    return count, rng.gamma(2.0, 1.0, n), subject, n_subjects


def of_one(count, law, effect):
    return MarginalCounts(count, np.zeros(len(count), int), 1, law, effect)


def negative_binomial(count, mean, phi):
    """ln p without −ln m!, by SciPy."""
    return nbinom.logpmf(count, mean / phi, 1 / (1 + phi)) + gammaln(count + 1)


def by_brute_force(count, mean, alpha, phi):
    """ln of the integral over υ, by a sum over a fine grid of ln υ."""
    y = np.linspace(-40.0, 12.0, 400_001)
    log_value = gamma.logpdf(np.exp(y), alpha, scale=1 / alpha) + y
    for m, r in zip(count, mean, strict=True):
        if m == 0:
            log_value -= np.log1p(phi) / phi * r * np.exp(y)
        else:
            log_value += negative_binomial(m, r * np.exp(y), phi)
    top = log_value.max()
    return top + np.log(np.trapezoid(np.exp(log_value - top), y))


@pytest.mark.parametrize("phi", [0.01, 1.0, 40.0])
def test_without_effects_it_is_the_negative_binomial(phi):
    count, time, subject, n = example()
    found = MarginalCounts(count, subject, n, BURSTS, NOBODY)
    value = found.terms(LogMeans.of(1.3 * time), NOTHING, np.log([phi])).value
    each = np.bincount(subject, negative_binomial(count, 1.3 * time, phi), n)
    assert_allclose(value, each, atol=LAW)


@pytest.mark.parametrize("alpha", [0.05, 1.0, 300.0])
@pytest.mark.parametrize("phi", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("count", [[2], [0, 0, 3], [1, 1, 0, 2], [9, 10, 30, 0], [200, 1]])
def test_with_effects_it_is_the_integral(alpha, phi, count):
    count = np.array(count, dtype=float)
    time = 1.3 * count.mean() * np.linspace(0.3, 1.4, len(count))
    found = of_one(count, BURSTS, GAMMA)
    value = found.terms(LogMeans.of(time), np.log([alpha]), np.log([phi])).value[0]
    assert_allclose(value, by_brute_force(count, time, alpha, phi), atol=3 * LAW)


def test_poisson_counts_have_the_closed_form():
    count, time, subject, n = example(1)
    counts = MarginalCounts(count, subject, n, POISSON, GAMMA)
    found = counts.terms(LogMeans.of(0.7 * time), np.log([2.0]), NOTHING)
    events, at_risk = np.bincount(subject, count, n), np.bincount(subject, time, n)
    logs = np.bincount(subject, count * np.log(0.7 * time), n)
    assert_allclose(found.value, logs + log_marginal(0.5, events, 0.7 * at_risk), rtol=1e-12)
    assert_allclose(found.mean, (2 + events) / (2 + 0.7 * at_risk))
    assert_allclose(found.variance, (2 + events) / (2 + 0.7 * at_risk) ** 2)


class WithoutClosedForm(GammaEffect):
    """The gamma law, integrated numerically for every subject; it has no name of its own."""

    conjugate = False


@pytest.mark.parametrize("law", [BURSTS, POISSON], ids=["bursts", "poisson"])
def test_a_law_of_effects_without_a_closed_form_is_integrated(law):
    count, time, subject, n = example(4)
    theta = np.zeros(len(law.parameters))
    means = LogMeans.of(time)
    exact, numeric = (
        MarginalCounts(count, subject, n, law, effect).terms(means, np.log([1.5]), theta)
        for effect in (GAMMA, WithoutClosedForm())
    )
    assert_allclose(numeric.value, exact.value, atol=1e-6)
    assert_allclose(numeric.first, exact.first, atol=1e-5)
    assert_allclose(numeric.mean, exact.mean, rtol=1e-5)


@pytest.mark.parametrize("effect", [GAMMA, NOBODY], ids=["gamma", "nobody"])
@pytest.mark.parametrize("law", [BURSTS, POISSON], ids=["bursts", "poisson"])
def test_derivatives_are_differences(law, effect):
    count, time, subject, n = example(2)
    counts = MarginalCounts(count, subject, n, law, effect)
    z = np.random.default_rng(0).normal(size=len(count))

    def at(x):  # a level, a parameter that bends, a covariate
        value = x[0] + np.exp(x[1]) * np.log(time) + x[2] * z
        bend = np.exp(x[1]) * np.log(time)
        second = np.zeros((3, 3, len(z)))
        second[1, 1] = bend
        means = LogMeans(value, np.stack([np.ones_like(z), bend, z]), second)
        return counts.terms(means, x[3 : 3 + psi], x[3 + psi :])

    psi, theta = len(effect.parameters), len(law.parameters)
    x, step = np.array([0.2, -0.3, 0.1, 0.5, 0.4])[: 3 + psi + theta], 1e-5
    middle = at(x)
    assert middle.first.shape == (len(x), n)
    for i in range(len(x)):
        up, down = (at(x + sign * step * np.eye(len(x))[i]) for sign in (1, -1))
        assert_allclose(middle.first[i], (up.value - down.value) / (2 * step), atol=3e-6)
        assert_allclose(middle.second[i], (up.first - down.first) / (2 * step), atol=3e-6)


def test_moments_of_the_effect_are_those_of_the_integrand():
    count, time = np.array([5.0, 0.0, 2.0]), np.array([1.0, 2.0, 0.5])
    counts = of_one(count, BURSTS, GAMMA)
    found = counts.terms(LogMeans.of(time), np.log([1.5]), np.log([2.0]))
    v = np.linspace(1e-6, 40.0, 400_001)
    p = gamma.pdf(v, 1.5, scale=1 / 1.5)
    for m, r in zip(count, time, strict=True):
        p = p * nbinom.pmf(m, v * r / 2.0, 1 / 3)
    mean = np.trapezoid(v * p, v) / np.trapezoid(p, v)
    assert_allclose(found.mean, mean, rtol=1e-6)
    variance = np.trapezoid(v**2 * p, v) / np.trapezoid(p, v) - mean**2
    assert_allclose(found.variance, variance, rtol=1e-5)


def test_few_nodes_at_a_time_change_nothing(monkeypatch):
    count, time, subject, n = example(3)
    counts = MarginalCounts(count, subject, n, BURSTS, GAMMA)
    whole = counts.terms(LogMeans.of(time), np.zeros(1), np.zeros(1))
    monkeypatch.setattr("gp4c.classical.parametric.marginal_counts._CHUNK", 100)
    parts = counts.terms(LogMeans.of(time), np.zeros(1), np.zeros(1))
    assert_allclose(parts.value, whole.value, rtol=1e-13)
    assert_allclose(parts.second, whole.second, rtol=1e-10, atol=1e-10)
