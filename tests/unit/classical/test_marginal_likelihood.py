"""The objective of classical estimators is a likelihood that other libraries know."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln, xlogy
from scipy.stats import multinomial, nbinom, poisson

import gp4c
from classical_panels import panel_of
from problems import visits_panel

PANELS = {
    "plain": visits_panel(5, 15, 4, level=3.0, frailty=0.8),
    "with exposure": visits_panel(6, 15, 4, level=3.0, frailty=0.8, with_exposure=True),
}


def expected(model: gp4c.NPMLE, panel: gp4c.PanelCounts) -> np.ndarray:
    """Mean of each row at effect 1."""
    return panel.exposure * (model.cumulative(panel.stop) - model.cumulative(panel.start))


def with_frailty(model: gp4c.NPMLE, panel: gp4c.PanelCounts) -> float:
    """A negative binomial total, shared out among the rows by a multinomial law."""
    total, shape = 0.0, model.frailty_shape_
    for subject in range(panel.n_subjects):
        mine = panel.subject_index == subject
        mean, count = expected(model, panel)[mine], panel.count[mine]
        total += nbinom.logpmf(count.sum(), shape, shape / (shape + mean.sum()))
        total += multinomial.logpmf(count, count.sum(), mean / mean.sum())
    return float(total + gammaln(panel.count + 1.0).sum())


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_npmle_with_frailty(panel: gp4c.PanelCounts) -> None:
    model = gp4c.NPMLE(effect="gamma").fit(panel)
    assert 0 < model.frailty_shape_ < np.inf
    assert_allclose(model.objective_, with_frailty(model, panel), rtol=1e-9)
    assert np.all(np.diff(model.history_) >= 0)
    poisson_fit = gp4c.NPMLE().fit(panel)
    assert model.objective_ > poisson_fit.objective_ + 1.0  # the panel is overdispersed


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
@pytest.mark.parametrize("method", ["newton", "icm", "em"])
def test_npmle(method: str, panel: gp4c.PanelCounts) -> None:
    model = gp4c.NPMLE(method=method, tol=1e-7).fit(panel)
    mean = expected(model, panel)
    with np.errstate(divide="ignore"):
        terms = poisson.logpmf(panel.count, mean) + gammaln(panel.count + 1.0)
    assert_allclose(model.objective_, terms.sum(), rtol=1e-7)


def test_npmple() -> None:
    """Cumulative counts, taken for independent Poisson ones at every visit."""
    toy = panel_of([("A", 0.0, 1.0, 1), ("A", 1.0, 3.0, 1), ("B", 0.0, 2.0, 0), ("B", 2.0, 3.0, 3)])
    model = gp4c.NPMPLE().fit(toy)
    seen = {"A": [(1.0, 1), (3.0, 2)], "B": [(2.0, 0), (3.0, 3)]}
    terms = [
        poisson.logpmf(total, model.cumulative(time)) + gammaln(total + 1.0)
        for visits in seen.values()
        for time, total in visits
    ]
    assert_allclose(model.objective_, sum(terms))


def test_steps_are_counted_and_no_events_take_none() -> None:
    panel = PANELS["plain"]
    for method in ("newton", "icm", "em"):
        model = gp4c.NPMLE(method=method, tol=1e-6).fit(panel)
        assert model.n_iter_ == len(model.history_) - 1 > 0
    none = panel_of([("A", 0.0, 1.0, 0), ("B", 0.0, 2.0, 0)])
    for empty in (gp4c.NPMLE(), gp4c.NPMLE(effect="gamma"), gp4c.NPMPLGF()):
        empty.fit(none)
        assert empty.converged_
        assert empty.residual_ == 0.0
        assert empty.cumulative(2.0) == 0.0


@pytest.mark.parametrize("panel", PANELS.values(), ids=PANELS)
def test_homogeneous(panel: gp4c.PanelCounts) -> None:
    model = gp4c.HomogeneousPoisson().fit(panel)
    mean = model.rate_ * panel.exposure * (panel.stop - panel.start)
    assert_allclose(model.objective_, (xlogy(panel.count, mean) - mean).sum(), rtol=1e-10)
    gamma = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    assert_allclose(gamma.objective_, with_frailty(gamma, panel), rtol=1e-9)


@pytest.mark.parametrize("estimator", [gp4c.NPMLE, gp4c.HomogeneousPoisson])
def test_effects_are_posterior_means_of_gamma_frailties(estimator: type) -> None:
    panel = PANELS["with exposure"]
    model = estimator(effect="gamma").fit(panel)
    mean = np.bincount(panel.subject_index, expected(model, panel))
    totals = np.bincount(panel.subject_index, panel.count)
    shape = model.frailty_shape_
    assert_allclose(model.subject_effects_, (shape + totals) / (shape + mean), rtol=1e-6)
    assert estimator().fit(panel).subject_effects_ is None


@pytest.mark.parametrize("origin", [-3.0, 100.0])
def test_local_em_does_not_know_when_the_clock_was_started(origin: float) -> None:
    here = PANELS["plain"]
    there = visits_panel(5, 15, 4, level=3.0, frailty=0.8, window=(origin, origin + 1.0))
    one, two = (gp4c.LocalEM(bandwidth=0.1).fit(panel) for panel in (here, there))
    times = np.linspace(0.0, 1.0, 9)
    assert_allclose(two.cumulative(origin + times), one.cumulative(times), rtol=1e-6, atol=1e-9)
    assert_allclose(two.intensity(origin + times), one.intensity(times), rtol=1e-6)
