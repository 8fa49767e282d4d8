"""R̂ and effective sample sizes against known chains, plain loops, and ArviZ where installed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from gp4c.inference.sampler.mcmc_diagnostics import _effective_size, bulk_ess, rank_r_hat


def autoregressive(rho, n_chains, n_draws, rng):
    noise = rng.standard_normal((n_chains, n_draws))
    chains = np.empty_like(noise)
    chains[:, 0] = noise[:, 0]
    for t in range(1, n_draws):
        chains[:, t] = rho * chains[:, t - 1] + np.sqrt(1 - rho**2) * noise[:, t]
    return chains


def r_hat_by_loops(chains):
    """The definition, for chains whose ranks were normalised by hand."""
    halves = []
    for chain in chains:
        half = len(chain) // 2
        halves += [list(chain[:half]), list(chain[len(chain) - half :])]
    pooled = sorted(x for half in halves for x in half)
    size = len(pooled)
    scores = [
        [norm.ppf((pooled.index(x) + 1 - 3 / 8) / (size + 1 / 4)) for x in half] for half in halves
    ]
    n = len(scores[0])
    means = [sum(s) / n for s in scores]
    within = sum(sum((x - m) ** 2 for x in s) / (n - 1) for s, m in zip(scores, means, strict=True))
    within /= len(scores)
    grand = sum(means) / len(means)
    between = sum((m - grand) ** 2 for m in means) / (len(means) - 1)
    return np.sqrt(((n - 1) / n * within + between) / within)


def test_independent_draws_pass():
    chains = np.random.default_rng(1).standard_normal((4, 2000))
    assert 0.999 < rank_r_hat(chains) < 1.005
    assert_allclose(bulk_ess(chains), 8000, rtol=0.12)


@pytest.mark.parametrize("rho", [0.3, 0.9])
def test_autoregressive_chains_lose_the_known_share(rho):
    # τ = (1 + ρ)/(1 − ρ); its estimate from 8 × 20,000 draws has a relative error of about 3%
    chains = autoregressive(rho, 8, 20_000, np.random.default_rng(2))
    assert_allclose(bulk_ess(chains), chains.size * (1 - rho) / (1 + rho), rtol=0.12)


def test_antithetic_chains_gain():
    chains = autoregressive(-0.5, 4, 5000, np.random.default_rng(3))
    assert_allclose(bulk_ess(chains), 3 * chains.size, rtol=0.12)


def test_r_hat_is_its_definition():
    chains = np.random.default_rng(4).standard_normal((3, 11)) + np.array([[0.0], [0.4], [2.0]])
    expected = r_hat_by_loops(chains)
    halves = np.concatenate([chains[:, :5], chains[:, -5:]])
    folded = np.abs(halves - np.median(halves))
    # interleaving the halves again lets the same loops fold
    refolded = np.concatenate([folded[:3], folded[3:]], axis=1)
    assert_allclose(rank_r_hat(chains), max(expected, r_hat_by_loops(refolded)), rtol=1e-12)


def test_a_shifted_chain_is_seen():
    chains = np.random.default_rng(5).standard_normal((4, 500))
    chains[0] += 2
    assert rank_r_hat(chains) > 1.2
    assert bulk_ess(chains) < 100


def test_a_chain_of_another_spread_is_seen():
    chains = np.random.default_rng(6).standard_normal((4, 500))
    chains[0] *= 5
    assert rank_r_hat(chains) > 1.05


def test_a_drift_within_chains_is_seen():
    chains = np.random.default_rng(7).standard_normal((4, 500)) + np.linspace(0, 3, 500)
    assert rank_r_hat(chains) > 1.2


def test_ranks_do_not_see_increasing_transformations():
    chains = autoregressive(0.5, 4, 400, np.random.default_rng(8))
    assert_allclose(bulk_ess(np.exp(5 * chains)), bulk_ess(chains), rtol=1e-12)


def test_constant_chains_have_no_diagnosis():
    chains = np.ones((4, 100))
    assert np.isnan(bulk_ess(chains))
    assert np.isnan(rank_r_hat(chains))


def test_chains_stuck_at_different_values_disagree_without_limit():
    # up to rounding of their variance
    assert rank_r_hat(np.repeat([[0.0], [1.0], [1.0], [0.0]], 100, axis=1)) > 1e6


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_arviz_agrees(rho):
    arviz = pytest.importorskip("arviz")
    chains = autoregressive(rho, 4, 1000, np.random.default_rng(9))
    assert_allclose(rank_r_hat(chains), arviz.rhat(chains), rtol=1e-6)
    assert_allclose(bulk_ess(chains), arviz.ess(chains, method="bulk"), rtol=0.02)


def test_four_draws_are_the_fewest_with_a_size(rng):
    for n, known in ((3, False), (4, True), (5, True)):
        assert np.isfinite(_effective_size(rng.normal(size=(4, n)))) == known
