"""The table of covariate effects: intervals, z and p-values from the standard errors chosen."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from gp4c.estimators.regression.covariate_effects import CovariateEffects

BETA = np.array([0.7, -0.2])
COVARIANCES = {
    "model": np.array([[0.04, 0.01], [0.01, 0.09]]),
    "robust": np.array([[0.16, 0.0], [0.0, 0.01]]),
    "jackknife": np.array([[0.25, 0.02], [0.02, 0.36]]),
}
EFFECTS = CovariateEffects(
    SimpleNamespace(names=["arm", "age"]), BETA, *COVARIANCES.values(), np.zeros((0, 2))
)


@pytest.mark.parametrize("errors", COVARIANCES)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_and_p_values_are_normal(errors, level):
    table = EFFECTS.table(level, errors)
    law = norm(BETA, np.sqrt(np.diag(COVARIANCES[errors])))
    assert_allclose(table["low"], np.exp(law.ppf((1 - level) / 2)))
    assert_allclose(table["high"], np.exp(law.ppf((1 + level) / 2)))
    assert_allclose(table["p_value"], 2 * np.minimum(law.cdf(0.0), law.sf(0.0)))
    assert_allclose(table["rate_ratio"], np.exp(BETA))
    assert_allclose(table["se"], [0.2, 0.3])
    assert_allclose(table["robust_se"], [0.4, 0.1])
    assert table["covariate"].tolist() == ["arm", "age"]


def test_factors_are_products_of_coefficients():
    assert_allclose(EFFECTS.log_factor(np.array([1.0, 2.0])), 0.7 - 0.4)
