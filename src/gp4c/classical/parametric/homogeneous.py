"""A constant rate: the yardstick of every comparison."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gp4c.classical.bootstrap import BootstrapEstimator, Draw
from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.parametric.constant_rate import (
    RateFit,
    Totals,
    exact_interval,
    fit_rate_and_frailty,
    profile_interval,
)
from gp4c.classical.parametric.rate_curves import ConstantCurve
from gp4c.classical.parametric.rate_fit import (
    LawFit,
    RateData,
    RateRows,
    fit_laws,
)
from gp4c.classical.parametric.rate_profile import profile_level
from gp4c.classical.plug_in import Floats
from gp4c.estimators.base import Numbers
from gp4c.estimators.fit_warnings import look_back, warn_if_overdispersed, warn_of_misfit
from gp4c.estimators.inputs import check_band, check_choice, check_level
from gp4c.exceptions import ConvergenceWarning
from gp4c.files import kinds
from gp4c.model.dispersion import poisson_dispersion
from gp4c.model.gamma_frailty import frailty_mean
from gp4c.model.laws import EFFECTS, LAWS

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

_TOL = 1e-10


class HomogeneousPoisson(BootstrapEstimator):
    r"""Constant rate ρ, the same for all subjects or varying between them.

    .. math::
        m \sim \mathrm{Poisson}(\gamma_i\, \rho\, e\, (stop - start)), \qquad
        \gamma_i = 1 \text{ or } \gamma_i \sim \mathrm{Gamma}(\alpha, \alpha)

    Without frailty ρ is all events over all time at risk. With ``effect="gamma"`` the frailty
    (mean 1, variance 1/α) is integrated out, and ρ and α are estimated by maximum likelihood.
    With ``bursts=True`` events come in bursts of logarithmic size: given the frailty, a count has
    1 + φ times the variance of a Poisson count, and φ is estimated with the rest.

    **Assumes** that nothing changes over time. **Use it** as the yardstick: a model of the rate
    over time earns its place by a higher score on held-out subjects, and with overdispersed
    counts the yardstick is the one with frailty and bursts.

    **Intervals** need no bootstrap: without either the exact Poisson interval (Garwood 1936),
    which is too narrow if counts are overdispersed; else the profile-likelihood interval.
    After :meth:`bootstrap`, the bands are those of the bootstrap. Outside the window the rate
    goes on unchanged.

    Parameters
    ----------
    effect : {None, "gamma"}
    bursts : bool
        Whether events come in bursts.

    Attributes
    ----------
    rate_ : float
        ρ, events per unit of time and exposure.
    dispersion_ : float
        1 + φ, variance of a count over its mean given the subject's frailty; 1 without bursts,
        or if the data show none.
    burst_size_ : float
        Mean number of events in a burst, φ / ln(1 + φ); 1 without bursts.
    frailty_variance_ : float
        1/α; 0 without frailty.
    frailty_shape_ : float
        α; infinite without frailty, or if the data show no overdispersion.
    subject_effects_ : (n_subjects,) array or None
        Posterior mean frailties, in the order of ``panel.subjects``.
    subject_effect_errors_ : (n_subjects,) array
        Their posterior standard deviations; with frailty and bursts.
    objective_ : float
        Log-likelihood (without Σ ln m!).
    history_, converged_, n_iter_, residual_

    References
    ----------
    Garwood, F. (1936), Fiducial limits for the Poisson distribution, Biometrika 28, 437-442.
    Lawless, J. F. (1987), Negative binomial and mixed Poisson regression, Canadian Journal of
    Statistics 15, 209-225.
    Quenouille, M. H. (1949), A relation between the logarithmic, Poisson, and negative binomial
    series, Biometrics 5, 162-164.
    """

    name = "hpp"
    title = "constant event rate"
    method_text = "A constant event rate was estimated by maximum likelihood."
    effect_options: ClassVar[Mapping[str, str | None]] = {
        "auto": "gamma", "none": None, "gamma": "gamma",
    }  # fmt: skip
    # no bursts is the boundary of bursts, which the likelihood finds by itself
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": True, "yes": True, "no": False}
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "rate_": kinds.number(), "subject_time_at_risk_": kinds.array("K"),
        "bootstrap_": kinds.Sometimes(kinds.dict_of(kinds.array("B"))),
        "dispersion_": kinds.Sometimes(kinds.number(positive=True)),
        "counted_": kinds.Sometimes(kinds.result("RateRows")), "law_": kinds.Sometimes(kinds.law),
        "subject_effect_errors_": kinds.Sometimes(kinds.array("K")),
    }  # fmt: skip

    rate_: float
    objective_: float
    history_: Floats
    converged_: bool
    n_iter_: int
    residual_: float
    subject_effects_: Floats | None
    subject_time_at_risk_: Floats
    counted_: RateRows
    subject_effect_errors_: Floats

    def __init__(self, *, effect: str | None = None, bursts: bool = False) -> None:
        self.effect = effect
        self.bursts = bursts

    def fit(self, panel: PanelCounts, y: None = None) -> Self:
        """Estimate the rate from a panel; `y` is ignored (scikit-learn passes it).

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
        >>> round(model.rate_, 3), round(model.frailty_variance_, 2)
        (0.165, 3.09)
        """
        check_choice("effect", self.effect, (None, "gamma"))
        check_choice("bursts", self.bursts, (False, True))
        with self._whole_fit(panel):
            self._begin_fit(panel)
            rows = self._rows
            self.effect_ = self.effect
            totals = _totals(rows, np.ones(panel.n_subjects))
            found = self._solve(rows, totals)
            self.rate_ = found.rate
            self.frailty_shape_ = 1.0 / found.variance if found.variance > 0.0 else np.inf
            self.history_ = found.history
            self.objective_ = float(self.history_[-1])
            self.n_iter_, self.residual_ = len(found.history), found.residual
            self.converged_ = bool(found.residual <= _TOL)
            self.subject_time_at_risk_ = rows.in_panel_order(totals.time_at_risk)
            self.subject_effects_ = self._effects(totals, found)
            if self.bursts:
                self._keep_bursts(panel, found)
            self._end_fit(panel)
            self.fit_check_ = look_back(self, panel)
        if not self.converged_:
            warnings.warn(
                f"the rate and the frailty variance still moved after {self.n_iter_} rounds "
                f"(residual {self.residual_:.1e}); look for a subject with an extreme count",
                ConvergenceWarning,
                stacklevel=2,
            )
        if self.effect is None and not self.bursts:
            dispersion = poisson_dispersion(totals.events, found.rate * totals.time_at_risk)
            warn_if_overdispersed(type(self).__name__, dispersion, "effect='gamma'")
        warn_of_misfit(self)
        return self

    def _solve(self, rows: PanelRows, totals: Totals) -> RateFit:
        """The maximum for these multiplicities; the log-likelihood without Σ ln m!."""
        if EFFECTS[self.effect].varies:
            found = fit_rate_and_frailty(totals, _TOL)
        else:
            rate = totals.pooled_rate
            found = RateFit(rate, 0.0, 0.0, np.array([totals.log_likelihood(rate, 0.0)]))
        logs = rows.count * np.log(rows.time_at_risk())
        constant = float(totals.weights @ rows.by_subject(logs))
        plain = replace(found, history=found.history + constant)
        if not self.bursts or plain.rate == 0.0:
            return plain
        data = RateData(_counted(rows), ConstantCurve(), totals.weights)
        best = fit_laws(data, LAWS["bursts"], EFFECTS[self.effect], _TOL, _law_fit(plain, self))
        if best.law.one_by_one:
            return plain
        return RateFit(
            float(np.exp(best.x[0])), best.variance, best.residual, best.history,
            best.dispersion - 1.0,
        )  # fmt: skip

    def _keep_bursts(self, panel: PanelCounts, found: RateFit) -> None:
        """What a fit with bursts leaves behind besides."""
        self.dispersion_ = 1.0 + found.excess
        self.law_ = "bursts" if found.excess > 0.0 else "poisson"
        self.counted_ = _counted(self._rows)
        if self.effect is not None:
            expected = found.rate * panel.exposure * (panel.stop - panel.start)
            moments = self._effect_moments(panel, expected)
            self.subject_effects_, self.subject_effect_errors_ = moments

    def _effects(self, totals: Totals, found: RateFit) -> Floats | None:
        if self.effect is None:
            return None
        exposure = found.rate * totals.time_at_risk
        return self._rows.in_panel_order(frailty_mean(found.variance, totals.events, exposure))

    def intensity(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """The rate ρ at each time, in events per unit of time and exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        extrapolate : bool
            Allow times outside the window.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> model.intensity(24.0) == model.rate_
        True
        """
        return self._evaluate(t, lambda x: np.full_like(x, self.rate_), extrapolate)

    def rate_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of ρ: exact Poisson, or profile likelihood with frailty or bursts.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.rate_interval(0.95)
        >>> low < model.rate_ < high
        True
        """
        self._check_fitted()
        check_level(level)
        if self.bursts:
            return self._burst_interval(level)
        weights = np.ones(len(self.subject_totals_))
        totals = Totals(self.subject_totals_, self.subject_time_at_risk_, weights)
        if self.effect_ is None:
            return exact_interval(totals.n_events, float(totals.time_at_risk.sum()), level)
        fit = RateFit(self.rate_, 1.0 / self.frailty_shape_, self.residual_, self.history_)
        return profile_interval(totals, fit, level)

    def _burst_interval(self, level: float) -> tuple[float, float]:
        data = RateData(self.counted_, ConstantCurve(), np.ones(self.counted_.n_subjects))
        if data.n_events == 0.0:
            return exact_interval(0.0, float(self.counted_.time_at_risk.sum()), level)
        fit = RateFit(
            self.rate_, self.frailty_variance_, self.residual_, self.history_,
            self.dispersion_ - 1.0,
        )  # fmt: skip
        return profile_level(data, _law_fit(fit, self, every=True), level)

    def band_text(self) -> str:
        """Bootstrap samples, or the likelihood.

        :meta private:
        """
        return super().band_text() or (
            "Intervals of the rate are exact Poisson or profile-likelihood intervals."
        )

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Confidence band of the rate: (low, high), each shaped like `t`.

        The interval of the one parameter, so that pointwise and simultaneous bands agree: see
        :meth:`rate_interval`; percentiles of the bootstrap after :meth:`bootstrap`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> model.intensity_band(24.0) == model.rate_interval()
        True
        """
        if self.n_bootstraps_:
            return super().intensity_band(t, level, kind, extrapolate=extrapolate)
        return self._both_ends(t, level, kind, extrapolate, lambda x, rate: np.full_like(x, rate))

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Confidence band of Λ(t): (low, high); see :meth:`intensity_band`.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.cumulative_band(24.0)
        >>> bool(low < model.cumulative(24.0) < high)
        True
        """
        if self.n_bootstraps_:
            return super().cumulative_band(t, level, kind, extrapolate=extrapolate)
        return self._both_ends(t, level, kind, extrapolate, self._line)

    def _both_ends(
        self,
        t: ArrayLike,
        level: float,
        kind: str,
        extrapolate: bool,
        curve: Callable[[Floats, float], Floats],
    ) -> tuple[Numbers, Numbers]:
        check_band(level, kind)
        low, high = self.rate_interval(level)
        return (
            self._evaluate(t, lambda x: curve(x, low), extrapolate),
            self._evaluate(t, lambda x: curve(x, high), extrapolate),
        )

    def _line(self, times: Floats, rate: float) -> Floats:
        elapsed = times - self.window_[0]
        return np.where(elapsed == 0.0, 0.0, rate * np.where(elapsed == 0.0, 1.0, elapsed))

    def _cumulative(self, times: Floats) -> Floats:
        return self._line(times, self.rate_)

    def _draw(self, rows: PanelRows, weights: Floats) -> tuple[Draw, bool]:
        found = self._solve(rows, _totals(rows, weights))
        return {"rate": np.array(found.rate)}, bool(found.residual <= _TOL)

    def _intensity_draws(self, times: Floats) -> Floats:
        return np.repeat(self.bootstrap_["rate"][:, None], len(times), axis=1)

    def _cumulative_draws(self, times: Floats) -> Floats:
        return np.multiply.outer(self.bootstrap_["rate"], times - self.window_[0])


def _totals(rows: PanelRows, weights: Floats) -> Totals:
    return Totals(rows.by_subject(rows.count), rows.by_subject(rows.time_at_risk()), weights)


def _counted(rows: PanelRows) -> RateRows:
    every = RateRows(
        rows.count, rows.start, rows.stop, rows.exposure, rows.subject,
        np.zeros((len(rows.count), 0)), rows.n_subjects,
    )  # fmt: skip
    return every.merged()


def _law_fit(fit: RateFit, model: HomogeneousPoisson, every: bool = False) -> LawFit:
    """A fit on the scale of the laws' parameters.

    Of the laws that it ended in; or of `every` law that was asked for, as a start of a search.
    """
    effect = EFFECTS[model.effect if every or fit.variance > 0.0 else None]
    law = LAWS["bursts" if every or fit.excess > 0.0 else "poisson"]
    psi = [-np.log(max(fit.variance, 1e-3))] * len(effect.parameters)
    theta = [np.log(max(fit.excess, 1e-2))] * len(law.parameters)
    x = np.array([np.log(fit.rate), *psi, *theta])
    return LawFit(law, effect, x, 1, fit.residual, fit.history)
