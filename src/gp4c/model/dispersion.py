"""Whether subjects' totals vary more than Poisson counts would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: dispersion from which intervals that assume Poisson counts are a fifth too short (√1.5), and
#: standard errors from 1 at which chance is no explanation
BAD_RATIO, BAD_DEVIATION = 1.5, 3.0


@dataclass(frozen=True)
class Dispersion:
    """Variance of subjects' totals relative to Poisson counts.

    Attributes
    ----------
    ratio : float
        Σ (m − R)² / Σ R over subjects with totals m and expected totals R; about 1 for Poisson
        counts.
    deviation : float
        Its distance from 1 in standard errors under Poisson counts.
    """

    ratio: float
    deviation: float

    @property
    def is_bad(self) -> bool:
        """Whether intervals that assume Poisson counts mislead."""
        return self.ratio > BAD_RATIO and self.deviation > BAD_DEVIATION


def poisson_dispersion(totals: Floats, expected: Floats) -> Dispersion:
    """Compare the totals of subjects with their expected totals.

    Under Poisson counts (m − R)² has mean R and variance R + 2R².
    """
    size = float(expected.sum())
    excess = float(((totals - expected) ** 2 - expected).sum())
    spread = float(np.sqrt((expected + 2 * expected**2).sum()))
    if size <= 0.0:
        return Dispersion(1.0, 0.0)
    return Dispersion(1.0 + excess / size, excess / spread)
