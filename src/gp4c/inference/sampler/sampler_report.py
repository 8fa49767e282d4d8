"""How far the sampler's draws may be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class SamplerReport:
    """How far the draws may be trusted.

    Attributes
    ----------
    log_evidence, log_evidence_error : float
        ln p(counts), Σ ln m! left out, and its Monte-Carlo standard error from the spread of
        independent populations (not a number for one).
    run_log_evidences : (n_chains,)
        One estimate each.
    names : (P,)
        λ at five times, Λ, the log-likelihood and the free hyper-parameters.
    r_hat, ess : (P,)
        Rank-normalised split R̂ between populations, and effective sample size, of each.
    acceptance : float
        Accepted share of all slice proposals.
    n_steps : (n_chains,)
        Steps from the prior to the posterior.
    unexplained : float
        Largest share of the prior variance that the inducing inputs leave out.
    """

    log_evidence: float
    log_evidence_error: float
    run_log_evidences: Floats
    names: tuple[str, ...]
    r_hat: Floats
    ess: Floats
    acceptance: float
    n_steps: Indices
    unexplained: float

    @property
    def curve_r_hat(self) -> float:
        """Largest R̂ of the curve: of λ and Λ."""
        return float(np.max(np.nan_to_num(self.r_hat[self._curve()], nan=1.0)))

    @property
    def curve_ess(self) -> float:
        """Smallest effective sample size of the curve."""
        return float(np.min(self.ess[self._curve()]))

    def _curve(self) -> list[bool]:
        return [name.startswith(("λ", "Λ")) for name in self.names]
