"""The optimum of b, by quadrature."""

import numpy as np

from gp4c.paper.exhibits import fig_bound
from gp4c.paper.sections import Plan


def expected_log_square(mu):
    """E ln y² for y ~ N(mu, 1): ∫ ln(y²) (φ(y−μ) + φ(y+μ)) dy over y = eˢ > 0 by trapezoids."""
    s = np.arange(-40.0, 4.2, 0.004)
    y = np.exp(s)
    result = np.empty_like(mu)
    for first in range(0, len(mu), 250):
        part = mu[first : first + 250, None]
        density = np.exp(-((y - part) ** 2) / 2) + np.exp(-((y + part) ** 2) / 2)
        result[first : first + 250] = (2 * s * y * density).sum(axis=1) * 0.004 / np.sqrt(2 * np.pi)
    return result


def test_the_best_b_is_the_papers():
    mu = np.sqrt(np.logspace(-6, 6, 5000))
    near = mu < 30
    truth = np.empty_like(mu)
    truth[near] = expected_log_square(mu[near])
    # E ln y² = ln μ² − 1/μ² − 3/(2μ⁴) − …, the next term below 1e-8 here
    truth[~near] = np.log(mu[~near] ** 2) - mu[~near] ** -2 - 1.5 * mu[~near] ** -4
    b = np.linspace(0, 1, 50)
    h = np.log(mu**2 + b[:, None]) - 0.5772156649015329 - np.log(2) - truth
    variances = h.var(axis=1, ddof=1)
    assert round(float(b[np.argmin(variances)]), 4) == 0.3061
    np.testing.assert_allclose(fig_bound.variances(), variances, rtol=1e-6)


def test_lemma_2_holds_on_the_grid():
    for b in (0.0, 0.3, 1.0):
        assert np.all(np.log(fig_bound.PHI + b) <= fig_bound.true_value(fig_bound.PHI) + 1e-12)


def test_the_section_states_the_optimum():
    section = fig_bound.render(Plan(), {})
    (target,) = section.targets
    assert target.met
    assert target.found == "0.3061"
    assert list(section.pictures) == ["fig-bound"]
