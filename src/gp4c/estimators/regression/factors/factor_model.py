"""What a fitted model says of the factors of its rate: its trend, its season."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
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
from gp4c.model.modulation import OverTime, Season, Trend
from gp4c.model.modulation.modulator import Modulator
from gp4c.model.modulation.seasons import parts_of
from gp4c.posterior.modulated_draws import ModulatedDraws
from gp4c.posterior.quantiles import weighted_quantiles

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
        "factor_covariance_": kinds.Sometimes(kinds.array("r", "r")),
    }

    trend: str | None = None
    season: float | str | None = None
    trend_evidences_: dict[str, float]
    factor_covariance_: Floats

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
        """A sentence about the trend; empty without one.

        :meta private:
        """
        found = self._trend_part()
        if found is None:
            return ""
        return found[0].words(self._trend_ends(level), self.time_unit_, level)

    def trend_estimate(self, level: float = 0.95) -> TrendEstimate:
        """The coefficient of the trend with its credible interval.

        Of a log-linear trend the growth of the log rate per unit of time, of a power trend the
        exponent b with which the mean number of events grows, t^b.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, trend="loglinear").fit(panel)
        >>> found = model.trend_estimate()
        >>> found.low < found.value < found.high
        True
        """
        check_level(level)
        self._check_fitted()
        found = self._trend_part()
        if found is None:
            raise ValueError("this fit has no trend: trend='loglinear', 'power' or 'auto' fits one")
        value, low, high = self._trend_ends(level)
        return TrendEstimate(found[0].symbol, float(value), float(low), float(high))

    @property
    def trend_alone_(self) -> float | None:
        """Posterior probability that the rate follows its trend without further variation.

        None where the fit has no trend, and where its hyper-parameters or its mean are fixed.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, trend="loglinear").fit(panel)
        >>> 0 <= model.trend_alone_ <= 1
        True
        """
        self._check_fitted()
        posterior = self._posterior()
        free = self.hyper == "integrate" and isinstance(self.mean, str)
        if not (free and self.has_trend and isinstance(posterior, ModulatedDraws)):
            return None
        return float(posterior.weights[posterior.steady].sum() / posterior.weights.sum())

    def curve_parameters(self, level: float) -> list[tuple[str, str, str, float, float, float]]:
        """The coefficient of the trend and the size of the season, for summaries.

        :meta private:
        """
        found, rows = self._trend_part(), []
        if found is not None:
            rows.append((found[0].title, self.trend_ or "", "", *self.trend_estimate(level)[1:]))
        if self._season_part() is not None:
            value, low, high = map(float, self._season_size(level))
            words = f"the highest rate of the cycle over the lowest; {self.season_}"
            rows.append(("season", words, "", value, low, high))
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
        """Estimates of the factors by name, for programs.

        :meta private:
        """
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

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, season=12).fit(panel)
        >>> model.season_factor([0.5, 6.5]).shape
        (2,)
        """
        return self._season_quantiles(t, [0.5])[0]

    def season_band(self, t: ArrayLike, level: float = 0.95) -> tuple[Numbers, Numbers]:
        """Pointwise credible band of the season's factor: (low, high), each shaped like `t`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, season=12).fit(panel)
        >>> low, high = model.season_band(6.5)
        >>> bool(low < model.season_factor(6.5) < high)
        True
        """
        check_level(level)
        low, high = self._season_quantiles(t, [(1 - level) / 2, (1 + level) / 2])
        return low, high

    def season_table(self, level: float = 0.95) -> pd.DataFrame:
        """The factor in the middle of each month, weekday or twelfth of the cycle, with interval.

        Columns ``part``, ``factor`` (posterior median), ``low`` and ``high``.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, season=12).fit(panel)
        >>> model.season_table().shape
        (12, 4)
        """
        import pandas as pd

        check_level(level)
        names = parts_of(self._season()[0].cycle)
        middles = (np.arange(len(names)) + 0.5) / len(names)
        values = self._factors_at(middles, [0.5, (1 - level) / 2, (1 + level) / 2])
        columns = dict(zip(("factor", "low", "high"), values, strict=True))
        return pd.DataFrame({"part": names, **columns})

    def factor_methods(self) -> list[str]:
        """A sentence for each factor, and how a trend was chosen.

        :meta private:
        """
        said = [part.method for part in self._parts() if part.method]
        if self.trend is not None and len(self.trend_evidences_) > 1:
            said.append("Whether there is a trend, and which, was chosen by the evidence.")
        return said

    def new_subject_words(self) -> str:
        """Which season a new subject has.

        :meta private:
        """
        return " ".join(part.new_words for part in self._parts() if part.new_words)

    def _parts(self) -> tuple[Modulator, ...]:
        posterior = self._posterior()
        return posterior.modulation.parts if isinstance(posterior, ModulatedDraws) else ()

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """The season, by the parts of its cycle.

        :meta private:
        """
        return {} if self._season_part() is None else {"season": self.season_table()}

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """The season.

        :meta private:
        """
        if self._season_part() is None:
            return {}
        figures = import_module("gp4c.reporting.figures.factor_plots")
        return {"season": partial(figures.plot_season, self)}

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
        z = self._covariates_of(panel)
        columns = [np.zeros((panel.n_intervals, 0))]
        for part in posterior.modulation.parts:
            if isinstance(part, Season) and part.is_own:
                columns.append(own_phases(panel, part))
            elif isinstance(part, OverTime) and z is not None:
                columns.append(z[:, list(part.columns)])
        return np.concatenate(columns, axis=1)

    def _inputs_with(self, inputs: Floats, covariates: Floats | None) -> Floats:
        posterior = self._posterior()
        if covariates is None or not isinstance(posterior, ModulatedDraws):
            return inputs
        changed, first = inputs.copy(), 0
        for part in posterior.modulation.parts:
            size = len(part.neutral)
            if isinstance(part, OverTime):
                changed[:, first : first + size] = covariates[:, list(part.columns)]
            first += size
        return changed

    def facts(self) -> list[tuple[str, str, str, float]]:
        """Whether there is a trend, and more than it.

        :meta private:
        """
        found = []
        if self.trend is not None and not self.has_trend:
            why = choice_words(self.trend_evidences_, NO_TREND)
            words = f"no trend was found: the curve alone was {why}"
            found.append(("Shape of the curve", "trend", words, 0.0))
        alone = self.trend_alone_
        if alone is not None:
            words = f"the rate follows the trend without further variation: {_chance(alone)}"
            found.append(("Shape of the curve", "trend alone", words, alone))
        return found

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


def _chance(share: float) -> str:
    """A probability in words, to two digits."""
    if 0.005 <= share < 0.995:
        return f"probability {share:.2f}"
    return "probability above 0.99" if share > 0.5 else "probability below 0.01"


def _median_and_ends(values: Floats, weights: Floats, level: float) -> Floats:
    """Median and ends of an interval with equal tails."""
    levels = np.array([0.5, (1 - level) / 2, (1 + level) / 2])
    return np.asarray(weighted_quantiles(values[None], weights, levels)[:, 0])
