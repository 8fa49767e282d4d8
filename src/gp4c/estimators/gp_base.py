"""What GP4C and GP3 share: scores, draws and forecasts from a fitted posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from gp4c.estimators.interfaces.credible import medians
from gp4c.estimators.interfaces.posterior_curves import PosteriorCurves
from gp4c.files import kinds
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.posterior.draws import CurveDraws
from gp4c.posterior.forecasting import expected_integrals, integral_draws
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
Indices = NDArray[np.intp]

#: draws per score, so that its Monte-Carlo error is small beside differences between models
SCORE_DRAWS = 4000
#: most numbers held at once while scoring
_SCORE_CHUNK = 20_000_000
#: draws behind the mean curve with which a fit checks itself, and most times that it is taken at
_CHECK_DRAWS, _CHECK_TIMES = 256, 4097


class GaussianProcessModel(PosteriorCurves):
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
    frailty_variance_: float
    burst_size_: float
    evidences_: Mapping[str, float]
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
        n, posterior = len(self.count_law_.parameters), self.posterior_
        if n == 0 or not isinstance(posterior, CurveDraws):
            return np.zeros(0)
        return medians(posterior.params[-n:], posterior.weights)

    @property
    def effect_parameters_(self) -> Floats:
        """ψ of the law of effects, (P,): medians of its draws, or the estimate."""
        n, posterior = len(self.effect_law_.parameters), self.posterior_
        if n == 0 or not isinstance(posterior, CurveDraws):
            return super().effect_parameters_
        return medians(posterior.params[:n], posterior.weights)

    @property
    def has_evidence(self) -> bool:
        """Whether `log_evidence_` has the hyper-parameters integrated out."""
        return self.hyper == "integrate" and isinstance(self._posterior(), CurveDraws)

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
            from gp4c.estimators.interfaces.joined_fit import joint_score

            with one_blas_thread():
                z, inputs = self._covariates_of(panel), self._inputs_of(panel)
                found = joint_score(self, self._engine_data, panel, z, inputs)
            if found is not None:
                return found
        from gp4c.posterior.joint_score import CountLaw, joint_log_likelihood

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

        def given(draws: Indices) -> Floats:
            integrals = posterior.sample_integrals(distinct.start, distinct.stop, len(draws), rng)
            return self._given_integrals(rows, integrals, distinct, new_subjects)

        return _by_chunks(given, np.arange(n_draws), panel.n_intervals)

    def _law_draws(self, posterior: CurveDraws, panel: PanelCounts, n_draws: int) -> Floats:
        """The same from weighted draws, under the law of the fit."""
        self._inside([panel.start.min(), panel.stop.max()], extrapolate=False)
        z = self._covariates_of(panel)
        laws = LAWS[self.law_], EFFECTS[self.effect_]
        counts = SubjectCounts.of(panel, *laws, z, self._inputs_of(panel))
        rng = np.random.default_rng(self._seed(None))
        who = posterior.choose(n_draws, rng)

        def given(draws: Indices) -> Floats:
            integrals = posterior.integrals_of(counts.start, counts.stop, draws, rng, counts.inputs)
            beta = None if z is None else posterior.coefficients[:, draws]
            return counts.log_likelihoods(integrals, posterior.params[:, draws], beta).T

        return _by_chunks(given, who, panel.n_intervals)

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

    # -- checks and draws -------------------------------------------------------------------

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


def _by_chunks(given: Callable[[Indices], Floats], draws: Indices, n_rows: int) -> Floats:
    """A function of draws, (draws, subjects), for as many draws at a time as memory allows."""
    chunk = max(1, min(len(draws), _SCORE_CHUNK // max(n_rows, 1)))
    with one_blas_thread():
        parts = [given(draws[first : first + chunk]) for first in range(0, len(draws), chunk)]
    return np.concatenate(parts)
