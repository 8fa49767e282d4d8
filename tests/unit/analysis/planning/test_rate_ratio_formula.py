"""The negative-binomial formula against statsmodels and against simulated estimates."""

import numpy as np
import pytest
from statsmodels.stats.rates import power_negbin_ratio_2indep
from trial_designs import design

from gp4c.analysis.planning.rate_ratio_formula import formula_power, formula_size


@pytest.mark.parametrize("ratio", [0.5, 0.85, 1.3])
@pytest.mark.parametrize("variance", [0.1, 2.0])
def test_power_is_that_of_statsmodels_without_bursts_and_drop_out(ratio, variance):
    plan = design(frailty_variance=variance, allocation=1.5)
    other = power_negbin_ratio_2indep(
        ratio * 0.2, 0.2, 90, nobs_ratio=60 / 90, exposure=24.0, dispersion=variance,
        alternative="two-sided", method_var="alt", return_results=False,
    )  # fmt: skip
    assert formula_power(plan, 60, ratio, 0.05) == pytest.approx(other, rel=1e-9)


def test_the_size_has_the_power_that_was_asked_for():
    plan = design(dispersion=2.0, drop_out=0.2, strata=(0.5, 2.0))
    size = formula_size(plan, 0.7, 0.01, 0.9)
    assert formula_power(plan, size, 0.7, 0.01) == pytest.approx(0.9, abs=1e-6)


def test_the_variance_is_that_of_weighted_rates_with_bursts_and_drop_out(rng):
    # log ratio of rates Σ w m / Σ w μ with the weights 1 / (1 + φ + vμ), in 4000 simulated trials
    plan = design(frailty_variance=0.8, dispersion=2.5, drop_out=0.5, visits=6)
    n, trials, logs = 400, 4000, []
    for ratio in (1.0, 0.6):
        last = np.where(rng.random((trials, n)) < 0.5, rng.integers(0, 6, (trials, n)), 6)
        mean = 0.2 * 4.0 * last * ratio
        effect = rng.gamma(1 / 0.8, 0.8, mean.shape)
        count = rng.poisson(1.5 * rng.gamma(effect * mean / 1.5))
        weight = 1 / (2.5 + 0.8 * mean)
        logs.append(np.log((weight * count).sum(axis=1) / (weight * mean).sum(axis=1)))
    spread = np.var(logs[0] - logs[1])
    critical = 1.959964
    from scipy.stats import norm

    away = abs(np.log(0.6)) / np.sqrt(spread)
    expected = norm.cdf(away - critical) + norm.cdf(-away - critical)
    assert formula_power(plan, n, 0.6, 0.05) == pytest.approx(expected, abs=0.01)


def test_equal_strata_are_no_strata():
    assert formula_power(design(strata=(1.0, 1.0)), 50, 0.6, 0.05) == pytest.approx(
        formula_power(design(), 50, 0.6, 0.05)
    )
