"""What a fitted model says of the factors of its rate: its trend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.inputs import check_level
from gp4c.estimators.regression.factors.factor_fit import NO_TREND, choice_words
from gp4c.files import kinds
from gp4c.model.modulation import Trend
from gp4c.posterior.draws import weighted_quantiles
from gp4c.posterior.modulated_draws import ModulatedDraws

Floats = NDArray[np.float64]


class TrendEstimate(NamedTuple):
    """The coefficient of a trend: what it is, posterior median, ends of its interval."""

    name: str
    value: float
    low: float
    high: float


class FactorModel(GaussianProcessModel):
    """A rate with factors that change within intervals."""

    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "trend_evidences_": kinds.Sometimes(kinds.dict_of(kinds.ANY_NUMBER)),
    }

    trend: str | None = None
    season: float | str | None = None
    trend_evidences_: dict[str, float]

    # -- trend ----------------------------------------------------------------------------------

    @property
    def trend_(self) -> str | None:
        """The trend in words, with a 95% interval; None if none was asked for."""
        self._check_fitted()
        if self.trend is None:
            return None
        found, known = self._trend_part(), self.trend_evidences_
        why = choice_words(known, NO_TREND if found is None else found[0].name)
        return (self.trend_words(0.95) or "no trend") + (f"; {why}" if why else "")

    def trend_words(self, level: float) -> str:
        """A sentence about the trend; empty without one."""
        found = self._trend_part()
        if found is None:
            return ""
        return found[0].words(self._trend_ends(level), self.time_unit_, level)

    def trend_estimate(self, level: float = 0.95) -> TrendEstimate:
        """The coefficient of the trend with its credible interval.

        Of a log-linear trend the growth of the log rate per unit of time, of a power trend the
        exponent b with which the mean number of events grows, t^b.
        """
        check_level(level)
        self._check_fitted()
        found = self._trend_part()
        if found is None:
            raise ValueError("this fit has no trend: trend='loglinear', 'power' or 'auto' fits one")
        value, low, high = self._trend_ends(level)
        return TrendEstimate(found[0].symbol, float(value), float(low), float(high))

    def curve_parameters(self, level: float) -> list[tuple[str, str, float, float, float]]:
        """The coefficient of the trend, for summaries."""
        found = self._trend_part()
        if found is None:
            return []
        estimate = self.trend_estimate(level)
        return [(found[0].title, self.trend_ or "", *estimate[1:])]

    def factor_numbers(self) -> dict[str, object]:
        """Estimates of the factors by name, for programs."""
        return {"trend": self.trend_estimate()._asdict() if self.has_trend else None}

    def _trend_ends(self, level: float) -> Floats:
        """Median of the coefficient and ends of its interval."""
        found, posterior = self._trend_part(), self._posterior()
        assert found is not None
        assert isinstance(posterior, ModulatedDraws)
        part, w = found
        return _median_and_ends(part.coefficients(w), posterior.weights, level)

    @property
    def has_trend(self) -> bool:
        """Whether the fitted rate has a trend that goes on outside the window."""
        return self._trend_part() is not None

    def _trend_part(self) -> tuple[Trend, Floats] | None:
        """The trend and the draws of its coefficient."""
        posterior = self._posterior()
        if not isinstance(posterior, ModulatedDraws):
            return None
        for part in posterior.modulation.parts:
            if isinstance(part, Trend):
                return part, posterior.modulating[posterior.modulation.rows(part)][0]
        return None


def _median_and_ends(values: Floats, weights: Floats, level: float) -> Floats:
    """Median and ends of an interval with equal tails."""
    levels = np.array([0.5, (1 - level) / 2, (1 + level) / 2])
    return np.asarray(weighted_quantiles(values[None], weights, levels)[:, 0])
