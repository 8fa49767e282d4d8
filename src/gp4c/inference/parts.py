"""Parts of the posterior mixture: an optimum, its share, and the spread of its level.

The level l = ln(g² + γ) is always known to the data, so that it is put at its conditional mode and
its spread is added to the covariance of q (docs/maths.md, section 10).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.coordinates import Coordinates
from gp4c.inference.curvature import expected_curvature
from gp4c.inference.hyper import Optimum
from gp4c.inference.level import ALL_DRAWS, LEAST_DRAWS, with_level
from gp4c.inference.response import frailty_response
from gp4c.inference.variational import Gaussian

Floats = NDArray[np.float64]

#: least curvature of the log density in the level, about that of its prior
LEVEL_CURVATURE = 1.0


@dataclass(frozen=True)
class Weighted:
    """An optimum over q, its share of the posterior, and the standard deviation of its level."""

    optimum: Optimum
    weight: float
    deviation: float = 0.0

    def gaussian(self, n_draws: int, seed: int) -> Gaussian:
        """q with the uncertainty of frailties and of the level, the latter by so many draws."""
        q = with_level(self.optimum, frailty_response(self.optimum), n_draws, seed)
        if self.deviation == 0:
            return q
        return q.widened(self.deviation * level_shift(self.optimum, q))


def gaussians(parts: list[Weighted]) -> list[Gaussian]:
    """q of every part; they share the draws for the law of their levels.

    In proportion to their weights: the error of Σ w_k x_k is then least for so many draws.
    """
    shares = [max(int(ALL_DRAWS * part.weight), LEAST_DRAWS) for part in parts]
    return [
        part.gaussian(n, seed) for seed, (part, n) in enumerate(zip(parts, shares, strict=True))
    ]


def level_shift(at: Optimum, q: Gaussian) -> Floats:
    """Change of v that moves f as its posterior mean moves when l rises, per unit of l.

    At fixed s a rise of l scales the prior of f; the posterior follows by S(m + g L⁻¹1/2√γ).
    """
    prior, hyper = at.work.prior, at.hyper
    constant = prior.inverse_factor.sum(axis=1) * hyper.mean / (2 * np.sqrt(hyper.variance))
    return np.asarray(q.covariance @ (q.mean + constant))


def level_curvature(at: Optimum, q: Gaussian) -> float:
    """Curvature of the log density in the level."""
    _, up = Coordinates(at.hyper, True).direction(at.hyper)
    return max(float(up @ expected_curvature(at.work, at.hyper, q) @ up), LEVEL_CURVATURE)


def level_deviation(at: Optimum) -> float:
    """Standard deviation of the level l at an optimum."""
    return float(level_curvature(at, frailty_response(at)) ** -0.5)
