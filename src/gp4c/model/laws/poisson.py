"""Events that come one by one, independently: the Poisson law."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gp4c.model.laws.count_law import CountLaw

Floats = NDArray[np.float64]


class Poisson(CountLaw):
    """ln p = m ln(υ r) − υ r − ln m!: the power is the count, and nothing remains."""

    name = "poisson"
    title = "events come one by one"
    method = "Events come one by one: given the rate, counts are Poisson."
    noun = "single events"
    one_by_one = True

    def power(self, count: Floats) -> Floats:
        """n = m."""
        return count

    def draw(self, mean: Floats, theta: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
        """Poisson counts."""
        return np.asarray(rng.poisson(mean))

    def cdf(self, count: Floats, mean: Floats, theta: Floats) -> Floats:
        """The regularised incomplete gamma function."""
        from scipy.special import gammaincc

        value = gammaincc(np.maximum(count, 0.0) + 1.0, np.maximum(mean, 0.0))
        return np.asarray(np.where(count < 0, 0.0, value))
