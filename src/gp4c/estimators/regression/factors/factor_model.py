"""What a fitted model says of the factors of its rate: its trend, its season."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.inputs import check_level
from gp4c.estimators.regression.factors.calendar import own_phases, phase_at
from gp4c.estimators.regression.factors.factor_fit import NO_TREND, choice_words
from gp4c.files import kinds
from gp4c.model.modulation import Season, Trend
from gp4c.model.modulation.seasons import parts_of
from gp4c.posterior.draws import weighted_quantiles
from gp4c.posterior.modulated_draws import ModulatedDraws

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import Numbers

Floats = NDArray[np.float64]

#: phases of a cycle at which its largest and smallest factor are sought
_PHASES = 72


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
        """The coefficient of the trend and the size of the season, for summaries."""
        found, rows = self._trend_part(), []
        if found is not None:
            rows.append((found[0].title, self.trend_ or "", *self.trend_estimate(level)[1:]))
        if self._season_part() is not None:
            value, low, high = map(float, self._season_size(level))
            words = f"the highest rate of the cycle over the lowest; {self.season_}"
            rows.append(("season", words, value, low, high))
        return rows

    def _season_size(self, level: float) -> Floats:
        """Largest over smallest factor of the cycle: median and ends of its interval."""
        part, w = self._season()
        logs = part.at_phase(np.arange(_PHASES) / _PHASES) @ w
        size = np.exp(logs.max(axis=0) - logs.min(axis=0))
        posterior = self._posterior()
        assert isinstance(posterior, ModulatedDraws)
        return _median_and_ends(size, posterior.weights, level)

    def factor_numbers(self) -> dict[str, object]:
        """Estimates of the factors by name, for programs."""
        season = None
        if self._season_part() is not None:
            season = self.season_table().to_dict(orient="records")
        return {
            "trend": self.trend_estimate()._asdict() if self.has_trend else None, "season": season
        }  # fmt: skip

    def _trend_ends(self, level: float) -> Floats:
        """Median of the coefficient and ends of its interval."""
        found, posterior = self._trend_part(), self._posterior()
        assert found is not None
        assert isinstance(posterior, ModulatedDraws)
        part, w = found
        return _median_and_ends(part.coefficients(w), posterior.weights, level)

    # -- season ---------------------------------------------------------------------------------

    @property
    def season_(self) -> str | None:
        """The season in words, with 95% intervals; None without one."""
        if self._season_part() is None:
            return None
        rows = sorted(self.season_table(0.95).to_numpy().tolist(), key=lambda row: row[1])

        def told(name: str, factor: float, low: float, high: float) -> str:
            return f"in {name}, {factor:.2f} (95%: {low:.2f} to {high:.2f}) times the average"

        return f"highest {told(*rows[-1])}; lowest {told(*rows[0])}"

    def season_factor(self, t: ArrayLike) -> Numbers:
        """Posterior median of the season's factor at times t; 1 is the average of a cycle.

        Times are those of the curve, or dates where the data had dates; where time is counted from
        each subject's entry, they are times of the calendar.
        """
        return self._season_quantiles(t, [0.5])[0]

    def season_band(self, t: ArrayLike, level: float = 0.95) -> tuple[Numbers, Numbers]:
        """Pointwise credible band of the season's factor: (low, high), each shaped like `t`."""
        check_level(level)
        low, high = self._season_quantiles(t, [(1 - level) / 2, (1 + level) / 2])
        return low, high

    def season_table(self, level: float = 0.95) -> pd.DataFrame:
        """The factor in the middle of each month, weekday or twelfth of the cycle, with interval.

        Columns ``part``, ``factor`` (posterior median), ``low`` and ``high``.
        """
        import pandas as pd

        check_level(level)
        names = parts_of(self._season()[0].cycle)
        middles = (np.arange(len(names)) + 0.5) / len(names)
        values = self._factors_at(middles, [0.5, (1 - level) / 2, (1 + level) / 2])
        columns = dict(zip(("factor", "low", "high"), values, strict=True))
        return pd.DataFrame({"part": names, **columns})

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """The season, by the parts of its cycle."""
        return {} if self._season_part() is None else {"season": self.season_table()}

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """The season."""
        if self._season_part() is None:
            return {}
        draw = import_module("gp4c.reporting.figures.factor_plots").plot_season
        return {"season": lambda ax: draw(self, ax)}

    def _season_quantiles(self, t: ArrayLike, levels: list[float]) -> list[Numbers]:
        phase = phase_at(self._season()[0], TimeAxis.of(self), t)
        found = self._factors_at(np.atleast_1d(phase).ravel(), levels)
        return [row.reshape(phase.shape)[()] for row in found]

    def _factors_at(self, phase: Floats, levels: list[float]) -> Floats:
        """Quantiles of the factor at phases of the cycle, (levels, phases)."""
        part, w = self._season()
        posterior = self._posterior()
        assert isinstance(posterior, ModulatedDraws)
        logs = weighted_quantiles(part.at_phase(phase) @ w, posterior.weights, np.array(levels))
        return np.asarray(np.exp(logs))

    def _season(self) -> tuple[Season, Floats]:
        self._check_fitted()
        found = self._season_part()
        if found is None:
            raise ValueError("this fit has no season: season='year', 'week' or a period fits one")
        return found

    def _season_part(self) -> tuple[Season, Floats] | None:
        """The season and the draws of its coefficients."""
        posterior = self._posterior()
        if not isinstance(posterior, ModulatedDraws):
            return None
        for part in posterior.modulation.parts:
            if isinstance(part, Season):
                return part, posterior.modulating[posterior.modulation.rows(part)]
        return None

    # -- inputs ---------------------------------------------------------------------------------

    def _inputs_of(self, panel: PanelCounts) -> Floats | None:
        posterior = self._posterior()
        if not isinstance(posterior, ModulatedDraws) or not len(posterior.modulation.neutral):
            return None
        season = self._season_part()
        assert season is not None
        return own_phases(panel, season[0])

    def _neutral_inputs(self) -> Floats:
        posterior = self._posterior()
        return (
            posterior.modulation.neutral if isinstance(posterior, ModulatedDraws) else np.zeros(0)
        )

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
