"""Curves, bands and scores that know of covariates."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from gp4c.models.gp_base import BAND_DRAWS, GaussianProcessModel

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.models.effects import CovariateEffects

Floats = NDArray[np.float64]
Covariates = Mapping[str, Any]


class CovariateModel(GaussianProcessModel):
    """Prediction from a fitted posterior and fitted coefficients."""

    coefficients_: CovariateEffects | None
    histories_: SubjectHistories

    @property
    def effects_(self) -> pd.DataFrame:
        """Effects of the covariates, one row each; empty without a formula.

        Columns: covariate, coefficient, se (model-based), robust_se (sandwich over subjects),
        rate_ratio, low, high (95%), z and p_value; the last four use the robust error, which is
        right also where counts are overdispersed. See :meth:`effect_table` for other levels.
        """
        return self.effect_table()

    def effect_table(self, level: float = 0.95, *, errors: str = "robust") -> pd.DataFrame:
        """Effects of the covariates at another level, or with other intervals.

        Parameters
        ----------
        level : float in (0, 1)
            Level of the intervals of the rate ratios.
        errors : {"robust", "model", "jackknife"}
            Standard errors behind intervals, z and p-values: the sandwich over subjects; those of
            the model, which rely on its law of the counts; or the jackknife over subjects, a
            little larger and better than the sandwich for fewer than about 100 subjects.
        """
        from gp4c.models.effects import no_effects  # only now: most fits have no covariates

        self._check_fitted()
        known = self._effects()
        return no_effects() if known is None else known.table(level, errors)

    def effects_in_words(self, level: float = 0.95) -> str:
        """One sentence per covariate: factor, interval, p-value, probability; see `effects_`."""
        self._check_fitted()
        words = import_module("gp4c.reporting.effect_rows")  # reporting stands after models
        return str(words.effects_in_words(self, level))

    def subject_effect_table(self, level: float = 0.95) -> pd.DataFrame:
        """Effects of the fitted subjects with intervals, one row each.

        Columns: subject, events, expected (at effect 1), effect (posterior mean, as in
        `subject_effects_`), low, high; see :mod:`gp4c.models.subject_effects`.
        """
        from gp4c.models.subject_effects import subject_effect_table

        self._check_fitted()
        return subject_effect_table(self, level)

    # -- curves -----------------------------------------------------------------------------

    def intensity(
        self,
        t: ArrayLike,
        *,
        covariates: Covariates | None = None,
        subjects: Any = None,
        extrapolate: bool = False,
    ) -> Any:
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
        curve = super().intensity(t, extrapolate=extrapolate)
        return self._multiply(curve, covariates, subjects)

    def cumulative(
        self,
        t: ArrayLike,
        *,
        covariates: Covariates | None = None,
        subjects: Any = None,
        extrapolate: bool = False,
    ) -> Any:
        """Posterior mean of Λ(t), the expected number of events from the window's start to t.

        The options are those of :meth:`intensity`.
        """
        curve = super().cumulative(t, extrapolate=extrapolate)
        return self._multiply(curve, covariates, subjects)

    def expected_counts(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        *,
        covariates: Covariates | None = None,
        subjects: Any = None,
        extrapolate: bool = False,
    ) -> Any:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        The options are those of :meth:`intensity`.
        """
        counts = super().expected_counts(start, stop, extrapolate=extrapolate)
        return self._multiply(counts, covariates, subjects)

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> tuple[Any, Any]:
        """Credible band of λ: (low, high), each shaped like `t`.

        Parameters
        ----------
        level : float in (0, 1)
            Posterior probability between the two curves.
        kind : {"pointwise", "simultaneous"}
            Probability at each time, with equal tails; or of the whole curve over the window to
            lie between the two, which is wider.
        covariates : dict, optional
            As in :meth:`intensity`; the band then also has the uncertainty of the coefficients.
        """
        if covariates is None:
            return super().intensity_band(t, level, kind, extrapolate=extrapolate)
        posterior = self._posterior()
        return self._covariate_band(
            t, level, kind, covariates, extrapolate, self._draw_intensities,
            posterior.intensity_quantile, posterior.intensity_lower,
        )  # fmt: skip

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        covariates: Covariates | None = None,
        extrapolate: bool = False,
    ) -> tuple[Any, Any]:
        """Credible band of Λ(t): (low, high), each shaped like `t`; see :meth:`intensity_band`."""
        if covariates is None:
            return super().cumulative_band(t, level, kind, extrapolate=extrapolate)

        def quantiles(times: Floats, levels: Floats) -> Floats:
            origin = np.full_like(times, self.window_[0])
            first, last = np.minimum(times, origin), np.maximum(times, origin)
            return self._posterior().integral_quantile(first, last, levels)

        low, high = self._covariate_band(
            t, level, kind, covariates, extrapolate, self._draw_cumulatives, quantiles
        )
        before = np.asarray(t) < self.window_[0]  # where Λ < 0
        return np.where(before, -high, low)[()], np.where(before, -low, high)[()]

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
        draws = super().sample_intensity(t, size, random_state, extrapolate=extrapolate)
        if covariates is None:
            return draws
        known, z = self._profile(covariates)
        rng = np.random.default_rng((self._seed(random_state), 1))
        shift = known.log_factor(z) + known.deviations(size, rng) @ z
        return np.asarray(draws * np.exp(shift)[:, None])

    # -- scores -----------------------------------------------------------------------------

    def _log_likelihood_draws(self, panel: PanelCounts, n_draws: int, new_subjects: bool) -> Floats:
        return super()._log_likelihood_draws(self._adjusted(panel), n_draws, new_subjects)

    def _joint_score(self, panel: PanelCounts, n_draws: int) -> tuple[float, float]:
        return super()._joint_score(self._adjusted(panel), n_draws)

    # -- helpers ----------------------------------------------------------------------------

    def _effects(self) -> CovariateEffects | None:
        return getattr(self, "coefficients_", None)

    def _adjusted(self, panel: PanelCounts) -> PanelCounts:
        """The panel with the covariates' effects in its exposure."""
        known = self._effects()
        return panel if known is None else known.adjust(panel)

    def _profile(self, covariates: Covariates) -> tuple[CovariateEffects, Floats]:
        known = self._effects()
        if known is None:
            raise ValueError("covariates= needs a model with covariates: GP4C(formula=...)")
        return known, known.profile(covariates)

    def _multiply(self, curve: Any, covariates: Covariates | None, subjects: Any) -> Any:
        """A curve at average covariates, for chosen covariates or known subjects."""
        if subjects is not None:
            if covariates is not None:
                raise ValueError("covariates= and subjects= exclude each other")
            return self._for_subjects(curve, subjects)
        if covariates is None:
            return curve
        known, z = self._profile(covariates)
        return float(np.exp(known.log_factor(z))) * curve

    def _for_subjects(self, curve: Any, subjects: Any) -> Any:
        several = isinstance(subjects, list | np.ndarray)
        labels = list(subjects) if several else [subjects]
        places = self.histories_.positions(labels)
        factors = np.ones(len(places))
        if self.subject_effects_ is not None:
            factors = self.subject_effects_[places]
        known = self._effects()
        if known is not None:
            factors = factors * np.exp(known.log_factor(known.subject_design[places]))
        if not several:
            return float(factors[0]) * curve
        return np.multiply.outer(factors, np.asarray(curve))

    def _covariate_band(
        self,
        t: ArrayLike,
        level: float,
        kind: str,
        covariates: Covariates,
        extrapolate: bool,
        draw: Any,
        quantiles: Any,
        lower: Any = None,
    ) -> tuple[Any, Any]:
        """Quantiles of the curve times exp(βᵀz), β normal around its estimate.

        At average covariates curve and coefficients are nearly independent. Where `lower`, the
        curve's own lower edge, is below its quantile, so is the product's, in proportion: a
        factor leaves zero where it is.
        """
        from gp4c.inference.covariates import PRODUCT_SCORES, product_quantiles

        known, z = self._profile(covariates)
        rng = np.random.default_rng((self._seed(None), 1))
        scatter = np.exp(known.deviations(BAND_DRAWS, rng) @ z)[:, None]
        tails = self._tails(level, kind, lambda x: draw(x) * scatter)
        x = self._inside(t, extrapolate)
        factor = float(np.exp(known.log_factor(z)))
        curve = quantiles(x.ravel(), ndtr(PRODUCT_SCORES))
        low, high = factor * product_quantiles(curve, known.deviation(z), np.array(tails))
        if lower is not None:
            at, tail = x.ravel(), np.array(tails[:1])
            low = low * lower(at, tail)[0] / np.maximum(quantiles(at, tail)[0], 1e-300)
        if x.ndim == 0:
            return float(low[0]), float(high[0])
        return low.reshape(x.shape), high.reshape(x.shape)
