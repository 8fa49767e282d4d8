"""Gamma frailties, against statsmodels' negative binomial and sums written out with SciPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multinomial, nbinom, poisson
from statsmodels.discrete.discrete_model import NegativeBinomial

import gp4c
from gp4c.data.panel import PanelCounts
from gp4c.posterior.scoring import log_mean_exp


def frail(seed: int, n: int = 60, visits: int = 1, shape: float = 0.8) -> PanelCounts:
    """Subjects with gamma frailty, unequal follow-up and exposure."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.uniform(1.0, 20.0, (n, visits)), axis=1)
    starts = np.column_stack([np.zeros(n), ends[:, :-1]])
    units = rng.uniform(0.5, 2.0, n)
    mean = (rng.gamma(shape, 1 / shape, n) * units)[:, None] * 0.5 * (ends - starts)
    return PanelCounts.from_frame(
        {
            "subject": np.repeat(np.arange(n), visits),
            "start": starts.ravel(),
            "stop": ends.ravel(),
            "count": rng.poisson(mean).ravel(),
            "units": np.repeat(units, visits),
        },
        exposure="units",
        window=(0.0, 20.0),
    )


def statsmodels_fit(panel: PanelCounts) -> Any:
    """ln ρ and 1/α by maximum likelihood of the totals."""
    time = np.bincount(panel.subject_index, panel.exposure * (panel.stop - panel.start))
    totals = np.bincount(panel.subject_index, panel.count).astype(float)
    model = NegativeBinomial(totals, np.ones((len(totals), 1)), exposure=time)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(method="bfgs", disp=False, gtol=1e-9, maxiter=500)


@pytest.mark.parametrize("seed", range(4))
def test_one_visit_each_is_a_negative_binomial_regression(seed: int) -> None:
    panel = frail(seed)
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    theirs = statsmodels_fit(panel)
    assert_allclose(np.log(model.rate_), theirs.params[0], atol=1e-6)
    assert_allclose(1.0 / model.frailty_shape_, theirs.params[1], rtol=1e-5)
    assert_allclose(model.score(panel, constant=True), theirs.llf, rtol=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_several_visits_have_the_same_maximum_and_a_likelihood_of_their_own(seed: int) -> None:
    panel = frail(seed, visits=3)
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    theirs = statsmodels_fit(panel)  # totals are sufficient for rate and frailty
    assert_allclose(np.log(model.rate_), theirs.params[0], atol=1e-6)
    assert_allclose(1.0 / model.frailty_shape_, theirs.params[1], rtol=1e-5)
    assert model.score(panel, constant=True) < theirs.llf  # and there is more to explain


def negative_multinomial(panel: PanelCounts, expected: np.ndarray, shape: float) -> np.ndarray:
    """ln p of each subject: its total is negative binomial, its visits share it out."""
    each = []
    for k in range(panel.n_subjects):
        own = panel.subject_index == k
        counts, means = panel.count[own], (panel.exposure * expected)[own]
        total, mean = counts.sum(), means.sum()
        value = nbinom.logpmf(total, shape, shape / (shape + mean))
        each.append(value + multinomial.logpmf(counts, total, means / mean))
    return np.array(each)


@pytest.mark.parametrize("model", [gp4c.HomogeneousPoisson, gp4c.NPMLE], ids=lambda m: m.__name__)
def test_scores_with_frailty_are_negative_multinomial(model: Any) -> None:
    panel = frail(3, visits=3)
    fitted = model(effect="gamma").fit(panel)
    assert np.isfinite(fitted.frailty_shape_)
    expected = fitted.expected_counts(panel.start, panel.stop)
    theirs = negative_multinomial(panel, expected, fitted.frailty_shape_)
    factorials = np.array(
        [panel[[k]].log_factorials for k in range(panel.n_subjects)]
    )  # ours leaves them out
    assert_allclose(fitted.score_subjects(panel) - factorials, theirs, rtol=1e-9, atol=1e-9)
    assert_allclose(fitted.score(panel, constant=True), theirs.sum(), rtol=1e-10)


def test_scores_of_the_smooth_model_are_the_same_averaged_over_curves() -> None:
    panel = frail(5, n=12, visits=3)
    model = gp4c.GP4C(count_term="pointwise", effect="gamma", n_inducing=8, hyper="optimize")
    model.fit(panel)
    distinct = panel.distinct()
    rng = np.random.default_rng(0)  # the seed of scores, where none was given
    draws = model.posterior_.sample_integrals(distinct.start, distinct.stop, 50, rng)
    values = np.array(
        [
            negative_multinomial(panel, draw[distinct.inverse], model.frailty_shape_)
            for draw in draws
        ]
    )
    theirs = log_mean_exp(values)[0].sum()
    assert_allclose(model.score(panel, constant=True, joint=False, n_draws=50), theirs, rtol=1e-9)


@pytest.mark.parametrize(
    "model", [gp4c.HomogeneousPoisson(), gp4c.NPMLE(), gp4c.LocalEM(bandwidth=2.0)], ids=repr
)
def test_scores_without_frailty_are_poisson(model: Any) -> None:
    """Events weigh their logarithms: the whole law is SciPy's, constants included."""
    panel = frail(7, visits=2)
    model.fit(panel)
    mean = panel.exposure * model.expected_counts(panel.start, panel.stop)
    theirs = poisson.logpmf(panel.count, mean)
    assert_allclose(model.score(panel, constant=True), theirs.sum(), rtol=1e-11)
