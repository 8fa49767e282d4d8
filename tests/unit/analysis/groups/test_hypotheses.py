"""Three accounts of groups: priors without a reference, evidences by brute force."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp

import gp4c
from gp4c.analysis.groups.hypotheses import (
    FACTOR_DEVIATION,
    balanced_basis,
    level_ratios,
    log_overlap,
    weigh_hypotheses,
)
from gp4c.estimators.engine_fit import EngineData, fit_engine
from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.lattice import LENGTHS
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.hyper_priors import VARIATION
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells


@pytest.mark.parametrize("n_groups", [2, 3, 6])
def test_every_pair_of_groups_has_the_same_prior(n_groups):
    basis = balanced_basis(n_groups)
    assert_allclose(basis.T @ basis, np.eye(n_groups - 1), atol=1e-12)
    assert_allclose(basis.sum(axis=0), 0.0, atol=1e-12)
    covariance = FACTOR_DEVIATION**2 / 2 * basis @ basis.T
    variance = np.diag(covariance)
    of_ratios = variance[:, None] + variance - 2 * covariance
    expected = FACTOR_DEVIATION**2 * (1 - np.eye(n_groups))
    assert_allclose(of_ratios, expected, atol=1e-12)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_sharing_parameters_is_worth_what_gaussians_say(n_groups):
    # posteriors N(m_g, s_g²) of a N(0, 2²) parameter come from likelihoods that are known up to
    # a factor: precision and mean by subtraction of the prior
    rng = np.random.default_rng(2)
    means, deviations = np.array([0.3, -0.4, 0.9])[:n_groups], np.array([0.5, 0.8, 0.4])[:n_groups]
    draws = [
        (m + s * rng.standard_normal(1500))[None] for m, s in zip(means, deviations, strict=True)
    ]
    grid = np.linspace(-8, 8, 4001)
    prior = stats.norm(0, 2)
    log_joint = sum(stats.norm(m, s).logpdf(grid) for m, s in zip(means, deviations, strict=True))
    log_joint = log_joint - (n_groups - 1) * prior.logpdf(grid)
    expected = np.log(np.trapezoid(np.exp(log_joint), grid))
    found = log_overlap(draws, lambda x: prior.logpdf(x[0]), rng)
    assert abs(found - expected) < 0.06


def test_laws_without_parameters_share_nothing():
    empty = np.zeros((0, 5))
    assert log_overlap([empty, empty], lambda x: 0.0, np.random.default_rng(0)) == 0.0


def tiny_groups():
    """Two groups of four subjects, with common visits."""
    a = [(1, 0, 5, 0), (1, 5, 10, 4), (2, 0, 5, 2), (2, 5, 10, 0), (3, 0, 6, 1), (4, 2, 8, 5)]
    b = [(5, 0, 5, 1), (5, 5, 10, 1), (6, 0, 5, 0), (6, 5, 10, 2), (7, 0, 6, 0), (8, 2, 8, 1)]
    frame = pd.DataFrame(a + b, columns=["subject", "start", "stop", "count"])
    frame["arm"] = np.repeat(["a", "b"], 6)
    return gp4c.PanelCounts.from_frame(frame, window=(0, 10))


def prior_evidence(panel, rate, log_shape, rng, z=None):
    """ln p(panel | gamma frailty of this shape) by draws of curves (and factors) from the prior."""
    laws = LAWS["poisson"], EFFECTS["gamma"]
    cells = observe_cells(panel, None, panel.window, *laws, z, rate)
    task = Task(CountLikelihood(cells, *laws), KERNELS["se"])
    lengths = np.linspace(*LENGTHS, 15)
    logs = []
    for log_length in lengths:
        land = task.landscape(log_length)
        x = rng.standard_normal((land.dimension, 2000))
        x[land.size + 1] = log_shape
        u = rng.normal(*VARIATION, 2000)
        likelihood = land.log_density(x, u) - land.log_prior(x, u)
        logs.append(likelihood + land.log_prior_length + np.log((lengths[1] - lengths[0]) / 2000))
    return logsumexp(np.concatenate(logs))


def test_the_evidences_agree_with_draws_from_the_prior():
    panel = tiny_groups()
    codes = np.repeat([0, 1], 4)
    model = gp4c.GP4C(effect="gamma", bursts=False)
    pooled = model.fit(panel)
    fits = [gp4c.GP4C(effect="gamma", bursts=False).fit(panel[codes == g]) for g in (0, 1)]
    found = weigh_hypotheses(pooled, fits, panel, codes).log_evidence

    rate, rng = pooled.posterior_.rate, np.random.default_rng(4)
    half = FACTOR_DEVIATION / 2
    z = np.where(codes == 0, -half, half)[panel.subject_index][:, None]
    parameter = EFFECTS["gamma"].parameters[0]
    grid = parameter.mean + parameter.deviation * np.linspace(-3, 3, 13)
    prior = parameter.log_density(grid) + np.log(grid[1] - grid[0])
    brute = {
        "same": [prior_evidence(panel, rate, s, rng) for s in grid],
        "factor": [prior_evidence(panel, rate, s, rng, z) for s in grid],
        "curves": [
            sum(prior_evidence(panel[codes == g], rate, s, rng) for g in (0, 1)) for s in grid
        ],
    }
    expected = {name: logsumexp(prior + np.array(values)) for name, values in brute.items()}
    for name, value in expected.items():
        assert abs(found[name] - value) < 0.15, name


def test_the_level_is_judged_around_one_rate():
    panel = gp4c.load_dataset("bladder").where(treatment="thiotepa")
    model = gp4c.GP4C(effect="gamma", bursts=True).fit(panel)
    draws = model.posterior_
    rate = 3.0 * draws.rate
    data = EngineData(panel, None, panel.window, rate=rate)
    again = fit_engine(model, data, [(LAWS["bursts"], EFFECTS["gamma"])])
    shift = np.log(draws.weights @ np.exp(level_ratios(draws, rate)))
    assert_allclose(again.weighted.log_evidence - model.log_evidence_, shift, atol=0.08)
