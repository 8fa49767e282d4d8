"""What a fit to several types of events answers: for a type, for their total, and their ratios."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.checks import unknown_name
from gp4c.data.types.typed_panel import TypedPanel
from gp4c.estimators.gp_base import SCORE_DRAWS, GaussianProcessModel
from gp4c.estimators.inputs import check_band
from gp4c.estimators.interfaces.credible import equal_tails
from gp4c.estimators.regression.covariates import MEDIAN, CovariateModel, Covariates
from gp4c.estimators.types.effect_correlation import EffectCorrelation
from gp4c.estimators.types.typed_state import restored, typed_checks, typed_state
from gp4c.exceptions import PanelDataError
from gp4c.files import kinds
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.quantiles import weighted_quantiles
from gp4c.posterior.summed.summed_curves import SummedCurves

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import Numbers
    from gp4c.estimators.forecasts.count_forecast import Subjects
    from gp4c.estimators.forecasts.forecast_layout import Step
    from gp4c.estimators.forecasts.forecast_result import Forecast
    from gp4c.estimators.gp4c import GP4C
    from gp4c.model.laws import CountLaw, SubjectEffect

Floats = NDArray[np.float64]


class _OfType:
    """A fitted attribute that each type has of its own; a fit without types sets it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.base = owner.__mro__[1]

    def __get__(self, model: TypedCurves | None, owner: type) -> Any:
        if model is not None and model.event_types_:
            model._refuse(self.name)
        try:
            return getattr(self.base, self.name)
        except AttributeError:
            lacking = f"{owner.__name__!r} object has no attribute {self.name!r}"
            raise AttributeError(lacking) from None


class TypedCurves(CovariateModel):
    """Curves, bands, scores and forecasts with ``event=``: a type, or None for the total."""

    effect_, law_, frailty_shape_, frailty_variance_ = (_OfType() for _ in range(4))
    dispersion_, burst_size_, length_scale_, variance_ = (_OfType() for _ in range(4))
    mean_, n_inducing_, evidences_, histories_ = (_OfType() for _ in range(4))
    event_types_: tuple[str, ...] = ()
    type_models_: Mapping[str, GP4C]
    loadings_: Floats
    log_evidence_gain_: float

    def of_type(self, event: str) -> GP4C:
        """The fit of one type, as part of the joint posterior.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> basal = model.of_type("basal")
        >>> basal.cumulative(900.0) == model.cumulative(900.0, event="basal")
        True
        """
        self._check_fitted()
        if not self.event_types_:
            raise PanelDataError(
                f"this {type(self).__name__} was fitted to a panel without event types, so there "
                f"is none for event={event!r}"
            )
        if event not in self.event_types_:
            raise PanelDataError(
                f"there is no event type {event!r}; {unknown_name(event, self.event_types_)}"
            )
        return self.type_models_[event]

    @property
    def effect_correlation_(self) -> EffectCorrelation | None:
        """How subjects' effects go together between types; None without types."""
        if not self.event_types_:
            return None
        varies = [model.effect_law_.varies for model in self.type_models_.values()]
        names = tuple(name for name, some in zip(self.event_types_, varies, strict=True) if some)
        posterior = self._posterior()
        assert isinstance(posterior, SummedCurves)
        return EffectCorrelation(
            names, self.loadings_[varies], posterior.weights, self.log_evidence_gain_
        )

    # -- curves -----------------------------------------------------------------------------

    def intensity(
        self,
        t: ArrayLike,
        *,
        event: str | None = None,
        covariates: Covariates | None = None,
        subjects: Subjects = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Posterior mean of the intensity λ(t), in events per unit of time and exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        event : str, optional
            Type of event, if the fit has types; None is their total.
        covariates : dict, optional
            Column to value, such as ``{"treatment": "thiotepa"}``: the intensity at these
            covariates, those not named at their average. Without it, all at their average.
        subjects : label or list of labels, optional
            Known subjects instead: λ times the posterior mean of their effect and their own
            covariates; a list gives one row per subject.
        extrapolate : bool
            Allow times outside the window, where the model returns to its prior.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect=None, bursts=False, formula="treatment").fit(panel)
        >>> treated = model.intensity(24.0, covariates={"treatment": "thiotepa"})
        >>> treated < model.intensity(24.0, covariates={"treatment": "placebo"})
        True
        """
        if self.has_medians and event is None:
            return self.intensity_band(t, MEDIAN, extrapolate=extrapolate)[0]
        curve = partial(GaussianProcessModel.intensity, t=t, extrapolate=extrapolate)
        return self._mean(curve, event, covariates, subjects)

    def cumulative(
        self,
        t: ArrayLike,
        *,
        event: str | None = None,
        covariates: Covariates | None = None,
        subjects: Subjects = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Posterior mean of Λ(t), the expected number of events from the window's start to t.

        The options are those of :meth:`intensity`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> bool(model.cumulative(12.0) < model.cumulative(24.0))
        True
        """
        if self.has_medians and event is None:
            return self.cumulative_band(t, MEDIAN, extrapolate=extrapolate)[0]
        curve = partial(GaussianProcessModel.cumulative, t=t, extrapolate=extrapolate)
        return self._mean(curve, event, covariates, subjects)

    def expected_counts(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        *,
        event: str | None = None,
        covariates: Covariates | None = None,
        subjects: Subjects = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        The options are those of :meth:`intensity`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> parts = model.expected_counts([0.0, 12.0], [12.0, 24.0])
        >>> bool(abs(parts.sum() - model.cumulative(24.0)) < 1e-6)
        True
        """
        curve = partial(
            GaussianProcessModel.expected_counts, start=start, stop=stop, extrapolate=extrapolate
        )
        return self._mean(curve, event, covariates, subjects)

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        event: str | None = None,
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
        event : str, optional
            Type of event, if the fit has types; None is their total.
        covariates : dict, optional
            As in :meth:`intensity`; coefficients and curve are uncertain together.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.intensity_band(24.0, 0.9, kind="simultaneous")
        >>> bool(low < model.intensity(24.0) < high)
        True
        """
        one = self._chosen(event)._at(covariates)
        return GaussianProcessModel.intensity_band(one, t, level, kind, extrapolate=extrapolate)

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        event: str | None = None,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of Λ(t): (low, high), each shaped like `t`; see :meth:`intensity_band`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.cumulative_band(24.0)
        >>> bool(low < model.cumulative(24.0) < high)
        True
        """
        one = self._chosen(event)._at(covariates)
        return GaussianProcessModel.cumulative_band(one, t, level, kind, extrapolate=extrapolate)

    def sample_intensity(
        self,
        t: ArrayLike,
        size: int,
        random_state: int | None = None,
        *,
        event: str | None = None,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> Floats:
        """Joint posterior draws of λ at the times `t`, shape (size, len(t)).

        With `covariates` (see :meth:`intensity`) the coefficients are drawn too.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> model.sample_intensity([12.0, 24.0], size=100, random_state=1).shape
        (100, 2)
        """
        one = self._chosen(event)._at(covariates)
        return GaussianProcessModel.sample_intensity(
            one, t, size, random_state, extrapolate=extrapolate
        )

    def type_ratio(
        self, t: ArrayLike, event: str, other: str, level: float = 0.95, *, cumulative: bool = True
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Posterior median and interval of the ratio of two types' mean numbers of events by t.

        Parameters
        ----------
        t : float or array
        event, other : str
            Numerator and denominator.
        cumulative : bool
            False: the ratio of the rates at t.

        Returns
        -------
        ratio, low, high
            Each shaped like `t`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> ratio, low, high = model.type_ratio(900.0, "basal", "squamous")
        >>> bool(low < ratio < high)
        True
        """
        check_band(level, "pointwise")
        for name in (event, other):
            self.of_type(name)
        posterior = self._posterior()
        assert isinstance(posterior, SummedCurves)
        tails = np.array([0.5, *equal_tails(level)])

        def curves(times: Floats, name: str) -> Floats:
            e = self.event_types_.index(name)
            part, row = posterior.parts[e], posterior.who[e]
            if not cumulative:
                return np.asarray(part.intensity_paths(times, row).T)
            start = np.full_like(times, self.window_[0])
            return np.asarray(part.integrals_of(start, times, row, np.random.default_rng(0)))

        def quantile(k: int) -> Numbers:
            def function(times: Floats) -> Floats:
                below = np.maximum(curves(times, other), 1e-300)
                ratio = curves(times, event) / below
                found = weighted_quantiles(ratio, posterior.weights, tails[k : k + 1])
                return np.asarray(found[0])

            return self._evaluate(t, function)

        return quantile(0), quantile(1), quantile(2)

    # -- scores and forecasts -----------------------------------------------------------------

    def score_with_error(
        self, panel: PanelCounts, *, joint: bool = True, constant: bool = False,
        new_subjects: bool = False, n_draws: int = SCORE_DRAWS,
    ) -> tuple[float, float]:  # fmt: skip
        """The score and the Monte-Carlo standard error of it.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> score, error = model.score_with_error(panel, joint=False, n_draws=200)
        >>> error > 0
        True
        """
        if not self.event_types_ and not panel.event_types:
            return super().score_with_error(
                panel, joint=joint, constant=constant, new_subjects=new_subjects,
                n_draws=n_draws,
            )  # fmt: skip
        from gp4c.estimators.types.typed_scores import typed_score

        value, error = typed_score(self, self._with_types(panel), joint, n_draws)
        return value - (panel.log_factorials if constant else 0.0), error

    def score_subjects(
        self, panel: PanelCounts, *, new_subjects: bool = False, n_draws: int = SCORE_DRAWS
    ) -> Floats:
        """Log-likelihood of each subject's counts, in the order of ``panel.subjects``.

        Σ ln m! over the subject's counts m is left out.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> model.score_subjects(panel, n_draws=200).shape
        (85,)
        """
        if not self.event_types_ and not panel.event_types:
            return super().score_subjects(panel, new_subjects=new_subjects, n_draws=n_draws)
        from gp4c.estimators.types.typed_scores import typed_subject_scores

        return typed_subject_scores(self, self._with_types(panel), n_draws)

    def _with_types(self, panel: PanelCounts) -> TypedPanel:
        """The panel, whose types must be those of the fit."""
        if not isinstance(panel, TypedPanel) or not self.event_types_:
            ours = ", ".join(self.event_types_) or "none"
            theirs = ", ".join(panel.event_types) or "none"
            raise PanelDataError(
                f"the fit and the panel must have the same event types: the fit has {ours}, the "
                f"panel {theirs}; model.of_type(...) and panel.of_type(...) give one type"
            )
        for name in panel.event_types:
            self.of_type(name)
        return panel

    def forecast(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        subjects: Subjects = "auto",
        level: float = 0.9,
        *,
        event: str | None = None,
        every: Step | None = None,
        each: bool = False,
        exposure: ArrayLike | str | None = None,
        usage: ArrayLike | str | None = None,
        new_units: ArrayLike = 0,
        at: ArrayLike | str | None = None,
        covariates: Mapping[str, object] | None = None,
        history: PanelCounts | None = None,
        beyond: str = "auto",
        n_draws: int | None = None,
        random_state: int | None = None,
    ) -> Forecast:
        """Predictive distribution of the counts in (start, stop].

        For a new subject (None), for named ones given what was seen of them, for those in service
        (``"active"``) or for ``"all"``. Of a fit with types it is that of all events, with
        ``by_type``, drawn jointly; ``event=`` asks for one type. The options are those of
        :func:`gp4c.estimators.forecasts.count_forecast.forecast`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> found = model.forecast(53, 60, subjects=1, n_draws=500, random_state=1)
        >>> low, high = found.interval
        >>> low <= found.mean <= high
        True
        """
        self._check_fitted()
        if event is None and not self.event_types_:
            return super().forecast(
                start, stop, subjects, level, every=every, each=each, exposure=exposure,
                usage=usage, new_units=new_units, at=at, covariates=covariates, history=history,
                beyond=beyond, n_draws=n_draws, random_state=random_state,
            )  # fmt: skip
        if event is not None:
            self.of_type(event)
        from gp4c.estimators.types.typed_forecast import DRAWS, forecast_types

        found = forecast_types(
            self, start, stop, subjects, level=level, every=every, each=each, exposure=exposure,
            usage=usage, new_units=new_units, at=at, covariates=covariates, history=history,
            beyond=beyond, n_draws=n_draws or DRAWS, random_state=random_state,
        )  # fmt: skip
        return found if event is None else found.by_type[event]

    # -- helpers ----------------------------------------------------------------------------

    def _chosen(self, event: str | None) -> TypedCurves:
        return self if event is None else self.of_type(event)

    def _mean(
        self, curve: Callable[[CovariateModel], Numbers], event: str | None,
        covariates: Covariates | None, subjects: Subjects,
    ) -> Numbers:  # fmt: skip
        """A mean curve of a type or of the total, at covariates or of known subjects.

        That of all types of known subjects is a sum: each type has effects of its own.
        """
        if event is None and subjects is not None and self.event_types_:
            each = self.type_models_.values()
            return sum(one._mean_at(curve, covariates, subjects) for one in each)
        return self._chosen(event)._mean_at(curve, covariates, subjects)

    def _at(self, covariates: Covariates | None) -> CovariateModel:
        self._check_fitted()
        posterior = self.posterior_
        if covariates is None or not isinstance(posterior, SummedCurves):
            return super()._at(covariates)
        parts = [one._at(covariates).posterior_ for one in self.type_models_.values()]
        curves = [part for part in parts if isinstance(part, CurveDraws)]
        return self._with_curves(SummedCurves.of(curves, posterior.who, posterior.weights))

    @classmethod
    def checks_of(cls, state: Mapping[str, object]) -> dict[str, kinds.Check]:
        """Checks of a state from a file; one with types has others.

        :meta private:
        """
        plain = cls.saved_attributes()
        return typed_checks(plain, state) if "event_types_" in state else plain

    def _state(self) -> dict[str, object]:
        state = super()._state()
        return typed_state(self, state) if self.event_types_ else state

    def _set_state(self, state: Mapping[str, object]) -> None:
        super()._set_state(restored(self, state) if "event_types_" in state else state)

    @property
    def count_law_(self) -> CountLaw:
        """The law of counts given the curve and the effects; of a fit with types, by type."""
        if self.event_types_:
            self._refuse("distribution of counts")
        return super().count_law_

    @property
    def effect_law_(self) -> SubjectEffect:
        """The law of the effects of subjects; of a fit with types, by type."""
        if self.event_types_:
            self._refuse("law of subject effects")
        return super().effect_law_

    def _refuse(self, what: str) -> NoReturn:
        raise PanelDataError(
            f"this fit has one {what} for each type of event: ask "
            f"model.of_type({self.event_types_[0]!r})"
        )
