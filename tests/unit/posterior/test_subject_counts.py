"""Counts of subjects under every law: against brute-force sums over the effect."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import gammaln

import gp4c
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.subject_counts import SubjectCounts

#: nodes of the effect's integral leave this much, in nats per subject
QUADRATURE = {"atol": 2e-3, "rtol": 0}
COMBINATIONS = [(law, effect) for law in ("poisson", "bursts") for effect in (None, "gamma")]


@pytest.fixture(scope="module")
def panel():
    return gp4c.load_dataset("bladder").where(treatment="thiotepa")[:12]


def given_effect(panel, law, rate, phi, effect):
    """ln p of each row, Σ ln m! left out, at an effect."""
    mean = effect * rate * panel.exposure * (panel.stop - panel.start)
    m = panel.count
    if law == "poisson":
        each = stats.poisson.logpmf(m, mean)
    else:
        each = stats.nbinom.logpmf(m, mean / phi, 1 / (1 + phi))
    return np.bincount(panel.subject_index, each + gammaln(m + 1), panel.n_subjects)


def brute(panel, law, effect, rate, alpha, phi):
    """ln p of each subject and E υ, by a fine sum over ln υ."""
    if effect is None:
        return given_effect(panel, law, rate, phi, 1.0), np.ones(panel.n_subjects)
    y = np.linspace(-40, 5, 3001)
    each = np.array([given_effect(panel, law, rate, phi, v) for v in np.exp(y)])
    each = each + (alpha * np.log(alpha) - gammaln(alpha) + alpha * (y - np.exp(y)))[:, None]
    top = each.max(axis=0)
    weight = np.exp(each - top)
    mass = np.trapezoid(weight, y, axis=0)
    mean = np.trapezoid(weight * np.exp(y)[:, None], y, axis=0) / mass
    return top + np.log(mass), mean


@pytest.mark.parametrize(("law", "effect"), COMBINATIONS)
def test_log_likelihoods_and_means_agree_with_brute_force(panel, law, effect):
    counts = SubjectCounts.of(panel, LAWS[law], EFFECTS[effect])
    rate, alpha, phi = np.array([0.05, 0.2]), 0.7, 2.3
    integrals = np.outer(counts.stop - counts.start, rate)
    params = [np.log(alpha)] * (effect is not None) + [np.log(phi)] * (law == "bursts")
    params = np.repeat(np.array(params).reshape(-1, 1), 2, axis=1)
    ours = counts.log_likelihoods(integrals, params)
    means = counts.effect_means(integrals, params)
    for s in range(2):
        value, mean = brute(panel, law, effect, rate[s], alpha, phi)
        assert_allclose(ours[:, s], value, **QUADRATURE)
        assert_allclose(means[:, s], mean, rtol=2e-3)


def test_draws_of_effects_follow_their_law(panel):
    counts = SubjectCounts.of(panel, LAWS["bursts"], EFFECTS["gamma"])
    integrals = np.repeat(0.1 * (counts.stop - counts.start)[:, None], 20_000, axis=1)
    params = np.repeat(np.log([[0.7], [2.3]]), 20_000, axis=1)
    draws = counts.effect_draws(integrals, params, np.random.default_rng(0))
    _, mean = brute(panel, "bursts", "gamma", 0.1, 0.7, 2.3)
    errors = draws.std(axis=1) / np.sqrt(20_000)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 4.5 * errors + 2e-3 * mean)


def test_several_draws_of_one_law_follow_it_and_stand_together(panel):
    counts = SubjectCounts.of(panel, LAWS["bursts"], EFFECTS["gamma"])
    rate = np.array([0.1, 0.4])
    integrals = np.outer(counts.stop - counts.start, rate)
    params = np.repeat(np.log([[0.7], [2.3]]), 2, axis=1)
    draws = counts.effect_draws(integrals, params, np.random.default_rng(0), times=20_000)
    for s, part in enumerate(np.split(draws, 2, axis=1)):
        _, mean = brute(panel, "bursts", "gamma", rate[s], 0.7, 2.3)
        errors = part.std(axis=1) / np.sqrt(20_000)
        assert np.all(np.abs(part.mean(axis=1) - mean) < 4.5 * errors + 2e-3 * mean)


def test_covariates_multiply_the_rate(panel):
    law, effect = LAWS["bursts"], EFFECTS["gamma"]
    z = np.linspace(-1, 1, panel.n_subjects)[panel.subject_index][:, None]
    beta = np.array([[0.4]])
    params = np.log([[0.9], [1.4]])
    with_z = SubjectCounts.of(panel, law, effect, z)
    integrals = 0.1 * (with_z.stop - with_z.start)[:, None]
    scaled = panel._like(exposure=panel.exposure * np.exp(0.4 * z[:, 0]))
    without = SubjectCounts.of(scaled, law, effect)
    assert_allclose(
        with_z.log_likelihoods(integrals, params, beta),
        without.log_likelihoods(0.1 * (without.stop - without.start)[:, None], params),
        rtol=1e-12,
    )


def test_histories_tell_of_effects_what_rows_do(panel):
    law, effect = LAWS["bursts"], EFFECTS["gamma"]
    from gp4c.data.subject_histories import SubjectHistories

    rows, known = SubjectCounts.of(panel, law, effect), SubjectHistories.of(panel)
    kept = SubjectCounts.of_histories(known.take(np.array([5, 2])), law, effect)
    params = np.log([[0.9], [1.4]])
    both = [0.1 * (c.stop - c.start)[:, None] for c in (rows, kept)]
    assert_allclose(
        kept.effect_means(both[1], params), rows.effect_means(both[0], params)[[5, 2]], rtol=1e-12
    )


def test_subjects_without_events_have_a_likelihood():
    """No count at all: nothing to sum over, and the integral over the effect remains."""
    frame = {
        "subject": [1, 1, 2],
        "start": [0.0, 2.0, 0.0],
        "stop": [2.0, 5.0, 4.0],
        "count": [0] * 3,
    }
    panel = gp4c.PanelCounts.from_frame(frame)
    counts = SubjectCounts.of(panel, LAWS["bursts"], EFFECTS["gamma"])
    alpha, phi, expected = 0.7, 2.3, 0.3 * np.array([5.0, 4.0])
    params = np.log([[alpha], [phi]])
    ours = counts.log_likelihoods(0.3 * (counts.stop - counts.start)[:, None], params)[:, 0]
    hazard = np.log1p(phi) / phi
    assert_allclose(ours, -alpha * np.log1p(hazard * expected / alpha), rtol=1e-9)
