"""How the curves of two groups differ, from the draws of both."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.analysis.groups.group_draws import GroupDraws, has_medians
from gp4c.analysis.groups.ratios.contrast_answers import (
    Asked,
    ContrastAnswers,
    Pair,
    difference,
    group_curves,
    ratio,
)

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.analysis.groups.hypotheses import Hypotheses
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import Numbers
    from gp4c.estimators.gp_base import GaussianProcessModel

Floats = NDArray[np.float64]


class PairContrasts:
    """Ratios and differences of the curves of pairs of groups, with bands and probabilities.

    Attributes are those of :class:`gp4c.analysis.comparison.Comparison`.
    """

    panel: PanelCounts
    groups: list[Hashable]
    models: dict[Hashable, GaussianProcessModel]
    pooled: GaussianProcessModel | None
    hypotheses: Hypotheses | None
    random_state: int

    def ratio(
        self,
        t: ArrayLike,
        *,
        curve: str = "rate",
        pair: Pair | None = None,
        under: str = "curves",
        at: str = "standardised",
    ) -> Numbers:
        """Posterior median of the ratio of curves at times t.

        Parameters
        ----------
        t : float or array
        curve : {"rate", "cumulative"}
        pair : (first, second)
        under : {"curves", "factor", "same", "average"}
            A curve for each group; one shape at different levels; one curve, whose ratio is 1; or
            the three averaged with their probabilities.
        at : {"standardised", "average"}
            In a comparison with a formula: curves averaged over the covariates of all subjects, or
            curves of a subject with average covariates.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> 0.2 < found.ratio(24.0, curve="cumulative") < 2
        True
        """
        asked = self._asked(ratio, curve, pair, under, at)
        return self._answers.summary(t, asked, lambda x: np.asarray(np.median(x, axis=0)))

    def difference(
        self,
        t: ArrayLike,
        *,
        curve: str = "rate",
        pair: Pair | None = None,
        under: str = "curves",
        at: str = "standardised",
    ) -> Numbers:
        """Posterior mean of the difference of curves at times t; see :meth:`ratio`.

        It is the median where a standardised curve is one (:meth:`standardised`).

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> found.difference([12.0, 24.0]).shape
        (2,)
        """
        asked = self._asked(difference, curve, pair, under, at)
        medians = any(has_medians(self.models[group], at) for group in asked.pair)
        middle = np.median if medians else np.mean
        return self._answers.summary(t, asked, lambda x: np.asarray(middle(x, axis=0)))

    def ratio_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        curve: str = "rate",
        pair: Pair | None = None,
        under: str = "curves",
        at: str = "standardised",
    ) -> tuple[Numbers, Numbers]:
        """Credible band of the ratio: (low, high), each shaped like `t`.

        Parameters
        ----------
        level : float in (0, 1)
        kind : {"pointwise", "simultaneous"}
            Probability at each time; or of the whole curve over the window.
        curve, pair, under, at
            As in :meth:`ratio`.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> low, high = found.ratio_band(24.0, 0.9, curve="cumulative")
        >>> low < found.ratio(24.0, curve="cumulative") < high
        True
        """
        return self._answers.band(t, level, kind, self._asked(ratio, curve, pair, under, at))

    def difference_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        curve: str = "rate",
        pair: Pair | None = None,
        under: str = "curves",
        at: str = "standardised",
    ) -> tuple[Numbers, Numbers]:
        """Credible band of the difference; see :meth:`ratio_band`.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> low, high = found.difference_band(24.0)
        >>> low < high
        True
        """
        return self._answers.band(t, level, kind, self._asked(difference, curve, pair, under, at))

    def probability(
        self,
        t: ArrayLike,
        *,
        curve: str = "rate",
        pair: Pair | None = None,
        under: str = "curves",
        at: str = "standardised",
    ) -> Numbers:
        """Posterior probability that the second group's curve lies below the first's at t.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> 0 <= found.probability(24.0, curve="cumulative") <= 1
        True
        """
        asked = self._asked(difference, curve, pair, under, at)
        return self._answers.summary(t, asked, lambda x: np.asarray((x < 0).mean(axis=0)))

    def standardised(self, t: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """Curves of the groups, averaged over the covariates of all subjects, with their bands.

        They say how many events everybody would have on average in this group. Without a formula
        they are the curves of the groups as they are. Curves are posterior means; or medians (a
        note says so) where a group leaves the effect of a covariate so open that a few extreme
        draws would make the mean.

        Returns
        -------
        DataFrame
            Columns: group, time, rate, rate_low, rate_high, cumulative, cumulative_low,
            cumulative_high; bands are pointwise.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> found.standardised([12.0, 24.0]).shape
        (4, 8)
        """
        return group_curves(self.models, t, level, "standardised")

    def at_average(self, t: ArrayLike, level: float = 0.95) -> pd.DataFrame:
        """Curves of the groups for a subject with average covariates; see :meth:`standardised`.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> list(found.at_average(24.0)["group"])
        ['placebo', 'thiotepa']
        """
        return group_curves(self.models, t, level, "average")

    # -- draws ------------------------------------------------------------------------------

    def _places(self, pair: Pair | None) -> tuple[int, int]:
        first, second = self._pair(pair)
        return self.groups.index(first), self.groups.index(second)

    def _pair(self, pair: Pair | None) -> Pair:
        if pair is None:
            if len(self.groups) > 2:
                raise ValueError(
                    f"say which of the {len(self.groups)} groups: pair=(first, second)"
                )
            return self.groups[0], self.groups[1]
        a, b = pair
        for name in (a, b):
            if name not in self.groups:
                raise ValueError(f"there is no group {name!r}; there are {self.groups}")
        return a, b

    @cached_property
    def _draws(self) -> GroupDraws:
        return GroupDraws(
            self.groups, self.models, self.pooled, self.hypotheses, self.panel.window[0],
            self.random_state,
        )  # fmt: skip

    @property
    def _answers(self) -> ContrastAnswers:
        return ContrastAnswers(self._draws, self.panel.window)

    def _asked(
        self,
        how: Callable[[Floats, Floats], Floats],
        curve: str,
        pair: Pair | None,
        under: str,
        at: str,
    ) -> Asked:
        return Asked(how, curve, self._pair(pair), under, at)
