r"""Where to sample when hyper-parameters are integrated: lattices of (ln a, u) with random offsets.

The posterior may have one mode at small u, a nearly constant rate, and one at large u; tempered
populations that move u cannot find their shares, because these change places late on the way. So u
and ln a are not moved but summed over,

.. math::
    p(\text{counts}) = \int Z(\ln a, u)\, d\ln a\, du
    \approx \Delta_1 \Delta_2 \sum_{ij} Z(o_1 + i\Delta_1, o_2 + j\Delta_2) ,

each Z from a population of its own. With offsets o drawn evenly the sum is unbiased whatever the
steps, and steps of 1.5 deviations make its error negligible. A coarse lattice of small populations
over the whole range of the priors comes first; it decides on steps and numbers of draws only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: points (n, 2) of (ln a, u) and draws of each → estimates of ln Z
Estimates = Callable[[Floats, Indices], Floats]

#: steps of the first lattice in ln a and u, and draws at each of its points
COARSE, PILOT_DRAWS = (0.6, 0.8), 100
#: steps of the last lattice, in posterior deviations
FINE = 1.5
#: nats below the best beyond which points are left out
DROP = 6.5
#: deviations, in steps, below which the coarse lattice is laid again; how much finer; how often
_RESOLVED, _FINER, _MOST_ROUNDS = 0.6, 2.5, 3
#: fewest draws of a point: 120 take as long, with 0.3 nat of noise for 0.15; and the share of draws
#: that goes by the root of the evidence
LEAST_DRAWS, _EVEN = 400, 0.2


@dataclass(frozen=True)
class Plan:
    """Points to sample at, the draws of each, and ln of the area each stands for."""

    points: Floats
    numbers: Indices
    log_area: float


@dataclass(frozen=True)
class Guide:
    """What the coarse lattice knows: axes (one value where fixed), ln Z on them, deviations."""

    axes: tuple[Floats, Floats]
    log_evidence: Floats
    steps: tuple[float, float]
    spread: tuple[float, float]

    def plan(self, n_draws: int, rng: np.random.Generator) -> Plan:
        """A finer lattice with a random offset, and where its draws go."""
        axes, log_area = [], 0.0
        for axis, step, deviation in zip(self.axes, self.steps, self.spread, strict=True):
            if len(axis) == 1:
                axes.append(axis)
                continue
            fine = min(step, FINE * deviation)
            low, high = axis[0] - step / 2, axis[-1] + step / 2
            axes.append(np.arange(low + fine * rng.random(), high, fine))
            log_area += float(np.log(fine))
        guess = self._interpolated(axes[0], axes[1])
        near = guess > guess.max() - DROP
        rows, columns = np.nonzero(near)
        points = np.stack([axes[0][rows], axes[1][columns]], axis=1)
        share = np.exp(guess[near] - logsumexp(guess[near]))
        root = np.sqrt(share)
        share = (1 - _EVEN) * share + _EVEN * root / root.sum()
        least = LEAST_DRAWS if len(points) > 1 else 0
        numbers = np.maximum(np.ceil(n_draws * share), least).astype(np.intp)
        return Plan(points, numbers, log_area)

    def _interpolated(self, log_lengths: Floats, u: Floats) -> Floats:
        """ln Z between the coarse points, first along u, then along ln a."""
        along = np.array([np.interp(u, self.axes[1], row) for row in self.log_evidence])
        columns = [np.interp(log_lengths, self.axes[0], column) for column in along.T]
        return np.array(columns).T


def find_guide(
    ranges: tuple[tuple[float, float], tuple[float, float]], estimate: Estimates
) -> Guide:
    """Lay coarse lattices over the ranges until they resolve the posterior.

    Parameters
    ----------
    ranges : (low, high) of ln a and of u
        Equal ends for a value that is fixed.
    estimate : callable
        Small populations at the points.
    """
    steps = COARSE
    for attempt in range(_MOST_ROUNDS):
        axes = tuple(_axis(*ends, step) for ends, step in zip(ranges, steps, strict=True))
        points = np.stack([one.ravel() for one in np.meshgrid(*axes, indexing="ij")], axis=1)
        numbers = np.full(len(points), PILOT_DRAWS, dtype=np.intp)
        shape = (len(axes[0]), len(axes[1]))
        found = estimate(points, numbers).reshape(shape)
        weight = np.exp(found - logsumexp(found))
        spread = (_deviation(axes[0], weight.sum(axis=1)), _deviation(axes[1], weight.sum(axis=0)))
        finer = [
            len(axis) > 1 and deviation < _RESOLVED * step
            for axis, deviation, step in zip(axes, spread, steps, strict=True)
        ]
        if not any(finer) or attempt == _MOST_ROUNDS - 1:
            break
        ranges = _narrowed(axes, found, steps)
        steps = tuple(  # type: ignore[assignment]
            step / _FINER if short else step for step, short in zip(steps, finer, strict=True)
        )
    least = tuple(max(d, _RESOLVED / 2 * s) for d, s in zip(spread, steps, strict=True))
    return Guide((axes[0], axes[1]), found, steps, (least[0], least[1]))


def _axis(low: float, high: float, step: float) -> Floats:
    """Centres of cells of this width that cover a range."""
    if high == low:
        return np.array([low])
    n = max(int(np.round((high - low) / step)), 1)
    return low + (np.arange(n) + 0.5) * (high - low) / n


def _deviation(axis: Floats, weight: Floats) -> float:
    mean = weight @ axis
    return float(np.sqrt(weight @ (axis - mean) ** 2))


def _narrowed(
    axes: tuple[Floats, ...], found: Floats, steps: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges that hold all points within `DROP` nats, and a step around them."""
    rows, columns = np.nonzero(found > found.max() - DROP)
    ends = []
    for axis, which, step in zip(axes, (rows, columns), steps, strict=True):
        margin = step if len(axis) > 1 else 0.0
        ends.append((float(axis[which].min()) - margin, float(axis[which].max()) + margin))
    return ends[0], ends[1]
