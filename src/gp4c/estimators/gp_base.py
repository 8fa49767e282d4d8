"""What GP4C and GP3 share: everything that a fitted posterior answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.base import Numbers
from gp4c.estimators.inputs import check_band
from gp4c.estimators.reported_bounds import FittedBounds
from gp4c.files import kinds
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.draws import CurveDraws, weighted_quantiles
from gp4c.posterior.forecasting import expected_integrals, integral_draws
from gp4c.posterior.quantiles import simultaneous_level
from gp4c.posterior.scoring import ScoredRows, log_mean_exp, subject_log_likelihoods
from gp4c.posterior.sparse_posterior import Posterior
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import DataTree

    from gp4c.data.distinct import DistinctIntervals
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.engine_fit import EngineData
    from gp4c.estimators.forecasts.continuation import Continuation
    from gp4c.inference.sampler.sampler_report import SamplerReport
    from gp4c.inference.variational.bound import Bound

Floats = NDArray[np.float64]

#: draws per score, so that its Monte-Carlo error is small beside differences between models
SCORE_DRAWS = 4000
#: draws of the curve, and times in the window, behind a simultaneous band
BAND_DRAWS, BAND_POINTS = 2000, 400
#: most numbers held at once while scoring
_SCORE_CHUNK = 20_000_000
#: draws behind the mean curve with which a fit checks itself, and most times that it is taken at
_CHECK_DRAWS, _CHECK_TIMES = 256, 4097


class GaussianProcessModel(FittedBounds):
    """Prediction and scoring from a fitted posterior of λ."""

    has_posterior = True
    effect_options: ClassVar[Mapping[str, str | None]] = {
        "auto": "auto", "none": None, "gamma": "gamma",
    }  # fmt: skip
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": "auto", "yes": True, "no": False}

    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "posterior_": kinds.result("Posterior", "CurveDraws", "ModulatedDraws"),
        "law_": kinds.Sometimes(kinds.law), "frailty_variance_": kinds.number(),
        "dispersion_": kinds.Sometimes(kinds.number(positive=True)),
        "burst_size_": kinds.number(positive=True),
        "effective_draws_": kinds.Sometimes(kinds.ANY_NUMBER),
        "pareto_k_": kinds.Sometimes(kinds.ANY_NUMBER),
        "evidences_": kinds.Sometimes(kinds.dict_of(kinds.ANY_NUMBER)),
        "sampler_": kinds.maybe(kinds.result("SamplerReport")),
        "length_scale_": kinds.number(positive=True), "variance_": kinds.number(),
        "mean_": kinds.number(), "terms_": kinds.maybe(kinds.result("Bound")),
        "log_evidence_": kinds.ANY_NUMBER, "elbo_": kinds.ANY_NUMBER,
        "paper_bound_": kinds.Sometimes(kinds.ANY_NUMBER), "n_inducing_": kinds.COUNT,
        "histories_": kinds.Sometimes(kinds.maybe(kinds.result("SubjectHistories"))),
        "effect_choice_": kinds.TEXT,
    }  # fmt: skip

    random_state: int | None
    kernel: str
    mean: str | float
    hyper: str
    method: str = "vi"
    #: bound of the variational family; None for the default engine
    count_term: str | None = None
    n_jobs: int | None = None
    n_inducing: int | None
    effect: str | None
    bursts: str | bool
    posterior_: Posterior | CurveDraws
    law_: str = "poisson"
    effect_: str | None
    frailty_shape_: float
    frailty_variance_: float
    burst_size_: float
    evidences_: Mapping[str, float]
    subject_totals_: Floats
    subject_effects_: Floats | None
    history_: Floats
    sampler_: SamplerReport | None
    terms_: Bound | None
    length_scale_: float
    variance_: float
    mean_: float
    n_inducing_: int
    log_evidence_: float
    #: what a default fit was fitted to; None for others, and for models read from a file
    _engine_data: EngineData | None = None
    _plugs_in = False
    _continuation: Continuation | None = None

    def trend_words(self, level: float) -> str:
        """A sentence about the trend; empty without one.

        :meta private:
        """
        return ""

    def continuation(self) -> Continuation:
        """Which way of going on would have forecast the last quarter of the window best.

        :meta private:
        """
        if self._continuation is None:
            from gp4c.estimators.forecasts.continuation import choose_continuation

            with one_blas_thread():
                self._continuation = choose_continuation(self)
        return self._continuation

    @property
    def law_parameters_(self) -> Floats:
        """θ of the law of counts, (P,): medians of its draws."""
        posterior, n = self.posterior_, len(self.count_law_.parameters)
        if n == 0 or not isinstance(posterior, CurveDraws):
            return np.zeros(0)
        half = np.array([0.5])
        return np.asarray(weighted_quantiles(posterior.params[-n:], posterior.weights, half)[0])

    @property
    def has_evidence(self) -> bool:
        """Whether `log_evidence_` has the hyper-parameters integrated out."""
        return self.hyper == "integrate" and isinstance(self._posterior(), CurveDraws)

    # -- curves -----------------------------------------------------------------------------

    def intensity(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """Posterior mean of the intensity λ(t), in events per unit of time and exposure.

        Parameters
        ----------
        t : float or array
            Times; a float gives a float, an array an array of its shape.
        extrapolate : bool
            Allow times outside the window, where the model returns to its prior.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> model.intensity([12.0, 24.0]).shape
        (2,)
        """
        return self._evaluate(t, self._posterior().intensity, extrapolate)

    def cumulative(self, t: ArrayLike, *, extrapolate: bool = False) -> Numbers:
        """Posterior mean of Λ(t), the expected number of events from the window's start to t.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> bool(model.cumulative(12.0) < model.cumulative(24.0))
        True
        """

        def function(times: Floats) -> Floats:
            return self._signed(times, self._posterior().expected_integral)

        return self._evaluate(t, function, extrapolate)

    def intensity_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of λ: (low, high), each shaped like `t`.

        Parameters
        ----------
        level : float in (0, 1)
            Posterior probability between the two curves.
        kind : {"pointwise", "simultaneous"}
            Probability at each time, with equal tails; or of the whole curve over the window to
            lie between the two, which is wider. The band of a variational fit begins at zero where
            f may be zero.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.intensity_band(24.0, 0.9, kind="simultaneous")
        >>> bool(low < model.intensity(24.0) < high)
        True
        """
        posterior = self._posterior()
        levels = self._tails(level, kind, lambda x: self._draw_intensities(posterior, x))

        def at(edge: Callable[[Floats, Floats], Floats], p: float) -> Numbers:
            return self._evaluate(t, lambda x: edge(x, np.array([p]))[0], extrapolate)

        return at(posterior.intensity_lower, levels[0]), at(posterior.intensity_quantile, levels[1])

    def cumulative_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        extrapolate: bool = False,
    ) -> tuple[Numbers, Numbers]:
        """Credible band of Λ(t): (low, high), each shaped like `t`; see :meth:`intensity_band`.

        Quantiles are those of the weighted draws; of a variational posterior they come from Jensen
        and Solomon's law with the exact first three cumulants (docs/maths.md, section 7).

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> low, high = model.cumulative_band(24.0)
        >>> bool(low < model.cumulative(24.0) < high)
        True
        """
        posterior = self._posterior()
        levels = self._tails(level, kind, lambda x: self._draw_cumulatives(posterior, x))
        quantile = posterior.integral_quantile

        def at(p: float) -> Numbers:
            def function(times: Floats) -> Floats:
                return self._signed(times, lambda a, b: quantile(a, b, np.array([p]))[0])

            return self._evaluate(t, function, extrapolate)

        low, high = at(levels[0]), at(levels[1])
        return np.minimum(low, high)[()], np.maximum(low, high)[()]  # before the window Λ < 0

    def sample_intensity(
        self,
        t: ArrayLike,
        size: int,
        random_state: int | None = None,
        *,
        extrapolate: bool = False,
    ) -> Floats:
        """Joint posterior draws of λ at the times `t`, shape (size, len(t)).

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> model.sample_intensity([12.0, 24.0], size=100, random_state=1).shape
        (100, 2)
        """
        times = np.atleast_1d(self._inside(t, extrapolate)).ravel()
        rng = np.random.default_rng(self._seed(random_state))
        return self._posterior().sample_intensity(times, size, rng)

    def expected_counts(
        self,
        start: ArrayLike,
        stop: ArrayLike,
        *,
        extrapolate: bool = False,
    ) -> Numbers:
        """Expected number of events in each (start, stop] for a subject with unit exposure.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> parts = model.expected_counts([0.0, 12.0], [12.0, 24.0])
        >>> bool(abs(parts.sum() - model.cumulative(24.0)) < 1e-6)
        True
        """
        integral = self._posterior().expected_integral
        return self._over_intervals(start, stop, extrapolate, integral)

    def to_arviz(
        self, panel: PanelCounts | None = None, *, n_draws: int = 2000, n_points: int = 100,
        random_state: int | None = None,
    ) -> InferenceData | DataTree:  # fmt: skip
        """Draws of f, λ, Λ, hyper-parameters and frailties, and subjects' likelihoods, for ArviZ.

        For the options see :func:`gp4c.files.arviz_export.to_arviz`. A model read from a file knows
        its subjects but not the rows: pass the `panel` of the fit to have these too.

        Examples
        --------
        >>> import gp4c
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(gp4c.load_dataset("bladder"))
        >>> draws = model.to_arviz(n_draws=100)  # doctest: +SKIP
        >>> draws.posterior["rate"].mean()  # doctest: +SKIP
        """
        from gp4c.files.arviz_export import to_arviz

        self._check_fitted()
        if len(self._neutral_inputs()):
            raise ValueError(
                "to_arviz gives one curve for all subjects, and this fit has curves of their own "
                "(over_time() or a season beside time since entry): use sample_intensity"
            )
        return to_arviz(self, panel, n_draws=n_draws, n_points=n_points, random_state=random_state)

    # -- scores -----------------------------------------------------------------------------

    def score(
        self,
        panel: PanelCounts,
        y: None = None,
        *,
        joint: bool = True,
        constant: bool = False,
        new_subjects: bool = False,
        n_draws: int = SCORE_DRAWS,
    ) -> float:
        """Log-likelihood of the counts of these subjects, the paper's L_test (Appendix D).

        The mean over posterior draws of the likelihood, on the log scale. Σ ln m!, a sum over all
        counts m, is left out, since it is the same for every model; `constant` adds it.

        Parameters
        ----------
        panel : PanelCounts
        joint : bool
            One log-mean over draws for all subjects together (the paper's formula); False sums
            the subjects' own log-means.
        constant : bool
            Add −Σ ln m!.
        new_subjects : bool
            For ``effect="weight"`` only: the paper refits the weights to the scored subjects'
            own counts, which is no prediction; True averages over the weights of the fitted
            subjects instead.
        n_draws : int
            Draws, placed where posterior and scored counts meet; seeded, so that the same call
            gives the same number.

        See Also
        --------
        score_with_error : the same with its Monte-Carlo standard error.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> model.score(panel, joint=False, n_draws=200) < 0
        True
        """
        value, _ = self.score_with_error(
            panel, joint=joint, constant=constant, new_subjects=new_subjects, n_draws=n_draws
        )
        return value

    def score_with_error(
        self,
        panel: PanelCounts,
        *,
        joint: bool = True,
        constant: bool = False,
        new_subjects: bool = False,
        n_draws: int = SCORE_DRAWS,
    ) -> tuple[float, float]:
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
        extra = -panel.log_factorials if constant else 0.0
        if joint and not (new_subjects and self.effect_law_.is_free):
            value, uncertainty = self._joint_score(panel, n_draws)
            return value + extra, uncertainty
        values = self._log_likelihood_draws(panel, n_draws, new_subjects)
        if joint:
            total, error = log_mean_exp(values.sum(axis=1))
        else:
            each, errors = log_mean_exp(values)
            total, error = each.sum(), np.sqrt((errors**2).sum())
        return float(total) + extra, float(error)

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
        return log_mean_exp(self._log_likelihood_draws(panel, n_draws, new_subjects))[0]

    def _joint_score(self, panel: PanelCounts, n_draws: int) -> tuple[float, float]:
        """Log-likelihood of all counts together, and its Monte-Carlo standard error."""
        if self._engine_data is not None:
            from gp4c.estimators.engine_fit import joint_score

            with one_blas_thread():
                z, inputs = self._covariates_of(panel), self._inputs_of(panel)
                found = joint_score(self, self._engine_data, panel, z, inputs)
            if found is not None:
                return found
        from gp4c.posterior.joint_score import CountLaw, joint_log_likelihood
        from gp4c.posterior.sparse_posterior import Posterior

        posterior = self._posterior()
        if not isinstance(posterior, Posterior):  # draws are all there is
            value, error = log_mean_exp(
                self._log_likelihood_draws(panel, n_draws, False).sum(axis=1)
            )
            return float(value), float(error)
        distinct, rows = self._scored(panel)
        with one_blas_thread():
            effect, psi = self.effect_law_, self._point_params()[:, 0]
            law = CountLaw(rows, effect, psi, self._own_weights(rows, distinct))
            rng = np.random.default_rng(self._seed(None))
            return joint_log_likelihood(posterior, distinct.start, distinct.stop, law, n_draws, rng)

    def _scored(self, panel: PanelCounts) -> tuple[DistinctIntervals, ScoredRows]:
        self._inside([panel.start.min(), panel.stop.max()], extrapolate=False)
        distinct = panel.distinct()
        return distinct, ScoredRows(
            panel.count.astype(float), panel.exposure, panel.subject_index, distinct.inverse,
            panel.n_subjects,
        )  # fmt: skip

    def _log_likelihood_draws(self, panel: PanelCounts, n_draws: int, new_subjects: bool) -> Floats:
        """ln p(counts of subject k | draw s), shape (draws, subjects)."""
        posterior = self._posterior()
        if isinstance(posterior, CurveDraws):
            return self._law_draws(posterior, panel, n_draws)
        distinct, rows = self._scored(panel)
        rng = np.random.default_rng(self._seed(None))
        chunk = max(1, min(n_draws, _SCORE_CHUNK // max(panel.n_intervals, 1)))
        parts = []
        with one_blas_thread():
            for first in range(0, n_draws, chunk):
                size = min(chunk, n_draws - first)
                integrals = self._posterior().sample_integrals(
                    distinct.start, distinct.stop, size, rng
                )
                parts.append(self._given_integrals(rows, integrals, distinct, new_subjects))
        return np.concatenate(parts)

    def _law_draws(self, posterior: CurveDraws, panel: PanelCounts, n_draws: int) -> Floats:
        """The same from weighted draws, under the law of the fit."""
        self._inside([panel.start.min(), panel.stop.max()], extrapolate=False)
        z = self._covariates_of(panel)
        laws = LAWS[self.law_], EFFECTS[self.effect_]
        counts = SubjectCounts.of(panel, *laws, z, self._inputs_of(panel))
        rng = np.random.default_rng(self._seed(None))
        who = posterior.choose(n_draws, rng)
        chunk = max(1, min(n_draws, _SCORE_CHUNK // max(panel.n_intervals, 1)))
        parts = []
        with one_blas_thread():
            for first in range(0, n_draws, chunk):
                some = who[first : first + chunk]
                integrals = posterior.integrals_of(
                    counts.start, counts.stop, some, rng, counts.inputs
                )
                beta = None if z is None else posterior.coefficients[:, some]
                parts.append(counts.log_likelihoods(integrals, posterior.params[:, some], beta).T)
        return np.concatenate(parts)

    def _given_integrals(
        self, rows: ScoredRows, integrals: Floats, distinct: DistinctIntervals, new_subjects: bool
    ) -> Floats:
        if new_subjects and self.effect_law_.is_free and self.subject_effects_ is not None:
            known = self.subject_effects_
            each = [
                subject_log_likelihoods(rows, integrals, weights=np.full(rows.n_subjects, w))
                for w in known
            ]
            return log_mean_exp(np.array(each))[0]
        return subject_log_likelihoods(
            rows, integrals, effect=self.effect_law_, psi=self._point_params()[:, 0],
            weights=self._own_weights(rows, distinct),
        )  # fmt: skip

    def _own_weights(self, rows: ScoredRows, distinct: DistinctIntervals) -> Floats | None:
        """Free weights refitted to the scored subjects themselves; None without weights."""
        if not self.effect_law_.is_free:
            return None
        mean = self._posterior().expected_integral(distinct.start, distinct.stop)
        expected = rows.expected(mean[None])[0]
        return np.asarray(np.maximum(1e-6, rows.totals / np.maximum(expected, 1e-300)))

    # -- helpers ----------------------------------------------------------------------------

    def band_text(self) -> str:
        """Quantiles of the posterior.

        :meta private:
        """
        return (
            "Bands are pointwise credible intervals with equal tails. The band of the rate begins "
            "at zero where the rate may be zero."
        )

    def _check_curve(self, times: Floats) -> Floats:
        posterior = self._posterior()
        if not isinstance(posterior, CurveDraws):
            return super()._check_curve(times)
        at = times
        if len(times) > _CHECK_TIMES:  # a smooth curve: the spline through so many is exact enough
            at = np.linspace(times.min(), times.max(), _CHECK_TIMES)
        start, rng = np.full_like(at, self.window_[0]), np.random.default_rng(0)
        who = posterior.choose(_CHECK_DRAWS, rng)
        curve = posterior.integrals_of(start, at, who, rng).mean(axis=1)
        if at is times:
            return np.asarray(curve)
        from scipy.interpolate import CubicSpline

        return np.asarray(CubicSpline(at, curve)(times))

    def _check_rows(self, start: Floats, stop: Floats, inputs: Floats) -> Floats:
        posterior = self._posterior()
        assert isinstance(posterior, CurveDraws)
        rng = np.random.default_rng(0)
        who = posterior.choose(_CHECK_DRAWS, rng)
        return np.asarray(posterior.integrals_of(start, stop, who, rng, inputs).mean(axis=1))

    def _curve_draws(
        self,
        start: Floats,
        stop: Floats,
        size: int,
        rng: np.random.Generator,
        beyond: str,
        inputs: Floats | None = None,
    ) -> tuple[Floats, Floats, Floats]:
        posterior = self._posterior()
        if isinstance(posterior, CurveDraws):
            who = posterior.choose(size, rng)
            integrals = posterior.beyond_integrals(start, stop, who, rng, beyond, inputs)
            return integrals, posterior.params[:, who], posterior.coefficients[:, who]
        draws = integral_draws(posterior, start, stop, size, rng, beyond).T
        return draws, np.repeat(self._point_params(), size, axis=1), np.zeros((0, size))

    def _mean_integrals(
        self, start: Floats, stop: Floats, beyond: str, inputs: Floats | None = None
    ) -> Floats:
        posterior = self._posterior()
        if isinstance(posterior, CurveDraws):
            return posterior.mean_integrals(start, stop, beyond, inputs)
        return expected_integrals(posterior, start, stop, beyond)

    def _posterior(self) -> Posterior | CurveDraws:
        """The posterior, or a clear error before ``fit``."""
        self._check_fitted()
        return self.posterior_

    def _seed(self, random_state: int | None) -> int:
        if random_state is not None:
            return random_state
        return self.random_state if self.random_state is not None else 0

    def _tails(
        self, level: float, kind: str, draw: Callable[[Floats], Floats]
    ) -> tuple[float, float]:
        """Tail probabilities of a band; a simultaneous one uses draws of the curve."""
        check_band(level, kind)
        self._check_fitted()
        if kind == "simultaneous":
            inner = np.linspace(*self.window_, BAND_POINTS + 1)[1:]  # Λ is 0 at the start
            with one_blas_thread():
                level = simultaneous_level(draw(inner), level)
        return (1 - level) / 2, (1 + level) / 2

    def _draw_intensities(self, posterior: Posterior | CurveDraws, times: Floats) -> Floats:
        rng = np.random.default_rng(self._seed(None))
        return posterior.sample_intensity(times, BAND_DRAWS, rng)

    def _draw_cumulatives(self, posterior: Posterior | CurveDraws, times: Floats) -> Floats:
        rng = np.random.default_rng(self._seed(None))
        start = np.full_like(times, self.window_[0])
        return posterior.sample_integrals(start, times, BAND_DRAWS, rng)

    def _signed(self, times: Floats, integral: Callable[[Floats, Floats], Floats]) -> Floats:
        """∫ from the window's start to each time; negative for times before it."""
        origin = np.full_like(times, self.window_[0])
        before = times < origin
        value = integral(np.minimum(times, origin), np.maximum(times, origin))
        return np.asarray(np.where(before, -value, value))
