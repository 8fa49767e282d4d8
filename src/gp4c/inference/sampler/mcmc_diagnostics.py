"""Rank-normalised split R̂ and effective sample size.

Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), "Rank-normalization, folding, and
localization: an improved R̂ for assessing convergence of MCMC". Chains are rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]


def rank_r_hat(chains: Floats) -> float:
    """The larger of R̂ of the ranks and of the folded ranks of split chains (n_chains, n_draws).

    1 for chains that agree in location and in spread, with each other and between their halves;
    not a number for constant chains.
    """
    split = _split(np.asarray(chains, dtype=float))
    folded = np.abs(split - np.median(split))
    return max(_r_hat(_normal_scores(split)), _r_hat(_normal_scores(folded)))


def bulk_ess(chains: Floats) -> float:
    """Effective sample size of the location, from the normal scores of split chains."""
    return _effective_size(_normal_scores(_split(np.asarray(chains, dtype=float))))


def _split(chains: Floats) -> Floats:
    """Each chain as its first and its second half; the middle draw of an odd chain is dropped."""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _normal_scores(chains: Floats) -> Floats:
    """Blom's scores Φ⁻¹((rank − 3/8)/(n + 1/4)) of the pooled ranks, ties averaged."""
    from scipy.stats import rankdata  # loads slowly, and fits without a sampler need none of it

    ranks = rankdata(chains, method="average").reshape(chains.shape)
    return np.asarray(ndtri((ranks - 0.375) / (chains.size + 0.25)))


def _r_hat(chains: Floats) -> float:
    """√(var⁺ / within), var⁺ the pooled estimate of the variance."""
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = n * chains.mean(axis=1).var(ddof=1)
    if within == 0:
        return np.inf if between > 0 else np.nan
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def _autocovariances(chains: Floats) -> Floats:
    """Biased autocovariances at all lags of each chain, by the fast Fourier transform."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    return np.asarray(np.fft.irfft(spectrum, 2 * n, axis=1)[:, :n] / n)


def _effective_size(chains: Floats) -> float:
    """n_chains · n_draws / τ, τ from Geyer's initial monotone sequence of the pooled chains."""
    m, n = chains.shape
    if n < 4 or np.ptp(chains) == 0:
        return np.nan
    covariance = _autocovariances(chains)
    within = covariance[:, 0].mean() * n / (n - 1)
    pooled = within * (n - 1) / n + (chains.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    correlation = 1 - (within - covariance.mean(axis=0) * n / (n - 1)) / pooled
    correlation[0] = 1.0
    pairs = correlation[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    last = int(np.argmax(pairs < 0)) if np.any(pairs < 0) else len(pairs)
    tau = -1 + 2 * np.minimum.accumulate(pairs[:last]).sum()
    # antithetic chains: no more than the paper's bound of m·n·log10(m·n)
    return float(m * n / max(tau, 1 / np.log10(m * n)))
