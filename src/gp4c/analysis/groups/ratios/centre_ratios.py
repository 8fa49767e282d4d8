"""Ratios of groups beside random effects of centres, and how much the centres differ."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gp4c.analysis.groups.group_columns import Column
from gp4c.analysis.groups.ratios.regression_ratios import COLUMNS, pair_contrasts
from gp4c.data.checks import check_choice
from gp4c.estimators.inputs import check_level
from gp4c.estimators.regression.centre_regression import CentreEffects, fit_centres

if TYPE_CHECKING:
    from collections.abc import Callable

    from gp4c.analysis.groups.panel_test import PanelTest
    from gp4c.analysis.groups.ratios.contrast_answers import Pair
    from gp4c.estimators.gp4c import GP4C

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CentreRatios:
    """A regression of groups, covariates and random effects of centres.

    Attributes
    ----------
    column : Column
        The centres.
    fitted : CentreEffects
        Its first coefficients are those of all groups but the first.

    Examples
    --------
    >>> import gp4c
    >>> panel = gp4c.load_dataset("cgd")
    >>> found = gp4c.compare(panel, by="treatment", cluster="centre")  # doctest: +SKIP
    >>> 0 <= found.centres.share <= 1
    True
    """

    column: Column
    fitted: CentreEffects = field(repr=False)

    @property
    def deviation(self) -> float:
        """Standard deviation of ln rate between centres: posterior median."""
        return float(np.median(self.fitted.sigma))

    @property
    def share(self) -> float:
        """Share of the variance of subjects' rates that lies between centres: posterior median."""
        return float(np.median(self.fitted.share))

    def deviation_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Credible interval of :attr:`deviation`."""
        return _interval(self.fitted.sigma, level)

    def share_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Credible interval of :attr:`share`."""
        return _interval(self.fitted.share, level)

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Each centre's rate relative to an average one: columns centre, factor, low, high."""
        from scipy.special import ndtri

        check_level(level)
        reach = ndtri((1 + level) / 2) * self.fitted.deviations
        middle = self.fitted.effects
        ends = {"factor": middle, "low": middle - reach, "high": middle + reach}
        columns = {name: np.exp(values) for name, values in ends.items()}
        return pd.DataFrame({"centre": self.column.levels, **columns})

    def pair_ratios(
        self, groups: Sequence[Hashable], pairs: Sequence[Pair], level: float, errors: str
    ) -> pd.DataFrame:
        """Ratios of rates at equal covariates in the same centre; columns as of an adjusted one."""
        from scipy.special import stdtr, stdtrit

        check_level(level)
        check_choice("errors", errors, ("auto", "robust", "model"))
        is_model, degrees = errors == "model", self.fitted.degrees
        covariance = self.fitted.covariance if is_model else self.fitted.robust_covariance
        words = "model" if is_model else "robust by centre"
        contrasts = pair_contrasts(groups, pairs, len(self.fitted.beta))
        value = contrasts @ self.fitted.beta
        error = np.sqrt(np.einsum("ip,pq,iq->i", contrasts, covariance, contrasts))
        reach = stdtrit(degrees, (1 + level) / 2) * error
        p_values = 2 * stdtr(degrees, -np.abs(value) / error)
        numbers = (np.exp(value), np.exp(value - reach), np.exp(value + reach), p_values)
        words += f", t with {degrees:g} degrees of freedom"
        rows = [(*pair, *each, words) for pair, *each in zip(pairs, *numbers, strict=True)]
        return pd.DataFrame(rows, columns=list(COLUMNS))


def fit_centre_ratios(model: GP4C, tested: PanelTest, say: Callable[[str], None]) -> CentreRatios:
    """Fit groups, the covariates that the test is adjusted for, and effects of centres."""
    groups, panel, cluster = tested.groups, tested.panel, tested.cluster
    assert cluster is not None
    indicators = np.eye(len(groups.levels))[groups.codes][:, 1:]
    rows = (indicators - indicators.mean(axis=0))[panel.subject_index]
    if tested.adjustment is not None:
        rows = np.hstack([rows, tested.adjustment.rows])
    return CentreRatios(cluster, fit_centres(model, panel, rows, cluster.codes, say))


def _interval(draws: Floats, level: float) -> tuple[float, float]:
    check_level(level)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
