"""What a fitted model says of the effects of covariates that change over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.inputs import check_band
from gp4c.estimators.interfaces.credible import equal_tails
from gp4c.estimators.interfaces.posterior_curves import BAND_DRAWS, BAND_POINTS
from gp4c.estimators.regression.factors.changing_effects import (
    ConstantRatioTest,
    constant_ratio_test,
    log_ratios,
    part_of,
)
from gp4c.estimators.regression.factors.factor_model import FactorModel
from gp4c.exceptions import PanelDataError
from gp4c.model.modulation import OverTime
from gp4c.plain import p_words
from gp4c.posterior.modulated_draws import ModulatedDraws
from gp4c.posterior.quantiles import simultaneous_level, weighted_quantiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.estimators.base import Numbers

Floats = NDArray[np.float64]


class EffectsOverTime(FactorModel):
    """A rate in which the ratios of some covariates change with time."""

    def effect_over_time(self, name: str, t: ArrayLike) -> Numbers:
        """Posterior median of the rate ratio exp(β + δ(t)) per unit of a covariate, at times t.

        `name` is the covariate inside ``over_time()``, or one of its columns ("arm[b]").

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, formula="over_time(treatment)").fit(panel)
        >>> model.effect_over_time("treatment", [12.0, 24.0]).shape
        (2,)
        """
        return self._ratio_quantiles(name, t, [0.5])[0]

    def effect_over_time_band(
        self, name: str, t: ArrayLike, level: float = 0.95, kind: str = "pointwise"
    ) -> tuple[Numbers, Numbers]:
        """Credible band of the ratio: (low, high), each shaped like `t`.

        A simultaneous band holds the whole curve over the window with this probability.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, formula="over_time(treatment)").fit(panel)
        >>> low, high = model.effect_over_time_band("treatment", 24.0)
        >>> bool(low < high)
        True
        """
        check_band(level, kind)
        if kind == "simultaneous":
            draws, (part, column) = self._modulated(), self._changing(name)
            times = np.linspace(*self.window_, BAND_POINTS)
            who = draws.choose(BAND_DRAWS, np.random.default_rng(self._seed(None)))
            level = simultaneous_level(log_ratios(draws, part, column, times)[:, who].T, level)
        low, high = self._ratio_quantiles(name, t, equal_tails(level))
        return low, high

    def constant_ratio_test(self, name: str) -> ConstantRatioTest:
        """Wald test that the ratio of a covariate does not change over time.

        The ratios of a category's levels are tested together, whichever of them is named. The test
        uses the sandwich over subjects, in the directions of which the data say something.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, formula="over_time(treatment)").fit(panel)
        >>> 0 <= model.constant_ratio_test("treatment").p_value <= 1
        True
        """
        draws, (part, _) = self._modulated(), self._changing(name)
        rows = draws.modulation.rows(part)
        w = draws.modulating[rows]
        mean = w @ draws.weights / draws.weights.sum()
        off = w - mean[:, None]
        covariance = (off * draws.weights) @ off.T / draws.weights.sum()
        return constant_ratio_test(mean, covariance, self.factor_covariance_[rows, rows])

    def facts(self) -> list[tuple[str, str, str, float]]:
        """The factors of the rate, then the effects over time.

        :meta private:
        """
        found = super().facts()
        for name in self._changing_names():
            first, last = (float(self.effect_over_time(name, t)) for t in self.window_)
            part, _ = self._changing(name)
            what = "it is" if len(part.names) == 1 else f"all ratios of {part.label} are"
            p_value = self.constant_ratio_test(name).p_value
            words = (
                f"the rate ratio goes from {first:.3g} at the start of the window to "
                f"{last:.3g} at its end; that {what} constant has {p_words(p_value)}"
            )
            found.append(("Effects over time", name, words, last / first))
        return found

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """The factors of the rate, then ratios over time.

        :meta private:
        """
        found = super().own_plots()
        figures = import_module("gp4c.reporting.figures.factor_plots")
        for name in self._changing_names():
            file = f"effect-{''.join(c if c.isalnum() else '-' for c in name)}"
            found[file.strip("-")] = partial(figures.plot_ratio, self, name)
        return found

    def _changing_names(self) -> Iterator[str]:
        for part in self._parts():
            yield from part.names if isinstance(part, OverTime) else ()

    def _ratio_quantiles(self, name: str, t: ArrayLike, levels: list[float]) -> list[Numbers]:
        draws, (part, column) = self._modulated(), self._changing(name)
        times = np.asarray(TimeAxis.of(self).numbers(t))
        logs = log_ratios(draws, part, column, np.atleast_1d(times).ravel())
        found = np.exp(weighted_quantiles(logs, draws.weights, np.array(levels)))
        return [row.reshape(times.shape)[()] for row in found]

    def _changing(self, name: str) -> tuple[OverTime, int]:
        self._check_fitted()
        return part_of(self._parts(), name)

    def _modulated(self) -> ModulatedDraws:
        posterior = self._posterior()
        if not isinstance(posterior, ModulatedDraws):
            raise PanelDataError("this fit has no effect over time: formula='over_time(arm)'")
        return posterior
