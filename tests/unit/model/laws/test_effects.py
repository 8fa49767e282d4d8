"""Laws of subject effects: closed forms against quadrature, derivatives against differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln

from gp4c.model.laws import EFFECTS
from gp4c.model.laws.effects import ClosedForm

GAMMA = EFFECTS["gamma"]


def brute(alpha, power, exposure):
    """ln ∫ Gamma(υ; α, α) υⁿ e^{−Eυ} dυ by quadrature over ln υ."""

    def log_value(y):
        prior = alpha * np.log(alpha) - gammaln(alpha) + alpha * (y - np.exp(y))
        return prior + power * y - exposure * np.exp(y)

    top = np.log((alpha + power) / (alpha + exposure))
    area = quad(
        lambda y: np.exp(log_value(y) - log_value(top)),
        top - 150,
        top + 12,
        limit=800,
        epsabs=1e-12,
    )[0]
    return log_value(top) + np.log(area)


@pytest.mark.parametrize(
    ("alpha", "power", "exposure"), [(0.3, 0, 2.0), (1.0, 4, 0.7), (20.0, 9, 9.0)]
)
def test_closed_form_agrees_with_quadrature(alpha, power, exposure):
    psi = np.log([[alpha]])
    ours = GAMMA.closed_form_each(np.array([float(power)]), np.array([[exposure]]), psi)
    assert_allclose(ours[0, 0], brute(alpha, power, exposure), rtol=1e-8)


def test_pooled_subjects_count_as_often_as_they_are():
    psi = np.log([[0.8, 2.0]])
    power, exposure = np.array([0.0, 3, 3, 1]), np.array([[1.0, 2.0]])
    each = GAMMA.closed_form_each(power, np.repeat(exposure, 4, axis=0), psi).sum(axis=0)
    powers, times = np.unique(power, return_counts=True)
    pooled = ClosedForm(np.array([4.0]), np.array([7.0]), powers, times.astype(float))
    assert_allclose(GAMMA.closed_form(pooled, exposure, psi), each)


def test_closed_form_derivatives_agree_with_differences():
    subjects = ClosedForm(
        np.array([2.0, 1.0]), np.array([5.0, 0.0]), np.array([0.0, 1, 4]), np.ones(3)
    )
    exposure, psi, h = np.array([[1.3], [0.4]]), np.array([[0.2]]), 1e-4
    at = GAMMA.closed_form_terms(subjects, exposure, psi)

    def value(de=(0.0, 0.0), dp=0.0):
        de = np.asarray(de)
        return GAMMA.closed_form(subjects, exposure + de[:, None], psi + dp)[0]

    for k, e in enumerate(np.eye(2) * h):
        assert_allclose(at.by_exposure[k, 0], (value(e) - value(-e)) / (2 * h), rtol=1e-6)
        second = (value(e) - 2 * value() + value(-e)) / h**2
        assert_allclose(at.by_exposure_twice[k, 0], second, rtol=1e-3)
        mixed = (value(e, h) - value(e, -h) - value(-e, h) + value(-e, -h)) / (4 * h * h)
        assert_allclose(at.crossed[0, k, 0], mixed, rtol=1e-3, atol=1e-6)
    assert_allclose(at.by_psi[0, 0], (value(dp=h) - value(dp=-h)) / (2 * h), rtol=1e-6)
    second = (value(dp=h) - 2 * value() + value(dp=-h)) / h**2
    assert_allclose(at.by_psi_twice[0, 0, 0], second, rtol=1e-3)


def test_density_derivatives_agree_with_differences():
    y, psi, h = np.linspace(-3, 2, 7), np.full((1, 7), 0.4), 1e-4
    density = GAMMA.log_density
    first, second = GAMMA.derivatives(y, psi)
    assert_allclose(first, (density(y + h, psi) - density(y - h, psi)) / (2 * h), rtol=1e-6)
    bend = (density(y + h, psi) - 2 * density(y, psi) + density(y - h, psi)) / h**2
    assert_allclose(second, bend, rtol=1e-4, atol=1e-6)
    by_psi, twice, mixed = GAMMA.parameter_derivatives(y, psi)
    up, down = density(y, psi + h), density(y, psi - h)
    assert_allclose(by_psi[0], (up - down) / (2 * h), rtol=1e-6)
    assert_allclose(twice[0, 0], (up - 2 * density(y, psi) + down) / h**2, rtol=1e-4, atol=1e-6)
    up, down = (GAMMA.derivatives(y, psi + s)[0] for s in (h, -h))
    assert_allclose(mixed[0], (up - down) / (2 * h), rtol=1e-5)


def test_conditional_draws_have_their_mean():
    psi, rng = np.log(np.full((1, 100_000), 1.5)), np.random.default_rng(1)
    draws = GAMMA.draw(psi, np.array(3.0), np.array(0.5), rng)
    assert_allclose(
        draws.mean(), GAMMA.mean(psi[:, :1], np.array(3.0), np.array(0.5))[0], rtol=0.01
    )


def test_no_effect_is_one():
    none = EFFECTS[None]
    assert not none.varies
    assert np.all(
        none.draw(np.zeros((0, 5)), np.zeros(5), np.zeros(5), np.random.default_rng(0)) == 1
    )
    assert none.variance(np.zeros((0, 3))).tolist() == [0.0] * 3
