"""A fitted growth model as a curve: values, bands, intervals, forecasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gp4c.classical.bootstrap import BootstrapEstimator
from gp4c.classical.parametric.rate_curves import RateCurve
from gp4c.classical.parametric.rate_fit import LawFit, RateData, RateRows
from gp4c.classical.parametric.rate_profile import profile_interval_of
from gp4c.classical.plug_in import Floats
from gp4c.data.subject_histories import SubjectHistories
from gp4c.estimators.base import Numbers
from gp4c.estimators.inputs import check_band, check_choice, check_level
from gp4c.estimators.regression.covariate_tables import Covariates, CovariateTables
from gp4c.plain import per, singular

if TYPE_CHECKING:
    from gp4c.classical.parametric.goodness import GoodnessOfFit


#: widest band, in nats on each side, and largest ln ∫λ: where data say nothing about a curve
_WIDEST, _LARGEST = 100.0, 600.0
#: most expected events of a draw: more than that cannot be drawn from a law of counts
_MOST_EVENTS = 1e15


class GrowthCurve(CovariateTables, BootstrapEstimator):
    """A rate with a level, one shape parameter and coefficients.

    A subclass says which curve (:meth:`_curve`), and names its parameters.
    """

    #: a formula has mass everywhere: only what rounds to 0 is lifted
    _floor_events = 1e-20
    #: what the classical parameters are called in a summary, and what they mean
    _words: ClassVar[Mapping[str, tuple[str, str]]] = {}
    #: what they are counted in, of those that have a unit
    _kinds: ClassVar[Mapping[str, str]] = {}

    objective_: float
    history_: Floats
    residual_: float
    position_: Floats
    covariance_: Floats
    rows_: RateRows
    histories_: SubjectHistories
    subject_effect_errors_: Floats | None

    def _curve(self, window: tuple[float, float]) -> RateCurve:
        """The family of shapes on a window."""
        raise NotImplementedError

    @property
    def _fitted_data(self) -> RateData:
        return RateData(self.rows_, self._curve(self.window_), np.ones(self.rows_.n_subjects))

    @property
    def _fitted(self) -> LawFit:
        """The fit, under the laws that it ended in."""
        n_rate = len(self.position_) - len(self._point_params())
        return LawFit(
            self.count_law_, self.effect_law_, self.position_, n_rate, self.residual_,
            self.history_,
        )  # fmt: skip

    def _shape(self) -> tuple[float, float]:
        """ln ρ and g."""
        return float(self.position_[0]), float(self.position_[1])

    def _derived(self, name: str) -> float:
        """A classical parameter."""
        self._check_fitted()
        parameter = self._curve(self.window_).derived(self.window_[1])[name]
        return parameter.value(parameter.at(*self._shape()))

    @property
    def mtbf_(self) -> float:
        """Mean time between failures now: 1/λ at the window's end, per unit of exposure."""
        return self._derived("mtbf")

    @property
    def scale_(self) -> float:
        """Scale of the curve; the class says of what."""
        return self._derived("scale")

    def interval(self, name: str, level: float = 0.95) -> tuple[float, float]:
        """Profile-likelihood interval of a classical parameter.

        Parameters
        ----------
        name : str
            "mtbf", "scale", and the shape of the class.
        level : float in (0, 1)

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LogLinear(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.interval("slope")
        >>> low < model.slope_ < high
        True
        """
        self._check_fitted()
        check_level(level)
        known = self._curve(self.window_).derived(self.window_[1])
        check_choice("name", name, tuple(known))
        return profile_interval_of(self._fitted_data, self._fitted, known[name], level)

    def goodness_of_fit(self, n_bootstraps: int = 199, random_state: int = 0) -> GoodnessOfFit:
        """Pearson's test over classes of time, each with 5 or more expected events.

        Without frailty and bursts the p-value is that of χ²; with either it comes from counts
        simulated from the fit (:mod:`gp4c.classical.parametric.goodness`).

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LogLinear(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> 0 < model.goodness_of_fit(n_bootstraps=19).p_value <= 1
        True
        """
        from gp4c.classical.parametric.goodness import pearson

        self._check_fitted()
        return pearson(self._fitted_data, self._fitted, n_bootstraps, random_state)

    def curve_parameters(self, level: float) -> list[tuple[str, str, str, float, float, float]]:
        """Classical parameters for a summary: name, meaning, unit, value, ends of the interval.

        :meta private:
        """
        found = []
        for name, (title, meaning) in self._words.items():
            unit, rest = self._unit_of(name)
            value, ends = self._derived(name), self.interval(name, level)
            found.append((title, meaning + rest, unit, value, *ends))
        return found

    def _unit_of(self, name: str) -> tuple[str, str]:
        """The unit of a parameter; and at which usage it holds, if it is a time."""
        unit, usage = self.time_unit_, self.usage_
        kind = self._kinds.get(name)
        if kind == "between":
            return (f"{usage} of usage" if usage else unit or ""), ""
        if kind == "rate":
            return per(unit, usage), ""
        if kind == "time":
            return unit or "", f" at 1 {singular(usage)} of usage {per(unit)}" if usage else ""
        return (per(unit), "") if kind == "per time" else ("", "")

    def _log_factor(self, covariates: Covariates | None) -> tuple[Floats, float]:
        """z of chosen covariates and βᵀz."""
        if covariates is None:
            known = self._effects()
            return np.zeros(0 if known is None else len(known.beta)), 0.0
        known, z = self._profile(covariates)
        return z, float(known.log_factor(z))

    def intensity(
        self, t: ArrayLike, *, covariates: Covariates | None = None, extrapolate: bool = False
    ) -> Numbers:
        """The rate λ(t), in events per unit of time and exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        covariates : dict, optional
            Column to value, those not named at their average; without it all at their average.
        extrapolate : bool
            Allow times outside the window, where the curve goes on by its formula.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.LogLinear(effect="gamma", formula="treatment").fit(panel)
        >>> treated = model.intensity(24.0, covariates={"treatment": "thiotepa"})
        >>> treated < model.intensity(24.0)
        True
        """
        _, shift = self._log_factor(covariates)
        return self._evaluate(t, lambda x: np.exp(shift + self._log_intensity(x)[0]), extrapolate)

    def cumulative(
        self, t: ArrayLike, *, covariates: Covariates | None = None, extrapolate: bool = False
    ) -> Numbers:
        """Λ(t), the expected number of events from the window's start to t.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LogLinear(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> model.cumulative([12.0, 24.0]).round(2)
        array([2.12, 4.05])
        """
        factor = float(np.exp(self._log_factor(covariates)[1]))
        return self._evaluate(t, lambda x: factor * self._cumulative(x), extrapolate)

    def expected_counts(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> Numbers:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LogLinear(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> round(model.expected_counts(12.0, 24.0), 2)
        1.93
        """
        factor = float(np.exp(self._log_factor(covariates)[1]))
        return factor * super().expected_counts(start, stop, extrapolate=extrapolate)

    def _log_intensity(self, times: Floats) -> tuple[Floats, Floats]:
        level, g = self._shape()
        value, slope = self._curve(self.window_).log_rate(times, g)
        return level + value, slope

    def _cumulative(self, times: Floats) -> Floats:
        start = np.full_like(times, self.window_[0])
        return np.asarray(self._integrals(self.position_[:2, None], start, times)[:, 0])

    def _integrals(self, x: Floats, start: Floats, stop: Floats, beyond: str = "prior") -> Floats:
        """∫λ over intervals for draws of (ln ρ, g), (2, S): (n, S), negative if stop < start.

        With `beyond` = "hold" the rate stays as it is at the window's end.
        """
        curve, (_, end) = self._curve(self.window_), self.window_
        if beyond == "hold":
            last = np.exp(x[0] + curve.log_rate(np.array([[end]]), x[1])[0])
            after = np.maximum(stop - end, 0.0) - np.maximum(start - end, 0.0)
            inside = self._integrals(x, np.minimum(start, end), np.minimum(stop, end))
            return np.asarray(inside + after[:, None] * last)
        start, stop = np.maximum(start, curve.origin), np.maximum(stop, curve.origin)
        low, high = np.minimum(start, stop), np.maximum(start, stop)
        result = np.zeros((len(low), x.shape[1]))
        some = np.flatnonzero(high > low)
        value = curve.log_integral(low[some, None], high[some, None], x[1])[0]
        grown = np.exp(np.minimum(x[0] + value, _LARGEST))
        result[some] = np.sign(stop - start)[some, None] * grown
        return result

    # -- bands --------------------------------------------------------------------------------

    def band_text(self) -> str:
        """Bootstrap samples, or the likelihood.

        :meta private:
        """
        return super().band_text() or (
            "Bands are Wald bands on the log scale, intervals of parameters profile-likelihood "
            "intervals."
        )

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Confidence band of λ: (low, high), each shaped like `t`.

        By the delta method on the log scale, from the observed information; simultaneous bands
        are Scheffé's, for all curves of the family at once. After :meth:`bootstrap` percentiles
        of the bootstrap samples (at average covariates).

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LogLinear(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.intensity_band(24.0)
        >>> bool(low < model.intensity(24.0) < high)
        True
        """
        if self.n_bootstraps_ and covariates is None:
            return super().intensity_band(t, level, kind, extrapolate=extrapolate)
        return self._wald(self._log_intensity, t, level, kind, covariates, extrapolate)

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Confidence band of Λ(t): (low, high); see :meth:`intensity_band`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.LogLinear(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.cumulative_band(24.0)
        >>> bool(low < model.cumulative(24.0) < high)
        True
        """
        if self.n_bootstraps_ and covariates is None:
            return super().cumulative_band(t, level, kind, extrapolate=extrapolate)
        return self._wald(self._log_cumulative, t, level, kind, covariates, extrapolate)

    def _log_cumulative(self, times: Floats) -> tuple[Floats, Floats]:
        """ln Λ and its derivative in g; −∞ and 0 at the window's start."""
        level, g = self._shape()
        value, slope = np.full_like(times, -np.inf), np.zeros_like(times)
        some = times > self.window_[0]
        begin = np.full(int(some.sum()), self.window_[0])
        found = self._curve(self.window_).log_integral(begin, times[some], g)
        value[some], slope[some] = level + found[0], found[1]
        return value, slope

    def _wald(
        self, curve: Callable[[Floats], tuple[Floats, Floats]], t: ArrayLike, level: float,
        kind: str, covariates: Covariates | None, beyond: bool,
    ) -> tuple[Numbers, Numbers]:  # fmt: skip
        from scipy.special import chdtri

        self._check_fitted()
        check_band(level, kind)
        z, shift = self._log_factor(covariates)
        reach = float(np.sqrt(chdtri(2.0 if kind == "simultaneous" else 1.0, 1.0 - level)))

        def end(times: Floats, sign: float) -> Floats:
            value, slope = curve(times)
            along = np.concatenate(
                [np.ones((1, len(times))), slope[None], np.repeat(z[:, None], len(times), axis=1)]
            )
            some = self.covariance_[: len(along), : len(along)]
            error = np.sqrt(np.maximum(np.einsum("it,ij,jt->t", along, some, along), 0.0))
            away = np.minimum(reach * error, _WIDEST)
            return np.asarray(np.exp(value + shift + sign * away))

        return (
            self._evaluate(t, lambda x: end(x, -1.0), beyond),
            self._evaluate(t, lambda x: end(x, 1.0), beyond),
        )

    def _intensity_draws(self, times: Floats) -> Floats:
        level, g = self.bootstrap_["rate"].T[:, :, None]
        return np.asarray(np.exp(level + self._curve(self.window_).log_rate(times, g)[0]))

    def _cumulative_draws(self, times: Floats) -> Floats:
        start = np.full_like(times, self.window_[0])
        return self._integrals(self.bootstrap_["rate"].T, start, times).T

    # -- forecasts ----------------------------------------------------------------------------

    @property
    def has_trend(self) -> bool:
        """Growth goes on outside the window."""
        return True

    def curve_words(self) -> str:
        """What a forecast says of the error of the curve.

        :meta private:
        """
        return (
            f"Draws of the curve of this {type(self).__name__} follow the normal law of its "
            "estimates; the laws of counts and effects are held at theirs."
        )

    def _curve_draws(
        self,
        start: Floats,
        stop: Floats,
        size: int,
        rng: np.random.Generator,
        beyond: str,
        inputs: Floats | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        """Draws of level, shape and coefficients from their normal law; a single one is the mode.

        Parameters of the laws are held.
        """
        d = 2 + self.rows_.z.shape[1]
        x = np.repeat(self.position_[:d, None], size, axis=1)
        if size > 1:
            low, high = self._curve(self.window_).limits[0]
            values, axes = np.linalg.eigh(self.covariance_[:d, :d])
            root = axes * np.sqrt(np.maximum(values, 0.0))
            x = x + root @ rng.standard_normal((d, size))
            x[1] = np.clip(x[1], low, high)
        params = np.repeat(self._point_params(), size, axis=1)
        integrals = self._integrals(x[:2], start, stop, beyond)
        return np.minimum(integrals, _MOST_EVENTS), params, x[2:]

    def _mean_integrals(
        self, start: Floats, stop: Floats, beyond: str, inputs: Floats | None = None
    ) -> Floats:
        return np.asarray(self._integrals(self.position_[:2, None], start, stop, beyond)[:, 0])
