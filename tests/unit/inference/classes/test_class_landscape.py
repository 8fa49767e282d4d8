"""The density of classes: against a likelihood written out, differences, and a single class."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, poisson
from tests.problems import visits_panel

from gp4c.inference.classes.class_climb import climb_classes
from gp4c.inference.classes.class_components import ClassComponent
from gp4c.inference.classes.class_landscape import ClassData, ClassLandscape
from gp4c.inference.engine.climb import climb
from gp4c.inference.engine.posterior_fit import task_for
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import merged_spans, observe_cells, panel_rows

PANEL = visits_panel(seed=3, n_subjects=8, n_intervals=4, level=5.0, frailty=1.0)


def space_of(
    law: str, effect: str | None, n_classes: int = 2, *, covariate: bool = False, panel=PANEL
) -> ClassLandscape:
    rows, n = panel_rows(panel, panel.window, None)
    rate = rows.count.sum() / float(rows.factor @ (rows.stop - rows.start))
    design = np.ones((n, 1))
    if covariate:
        design = np.column_stack([design, np.linspace(-1, 1, n)])
    data = ClassData.of(
        rows, merged_spans(rows), LAWS[law], EFFECTS[effect], window=panel.window, rate=rate,
        design=design,
    )  # fmt: skip
    return ClassLandscape(data, data.task("se", None).landscape(np.log(0.4)), -0.8, n_classes)


def point(space: ClassLandscape, seed: int = 0) -> np.ndarray:
    return 0.4 * np.random.default_rng(seed).standard_normal(space.dimension)


def test_likelihood_is_the_mixture_of_poisson_counts() -> None:
    space = space_of("poisson", None, covariate=True)
    x = point(space)[:, None]
    found = space.log_density(x)[0] - space.log_prior(x)[0]
    # the curves by the trapezoid rule on a close grid, the mixture by SciPy's Poisson
    times = np.linspace(0, 1, 4001)
    length = PANEL.window[1] - PANEL.window[0]
    scores, each = [], []
    for c in (0, 1):
        one = space.single(x, c)
        h = space.land.curve_at(times, one, np.array([space.u]))[:, 0]
        rate = space.data.rate * np.exp(one[space.size, 0]) * h**2
        cumulative = np.append(0, np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(times)))
        ends = [np.interp((t - PANEL.window[0]) / length, times, cumulative)
                for t in (PANEL.start, PANEL.stop)]  # fmt: skip
        log_p = poisson.logpmf(PANEL.count, PANEL.exposure * (ends[1] - ends[0]))
        each.append(np.bincount(PANEL.subject_index, log_p, PANEL.n_subjects))
        eta = x[c * space.block + space.size + 1 : (c + 1) * space.block, 0]
        scores.append(space.data.design @ eta)
    shares = np.array(scores) - logsumexp(scores, axis=0)
    expected = logsumexp(shares + np.array(each), axis=0).sum() + PANEL.log_factorials
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("law", "effect"), [("poisson", None), ("poisson", "gamma"), ("bursts", None)]
)
def test_derivatives_are_differences(law: str, effect: str | None) -> None:
    space = space_of(law, effect, covariate=True)
    x, h = point(space), 1e-5
    at = space.derivatives(x)
    steps = h * np.eye(len(x))
    slopes = [
        (space.log_density((x + e)[:, None]) - space.log_density((x - e)[:, None]))[0] / (2 * h)
        for e in steps
    ]
    np.testing.assert_allclose(at.gradient, slopes, atol=2e-5)
    bends = [
        (space.derivatives(x + e).gradient - space.derivatives(x - e).gradient) / (2 * h)
        for e in steps
    ]
    np.testing.assert_allclose(at.hessian, bends, atol=2e-5)


def test_derivatives_with_integrated_effects() -> None:
    # the rule for climbs is rough: the gradient is that of the density to a hundredth
    space = space_of("bursts", "gamma")
    x, h = point(space), 1e-4
    slopes = [
        (space.log_density((x + e)[:, None]) - space.log_density((x - e)[:, None]))[0] / (2 * h)
        for e in h * np.eye(len(x))
    ]
    at = space.derivatives(x).gradient
    np.testing.assert_allclose(at, slopes, atol=0.02 * np.abs(at).max())


def test_labels_mean_nothing() -> None:
    space = space_of("bursts", "gamma", 3, covariate=True)
    x = point(space)[:, None]
    values = [space.log_density(x[rows])[0] for rows in space.permuted()]
    assert len(values) == 6
    np.testing.assert_allclose(values, values[0], rtol=1e-12)


def test_weights_are_repeated_subjects() -> None:
    space = space_of("bursts", "gamma", 1)
    one, u = point(space), np.array([space.u])
    weight = np.arange(1.0, 9.0)
    whole = space.data.weighted(weight)
    land = space.land
    _, cell, row, owner = space._expected(one[:, None])
    params = one[space.size + 1 :, None]
    each = space.data.counts.log_likelihoods_at(cell, row, owner, params)[:, 0]
    rest = space.data.counts._log_factors
    found = whole.value(cell, row, owner, params)[0] - whole.cells.constant
    assert found == pytest.approx(float(weight @ (each - rest)), rel=1e-9)
    assert land.derivatives(one[:, None], u).hessian.shape == (1, len(one), len(one))


@pytest.mark.parametrize(("law", "effect"), [("poisson", "gamma"), ("bursts", "gamma")])
def test_one_class_is_the_default_engine(law: str, effect: str) -> None:
    space = space_of(law, effect, 1)
    cells = observe_cells(PANEL, None, PANEL.window, LAWS[law], EFFECTS[effect])
    task = task_for(cells, LAWS[law], EFFECTS[effect])
    land = task.landscape(space.land.log_length)
    engine = climb(land, land.rough_start(space.u)[:, None], np.array([space.u]))[0]
    mode = climb_classes(space, engine.x)  # there are other modes
    assert mode.found
    assert mode.log_evidence == pytest.approx(engine.log_evidence, abs=0.1)


def test_evidence_counts_each_labelling_once() -> None:
    # against the plain average of the likelihood over draws of the prior
    panel = visits_panel(seed=5, n_subjects=4, n_intervals=2, level=2.0)
    space = space_of("poisson", None, 2, panel=panel)
    rng = np.random.default_rng(1)
    deviation = np.ones(space.dimension)
    for c in (0, 1):
        deviation[c * space.block + space.size + 1] = 1.28
    x = deviation[:, None] * rng.standard_normal((space.dimension, 60_000))
    likelihood = space.log_density(x) - space.log_prior(x)
    plain = logsumexp(likelihood) - np.log(x.shape[1])
    of_prior = norm.logpdf(x / deviation[:, None]).sum(axis=0) - np.log(deviation).sum()
    offset = float(np.mean(space.log_prior(x) - of_prior))  # ln p(ln a) + ln p(u)
    start = np.zeros(space.dimension)
    start[space.levels()] = [-0.5, 0.5]
    law = ClassComponent.around(climb_classes(space, start))
    drawn = law.draw(20_000, rng)
    weights = space.log_density(drawn) - law.log_density(drawn)
    assert logsumexp(weights) - np.log(len(weights)) - offset == pytest.approx(plain, abs=0.05)
