r"""The law of the weights of new subjects: a discrete one, fitted to subjects that were seen.

A new subject's weights are unknown. They are averaged over a law with masses π on the weights that
were fitted, chosen so that the seen subjects' own counts d_k are as likely as can be,

.. math:: \max_\pi \sum_k \ln \sum_a \pi_a \, p(d_k \mid w_a) ,

which EM climbs: the nonparametric maximum-likelihood law of Kiefer and Wolfowitz (1956) on these
points. It puts its mass on few of them; the others are dropped (docs/maths_mixture.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]

#: most updates, and the gain in nats per subject below which they end
_UPDATES, _GAIN = 2000, 1e-7
#: masses below this are dropped
_SMALLEST_MASS = 1e-5


@dataclass(frozen=True)
class WeightLaw:
    """Weights (A, L) that a new subject may have, and their probabilities (A,)."""

    weights: Floats
    masses: Floats

    @classmethod
    def fitted(cls, weights: Floats, log_likelihoods: Floats) -> WeightLaw:
        """Find the masses.

        Parameters
        ----------
        weights : (A, L)
            The points of the law.
        log_likelihoods : (A, K)
            ln p(counts of subject k | weights a).
        """
        masses = np.full(len(weights), 1.0 / len(weights))
        top = log_likelihoods.max(axis=0)
        likelihoods, value = np.exp(log_likelihoods - top), -np.inf
        for _ in range(_UPDATES):
            whole = masses @ likelihoods
            masses = masses * (likelihoods / whole).mean(axis=1)
            now = float(np.log(whole).mean())
            if now - value < _GAIN:
                break
            value = now
        kept = masses > _SMALLEST_MASS
        return cls(weights[kept], masses[kept] / masses[kept].sum())

    @property
    def mean(self) -> Floats:
        """Mean weights, (L,)."""
        return np.asarray(self.masses @ self.weights)

    def mixed(self, log_likelihoods: Floats) -> Floats:
        """ln Σ_a π_a p(d_k | w_a) for log likelihoods (..., A, K)."""
        logs = log_likelihoods + np.log(self.masses)[:, None]
        return np.asarray(logsumexp(logs, axis=-2))

    def given(self, log_likelihoods: Floats) -> Floats:
        """Probabilities of the weights of each subject given its counts, (A, K)."""
        logs = log_likelihoods + np.log(self.masses)[:, None]
        return np.asarray(np.exp(logs - logsumexp(logs, axis=0)))
