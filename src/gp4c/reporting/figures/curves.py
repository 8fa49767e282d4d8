"""The curves of a fitted model on a grid, with bands: what tables, plots and reports show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.data.timeaxis import TimeAxis
from gp4c.estimators.base import Numbers
from gp4c.estimators.gp_base import GaussianProcessModel
from gp4c.estimators.interfaces.credible import equal_tails
from gp4c.estimators.interfaces.fitted_state import average_exposure
from gp4c.exceptions import NoIntensityError, NotFittedError
from gp4c.plain import per, singular
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.analysis.comparison import Comparison
    from gp4c.estimators.base import PanelEstimator
    from gp4c.posterior.draws import CurveDraws
    from gp4c.posterior.sparse_posterior import Posterior

Floats: TypeAlias = NDArray[np.float64]
# level -> (low, high)
Bands: TypeAlias = dict[float, tuple[Floats, Floats]]

#: points of a curve, enough for a smooth line on paper
N_POINTS = 201
#: what curves are said to be where subjects had exposures
AT_EXPOSURE = " at exposure 1"


def at_exposure(model: PanelEstimator) -> str:
    """At which exposure or usage the mean number of events of a fit is, if that needs saying."""
    if model.usage_ is not None:
        return f" at 1 {singular(model.usage_)} of usage {per(model.time_unit_)}"
    return AT_EXPOSURE if average_exposure(model) != 1.0 else ""


#: points of a ratio, which takes draws at every one
_RATIO_POINTS = 100
#: jumps of a step function up to which each has a row of its own
_MOST_JUMPS = 5000


@dataclass(frozen=True, eq=False)
class Curves:
    """Rate and expected number of events over time.

    Attributes
    ----------
    times : (T,) array
    cumulative : (T,) array
        Expected number of events from the window's start to each time.
    cumulative_bands : dict
        Level to (low, high); empty if the model has no bands.
    rate : (T,) array or None
        None for step functions, which have no rate.
    rate_bands : dict
    window : (float, float)
        Where the data are; times outside it are extrapolated.
    time_unit : str or None
    step : bool
        Whether the curve jumps between its times.
    time_origin : str or None
        The date of time 0, if times were dates.
    exposed : str
        Which exposure or usage the mean number of events belongs to, if that needs saying.
    usage : str, optional
        What the rate is per, if not time.
    """

    times: Floats
    cumulative: Floats
    cumulative_bands: Bands
    rate: Floats | None
    rate_bands: Bands
    window: tuple[float, float]
    time_unit: str | None
    step: bool
    time_origin: str | None = None
    exposed: str = ""
    usage: str | None = None

    @property
    def axis(self) -> TimeAxis:
        """The axis of time.

        :meta private:
        """
        return TimeAxis(self.time_unit, self.time_origin)

    @property
    def rate_label(self) -> str:
        """What the rate is: ``events per month``."""
        at = "" if self.usage else self.exposed
        return f"events {per(self.time_unit, self.usage)}{at}"

    @property
    def cumulative_label(self) -> str:
        """What the other curve is."""
        return f"mean number of events{self.exposed}"

    @property
    def levels(self) -> tuple[float, ...]:
        """Levels of the bands, increasing."""
        return tuple(sorted(self.cumulative_bands))

    def to_frame(self, level: float | None = None) -> pd.DataFrame:
        """One row per time; `level` chooses the band (the widest if absent).

        Columns are time, rate, rate_low, rate_high, cumulative, cumulative_low and
        cumulative_high; what the model does not have is left out.

        Examples
        --------
        >>> import gp4c
        >>> from gp4c.reporting.figures.curves import curves_of
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> list(curves_of(model).to_frame().columns[:2])
        ['time', 'rate']
        """
        import pandas as pd

        columns: dict[str, Floats] = {"time": self.times}
        for name, values, bands in (
            ("rate", self.rate, self.rate_bands),
            ("cumulative", self.cumulative, self.cumulative_bands),
        ):
            if values is not None:
                columns[name] = values
            if bands:
                low, high = bands[max(bands) if level is None else level]
                columns |= {f"{name}_low": low, f"{name}_high": high}
        return pd.DataFrame(columns)


class At(TypedDict, total=False):
    """Where a curve is asked for."""

    extrapolate: bool
    covariates: Mapping[str, object]


def curves_of(
    model: PanelEstimator,
    times: ArrayLike | None = None,
    *,
    levels: Sequence[float] = (0.95,),
    kind: str = "pointwise",
    covariates: Mapping[str, object] | None = None,
    extrapolate: bool = False,
) -> Curves:
    """Evaluate a fitted model on a grid.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of gp4c.
    times : array, optional
        Increasing times; the window (for a step function, its jumps) if absent.
    levels : sequence of float
        Levels of the bands.
    kind : {"pointwise", "simultaneous"}
        Probability of the band at each time, or of the whole curve.
    covariates : dict, optional
        Of a model with a formula: values of covariates, those not named at their average.
    extrapolate : bool
        Allow times outside the window.
    """
    step = model.is_step
    # only models with a formula know of covariates, which mypy cannot tell
    cumulative: Callable[..., Numbers] = model.cumulative
    intensity: Callable[..., Numbers] = model.intensity
    t = default_times(model) if times is None else np.atleast_1d(np.asarray(times, dtype=float))
    how: At = {"extrapolate": extrapolate}
    if covariates is not None:  # only models with a formula know the word
        how["covariates"] = covariates
    with one_blas_thread():  # many small matrices: threads would only wait for each other
        rate_bands = (
            {} if step else bands_of(model, "intensity", t, levels=levels, kind=kind, **how)
        )
        return Curves(
            times=t,
            cumulative=np.asarray(cumulative(t, **how)),
            cumulative_bands=bands_of(model, "cumulative", t, levels=levels, kind=kind, **how),
            rate=None if step else np.asarray(intensity(t, **how)),
            rate_bands=rate_bands,
            window=model.window_,
            time_unit=model.time_unit_,
            step=step,
            time_origin=model.time_origin_,
            exposed=at_exposure(model),
            usage=model.usage_,
        )


def bands_of(
    model: PanelEstimator,
    curve: str,
    times: Floats,
    *,
    levels: Sequence[float],
    kind: str = "pointwise",
    **how: Unpack[At],
) -> Bands:
    """Bands of a curve ("intensity" or "cumulative") at several levels; none if it has none."""
    posterior = model.posterior_ if isinstance(model, GaussianProcessModel) else None
    inside = times.min() >= model.window_[0] and times.max() <= model.window_[1]
    if posterior is not None and kind != "simultaneous" and inside and "covariates" not in how:
        return _posterior_bands(posterior, curve, times, model.window_[0], levels)
    method: Callable[..., tuple[Numbers, Numbers]] = (
        model.intensity_band if curve == "intensity" else model.cumulative_band
    )
    try:
        pairs = {level: method(times, level=level, kind=kind, **how) for level in levels}
        return {level: (np.asarray(low), np.asarray(high)) for level, (low, high) in pairs.items()}
    except (NotFittedError, NoIntensityError):  # no bootstrap yet; no rate
        return {}


def _posterior_bands(
    posterior: Posterior | CurveDraws,
    curve: str,
    times: Floats,
    origin: float,
    levels: Sequence[float],
) -> Bands:  # fmt: skip
    """Quantiles of all levels at once: what they share is most of the work."""
    tails = np.array([equal_tails(level) for level in levels])
    if curve == "intensity":
        edges = posterior.intensity_edges(times, tails[:, 0], tails[:, 1])
        values = edges.transpose(1, 0, 2)
    else:
        values, after = np.zeros((tails.size, len(times))), times > origin  # Λ starts at 0
        start = np.full(int(after.sum()), origin)
        values[:, after] = posterior.integral_quantile(start, times[after], tails.ravel())
    pairs = values.reshape(len(levels), 2, len(times))
    return {level: (pair[0], pair[1]) for level, pair in zip(levels, pairs, strict=True)}


def default_times(model: PanelEstimator, points: int = N_POINTS) -> Floats:
    """Times that show the whole curve: evenly spaced, or the jumps of a step function."""
    start, end = model.window_
    if model.is_step and len(model.times_) <= _MOST_JUMPS:
        jumps: Floats = np.unique(np.concatenate([[start, end], model.times_]))
        return jumps
    return np.linspace(start, end, points)


def ratio_times(comparison: Comparison) -> Floats:
    """Times of a ratio over time; the comparison keeps its draws at them for whoever asks next."""
    start, end = comparison.panel.window
    times: Floats = np.linspace(start, end, _RATIO_POINTS + 1)[1:]
    return times
