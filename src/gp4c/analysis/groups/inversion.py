r"""An interval for a ratio by inverting the permutation test.

The hypothesis "the rate of group g is e^{δ x_g} times a common one" is tested like that of one
curve: exposures of the groups are multiplied by e^{δ x_g}, and the scores follow. The interval has
the δ whose p-value is above α. At δ = 0 it is the test itself, with the same permutations: p ≤ α if
and only if the interval leaves out the ratio 1. At other δ subjects are not exchangeable but for
their means, and the studentised statistic keeps the level approximately. There its variance is not
taken for smaller than that of Poisson counts, and the p-value not for smaller than that of a χ²
variable with one degree of freedom: a group without events has no scatter of its own. With many
subjects that law stands for permutations at δ ≠ 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.groups.bin_scores import SubjectScores, subject_scores
from gp4c.analysis.groups.contrasts import score_moments, score_statistics, taken_out
from gp4c.analysis.permutation import permutation_test

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: log ratios beyond these count as 0 and infinity; accuracy of an end; first step of the search
_FARTHEST, _ACCURACY, _STEP = 12.0, 1e-3, 0.5
#: subjects times permutations beyond which only δ = 0 is permuted
_MOST_LABELS = 5_000_000


@dataclass(frozen=True)
class ShiftedTest:
    """The test of a log ratio δ on the rows of a panel.

    Attributes
    ----------
    rows : tuple
        Start, stop, count, exposure and subject of the rows.
    groups, strata, blocks : (K,)
    direction : (G,)
        x of each group; (0, 1) for the ratio of two groups.
    when : {"even", "early", "late"}
    is_trend : bool
        Whether the statistic looks in this direction alone.
    z : (N, p), optional
        Covariates of the rows; their effects are estimated anew at each δ.
    """

    rows: tuple[Floats, Floats, Floats, Floats, Indices]
    groups: Indices
    strata: Indices
    blocks: Indices | None
    direction: Floats
    when: str = "even"
    is_trend: bool = False
    n_permutations: int = 9999
    seed: int = 0
    z: Floats | None = None

    def p_value(self, delta: float, enough: float = 1.0) -> float:
        """The p-value of the log ratio δ; where the law says more than `enough`, what it says."""
        along = self.is_trend or delta != 0  # the same statistic for two groups
        scores, from_law = self._scores(delta), 0.0
        if delta != 0:
            from scipy.special import chdtrc

            from_law = float(chdtrc(1, self._statistic(scores)))
            if from_law > enough or len(self.groups) * self.n_permutations > _MOST_LABELS:
                return from_law
        found = permutation_test(
            scores, self.groups, kind="trend" if along else "level",
            weights=self.when, trend=self.direction, blocks=self.blocks,
            at_least_poisson=delta != 0, n_permutations=self.n_permutations,
            rng=np.random.default_rng(self.seed),
        )  # fmt: skip
        return max(found.p_value, from_law)

    def score(self, delta: float) -> float:
        """xᵀU at δ: positive where δ is too small."""
        at = self._scores(delta)
        weights = at.time_weights(self.when)
        total, _ = score_moments(
            at.residual, at.exposure, weights, at.strata, self.groups[None], len(self.direction),
            taken_out(at, weights),
        )  # fmt: skip
        return float(total[0] @ (self.direction[:-1] - self.direction[-1]))

    def _statistic(self, at: SubjectScores) -> float:
        weights = at.time_weights(self.when)
        found = score_statistics(
            at.residual, at.exposure, weights, at.strata, self.groups[None], len(self.direction),
            self.direction, at.poisson, taken_out(at, weights),
        )  # fmt: skip
        return abs(float(found[0]))

    def estimate(self) -> float:
        """The δ at which the score is zero; ±∞ where no δ is large enough, NaN without events."""
        if not self.rows[2].any():
            return float("nan")
        low, high = -_FARTHEST / self._unit, _FARTHEST / self._unit
        if self.score(low) <= 0:
            return -np.inf
        if self.score(high) >= 0:
            return np.inf
        from scipy.optimize import brentq

        return float(brentq(self.score, low, high, xtol=1e-6 / self._unit))

    def interval(self, level: float) -> tuple[float, float]:
        """Ends of the δ that are not rejected at 1 − level."""
        alpha = (1.0 - level) * (1 + 1e-9)
        if not self.rows[2].any():
            return -np.inf, np.inf
        centre = float(np.clip(self.estimate(), -_FARTHEST / self._unit, _FARTHEST / self._unit))

        def kept(delta: float) -> bool:
            return self.p_value(delta, enough=alpha) > alpha

        unit = 1.0 / self._unit
        return _end(kept, centre, -1.0, unit), _end(kept, centre, 1.0, unit)

    @property
    def _unit(self) -> float:
        return float(np.ptp(self.direction))

    def _scores(self, delta: float) -> SubjectScores:
        start, stop, count, exposure, subject = self.rows
        factor = np.exp(delta * (self.direction - self.direction[0]))[self.groups]
        return subject_scores(
            start, stop, count, exposure * factor[subject], subject, len(self.groups), self.strata,
            self.z,
        )  # fmt: skip


def _end(kept: Callable[[float], bool], centre: float, sign: float, unit: float) -> float:
    """The last δ that is kept on one side of the centre.

    Zero is asked first, so that the end lies on the side of zero that the test itself says.
    """
    inside, outside = centre, None
    if sign * (0.0 - centre) > 0:
        if kept(0.0):
            inside = 0.0
        else:
            outside = 0.0
    step = _STEP * unit
    while outside is None:
        beyond = inside + sign * step
        if abs(beyond) > _FARTHEST * unit:
            return float(sign * np.inf)
        if kept(beyond):
            inside, step = beyond, 2 * step
        else:
            outside = beyond
    while abs(outside - inside) > _ACCURACY * unit:
        middle = (inside + outside) / 2
        if kept(middle):
            inside = middle
        else:
            outside = middle
    return inside
