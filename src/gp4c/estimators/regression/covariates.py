"""A fitted posterior at chosen covariates, averaged over them, or of known subjects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.regression.covariate_tables import CovariateTables
from gp4c.estimators.regression.factors.effects_over_time import EffectsOverTime
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.modulated_draws import ModulatedDraws
from gp4c.posterior.quantiles import weighted_quantiles

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.estimators.base import Numbers
    from gp4c.estimators.forecasts.count_forecast import Subjects

Floats = NDArray[np.float64]
Covariates = Mapping[str, object]

#: a mean of draws that lies above this quantile of them is that of a few extreme ones
_HIGH = 0.975
#: level of a band whose edges are both the median
MEDIAN = 1e-9


class CovariateModel(CovariateTables, EffectsOverTime):
    """Prediction from a fitted posterior and fitted coefficients."""

    histories_: SubjectHistories
    #: whether the curves are posterior medians, since their means say nothing
    has_medians = False

    def standardised(
        self, t: ArrayLike, *, covariates: Covariates | None = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Curves averaged over the covariates of all subjects of the fit, with pointwise bands.

        It answers how many events the subjects of the fit would have on average if all of them had
        the chosen covariates. At average covariates (:meth:`cumulative`) there is one subject in
        the middle instead, who has fewer events where a covariate matters much.

        Curves are posterior means; or medians, where the data leave the effect of a covariate so
        open that a few extreme draws would make the mean.

        Parameters
        ----------
        t : float or array
        covariates : dict, optional
            What everybody is given, such as ``{"treatment": "thiotepa"}``; the rest is their own.
        level : float in (0, 1)

        Returns
        -------
        DataFrame
            Columns: time, rate, rate_low, rate_high, cumulative, cumulative_low, cumulative_high.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, formula="treatment").fit(panel)
        >>> all_treated = model.standardised(24.0, covariates={"treatment": "thiotepa"})
        >>> list(all_treated.columns[:4])
        ['time', 'rate', 'rate_low', 'rate_high']
        """
        from gp4c.estimators.regression.covariate_tables import curve_table

        self._check_fitted()
        return curve_table(self._standardised(covariates), np.atleast_1d(np.asarray(t)), level)

    # -- helpers ----------------------------------------------------------------------------

    def _standardised(self, covariates: Covariates | None = None) -> CovariateModel:
        """The model with every draw of the curve times its own average of exp(βᵀz)."""
        known = self._effects()
        if known is None:
            return self
        posterior = self._posterior()
        assert isinstance(posterior, CurveDraws)  # a formula is fitted by draws
        factor = known.average_factor(posterior.coefficients, covariates or {})
        view = self._with_curves(posterior.multiplied(factor))
        weights = posterior.weights
        high = weighted_quantiles(factor[None], weights, np.array([_HIGH]))[0, 0]
        view.has_medians = bool(weights @ factor > high)
        return view

    def _with_curves(self, posterior: CurveDraws) -> CovariateModel:
        view = object.__new__(type(self))
        vars(view).update(vars(self))
        view.posterior_ = posterior
        return view

    def _at(self, covariates: Covariates | None) -> CovariateModel:
        """The model at chosen covariates: every draw of the curve times its own exp(βᵀz)."""
        if covariates is None:
            return self
        _, z = self._profile(covariates)
        posterior = self._posterior()
        assert isinstance(posterior, CurveDraws)  # a formula is fitted by draws
        moved = posterior.multiplied(np.exp(z @ posterior.coefficients))
        if isinstance(moved, ModulatedDraws):
            moved = moved.with_inputs(self._inputs_with(moved.inputs[None], z[None])[0])
        return self._with_curves(moved)

    def _mean_at(
        self, fn: Callable[[CovariateModel], Numbers], covariates: Covariates | None,
        subjects: Subjects,
    ) -> Numbers:  # fmt: skip
        """A curve at covariates, or of known subjects, each with its own inputs to the factors."""
        if subjects is not None and covariates is not None:
            raise ValueError("covariates= and subjects= exclude each other")
        if subjects is None:
            return fn(self._at(covariates))
        posterior = self._posterior()
        if not isinstance(posterior, ModulatedDraws) or not len(posterior.inputs):
            return self._for_subjects(fn(self), subjects)
        labels, several = _labels(subjects)
        known = self.histories_
        assert known.last_inputs is not None
        rows = []
        for label, inputs in zip(labels, known.last_inputs[known.positions(labels)], strict=True):
            view = self._with_curves(posterior.with_inputs(inputs))
            rows.append(self._for_subjects(fn(view), label))
        return np.asarray(rows) if several else rows[0]

    def _for_subjects(self, curve: Numbers, subjects: Subjects) -> Numbers:
        from gp4c.estimators.forecasts.forecast_inputs import fitted_subjects

        labels, several = _labels(subjects)
        places = fitted_subjects(self).positions(labels)
        factors = np.ones(len(places))
        if self.subject_effects_ is not None:
            factors = self.subject_effects_[places]
        known = self.coefficients_
        if known is not None:
            factors = factors * np.exp(known.log_factor(known.subject_design[places]))
        if not several:
            return float(factors[0]) * curve
        return np.asarray(np.multiply.outer(factors, np.asarray(curve)))


def _labels(subjects: Subjects) -> tuple[list[Hashable], bool]:
    """Labels asked for, and whether they are several or the only one."""
    if isinstance(subjects, list | np.ndarray):
        return list(np.asarray(subjects, dtype=object)), True
    return [subjects], False
