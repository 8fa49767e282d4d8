"""GP4C: one shared event intensity, seen only as counts between visits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from gp4c.data.panel import PanelCounts
from gp4c.data.subject_histories import SubjectHistories
from gp4c.data.types.typed_panel import TypedPanel
from gp4c.estimators.fit_warnings import look_back, warn_if_overdispersed, warn_of_misfit
from gp4c.estimators.fitting import (
    describe_data,
    find_optimum,
    store_fit,
    subject_labels,
    unit_mean,
    warn_unless_converged,
)
from gp4c.estimators.inputs import check_choice, check_shared_parameters, refuse_events
from gp4c.estimators.types.typed_answers import TypedCurves
from gp4c.estimators.types.typed_state import forget_types, refuse_with_types
from gp4c.files import kinds
from gp4c.inference.variational.count_terms import COUNT_TERMS, count_term
from gp4c.inference.variational.hyper import Problem
from gp4c.model.dispersion import poisson_dispersion
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS
from gp4c.model.modulation import TRENDS
from gp4c.model.observations import observe
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from distributed import Client

    from gp4c.data.events import RecurrentEvents
    from gp4c.data.tables.sources import PanelSource
    from gp4c.estimators.regression.engine_regression import SharedDesign


class GP4C(TypedCurves):
    r"""Smooth event rate from panel counts: a squared Gaussian process.

    .. math::
        \lambda(t) = f(t)^2, \quad f \sim \mathcal{GP}(g, \gamma k_a), \quad
        \mathrm{E}\, m_j = \upsilon_k e_j \int_{s_j}^{t_j} \lambda(t)\,dt

    Subjects may differ by an effect υ, and events may come in bursts: then the variance of a count
    is 1 + φ times its mean, given υ. The default finds the modes of the posterior and weighs draws
    around them exactly (docs/maths.md). With a `count_term` the posterior is the sparse
    variational one of Ding, Lee, Sato and Sugiyama (UAI 2018).

    Parameters
    ----------
    n_inducing : int, optional
        Inducing inputs, evenly spaced over the window; chosen from the length-scale if absent.
    count_term : {None, "exact", "pointwise", "lemma2"}
        None: weighted draws of the posterior. Else the variational family, and how E ln ∫ f²
        enters its bound: by its exact value; by the inequality before the paper's Lemma 2; or by
        the paper's Theorem 1, which is loose and uses `b`.
    b : float in [0, 1]
        Share of the posterior variance kept inside the logarithm of the paper's bound.
    kernel : {"se", "matern32", "matern52"}
        Smoothness of f: squared exponential (the paper), or rougher Matérn covariances.
    mean : "learn" or float
        Prior mean g of f. A number is in the data's unit (the square root of a rate); 0.0 is
        the paper's zero-mean form.
    effect : {"auto", None, "gamma", "weight"}
        Subject effects that multiply the intensity: none; a gamma frailty, integrated out;
        "auto", a frailty unless the evidence speaks clearly against it; or a free weight per
        subject (the paper's GP4CW).
    bursts : {"auto", True, False}
        Whether events come in bursts; "auto" unless the evidence speaks clearly against them; or
        the name of a law of counts that was added (CONTRIBUTING.md). The variational family counts
        events one by one: with a `count_term`, "auto" is False and True is refused.
    formula : str, optional
        Covariates that multiply the rate by exp(βᵀz), such as ``"treatment + age"``: columns of
        the subjects, or of the intervals for those that change over time. Factors are columns or
        functions of them from a short list (``log(size)``, ``C(stage)``, ``bs(age, df=4)``; see
        :mod:`gp4c.data.formulas.formula_text`); no other code is run. The first level of a category
        is its reference. ``over_time(treatment)`` lets the effect change smoothly over the window
        around its average (:meth:`effect_over_time`). The curve belongs to average covariates:
        every column of the regression is centred at its average over the subjects.
    missing : {"error", "drop"}
        A missing covariate is an error that names the subjects; or the intervals without it are
        left out, all of a subject whose own covariate is missing.
    trend : {None, "loglinear", "power", "auto"}
        A trend times the smooth deviation from it: rate e^{ct} f(t)², or t^{b−1} f(t)². The
        coefficient has a prior in units of the window: the log rate changes by N(0, ¾²) from its
        middle to its end. "auto" takes the trend, or none, with the highest evidence. Forecasts
        continue it (``beyond="trend"``).
    season : float, "year", "week" or None
        A periodic factor on the calendar, beside a curve over age or time since entry (or over the
        calendar itself): a period in the unit of time, or by name where the data had dates. Four
        harmonics, of which higher ones are shrunk more; the mean of the log factor is 0.
    method : {"vi", "mcmc"}
        The default's weighted draws or the variational posterior; or draws by tempered sequential
        Monte Carlo, in seconds to minutes, with R̂ and effective sample sizes in `sampler_`: the
        judge of the former.
    hyper : {"integrate", "optimize"}
        Integrate over the hyper-parameters (a, γ, g) under weak priors in units of the data
        (:mod:`gp4c.model.hyper_priors`), or take the most probable ones. The variational family
        always takes those that maximise its bound.
    optimizer : {"natural", "vem"}
        Of the variational family: natural gradients and a search over length-scales; or the
        paper's variational EM with its random start and early stop, which depends on the unit of
        time.
    tol : float
        Stop when a step over the hyper-parameters is predicted to gain fewer nats than this
        (for "vem": when the constant-free bound changes by less than this share of itself).
    max_iter : int
        Most steps over the hyper-parameters, or rounds of "vem".
    n_jobs : int, optional
        Processes of joblib for the populations of ``method="mcmc"``; other fits are too short to
        be split. It does not change the result.
    random_state : int, optional
        Seed of the draws of the posterior, and of the start of "vem"; the same seed gives the same
        result.

    Attributes
    ----------
    posterior_ : CurveDraws, or Posterior of a variational fit
        All that prediction needs.
    terms_ : Bound or None
        The bound of a variational fit, term by term.
    objective_ : float
        The maximised bound, or the log evidence; Σ ln m! left out, every other constant included.
    log_evidence_ : float
        ln p(counts) with the hyper-parameters integrated out, Σ ln m! left out; of a variational
        fit its bound.
    elbo_ : float
        The evidence lower bound of a variational fit with the exact count term; else the log
        evidence.
    paper_bound_ : float
        The paper's bound, with `b`, for a variational fit; `elbo_gap` is the difference.
    dispersion_, burst_size_, frailty_variance_ : float
        Variance of a count over its mean given the subject, mean number of events in a burst, and
        variance of the subject effects: 1, 1 and 0 without bursts or effects.
    effective_draws_, pareto_k_ : float
        How many draws the weights leave, and how heavy their tail is: reliable below 0.7, not a
        number where draws were carried from the prior.
    length_scale_, variance_, mean_ : float
        a, γ and g in the data's units: posterior medians, or the best of a variational fit.
    n_inducing_, n_iter_, converged_, history_
        Inducing inputs used, steps taken, whether they converged, the objective at each.
    law_, effect_ : str, str or None
        The law of counts and the subject effect fitted.
    effect_choice_ : str
        Why.
    frailty_shape_ : float
        α of the gamma frailty, infinite without one.
    subject_effects_ : array or None
        Effect of each subject (posterior mean for gamma), in the order of ``panel.subjects``;
        their mean is 1 for "weight".
    effects_ : pandas.DataFrame
        Effects of the covariates: coefficient, model-based and subject-robust standard error,
        rate ratio with interval, z and p-value.
    trend_ : str or None
        The trend in words, with its interval; :meth:`trend_estimate` has the numbers.
    trend_alone_ : float or None
        Probability that the rate follows its trend without further variation.
    season_ : str or None
        The season in words; :meth:`season_factor`, :meth:`season_band` and :meth:`season_table`
        have the numbers.
    coefficients_ : CovariateEffects or None
        The same with covariances, and what the formula learned from the data.

    Examples
    --------
    >>> import gp4c
    >>> placebo = gp4c.load_dataset("bladder").where(treatment="placebo")
    >>> model = gp4c.GP4C().fit(placebo)
    >>> low, high = model.cumulative_band(50.0)
    >>> bool(low < model.cumulative(50.0) < high)
    True
    """

    name = "gp4c"
    title = "smooth event rate from panel counts (squared Gaussian process)"
    method_text = (
        "Event counts between visits were modelled as those of a process whose rate is the square "
        "of a Gaussian process ({kernel} covariance; Ding, Lee, Sato and Sugiyama, 2018)."
    )
    effect_options: ClassVar[Mapping[str, str | None]] = {
        "auto": "auto", "none": None, "gamma": "gamma", "weight": "weight",
    }  # fmt: skip
    _memory_remedy = (
        "a coarser curve (n_inducing=), count_term='pointwise', or a sample of the subjects "
        "(panel[::2]) needs less"
    )
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "compression_": kinds.maybe(kinds.dict_of(kinds.one_of(str, int, float))),
        "coefficients_": kinds.maybe(kinds.result("CovariateEffects")),
    }

    def __init__(
        self,
        *,
        n_inducing: int | None = None,
        count_term: str | None = None,
        b: float = 0.3,
        kernel: str = "se",
        mean: str | float = "learn",
        effect: str | None = "auto",
        bursts: str | bool = "auto",
        formula: str | None = None,
        missing: str = "error",
        trend: str | None = None,
        season: float | str | None = None,
        method: str = "vi",
        hyper: str = "integrate",
        optimizer: str = "natural",
        tol: float = 1e-6,
        max_iter: int = 200,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.n_inducing = n_inducing
        self.count_term = count_term
        self.b = b
        self.kernel = kernel
        self.mean = mean
        self.effect = effect
        self.bursts = bursts
        self.formula = formula
        self.missing = missing
        self.trend = trend
        self.season = season
        self.method = method
        self.hyper = hyper
        self.optimizer = optimizer
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def paper(cls, b: float = 0.3, n_inducing: int = 30, random_state: int | None = None) -> GP4C:
        """The paper's estimator in full: its bound, its optimiser, its start, its early stop.

        Times must be in the paper's unit to repeat its numbers, since the stop depends on it.

        Examples
        --------
        >>> import gp4c
        >>> gp4c.GP4C.paper(random_state=1).count_term
        'lemma2'
        """
        return GP4C(
            n_inducing=n_inducing,
            count_term="lemma2",
            b=b,
            effect=None,
            hyper="optimize",
            optimizer="vem",
            tol=1e-4,
            random_state=random_state,
        )

    def fit(
        self,
        panel: PanelCounts | PanelSource,
        y: None = None,
        *,
        events: RecurrentEvents | None = None,
        client: Client | None = None,
        progress: Callable[[str], None] | None = None,
        design: SharedDesign | None = None,
    ) -> Self:
        """Fit to panel counts, and to exact event times of other subjects if there are any.

        Parameters
        ----------
        panel : PanelCounts or PanelSource
            Rows from :func:`gp4c.scan_panel` are read once, and weighted intervals between nodes
            stand for them; `compression_` says how closely.
        y : None
            Ignored; scikit-learn passes it.
        events : RecurrentEvents, optional
            Subjects whose event times are known, with the same intensity.
        client : distributed.Client, optional
            Workers that read and sum up the rows.
        progress : callable, optional
            Called with one line of text whenever a new step begins.
        design : SharedDesign, optional
            What `formula` learned from a larger panel, of which this is a part.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4C(effect="gamma", bursts=False).fit(panel)
        >>> model.converged_
        True
        """
        self._check_parameters()
        refuse_events(self, panel)
        if isinstance(panel, TypedPanel):
            from gp4c.estimators.types.typed_fit import fit_types

            refuse_with_types(events, client)
            fit_types(self, panel, progress)
            return self
        if client is not None or not isinstance(panel, PanelCounts):
            if self.has_factors:
                raise ValueError(
                    "trend= and season= need all rows in memory: read the table with "
                    "gp4c.read_panel, or fit a sample of the subjects"
                )
            from gp4c.estimators.large_data.summed_fit import (
                fit_large,  # what only some fits need, they load
            )

            with self._whole_fit(panel):
                forget_types(self)
                fit_large(self, panel, events, client, progress)
            return self
        with self._whole_fit(panel), one_blas_thread():
            forget_types(self)
            self.compression_ = self.coefficients_ = self.fit_check_ = None
            self._keep_time_axis(panel)
            if self._is_variational:
                self._fit_variational(panel, events)
            else:
                self._fit_draws(panel, events, progress, design)
            seen = self._fitted_to[0]
            if events is None and seen is not None:
                self.fit_check_ = look_back(self, seen)
        if self.optimizer != "vem":  # the paper's is what it is
            if self._is_variational:
                self._warn_of_dispersion(panel)
            warn_of_misfit(self)
        return self

    def _fit_bytes(self, panel: PanelCounts) -> float:
        from gp4c.estimators.large_data.footprint import gaussian_bytes

        return gaussian_bytes(self, panel)

    @property
    def _is_variational(self) -> bool:
        """Whether the posterior is a Gaussian that maximises a bound; free weights ask for one."""
        known = isinstance(self.effect, str) and self.effect in EFFECTS
        return self.count_term is not None or (known and EFFECTS[self.effect].is_free)

    @property
    def has_factors(self) -> bool:
        """Whether the rate has factors of time besides its curve."""
        return self.trend is not None or self.season is not None

    def _fit_draws(
        self,
        panel: PanelCounts,
        events: RecurrentEvents | None,
        progress: Callable[[str], None] | None,
        design: SharedDesign | None = None,
    ) -> None:
        """Weighted draws: choose the laws, find the modes, weigh; or sample."""
        from gp4c.estimators.engine_fit import EngineData, fit_and_store

        if self.formula is not None:
            from gp4c.estimators.regression.engine_regression import fit_covariates

            fit_covariates(self, panel, events, progress, design)
            return
        if self.has_factors:
            from gp4c.estimators.regression.factors.factor_fit import fit_with_factors

            fit_with_factors(self, panel, events, progress)
            return
        window = panel.window if events is None else _union(panel.window, events.window)
        data = EngineData(panel, events, window)
        self.compression_ = fit_and_store(self, data, progress)

    def _fit_variational(self, panel: PanelCounts, events: RecurrentEvents | None) -> None:
        """Maximise the bound with the count term asked for."""
        window = panel.window if events is None else _union(panel.window, events.window)
        problem = Problem(
            observe(panel, events, window), KERNELS[self.kernel], count_term(self.count_term).name,
            self.b, self._variational_effect(panel, events, window), self.n_inducing,
        )  # fmt: skip
        if self.optimizer == "vem" and problem.data.total > 0:
            from gp4c.inference.variational.vem import fit_vem

            best = fit_vem(
                problem, mean=unit_mean(problem, self.mean), random_state=self.random_state,
                tol=self.tol, max_rounds=self.max_iter,
            )  # fmt: skip
        else:
            best = find_optimum(problem, mean=self.mean, tol=self.tol, max_iter=self.max_iter)
        store_fit(self, problem, best)
        self._fitted_to = (panel, events)
        self.subjects_ = subject_labels(panel, events)
        self.data_summary_ = describe_data(panel, events)
        self.histories_ = SubjectHistories.of_all(panel, events)
        warn_unless_converged(self, best)

    def _variational_effect(
        self, panel: PanelCounts, events: RecurrentEvents | None, window: tuple[float, float]
    ) -> str | None:
        """The effect asked for; "auto" decides as the default does, without bursts."""
        self.effect_choice_ = "as asked"
        if self.effect != "auto":
            return self.effect
        from gp4c.estimators.engine_fit import EngineData, preferred_effect

        effect, self.effect_choice_ = preferred_effect(self, EngineData(panel, events, window))
        return effect

    def _warn_of_dispersion(self, panel: PanelCounts) -> None:
        """Say that totals of subjects vary more than a common curve allows."""
        if self.effect is not None:
            return
        distinct = panel.distinct()
        mass = self._posterior().expected_integral(distinct.start, distinct.stop)
        rows = panel.exposure * mass[distinct.inverse]
        found = poisson_dispersion(
            np.bincount(panel.subject_index, panel.count, panel.n_subjects).astype(np.float64),
            np.bincount(panel.subject_index, rows, panel.n_subjects).astype(np.float64),
        )
        remedy = "effect='gamma' or effect='auto'"
        warn_if_overdispersed(type(self).__name__, found, remedy, stacklevel=4)

    def _check_parameters(self) -> None:
        check_choice("count_term", self.count_term, (None, *COUNT_TERMS))
        if self._is_variational and self.bursts is True:
            raise ValueError(
                "bursts=True goes with count_term=None and without free weights: the variational "
                "bound counts events one by one"
            )
        if self.method == "mcmc" and self._is_variational:
            raise ValueError("method='mcmc' goes with count_term=None and without free weights")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must be in [0, 1], not {self.b!r}")
        check_choice("method", self.method, ("vi", "mcmc"))
        check_choice("optimizer", self.optimizer, ("natural", "vem"))
        if self.optimizer == "vem" and self.count_term is None:
            raise ValueError("optimizer='vem' maximises a bound: choose a count_term")
        check_choice("trend", self.trend, (None, "auto", *TRENDS))
        if self.has_factors and self._is_variational:
            raise ValueError(
                "trend= and season= go with count_term=None and effect None, 'gamma' or 'auto': "
                "the variational family has the curve alone"
            )
        if self.formula is not None and self._is_variational:
            raise ValueError(
                "formula= goes with count_term=None and effect None, 'gamma' or 'auto': free "
                "weights would explain everything that covariates could"
            )
        check_shared_parameters(self)


def _union(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return min(first[0], second[0]), max(first[1], second[1])
