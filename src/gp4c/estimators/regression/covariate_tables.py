"""Effects of covariates and of subjects as tables, for every estimator with a formula."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.base import PanelEstimator

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.regression.covariate_effects import CovariateEffects

Floats = NDArray[np.float64]
Covariates = Mapping[str, object]


def curve_table(model: PanelEstimator, times: Floats, level: float) -> pd.DataFrame:
    """Rate and mean number of events of a model at some times, with pointwise bands."""
    import pandas as pd

    rate, cumulative = model.intensity_band(times, level), model.cumulative_band(times, level)
    return pd.DataFrame(
        {
            "time": times,
            "rate": model.intensity(times),
            "rate_low": rate[0],
            "rate_high": rate[1],
            "cumulative": model.cumulative(times),
            "cumulative_low": cumulative[0],
            "cumulative_high": cumulative[1],
        }
    )


class CovariateTables(PanelEstimator):
    """An estimator that may have fitted coefficients."""

    coefficients_: CovariateEffects | None

    @property
    def effects_(self) -> pd.DataFrame:
        """Effects of the covariates, one row each; empty without a formula.

        Columns: covariate, coefficient, se (model-based), robust_se (sandwich over subjects),
        rate_ratio, low, high (95%), z, p_value, and errors: the kind of standard error behind the
        four before it, right also where counts are overdispersed. See :meth:`effect_table` for
        other levels and errors.
        """
        return self.effect_table()

    def effect_table(self, level: float = 0.95, *, errors: str = "auto") -> pd.DataFrame:
        """Effects of the covariates at another level, or with other intervals.

        Parameters
        ----------
        level : float in (0, 1)
            Level of the intervals of the rate ratios.
        errors : {"auto", "robust", "model", "jackknife"}
            Standard errors behind intervals, z and p-values. "robust": the sandwich over subjects.
            "jackknife": over subjects too, a little larger. "model": those of the model, which
            rely on its law of the counts. "auto": the sandwich; with fewer than 100 subjects, for
            which it is short, the jackknife with quantiles of a t distribution. The column
            `errors` says which were used.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.LogLinear(effect="gamma", formula="treatment").fit(panel)
        >>> model.effect_table(0.9, errors="robust")["covariate"].tolist()
        ['treatment[thiotepa]']
        """
        from gp4c.estimators.regression.covariate_effects import (
            no_effects,  # only now: most fits have no covariates
        )

        self._check_fitted()
        known = self._effects()
        return no_effects() if known is None else known.table(level, errors)

    def effects_in_words(self, level: float = 0.95) -> str:
        """One sentence per covariate: factor, interval, p-value, probability; see `effects_`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.LogLinear(effect="gamma", formula="treatment").fit(panel)
        >>> "thiotepa" in model.effects_in_words()
        True
        """
        self._check_fitted()
        words = import_module("gp4c.reporting.effect_rows")  # reporting stands after models
        return str(words.effects_in_words(self, level))

    def subject_effect_table(self, level: float = 0.95) -> pd.DataFrame:
        """Effects of the fitted subjects with intervals, one row each.

        Columns: subject, events, expected (at effect 1), effect (posterior mean, as in
        `subject_effects_`), low, high; see :mod:`gp4c.estimators.forecasts.subject_effects`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.LogLinear(effect="gamma", formula="treatment").fit(panel)
        >>> list(model.subject_effect_table().columns)
        ['subject', 'events', 'expected', 'effect', 'low', 'high']
        """
        from gp4c.estimators.forecasts.subject_effects import subject_effect_table

        self._check_fitted()
        return subject_effect_table(self, level)

    def _covariates_of(self, panel: PanelCounts) -> Floats | None:
        from gp4c.data.formulas.covariate_rows import design_rows

        known = self._effects()
        return None if known is None else design_rows(known.design, panel)

    def _effects(self) -> CovariateEffects | None:
        return self.coefficients_

    def _adjusted(self, panel: PanelCounts) -> PanelCounts:
        """The panel with the covariates' effects in its exposure."""
        known = self._effects()
        return panel if known is None else known.adjust(panel)

    def _profile(self, covariates: Covariates) -> tuple[CovariateEffects, Floats]:
        known = self._effects()
        if known is None:
            name = type(self).__name__
            raise ValueError(f"covariates= needs a model with covariates: {name}(formula=...)")
        return known, known.profile(covariates)
