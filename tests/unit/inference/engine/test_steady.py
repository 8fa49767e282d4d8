"""The curve that does not vary, beside a trend: its evidence and its share of the draws."""

from dataclasses import replace

import numpy as np
import pytest
from engine_tasks import task_of, tiny_panel
from numpy.testing import assert_allclose
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import nbinom, norm, poisson

from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.lattice import find_modes
from gp4c.inference.engine.single import steady_evidence
from gp4c.inference.engine.tempering import temper
from gp4c.inference.engine.weigh import weigh
from gp4c.inference.sampler.judge import _mixed, sample_posterior
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.hyper_priors import LEVEL, STEADY
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.modulation import TRENDS, Modulation, Season, Trend
from gp4c.model.modulation.rate_trends import HALF_CHANGE
from gp4c.model.observed_cells import observe_cells

WINDOW = (0.0, 10.0)


def trend_task(law="poisson", effect=None, parts=None):
    """The tiny panel with a log-linear trend."""
    panel, chosen = tiny_panel(), (LAWS[law], EFFECTS[effect])
    modulation = Modulation((TRENDS["loglinear"](WINDOW),) if parts is None else parts)
    inputs = np.zeros((panel.n_intervals, 0))
    cells = observe_cells(panel, None, WINDOW, *chosen, None, modulated=(modulation, inputs))
    return Task(CountLikelihood(cells, *chosen), KERNELS["se"])


def growth_evidence(law):
    """ln ∫ p(counts | log-linear growth) p(parameters), Σ ln m! left out, on a grid.

    Nothing of the engine is used but the rate that its unit stands for: counts are SciPy's, and
    integrals of exp(g t) have a closed form.
    """
    panel = tiny_panel()
    rate = panel.count.sum() / (panel.exposure @ (panel.stop - panel.start))
    levels, slopes = np.linspace(-4.0, 4.0, 121), np.linspace(-5.0, 5.0, 121)
    phis = np.linspace(-7.0, 6.0, 53) if law == "bursts" else np.zeros(1)
    growth = HALF_CHANGE * slopes / 5.0 + 1e-12  # x goes from −1 to 1 over the window
    area = np.array([
        np.exp(-5.0 * growth) * (np.exp(growth * b) - np.exp(growth * a)) / growth
        for a, b in zip(panel.start, panel.stop, strict=True)
    ])  # fmt: skip
    prior = norm.logpdf(levels, *LEVEL)[:, None] + norm.logpdf(slopes)
    step = np.log((levels[1] - levels[0]) * (slopes[1] - slopes[0]))
    terms = []
    for log_phi in phis:
        total = prior + step
        for m, one in zip(panel.count, area, strict=True):
            mean, phi = rate * np.exp(levels)[:, None] * one, np.exp(log_phi)
            log_p = poisson.logpmf(m, mean)
            if law == "bursts":
                log_p = nbinom.logpmf(m, mean / phi, 1 / (1 + phi))
            total = total + log_p + gammaln(m + 1)
        if law == "bursts":
            total = total + norm.logpdf(log_phi, np.log(0.5), 2.0) + np.log(phis[1] - phis[0])
        terms.append(logsumexp(total))
    return float(logsumexp(terms))


@pytest.mark.parametrize("law", ["poisson", "bursts"])
def test_the_evidence_of_a_trend_alone_is_that_of_the_growth_model(law):
    """The remaining variation of the curve, below 0.1%, and 2,000 draws leave 0.03."""
    assert abs(steady_evidence(trend_task(law)) - growth_evidence(law)) < 0.1


def share_of(found):
    """Posterior probability of the curve that does not vary."""
    steady = np.concatenate([np.full(s.x.shape[1], s.u == STEADY) for s in found.sheaves])
    return float(found.weights @ steady)


@pytest.fixture(scope="module")
def lattice():
    return find_modes(trend_task())


@pytest.fixture(scope="module")
def found(lattice):
    return weigh(lattice, 10_000, np.random.default_rng(0))


def test_both_curves_are_averaged_by_their_evidences(lattice, found, monkeypatch):
    """Evidence and share against two fits: the growth model's, and one where curves must vary."""
    with monkeypatch.context() as patched:
        patched.setattr(Trend, "alone", 0.0)
        varying = find_modes(trend_task())
        assert varying.steady is None
        smooth = weigh(varying, 10_000, np.random.default_rng(1)).log_evidence
    alone = growth_evidence("poisson")
    expected = np.logaddexp(alone, smooth) - np.log(2)
    assert abs(found.log_evidence - expected) < 0.1
    assert_allclose(share_of(found), expit(alone - smooth), atol=0.03)
    assert abs(lattice.log_evidence - expected) < 0.4  # by Laplace's method


def test_the_fall_back_gives_the_same_share(lattice, found):
    """Draws carried from the prior know nothing of the steady curve's mode."""
    carried = temper(lattice, 1000, np.random.default_rng(3), population=400)
    assert abs(carried.log_evidence - found.log_evidence) < 0.3
    assert abs(share_of(carried) - share_of(found)) < 0.12


def test_the_sampler_averages_both_curves():
    """Two populations held at one place: shares are those of their evidences."""
    task = trend_task()
    ask = {"n_draws": 200, "n_populations": 2, "random_state": 1}
    one = sample_posterior(task, length_scale=0.3, u=-1.0, **ask)
    other = sample_posterior(task, length_scale=1.2, u=STEADY, **ask)
    draws, report = _mixed(task, one, other)
    logs = one[1].log_evidence, other[1].log_evidence
    assert_allclose(draws.weights[draws.each("u") == STEADY].sum(), expit(logs[1] - logs[0]))
    assert_allclose(draws.weights.sum(), 1.0)
    assert abs(report.log_evidence - (np.logaddexp(*logs) - np.log(2))) < 0.05
    assert abs(logs[1] - growth_evidence("poisson")) < 0.3


def test_only_a_trend_asks_for_it():
    """Without one, and where the mean of f is given, the prior is what it was."""
    season = trend_task(parts=(Season(WINDOW, 5.0, 0.0, "year"),))
    for task in (task_of(tiny_panel(), "poisson", None), season):
        assert task.steady == 0.0
        lattice = find_modes(task, rounds=1)
        assert lattice.steady is None
        assert [mass for _, mass in lattice.masses] == [lattice.log_step] * len(lattice.points)
    given = replace(trend_task(), mean=1.0)
    assert given.steady == 0.0
    assert find_modes(given, rounds=1).steady is None


def test_the_steady_curve_is_constant(lattice):
    point = lattice.steady
    curve = point.mode.landscape.curve(point.mode.x[:, None], np.array([STEADY]))
    assert np.ptp(curve) < 2e-3 * curve.mean()
