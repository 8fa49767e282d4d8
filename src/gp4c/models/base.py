"""What every estimator shares: parameters, fitted checks, window checks, saving.

The contract is scikit-learn's (``get_params``, ``set_params``, ``fit``, ``score``; samples are
subjects), written out here because importing scikit-learn costs more than most fits.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.exceptions import NotFittedError, OutsideWindowError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]


class PanelEstimator:
    """Base class of the estimators of gp4c.

    A fitted estimator has attributes whose names end in an underscore; `window_`, `time_unit_`
    and `time_origin_` (the date of time 0, if times were dates) are set by every ``fit``.
    """

    window_: tuple[float, float]
    time_unit_: str | None
    time_origin_: str | None = None  # of models that were saved before there was one

    def fit(self, panel: PanelCounts, y: None = None) -> Self:
        """Fit to a panel; `y` is ignored (scikit-learn passes it)."""
        raise NotImplementedError

    # -- scikit-learn's parameter protocol ------------------------------------------------

    @classmethod
    def _parameter_names(cls) -> list[str]:
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments; `deep` is ignored."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Set constructor arguments by name."""
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

    def __sklearn_tags__(self) -> Any:
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
    def _whole_fit(self, data: Any = None) -> Iterator[None]:
        """Fit inside this: an error or Ctrl-C leaves an earlier fit as it was, or none.

        Data that need more memory than there is are refused before anything begins.
        """
        import_module("gp4c.models.footprint").check_memory(self, data)
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    # -- saving ---------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """Return what a saved model holds: all fitted attributes."""
        return {name: value for name, value in vars(self).items() if _is_fitted_name(name)}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`_state` returned."""
        for name, value in state.items():
            setattr(self, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a JSON file; read it with :func:`gp4c.load_model`."""
        from gp4c.models.persistence import save_model

        self._check_fitted()
        save_model(self, path)

    def _keep_time_axis(self, data: Any) -> None:
        """Remember the unit of time of the data, and the date that time 0 stands for."""
        from gp4c.data.timeaxis import as_moment

        self.time_unit_ = data.time_unit
        self.time_origin_ = None if data.time_origin is None else str(as_moment(data.time_origin))

    # -- forecasts --------------------------------------------------------------------------

    def forecast(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        subjects: Any = None,
        level: float = 0.9,
        **options: Any,
    ) -> Any:
        """Predictive distribution of the counts in (start, stop].

        For a new subject, for named ones given what was seen of them, or for ``"all"``. The
        options are those of :func:`gp4c.models.forecast.forecast`.
        """
        from gp4c.models.forecast import forecast

        self._check_fitted()
        return forecast(self, start, stop, subjects, level, **options)

    def _adjusted(self, panel: PanelCounts) -> PanelCounts:
        """The panel with the effects of covariates, if the model has any, in its exposure."""
        return panel

    # -- showing --------------------------------------------------------------------------
    # Reporting stands after models in the house; these calls reach it by name, so that no
    # model depends on plotting.

    def summary(self) -> Any:
        """What was fitted, to what, with what result; prints as a table, has ``to_frame()``."""
        self._check_fitted()
        return import_module("gp4c.reporting.summary").summarise(self)

    def plot(self, **options: Any) -> Any:
        """Draw the fitted curves; see :func:`gp4c.reporting.plots.plot_model`."""
        self._check_fitted()
        return import_module("gp4c.reporting.plots").plot_model(self, **options)

    def _repr_html_(self) -> str:
        return str(import_module("gp4c.reporting.notebook").model_html(self))

    # -- checks ---------------------------------------------------------------------------

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
    ) -> Any:
        """Apply a function of a flat array of times; a scalar in gives a float."""
        t = self._inside(times, extrapolate)
        values = function(t.ravel())
        return float(values[0]) if t.ndim == 0 else values.reshape(t.shape)


def _is_fitted_name(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def average_exposure(model: Any) -> float:
    """Units at risk of the subjects of a fit, averaged over time; 1 if they are not known."""
    known: dict[str, float] = getattr(model, "data_summary_", None) or {}
    at_risk, observed = known.get("exposure_time", 0.0), known.get("observed_time", 0.0)
    if not observed or abs(at_risk - observed) <= 1e-9 * observed:
        return 1.0
    return at_risk / observed
