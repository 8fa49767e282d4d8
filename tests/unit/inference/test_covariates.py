"""Regression of a rate at a known or piecewise-constant curve, against other libraries."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import gamma, nbinom, norm

from gp4c.design.observations import observe
from gp4c.inference.covariates import (
    NO_INFORMATION,
    PRODUCT_SCORES,
    Nuisance,
    RegressionRows,
    collapsed,
    efficient,
    information,
    newton,
    pooled_start,
    product_quantiles,
    reweighted,
    weakest,
)
from problems import central_difference, visits_panel
from tolerances import FINITE_DIFFERENCE, ROUNDING

SHAPES = {"Poisson": np.inf, "gamma": 1.3}


def simulated(seed=0, n_subjects=40, n_bins=4, frailty=None):
    """Subjects watched over bins of time, with one covariate of subjects and one of intervals."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(n_subjects), n_bins)
    interval = np.tile(np.arange(n_bins), n_subjects)
    seen = rng.uniform(size=len(subject)) < 0.85
    z = np.column_stack([rng.normal(size=n_subjects)[subject], rng.normal(size=len(subject))])
    exposure = rng.uniform(0.5, 2.0, len(subject))
    mass = np.array([0.6, 2.0, 1.1, 0.3])[:n_bins]
    effect = np.ones(n_subjects)
    if frailty is not None:
        effect = rng.gamma(frailty, 1 / frailty, n_subjects)
    mean = effect[subject] * exposure * np.exp(z @ [0.4, -0.3]) * mass[interval]
    count = rng.poisson(mean).astype(float)
    rows = RegressionRows(
        z[seen], count[seen], exposure[seen], subject[seen], interval[seen], n_subjects
    )
    return rows, mass


ROWS, MASS = simulated(frailty=1.3)
BETA = np.array([0.2, -0.1])


# -- the collapsed objective ---------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_score_and_information_are_derivatives(shape):
    def value(beta):
        return collapsed(ROWS, beta, MASS, shape).value

    def score(beta):
        return collapsed(ROWS, beta, MASS, shape).score

    here = collapsed(ROWS, BETA, MASS, shape)
    assert_allclose(here.score, central_difference(value, BETA), **FINITE_DIFFERENCE)
    for k in range(2):
        slope = central_difference(lambda b, k=k: score(b)[k], BETA)
        assert_allclose(-information(ROWS, here, shape)[k], slope, **FINITE_DIFFERENCE)


def test_with_frailty_the_value_is_the_negative_multinomial_likelihood():
    shape = 1.3
    here = collapsed(ROWS, BETA, MASS, shape)
    total = 0.0
    for k in range(ROWS.n_subjects):
        mine = ROWS.subject == k
        counts, means = ROWS.count[mine], here.mean[mine]
        expected, events = means.sum(), counts.sum()
        # the total is negative binomial, its division multinomial
        total += nbinom.logpmf(events, shape, shape / (shape + expected))
        total += gammaln(events + 1) - gammaln(counts + 1).sum()
        total += counts @ np.log(means / expected)
    rest = gammaln(ROWS.count + 1).sum() - ROWS.count @ np.log(ROWS.exposure * MASS[ROWS.interval])
    assert_allclose(here.value, total + rest, rtol=1e-10)


def test_newton_finds_the_poisson_regression_with_offset():
    found = newton(ROWS, MASS, np.inf, np.zeros(2))
    offset = np.log(ROWS.exposure * MASS[ROWS.interval])
    other = sm.GLM(ROWS.count, ROWS.design, sm.families.Poisson(), offset=offset).fit(tol=1e-12)
    assert_allclose(found, other.params, rtol=1e-7)
    covariance = np.linalg.inv(information(ROWS, collapsed(ROWS, found, MASS, np.inf), np.inf))
    assert_allclose(covariance, other.cov_params(), rtol=1e-6)


def test_newton_finds_the_maximum_with_frailty():
    found = newton(ROWS, MASS, 0.7, np.array([3.0, -3.0]))
    other = minimize(lambda b: -collapsed(ROWS, b, MASS, 0.7).value, np.zeros(2), tol=1e-10)
    assert_allclose(found, other.x, atol=1e-5)


def test_a_frailty_without_variance_is_none():
    large, none = (collapsed(ROWS, BETA, MASS, shape) for shape in (1e9, np.inf))
    assert_allclose(large.score, none.score, rtol=1e-6)
    assert_allclose(
        information(ROWS, large, 1e9), information(ROWS, none, np.inf), rtol=1e-6, atol=1e-6
    )


# -- the curve estimated along -------------------------------------------------------------------


def free_bins(n_bins=4):
    """A piecewise-constant curve without prior: one free level per bin."""
    return Nuisance(np.eye(n_bins), np.zeros(n_bins))


def regression_with_bins(rows):
    """The same by statsmodels: a dummy for every bin; errors clustered by subject."""
    X = np.column_stack([rows.design, np.eye(4)[rows.interval]])
    model = sm.GLM(rows.count, X, sm.families.Poisson(), offset=np.log(rows.exposure))
    plain = model.fit(tol=1e-13)
    clustered = model.fit(
        tol=1e-13,
        cov_type="cluster",
        cov_kwds={"groups": rows.subject, "use_correction": False},
    )
    return plain, clustered


def test_errors_are_those_of_a_regression_with_a_dummy_per_bin():
    plain, clustered = regression_with_bins(ROWS)
    beta, mass = plain.params[:2], np.exp(plain.params[2:])
    at = collapsed(ROWS, beta, mass, np.inf)
    assert_allclose(at.score, 0.0, atol=1e-6)
    found = efficient(ROWS, at, free_bins(), np.inf)
    assert_allclose(found.covariance, plain.cov_params()[:2, :2], rtol=1e-6)
    n, p = found.scores.shape
    uncorrected = found.robust_covariance * (n - p - 1) / n
    assert_allclose(uncorrected, clustered.cov_params()[:2, :2], rtol=1e-5)
    assert_allclose(found.shares.sum(axis=0), found.information, rtol=1e-9)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_shares_of_subjects_add_up_to_the_information(shape):
    found = efficient(ROWS, collapsed(ROWS, BETA, MASS, shape), free_bins(), shape)
    assert_allclose(found.shares.sum(axis=0), found.information, rtol=1e-9)
    assert np.linalg.eigvalsh(found.shares).min() > -1e-9  # nobody takes information away


def test_the_jackknife_leaves_each_subject_out():
    # one Newton step from the estimate, with the curve's part of the information kept: against
    # refits to the end the step falls short where a subject matters most
    plain, _ = regression_with_bins(ROWS)
    at = collapsed(ROWS, plain.params[:2], np.exp(plain.params[2:]), np.inf)
    found = efficient(ROWS, at, free_bins(), np.inf)
    X = np.column_stack([ROWS.design, np.eye(4)[ROWS.interval]])
    moved = []
    for k in range(ROWS.n_subjects):
        keep = ROWS.subject != k
        family, offset = sm.families.Poisson(), np.log(ROWS.exposure[keep])
        without = sm.GLM(ROWS.count[keep], X[keep], family, offset=offset).fit(tol=1e-12)
        moved.append(plain.params[:2] - without.params[:2])
    moved = np.array(moved)
    for k in range(2):
        assert np.corrcoef(found.influence[:, k], moved[:, k])[0, 1] > 0.99
    refitted = np.sqrt((moved**2).sum(axis=0))
    ours = np.sqrt(np.diag(found.jackknife_covariance))
    plain_sandwich = np.sqrt(np.diag(found.robust_covariance))
    assert np.all(ours > plain_sandwich)
    assert np.all(np.abs(ours - refitted) < np.abs(plain_sandwich - refitted))


def profiled(rows, beta, shape):
    """Objective with the bins' levels re-optimised by a general optimiser."""

    def loss(level):
        mass = np.exp(level)
        value = collapsed(rows, beta, mass, shape).value + rows.count @ level[rows.interval]
        return -value

    best = minimize(loss, np.log(MASS), method="BFGS", options={"gtol": 1e-9})
    return -best.fun, np.exp(best.x)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_efficient_information_is_the_curvature_of_the_profile(shape):
    step = 0.02
    value, mass = profiled(ROWS, BETA, shape)
    found = efficient(ROWS, collapsed(ROWS, BETA, mass, shape), free_bins(), shape).information
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0]):
        d = np.array(direction)
        up, down = (profiled(ROWS, BETA + s * step * d, shape)[0] for s in (1, -1))
        assert_allclose(-(up - 2 * value + down) / step**2, d @ found @ d, rtol=2e-3)


def test_a_tight_prior_on_the_curve_leaves_the_information_at_a_known_curve():
    at = collapsed(ROWS, BETA, MASS, 1.3)
    tight = Nuisance(np.eye(4), np.full(4, 1e12))
    assert_allclose(efficient(ROWS, at, tight, 1.3).information, information(ROWS, at, 1.3))


def test_not_knowing_the_curve_costs_information():
    at = collapsed(ROWS, BETA, MASS, 1.3)
    lost = information(ROWS, at, 1.3) - efficient(ROWS, at, free_bins(), 1.3).information
    assert np.linalg.eigvalsh(lost).min() > 0


def test_robust_errors_cover_under_frailty_that_the_model_ignores():
    # 400 data sets with gamma effects of variance 1, analysed as Poisson counts with a dummy per
    # bin: the robust interval holds, the model-based one is far too short
    truth, hits = np.array([0.4, -0.3]), []
    for seed in range(400):
        rows, _ = simulated(seed, n_subjects=150, frailty=1.0)
        beta, mass = np.zeros(2), MASS
        for _ in range(10):
            expected = rows.multiplied(beta)
            mass = np.bincount(rows.interval, rows.count) / np.bincount(rows.interval, expected)
            beta = newton(rows, mass, np.inf, beta)
        found = efficient(rows, collapsed(rows, beta, mass, np.inf), free_bins(), np.inf)
        z = (beta - truth) / np.sqrt(np.diag(found.robust_covariance))
        naive = (beta - truth) / np.sqrt(np.diag(found.covariance))
        hits.append([np.abs(z) < 1.96, np.abs(naive) < 1.96])
    robust, naive = np.mean(hits, axis=0)
    assert np.all((robust > 0.91) & (robust < 0.98)), robust  # binomial error 0.011
    assert naive[0] < 0.85, naive


# -- observations --------------------------------------------------------------------------------


def test_covariates_are_exposure():
    panel = visits_panel(3, 5, 4, with_exposure=True)
    z = np.random.default_rng(1).normal(size=(panel.n_intervals, 2))
    rows = RegressionRows(
        z, panel.count.astype(float), panel.exposure, panel.subject_index,
        panel.distinct().inverse, panel.n_subjects,
    )  # fmt: skip
    plain = observe(panel, None, panel.window)
    multiplied = panel._like(exposure=panel.exposure * np.exp(z @ BETA))
    direct = observe(multiplied, None, panel.window)
    ours = reweighted(plain, rows, BETA, direct.rate)
    assert_allclose(ours.exposure, direct.exposure, **ROUNDING)
    assert_allclose(ours.by_subject.toarray(), direct.by_subject.toarray(), **ROUNDING)
    assert_allclose(ours.constant, direct.constant, **ROUNDING)
    assert np.array_equal(ours.count, direct.count)


def test_the_start_is_the_regression_of_a_constant_rate():
    length = np.array([0.1, 0.4, 0.3, 0.2])
    beta, rate = pooled_start(ROWS, length)
    X = sm.add_constant(ROWS.design)
    offset = np.log(ROWS.exposure * length[ROWS.interval])
    other = sm.GLM(ROWS.count, X, sm.families.Poisson(), offset=offset).fit()
    assert_allclose(beta, other.params[1:], rtol=1e-5)
    assert_allclose(np.log(rate), other.params[0], rtol=1e-5)


def test_events_on_one_side_of_a_covariate_leave_no_information():
    length = np.full(4, 0.25)
    side = (ROWS.design[:, :1] > 0).astype(float)
    one_sided = replace(ROWS, design=side, count=np.where(side[:, 0] > 0, 0.0, ROWS.count))
    for rows, finite in ((one_sided, False), (replace(ROWS, design=side), True)):
        beta, _ = pooled_start(rows, length)
        least, _ = weakest(rows, rows.multiplied(beta) * length[rows.interval])
        assert (least > 1e-3) == finite
        assert (least > NO_INFORMATION) == finite


# -- curves at covariates ------------------------------------------------------------------------


@pytest.mark.parametrize("deviation", [0.0, 0.01, 0.1, 0.5])
def test_quantiles_of_a_product_with_a_lognormal_variable(deviation):
    # lognormal times lognormal is lognormal
    scores, levels = PRODUCT_SCORES, np.array([0.005, 0.1, 0.5, 0.9, 0.995])
    curve = np.exp(np.array([0.3, -1.0]) + np.array([0.2, 0.8]) * scores[:, None])
    found = product_quantiles(curve, deviation, levels)
    spread = np.hypot([0.2, 0.8], deviation)
    expected = np.exp(np.array([0.3, -1.0]) + np.multiply.outer(norm.ppf(levels), spread))
    assert_allclose(found, expected, rtol=2e-3)


def test_quantiles_of_a_product_with_a_skewed_variable():
    levels = np.array([0.025, 0.5, 0.975])
    curve = gamma.ppf(norm.cdf(PRODUCT_SCORES), 2.0)[:, None]
    found = product_quantiles(curve, 0.4, levels)[:, 0]
    for value, level in zip(found, levels, strict=True):
        held = quad(lambda x, v=value: gamma.cdf(v * np.exp(-0.4 * x), 2.0) * norm.pdf(x), -8, 8)[0]
        assert_allclose(held, level, atol=2e-4)
