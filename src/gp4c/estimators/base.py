"""What every estimator shares: parameters, fitted checks, window checks, saving.

The contract is scikit-learn's (``get_params``, ``set_params``, ``fit``, ``score``; samples are
subjects), written out here because importing scikit-learn costs more than most fits.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.checks import unknown_name
from gp4c.exceptions import NoIntensityError, NotFittedError, OutsideWindowError
from gp4c.files import kinds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from sklearn.utils import Tags

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.data.subjects import LabelArray
    from gp4c.data.summaries.table import Table
    from gp4c.data.tables.sources import PanelSource
    from gp4c.estimators.forecasts.count_forecast import Subjects
    from gp4c.estimators.forecasts.forecast_layout import Step
    from gp4c.estimators.forecasts.forecast_result import Forecast
    from gp4c.estimators.forecasts.joint_counts import JointCounts
    from gp4c.estimators.regression.covariate_effects import CovariateEffects
    from gp4c.model.laws import CountLaw, SubjectEffect
    from gp4c.parts import ModelSummary
    from gp4c.posterior.own_check import OwnCheck

Floats = NDArray[np.float64]
#: values of a curve: a number for one time, an array for an array of times
Numbers: TypeAlias = "float | Floats"
#: what stands for the rows of a large table, and how closely
Compression: TypeAlias = Mapping[str, "str | float"]

#: every estimator by the name of its class; one joins by being defined
ESTIMATORS: dict[str, type[PanelEstimator]] = {}


class PanelEstimator:
    """Base class of the estimators of gp4c.

    A fitted estimator has attributes whose names end in an underscore; `window_`, `time_unit_`
    and `time_origin_` (the date of time 0, if times were dates) are set by every ``fit``.
    `dispersion_` is the variance of a count over its mean, given the effect of the subject: 1
    unless the model lets events come in bursts.

    An estimator describes itself by class attributes, which the command line, the report and saved
    models read. A subclass with a `title` joins `ESTIMATORS` by being defined.

    Attributes
    ----------
    title : str
        What it estimates, in one line.
    name : str
        Of ``--model`` on the command line; empty for an estimator that takes no panel.
    method_text : str
        How, as the first sentences of a methods section.
    effect_options, burst_options : mapping
        Values of ``--effect`` and ``--bursts`` that it takes, each with the argument it stands for.
    objective_name : str
        What `objective_` is.
    has_posterior, is_step, can_bootstrap : bool
        Whether a fit is a posterior; whether it is a step function, without a rate; whether it has
        a method `bootstrap`.
    saved : mapping
        Fitted attributes that a class adds to those of its base, each with the check of
        :mod:`gp4c.files.kinds` that a value from a file must pass.
    """

    __signature__: ClassVar[inspect.Signature]
    title: ClassVar[str] = ""
    name: ClassVar[str] = ""
    method_text: ClassVar[str] = ""
    effect_options: ClassVar[Mapping[str, str | None]] = {"auto": None, "none": None}
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": False, "no": False}
    objective_name: ClassVar[str] = "log likelihood"
    has_posterior: ClassVar[bool] = False
    is_step: ClassVar[bool] = False
    can_bootstrap: ClassVar[bool] = False
    #: what a fit that needs too much memory is told
    _memory_remedy: ClassVar[str] = (
        "read the table in parts (gp4c.scan_panel) and fit GP4C, or take a sample of subjects"
    )
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "window_": kinds.window, "time_unit_": kinds.maybe(kinds.TEXT),
        "time_origin_": kinds.Sometimes(kinds.maybe(kinds.date)),
        "usage_": kinds.Sometimes(kinds.maybe(kinds.TEXT)), "effect_": kinds.effect,
        "frailty_shape_": kinds.number(positive=True, infinite=True),
        "subjects_": kinds.labels("K"), "subject_totals_": kinds.array("K"),
        "subject_effects_": kinds.Sometimes(kinds.maybe(kinds.array("K"))),
        "subject_expected_": kinds.maybe(kinds.array("K")),
        "data_summary_": kinds.dict_of(kinds.number()), "objective_": kinds.ANY_NUMBER,
        "history_": kinds.array("iterations", infinite=True, nan=True),
        "n_iter_": kinds.COUNT, "converged_": kinds.FLAG,
        "fit_check_": kinds.Sometimes(kinds.maybe(kinds.result("OwnCheck"))),
    }  # fmt: skip

    window_: tuple[float, float]
    time_unit_: str | None
    objective_: float
    converged_: bool
    n_iter_: int
    data_summary_: Mapping[str, float] = MappingProxyType({})
    subject_expected_: Floats | None = None
    subject_effects_: Floats | None = None
    effect_choice_: str = "as asked"
    coefficients_: CovariateEffects | None = None
    compression_: Compression | None = None
    fit_check_: OwnCheck | None = None
    n_left_out_: int = 0
    #: types of events of a fit that has several
    event_types_: tuple[str, ...] = ()
    time_origin_: str | None = None  # of models that were saved before there was one
    usage_: str | None = None  # what rates are per, if not time
    law_: str = "poisson"
    dispersion_: float = 1.0  # of models without bursts
    effective_draws_: float | None = None  # of models without weighted draws
    pareto_k_: float | None = None
    histories_: SubjectHistories | None = None
    history_: Floats
    times_: Floats  # of step functions: where they jump, and to which values
    values_: Floats
    subjects_: LabelArray
    subject_totals_: Floats
    effect_: str | None
    frailty_shape_: float
    #: whether there is one curve, taken as it is, or a posterior of curves
    _plugs_in: bool = True

    def cumulative(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """Λ(t), the expected number of events from the window's start to t.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> round(model.cumulative(24.0), 2)
        3.96
        """
        raise NotImplementedError

    def expected_counts(
        self, start: ArrayLike, stop: ArrayLike, *, extrapolate: bool = False
    ) -> Numbers:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> round(model.expected_counts(12.0, 24.0), 2)
        1.98
        """
        raise NotImplementedError

    def intensity(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """λ(t), the rate of events per unit of time and exposure; none unless a class has one.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> round(model.intensity(24.0), 3)
        0.165
        """
        raise NoIntensityError(f"{type(self).__name__} has no intensity; use cumulative(t)")

    def intensity_band(
        self, t: ArrayLike, level: float = 0.95, kind: str = "pointwise", *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:  # fmt: skip
        """Band of λ: (low, high), each shaped like `t`; none unless a class has one.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.intensity_band(24.0)
        >>> bool(low < model.intensity(24.0) < high)
        True
        """
        raise NotFittedError(f"{type(self).__name__} has no bands")

    def cumulative_band(
        self, t: ArrayLike, level: float = 0.95, kind: str = "pointwise", *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:  # fmt: skip
        """Band of Λ: (low, high), each shaped like `t`; none unless a class has one.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.cumulative_band(24.0)
        >>> bool(low < model.cumulative(24.0) < high)
        True
        """
        raise NotFittedError(f"{type(self).__name__} has no bands")

    def score(self, panel: PanelCounts, y: None = None) -> float:
        """Log-likelihood of the counts of these subjects; higher is better.

        Σ ln m!, a sum over all counts m, is left out: it is the same for every model.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.score(gp4c.load_dataset("bladder").where(treatment="placebo")) < 0
        True
        """
        return float(self.score_subjects(panel).sum())

    def score_subjects(self, panel: PanelCounts) -> Floats:
        """Log-likelihood of each subject's counts, in the order of ``panel.subjects``.

        Σ ln m! over the subject's counts m is left out.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
        >>> model.score_subjects(panel).shape
        (85,)
        """
        raise NotImplementedError

    def fit(self, panel: PanelCounts, y: None = None) -> Self:
        """Fit to a panel; `y` is ignored (scikit-learn passes it).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson().fit(panel)
        >>> round(model.rate_, 3)
        0.152
        """
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # help and the API reference would show the arguments of __new__
        parameters = list(inspect.signature(cls.__init__).parameters.values())
        cls.__signature__ = inspect.Signature(parameters[1:])
        if "title" not in vars(cls):
            return
        known = ESTIMATORS.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:  # a saved model must mean one class
            raise TypeError(f"there is an estimator {cls.__name__} in {known.__module__} already")
        ESTIMATORS[cls.__name__] = cls

    def __new__(cls, *args: object, **params: object) -> Self:
        """Refuse an unknown argument with the known ones."""
        known = inspect.signature(cls.__init__).parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in known):
            names = [p.name for p in known][1:]
            for name in params:
                if name not in names:
                    raise TypeError(
                        f"{cls.__name__} has no argument {name!r}; {unknown_name(name, names)}"
                    )
        return super().__new__(cls)

    # -- scikit-learn's parameter protocol ------------------------------------------------

    @classmethod
    def _parameter_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Return the constructor's arguments; `deep` is ignored.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.HomogeneousPoisson(effect="gamma").get_params()["effect"]
        'gamma'
        """
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: object) -> Self:
        """Set constructor arguments by name.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.HomogeneousPoisson().set_params(effect="gamma")
        HomogeneousPoisson(effect='gamma')
        """
        names = self._parameter_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(names)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if not _same(value, defaults[name].default)
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "window_")

    # -- fitting --------------------------------------------------------------------------

    @contextmanager
    def _whole_fit(self, data: PanelCounts | PanelSource | None = None) -> Iterator[None]:
        """Fit inside this: an error or Ctrl-C leaves an earlier fit as it was, or none.

        Data that need more memory than there is are refused before anything begins.
        """
        import_module("gp4c.estimators.large_data.footprint").check_memory(self, data)
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _fit_bytes(self, panel: PanelCounts) -> float:
        """Bytes of the largest arrays of a fit: some columns, unless a class says otherwise."""
        return 200.0 * panel.n_intervals

    # -- saving ---------------------------------------------------------------------------

    @classmethod
    def saved_attributes(cls) -> dict[str, kinds.Check]:
        """Checks of all fitted attributes, those of the base classes first.

        :meta private:
        """
        found: dict[str, kinds.Check] = {}
        for one in reversed(cls.__mro__):
            found |= vars(one).get("saved", {})
        return found

    @classmethod
    def checks_of(cls, state: Mapping[str, object]) -> dict[str, kinds.Check]:
        """Checks of the fitted attributes that a file holds.

        :meta private:
        """
        return cls.saved_attributes()

    def _state(self) -> dict[str, object]:
        """Return what a saved model holds: all fitted attributes."""
        return {name: value for name, value in vars(self).items() if _is_fitted_name(name)}

    def _set_state(self, state: Mapping[str, object]) -> None:
        """Restore what :meth:`_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a JSON file; read it with :func:`gp4c.load_model`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.save("fit.json")  # doctest: +SKIP
        >>> gp4c.load_model("fit.json").rate_ == model.rate_  # doctest: +SKIP
        True
        """
        from gp4c.files.persistence import save_model

        self._check_fitted()
        save_model(self, path)

    def _keep_time_axis(self, data: PanelCounts | RecurrentEvents | PanelSource) -> None:
        """Remember the unit of time of the data, and the date that time 0 stands for."""
        from gp4c.data.timeaxis import as_moment

        self.time_unit_, self.usage_ = data.time_unit, data.usage
        self.time_origin_ = None if data.time_origin is None else str(as_moment(data.time_origin))

    # -- what a fit says about itself ----------------------------------------------------------

    @property
    def n_bootstraps_(self) -> int:
        """Bootstrap samples behind the bands."""
        return 0

    def band_text(self) -> str:
        """How the bands were obtained; empty if there are none yet.

        :meta private:
        """
        return ""

    def components(self) -> Mapping[str, PanelEstimator]:
        """Curves that the model is made of, by name, each as a fitted model; most have none.

        :meta private:
        """
        return {}

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """Tables that only this model has, by name; ``gp4c fit --out`` writes them.

        :meta private:
        """
        return {}

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """Plots that only this model has, by name; each takes axes.

        :meta private:
        """
        return {}

    def factor_methods(self) -> list[str]:
        """Sentences for a methods section about factors of the rate; see :class:`GP4C`.

        :meta private:
        """
        return []

    def new_subject_words(self) -> str:
        """What a forecast says of a new subject's factors; empty if nothing is to say.

        :meta private:
        """
        return ""

    def facts(self) -> list[tuple[str, str, str, float]]:
        """What only this model says in a summary: section, quantity, words, number.

        :meta private:
        """
        return []

    def curve_parameters(self, level: float) -> list[tuple[str, str, str, float, float, float]]:
        """Parameters of a curve with a formula: name, meaning, unit, value, interval.

        :meta private:
        """
        return []

    def _check_curve(self, times: Floats) -> Floats:
        """Λ at times in the window, as closely as a check of the fit needs it."""
        return np.asarray(self.cumulative(times))

    def _check_rows(self, start: Floats, stop: Floats, inputs: Floats) -> Floats:
        """The same over rows that bring inputs to the factors of the rate."""
        return self._mean_integrals(start, stop, "prior", inputs)

    # -- the laws of counts and of subject effects --------------------------------------------

    @property
    def count_law_(self) -> CountLaw:
        """The law of counts given the curve and the effects: one by one, or in bursts."""
        from gp4c.model.laws import LAWS

        return LAWS[self.law_]

    @property
    def effect_law_(self) -> SubjectEffect:
        """The law of the effects of subjects; frailties without variance are none."""
        from gp4c.model.laws import EFFECTS

        law = EFFECTS[self.effect_]
        return EFFECTS[None] if law.varies and np.isinf(self.frailty_shape_) else law

    @property
    def law_parameters_(self) -> Floats:
        """θ of the law of counts, (P,), at its estimate."""
        excess = [self.dispersion_ - 1.0] if self.dispersion_ > 1.0 else []
        return np.asarray(np.log(np.array(excess, dtype=np.float64)))

    def _point_params(self) -> Floats:
        """Parameters of both laws at their estimates, (P, 1)."""
        shape = [np.log(self.frailty_shape_)] if self.effect_law_.varies else []
        return np.concatenate([shape, self.law_parameters_])[:, None]

    def _curve_draws(
        self,
        start: Floats,
        stop: Floats,
        size: int,
        rng: np.random.Generator,
        beyond: str,
        inputs: Floats | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """Draws of ∫λ over intervals (n, size), the laws' parameters (P, size) and β (p, size).

        A plugged-in curve is the same in every draw. `inputs` (n, r) are what the intervals bring
        to a rate with factors that change within intervals.
        """
        fixed = np.asarray(self.expected_counts(start, stop, extrapolate=True))
        params = self._point_params()
        shape = (len(fixed), size)
        curve = np.broadcast_to(fixed[:, None], shape)
        return curve, np.repeat(params, size, axis=1), np.zeros((0, size))

    def _mean_integrals(
        self, start: Floats, stop: Floats, beyond: str, inputs: Floats | None = None
    ) -> Floats:
        """E ∫λ over intervals."""
        return np.asarray(self.expected_counts(start, stop, extrapolate=True))

    # -- forecasts --------------------------------------------------------------------------

    def forecast(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        subjects: Subjects = "auto",
        level: float = 0.9,
        *,
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

        Parameters
        ----------
        start, stop : float or date, or array of them
            One window, or several whose joint distribution is wanted.
        subjects : None, "active", "all", label or list of labels
            A new subject (None); named ones, given what was seen of them; the sum over those in
            service, or over all. By default those in service where the data say who is, else None.
        level : float in (0, 1)
            Probability of the interval.
        every, each
            Divide the window into steps; every window for every subject.
        exposure, usage
            Units at risk, or usage per unit of time, during the windows; "last" as last observed.
        new_units, at
            Planned additions to "active" or "all", and when they enter.
        covariates : dict, optional
            Column to value, for a new subject or to ask what if.
        history : PanelCounts, optional
            What is known of the subjects, if not the panel of the fit.
        beyond : {"auto", "prior", "hold", "trend"}
            How the curve goes on outside the observation window.
        n_draws, random_state
            Draws behind the forecast, and their seed.

        Returns
        -------
        Forecast
            See :func:`gp4c.estimators.forecasts.count_forecast.forecast`, which says more of each.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> round(model.forecast(53, 60).mean, 2)
        1.07
        """
        from gp4c.estimators.forecasts.count_forecast import forecast

        self._check_fitted()
        return forecast(
            self, start, stop, subjects, level, every=every, each=each, exposure=exposure,
            usage=usage, new_units=new_units, at=at, covariates=covariates, history=history,
            beyond=beyond, n_draws=n_draws, random_state=random_state,
        )  # fmt: skip

    def _joint_counts(
        self, known: SubjectHistories | None, covariates: Floats | None, beyond: str,
        own: Floats | None,
    ) -> JointCounts:  # fmt: skip
        """Draws of counts to come of known and new subjects."""
        from gp4c.estimators.forecasts.joint_counts import JointCounts

        return JointCounts(self, known, covariates, beyond, own)

    @property
    def has_factors(self) -> bool:
        """Whether the rate has factors of time besides its curve: a trend, a season."""
        return False

    def factor_numbers(self) -> dict[str, object]:
        """Estimates of these factors by name, for programs.

        :meta private:
        """
        return {}

    @property
    def has_trend(self) -> bool:
        """Whether the fitted rate has a trend that goes on outside the window."""
        return False

    def curve_words(self) -> str:
        """What a forecast says of the error of the curve.

        :meta private:
        """
        return f"The curve of this {type(self).__name__} is plugged in: its error is left out."

    def _covariates_of(self, panel: PanelCounts) -> Floats | None:
        """Covariates of the rows of a panel, for models that have any."""
        return None

    def _inputs_of(self, panel: PanelCounts) -> Floats | None:
        """What the rows of a panel bring to the factors of the rate, (n, r); None without any."""
        return None

    def _neutral_inputs(self) -> Floats:
        """What nobody in particular brings to these factors, (r,)."""
        return np.zeros(0)

    def _inputs_with(self, inputs: Floats, covariates: Floats | None) -> Floats:
        """Inputs (K, r) of subjects whose covariates are these, (K, p)."""
        return inputs

    def _adjusted(self, panel: PanelCounts) -> PanelCounts:
        """The panel with the effects of covariates, if the model has any, in its exposure."""
        return panel

    def unit_ranking(
        self, worst: float = 0.1, level: float = 0.95, *, n_draws: int = 4000
    ) -> pd.DataFrame:
        """Units by the probability that they are among the worst; a frame, worst first.

        See :func:`gp4c.analysis.unit_ranking.unit_ranking`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
        >>> list(model.unit_ranking(worst=0.1).columns[:3])
        ['subject', 'probability', 'effect']
        """
        self._check_fitted()
        ranking = import_module("gp4c.analysis.unit_ranking").unit_ranking
        table: pd.DataFrame = ranking(self, worst, level, n_draws=n_draws)
        return table

    # -- showing --------------------------------------------------------------------------
    # Reporting stands after estimators in the house; these calls reach it by name, so that no
    # model depends on plotting.

    def summary(self) -> ModelSummary:
        """What was fitted, to what, with what result; prints as a table, has ``to_frame()``.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.summary()["events"].text
        '402'
        """
        self._check_fitted()
        found: ModelSummary = import_module("gp4c.reporting.summary").summarise(self)
        return found

    def methods_text(self, length: str = "full") -> str:
        """How the fit was obtained, ready for a methods section.

        Parameters
        ----------
        length : {"full", "short"}
            A paragraph, or a sentence or two for an abstract or a caption.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.methods_text().split(". ")[0]
        'A constant event rate was estimated by maximum likelihood'
        """
        self._check_fitted()
        words = import_module("gp4c.reporting.page.report_method")
        return str(words.methods_text(self, length))

    def table(
        self, what: str = "estimates", *, level: float = 0.95, times: ArrayLike | None = None
    ) -> Table:
        """The fit as a table to publish: ``model.table().save("table2.docx")``.

        Parameters
        ----------
        what : {"estimates", "effects", "curve"}
            Everything that was estimated; the effects of covariates with standard errors; or rate
            and mean number of events at a few times.
        level : float in (0, 1)
            Level of the intervals.
        times : array, optional
            For "curve": which times; eleven over the window if absent.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> model.table().columns
        ('', 'estimate', '95% interval')
        >>> model.table("curve", times=[12, 24]).rows[0][:2]
        ('12', '0.152')
        """
        self._check_fitted()
        tables = import_module("gp4c.reporting.publication.fit_tables")
        found: Table = tables.model_table(self, what, level=level, times=times)
        return found

    def plot(
        self,
        ax: Axes | None = None,
        *,
        what: str | None = None,
        level: float = 0.95,
        panel: PanelCounts | None = None,
        label: str | None = None,
        index: int = 0,
    ) -> Axes:
        """Draw the fitted curve with its band.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure if absent.
        what : {"intensity", "cumulative", "history"}, optional
            The rate, the mean number of events, or the steps of the fit; the rate if absent and
            if there is one.
        level : float in (0, 1)
            Level of the band.
        panel : PanelCounts, optional
            Adds a tick at each visit below the curve.
        label : str, optional
            Name in the key.
        index : int
            Which colour and dashes, for several curves in one plot.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson().fit(gp4c.load_dataset("bladder"))
        >>> ax = model.plot(what="cumulative")
        >>> ax.get_ylabel()
        'mean number of events'
        """
        self._check_fitted()
        draw = import_module("gp4c.reporting.figures.plots").plot_model
        drawn: Axes = draw(
            self, ax, what=what, level=level, panel=panel, label=label, index=index
        )  # fmt: skip
        return drawn

    def _repr_html_(self) -> str:
        return str(import_module("gp4c.reporting.notebook").model_html(self))

    # -- checks ---------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Check constructor arguments; part of every fit."""

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _inside(self, times: ArrayLike, extrapolate: bool) -> Floats:
        """Check times against the window; return them as an array of their own shape."""
        self._check_fitted()
        t = self._as_numbers(times)
        if not np.all(np.isfinite(t)):
            raise ValueError("times must be finite numbers")
        low, high = self.window_
        outside = (t < low) | (t > high)
        if np.any(outside) and not extrapolate:
            worst = float(t[outside].flat[0])
            raise OutsideWindowError(
                f"time {worst:g} is outside the observation window [{low:g}, {high:g}]; "
                "pass extrapolate=True to go beyond it"
            )
        return t

    def _as_numbers(self, times: ArrayLike) -> Floats:
        """Times as numbers; dates are such where the data had dates."""
        plain = np.asarray(times)
        if plain.dtype.kind in "iuf":
            return plain.astype(np.float64, copy=False)
        from gp4c.data.timeaxis import TimeAxis

        return TimeAxis.of(self).numbers(times)

    def _evaluate(
        self, times: ArrayLike, function: Callable[[Floats], Floats], extrapolate: bool = False
    ) -> Numbers:
        """Apply a function of a flat array of times; a scalar in gives a float."""
        t = self._inside(times, extrapolate)
        return shaped_like(t, function(t.ravel()))

    def _over_intervals(
        self, start: ArrayLike, stop: ArrayLike, extrapolate: bool,
        integral: Callable[[Floats, Floats], Floats],
    ) -> Numbers:  # fmt: skip
        """Apply a function of flat starts and stops; two scalars in give a float."""
        first, last = np.broadcast_arrays(
            self._inside(start, extrapolate), self._inside(stop, extrapolate)
        )
        if np.any(last < first):
            raise ValueError("each stop must not be before its start")
        return shaped_like(first, integral(first.ravel(), last.ravel()))


def shaped_like(times: Floats, values: Floats) -> Numbers:
    """Flat values in the shape of the times; a float for a single time."""
    return float(values[0]) if times.ndim == 0 else values.reshape(times.shape)


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def average_exposure(model: PanelEstimator) -> float:
    """Units at risk of the subjects of a fit, averaged over time; 1 if not known, or with usage."""
    known = model.data_summary_
    at_risk, observed = known.get("exposure_time", 0.0), known.get("observed_time", 0.0)
    if model.usage_ is not None or not observed or abs(at_risk - observed) <= 1e-9 * observed:
        return 1.0
    return at_risk / observed
