"""Curves, bands and scores that know of covariates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.regression.covariate_tables import CovariateTables
from gp4c.estimators.regression.factors.factor_model import FactorModel
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
_MEDIAN = 1e-9


class CovariateModel(CovariateTables, FactorModel):
    """Prediction from a fitted posterior and fitted coefficients."""

    histories_: SubjectHistories
    #: whether the curves are posterior medians, since their means say nothing
    has_medians = False

    # -- curves -----------------------------------------------------------------------------

    def intensity(
        self,
        t: ArrayLike,
        *,
        covariates: Covariates | None = None,
        subjects: Subjects = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Posterior mean of the intensity λ(t), in events per unit of time and exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        covariates : dict, optional
            Column to value, such as ``{"treatment": "thiotepa"}``: the intensity at these
            covariates, those not named at their average. Without it, all at their average.
        subjects : label or list of labels, optional
            Known subjects instead: λ times the posterior mean of their effect and their own
            covariates; a list gives one row per subject.
        extrapolate : bool
            Allow times outside the window, where the model returns to its prior.
        """
        if self.has_medians:
            return self.intensity_band(t, _MEDIAN, extrapolate=extrapolate)[0]
        self._check_subjects(covariates, subjects)
        fn = partial(GaussianProcessModel.intensity, t=t, extrapolate=extrapolate)
        return self._asked(fn, covariates, subjects)

    def cumulative(
        self,
        t: ArrayLike,
        *,
        covariates: Covariates | None = None,
        subjects: Subjects = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Posterior mean of Λ(t), the expected number of events from the window's start to t.

        The options are those of :meth:`intensity`.
        """
        if self.has_medians:
            return self.cumulative_band(t, _MEDIAN, extrapolate=extrapolate)[0]
        self._check_subjects(covariates, subjects)
        fn = partial(GaussianProcessModel.cumulative, t=t, extrapolate=extrapolate)
        return self._asked(fn, covariates, subjects)

    def expected_counts(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        *,
        covariates: Covariates | None = None,
        subjects: Subjects = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        The options are those of :meth:`intensity`.
        """
        self._check_subjects(covariates, subjects)
        fn = partial(
            GaussianProcessModel.expected_counts, start=start, stop=stop, extrapolate=extrapolate
        )
        return self._asked(fn, covariates, subjects)

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of λ: (low, high), each shaped like `t`.

        Parameters
        ----------
        level : float in (0, 1)
            Posterior probability between the two curves.
        kind : {"pointwise", "simultaneous"}
            Probability at each time, with equal tails; or of the whole curve over the window to
            lie between the two, which is wider.
        covariates : dict, optional
            As in :meth:`intensity`; coefficients and curve are uncertain together.
        """
        return GaussianProcessModel.intensity_band(
            self._at(covariates), t, level, kind, extrapolate=extrapolate
        )

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of Λ(t): (low, high), each shaped like `t`; see :meth:`intensity_band`."""
        return GaussianProcessModel.cumulative_band(
            self._at(covariates), t, level, kind, extrapolate=extrapolate
        )

    def sample_intensity(
        self,
        t: ArrayLike,
        size: int,
        random_state: int | None = None,
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> Floats:
        """Joint posterior draws of λ at the times `t`, shape (size, len(t)).

        With `covariates` (see :meth:`intensity`) the coefficients are drawn too.
        """
        return GaussianProcessModel.sample_intensity(
            self._at(covariates), t, size, random_state, extrapolate=extrapolate
        )

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

    def _asked(
        self, fn: Callable[[CovariateModel], Numbers], covariates: Covariates | None,
        subjects: Subjects,
    ) -> Numbers:  # fmt: skip
        """A curve at covariates, or of known subjects, each with its own inputs to the factors."""
        if subjects is None:
            return fn(self._at(covariates))
        posterior = self._posterior()
        if not isinstance(posterior, ModulatedDraws) or not len(posterior.inputs):
            return self._for_subjects(fn(self), subjects)
        several = isinstance(subjects, list | np.ndarray)
        labels = list(np.asarray(subjects, dtype=object)) if several else [subjects]
        known = self.histories_
        assert known.last_inputs is not None
        rows = []
        for label, inputs in zip(labels, known.last_inputs[known.positions(labels)], strict=True):
            view = self._with_curves(posterior.with_inputs(inputs))
            rows.append(self._for_subjects(fn(view), label))
        return np.asarray(rows) if several else rows[0]

    def _check_subjects(self, covariates: Covariates | None, subjects: Subjects) -> None:
        if subjects is not None and covariates is not None:
            raise ValueError("covariates= and subjects= exclude each other")

    def _for_subjects(self, curve: Numbers, subjects: Subjects) -> Numbers:
        from gp4c.estimators.forecasts.forecast_inputs import fitted_subjects

        several = isinstance(subjects, list | np.ndarray)
        labels = list(np.asarray(subjects, dtype=object)) if several else [subjects]
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
