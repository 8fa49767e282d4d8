"""Rates that are constant on cells, against the Poisson regression of statsmodels."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from numpy.testing import assert_allclose

import gp4c
from gp4c.data.panel import PanelCounts

EDGES = np.array([0.0, 1.0, 2.5, 4.0, 7.0, 8.0])


def on_common_visits(seed: int, n_subjects: int = 30, level: float = 2.0) -> PanelCounts:
    """Subjects seen at the same visits, with drop-out, missed visits and unequal exposure."""
    rng = np.random.default_rng(seed)
    rate = level * np.array([1.0, 0.3, 2.0, 0.7, 3.0])
    rows = []
    for k in range(n_subjects):
        last = rng.integers(2, len(EDGES))
        visits = [0, *(v for v in range(1, last) if rng.random() < 0.6), last]
        units = rng.uniform(0.5, 3.0)
        for i, j in pairwise(visits):
            mean = units * (rate[i:j] * np.diff(EDGES)[i:j]).sum()
            rows.append((k, EDGES[i], EDGES[j], rng.poisson(mean), units))
    table = pd.DataFrame(rows, columns=["subject", "start", "stop", "count", "units"])
    return PanelCounts.from_frame(table, exposure="units", window=(0.0, 8.0))


def overlaps(panel: PanelCounts) -> np.ndarray:
    """1 where a row of the panel covers a cell, (rows, cells)."""
    return ((panel.start[:, None] <= EDGES[:-1]) & (EDGES[1:] <= panel.stop[:, None])).astype(float)


def regression(counts: Any, design: Any, **options: Any) -> Any:
    """The fitted Poisson regression; its identity link is one that statsmodels warns of."""
    family = options.pop("family", sm.families.Poisson())
    return sm.GLM(counts, design, family=family, **options).fit(
        tol=1e-13, tol_criterion="params", maxiter=500
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_constant_rate_is_an_intercept(seed: int) -> None:
    panel = on_common_visits(seed)
    model = gp4c.HomogeneousPoisson().fit(panel)
    offset = np.log(panel.exposure * (panel.stop - panel.start))
    theirs = regression(panel.count, np.ones(panel.n_intervals), offset=offset)
    assert_allclose(np.log(model.rate_), theirs.params[0], rtol=1e-10)
    assert_allclose(model.score(panel, constant=True), theirs.llf, rtol=1e-11)
    # the exact interval of many events is nearly theirs, which is symmetric in ln ρ
    low, high = np.log(model.rate_interval())
    assert_allclose([low, high], theirs.conf_int()[0], atol=3.0 / panel.n_events)


@pytest.mark.parametrize("seed", range(4))
def test_the_npmle_is_a_regression_on_cells_with_identity_link(seed: int) -> None:
    """Increments are the coefficients of a regression on the cells that an interval covers.

    With this many events all of them are positive, so that the constraint is not felt.
    """
    panel = on_common_visits(seed, n_subjects=60, level=4.0)
    model = gp4c.NPMLE().fit(panel)
    jumps = np.diff(model.cumulative(EDGES))
    assert np.all(jumps > 0.1)
    design = panel.exposure[:, None] * overlaps(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        family = sm.families.Poisson(sm.families.links.Identity())
        start = np.full(len(jumps), jumps.mean())
        theirs = sm.GLM(panel.count, design, family=family).fit(
            start_params=start, tol=1e-13, maxiter=500
        )
    assert_allclose(jumps, theirs.params, rtol=1e-7)
    assert_allclose(model.score(panel, constant=True), theirs.llf, rtol=1e-11)


@pytest.mark.parametrize("seed", range(4))
def test_with_every_visit_kept_cells_have_their_own_rates(seed: int) -> None:
    """All subjects at all visits: a log-linear regression with a level for each cell."""
    rng = np.random.default_rng(seed + 100)
    units = np.repeat(rng.uniform(0.5, 2.0, 12), 5)
    cell = np.tile(np.arange(5), 12)
    counts = rng.poisson(units * np.array([2.0, 1.0, 4.0, 0.5, 2.0])[cell])
    panel = PanelCounts.from_frame(
        {
            "subject": np.repeat(np.arange(12), 5),
            "start": EDGES[cell],
            "stop": EDGES[cell + 1],
            "count": counts,
            "units": units,
        },
        exposure="units",
    )
    theirs = regression(counts, np.eye(5)[cell], offset=np.log(units))
    model = gp4c.NPMLE().fit(panel)
    assert_allclose(np.diff(model.cumulative(EDGES)), np.exp(theirs.params), rtol=1e-7)
    assert_allclose(model.score(panel, constant=True), theirs.llf, rtol=1e-11)
    # and without smoothing the local EM estimate has the same mass in every cell
    local = gp4c.LocalEM(bandwidth=1e-4).fit(panel)
    assert_allclose(np.diff(local.cumulative(EDGES)), np.exp(theirs.params), rtol=1e-3)


def test_a_flat_curve_is_the_constant_rate() -> None:
    """Where the data ask for no variation over time, GP4C is the regression with an offset."""
    panel, _ = gp4c.simulate_panel(0.3, window=(0, 60), n_subjects=30, random_state=1)
    model = gp4c.GP4C(count_term="pointwise", effect=None, hyper="optimize").fit(panel)
    assert model.variance_ < 1e-6 * model.mean_**2
    offset = np.log(panel.stop - panel.start)
    theirs = regression(panel.count, np.ones(panel.n_intervals), offset=offset)
    assert_allclose(model.mean_**2, np.exp(theirs.params[0]), rtol=1e-4)
    assert_allclose(model.cumulative(60.0), 60.0 * np.exp(theirs.params[0]), rtol=5e-3)
    # the evidence of a flat curve is the likelihood at its maximum
    assert_allclose(model.objective_ - panel.log_factorials, theirs.llf, atol=0.01)


def test_rate_ratios_with_frailty_are_those_of_a_negative_binomial_regression() -> None:
    """Totals of subjects seen over the same time are negative binomial with a log link.

    Posterior means differ from the maximum by the skewness of the posterior and the weak priors:
    a small part of a standard error with 200 subjects.
    """
    rng = np.random.default_rng(4)
    n, shape = 200, 2.0
    x = rng.normal(size=n)
    frailty = rng.gamma(shape, 1.0 / shape, n)
    count = rng.poisson(3.0 * frailty * np.exp(0.5 * x))
    panel = PanelCounts.from_frame(
        pd.DataFrame({"subject": np.arange(n), "start": 0.0, "stop": 2.0, "count": count, "x": x})
    )
    model = gp4c.GP4C(formula="x", effect="gamma", bursts=False).fit(panel)
    family = sm.families.NegativeBinomial(alpha=model.frailty_variance_)
    theirs = regression(count, sm.add_constant(x), family=family)
    ours = model.effects_.iloc[0]
    assert_allclose(ours["coefficient"], theirs.params[1], atol=0.2 * theirs.bse[1])
    assert_allclose(ours["se"], theirs.bse[1], rtol=0.1)
