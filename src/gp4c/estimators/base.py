"""What every estimator is: a fitted curve that is scored, saved, forecast from and shown.

The contract is scikit-learn's (``get_params``, ``set_params``, ``fit``, ``score``; samples are
subjects). What can be asked of any fit is in :mod:`gp4c.estimators.interfaces`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.interfaces.fitted_window import FittedWindow
from gp4c.estimators.interfaces.showing import Showing
from gp4c.exceptions import NoIntensityError, NotFittedError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.data.tables.sources import PanelSource
    from gp4c.estimators.forecasts.count_forecast import Subjects
    from gp4c.estimators.forecasts.forecast_layout import Step
    from gp4c.estimators.forecasts.forecast_result import Forecast
    from gp4c.estimators.forecasts.joint_counts import JointCounts

Floats = NDArray[np.float64]
#: values of a curve: a number for one time, an array for an array of times
Numbers: TypeAlias = "float | Floats"

#: every estimator by the name of its class; one joins by being defined
ESTIMATORS: dict[str, type[PanelEstimator]] = {}


class PanelEstimator(Showing, FittedWindow):
    """Base class of the estimators of gp4c.

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
        Fitted attributes that a class adds; see
        :class:`gp4c.estimators.interfaces.fitted_state.FittedState`.
    """

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
        if "title" not in vars(cls):
            return
        known = ESTIMATORS.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:  # a saved model must mean one class
            raise TypeError(f"there is an estimator {cls.__name__} in {known.__module__} already")
        ESTIMATORS[cls.__name__] = cls

    # -- fitting --------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Check constructor arguments; part of every fit."""

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

    def _check_curve(self, times: Floats) -> Floats:
        """Λ at times in the window, as closely as a check of the fit needs it."""
        return np.asarray(self.cumulative(times))

    def _check_rows(self, start: Floats, stop: Floats, inputs: Floats) -> Floats:
        """The same over rows that bring inputs to the factors of the rate."""
        return self._mean_integrals(start, stop, "prior", inputs)

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
        return f"The curve of this {type(self).__name__} is taken as exact: its error is left out."

    def new_subject_words(self) -> str:
        """What a forecast says of a new subject's factors; empty if nothing is to say.

        :meta private:
        """
        return ""

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
