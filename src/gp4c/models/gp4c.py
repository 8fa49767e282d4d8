"""GP4C: one shared event intensity, seen only as counts between visits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gp4c.data.panel import PanelCounts
from gp4c.data.subject_histories import SubjectHistories
from gp4c.design.kernels import KERNELS
from gp4c.design.observations import Observations, observe
from gp4c.inference.dispersion import Dispersion, poisson_dispersion
from gp4c.inference.hyper import Optimum, Problem
from gp4c.inference.likelihood import COUNT_TERMS
from gp4c.inference.threads import one_blas_thread
from gp4c.models.covariates import CovariateModel
from gp4c.models.fitting import (
    Fit,
    choose_effect,
    describe_data,
    find_fit,
    most_probable_fit,
    sample_fit,
    single_fit,
    store_fit,
    subject_labels,
    unit_mean,
    warn_unless_converged,
)
from gp4c.models.inputs import check_choice, check_shared_parameters, refuse_events
from gp4c.models.overdispersion import warn_if_overdispersed
from gp4c.models.size import is_large

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.sources import PanelSource


class GP4C(CovariateModel):
    r"""Smooth event rate from panel counts: a squared Gaussian process, variationally.

    .. math::
        \lambda(t) = f(t)^2, \quad f \sim \mathcal{GP}(g, \gamma k_a), \quad
        m_j \sim \mathrm{Poisson}\Bigl(e_j \int_{s_j}^{t_j} \lambda(t)\,dt\Bigr)

    The posterior of f is approximated by a sparse Gaussian process that maximises a lower bound
    on the log evidence (Ding, Lee, Sato and Sugiyama, UAI 2018).

    Parameters
    ----------
    n_inducing : int, optional
        Inducing inputs, evenly spaced over the window; chosen from the length-scale if absent.
    count_term : {"exact", "pointwise", "lemma2"}
        How E ln ∫ f² enters the bound: its exact value; the inequality before the paper's
        Lemma 2; or the paper's Theorem 1, which is loose and uses `b`.
    b : float in [0, 1]
        Share of the posterior variance kept inside the logarithm of the paper's bound.
    kernel : {"se", "matern32", "matern52"}
        Smoothness of f: squared exponential (the paper), or rougher Matérn covariances.
    mean : "learn" or float
        Prior mean g of f. A number is in the data's unit (the square root of a rate); 0.0 is
        the paper's zero-mean form.
    effect : {"auto", None, "gamma", "weight"}
        Subject effects that multiply the intensity: none; a gamma frailty, integrated out;
        "auto", whichever of these two the evidence prefers; or a free weight per subject (the
        paper's GP4CW).
    formula : str, optional
        Covariates that multiply the rate by exp(βᵀz), such as ``"treatment + age"``: columns of
        the subjects, or of the intervals for those that change over time. Factors are columns or
        functions of them from a short list (``log(size)``, ``C(stage)``, ``bs(age, df=4)``; see
        :mod:`gp4c.data.formulas`); no other code is run. The first level of a category is its
        reference. The curve belongs to average covariates: every column of the regression is
        centred at its average over the subjects.
    missing : {"error", "drop"}
        A missing covariate is an error that names the subjects; or the intervals without it are
        left out, all of a subject whose own covariate is missing.
    method : {"vi", "mcmc"}
        Variational posterior, in milliseconds to seconds; or draws of the exact posterior by
        tempered sequential Monte Carlo, in seconds to minutes, with R̂ and effective sample sizes
        in `sampler_`: the judge of the former.
    hyper : {"integrate", "optimize"}
        Integrate over the hyper-parameters (a, γ, g) under weak priors in units of the data
        (:mod:`gp4c.inference.priors`), or take them at the bound's maximum.
    optimizer : {"natural", "vem"}
        Natural gradients and a search over length-scales and signs; or the paper's variational
        EM with its random start and early stop, which depends on the unit of time.
    tol : float
        Stop when a step over the hyper-parameters is predicted to gain fewer nats than this
        (for "vem": when the constant-free bound changes by less than this share of itself).
    max_iter : int
        Most steps over the hyper-parameters, or rounds of "vem".
    n_jobs : int, optional
        Processes of joblib for the populations of ``method="mcmc"``; other fits are too short to
        be split. It does not change the result.
    random_state : int, optional
        Seed of the draws behind scores and samples, and of the start of "vem"; fits with natural
        gradients are deterministic.

    Attributes
    ----------
    posterior_ : Posterior
        All that prediction needs.
    terms_ : Bound
        The objective at the optimum, term by term.
    objective_ : float
        The maximised bound, Σ ln m! left out, every other constant included.
    elbo_ : float
        The evidence lower bound of the fitted posterior with the exact count term.
    paper_bound_ : float
        The paper's bound, with `b`, for the same posterior; `elbo_gap` is the difference.
    log_evidence_ : float
        ln p(counts) with the hyper-parameters integrated out, Σ ln m! left out; with
        ``hyper="optimize"`` the bound at their best values (``method="mcmc"``: the evidence there).
    length_scale_, variance_, mean_ : float
        a, γ and g in the data's units: the best or, with priors, most probable ones.
    n_inducing_, n_iter_, converged_, history_
        Inducing inputs used, steps taken, whether they converged, the objective at each.
    effect_ : str or None
        The subject effect fitted.
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

    objective_: float

    def __init__(
        self,
        *,
        n_inducing: int | None = None,
        count_term: str = "exact",
        b: float = 0.3,
        kernel: str = "se",
        mean: str | float = "learn",
        effect: str | None = "auto",
        formula: str | None = None,
        missing: str = "error",
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
        self.formula = formula
        self.missing = missing
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
        client: Any = None,
    ) -> Self:
        """Fit to panel counts, and to exact event times of other subjects if there are any.

        Parameters
        ----------
        panel : PanelCounts or PanelSource
            With very many different intervals (more than 5,000), or from
            :func:`gp4c.scan_panel`, weighted intervals between nodes stand for the rows;
            `compression_` says how closely.
        y : None
            Ignored; scikit-learn passes it.
        events : RecurrentEvents, optional
            Subjects whose event times are known, with the same intensity.
        client : distributed.Client, optional
            Workers that read and sum up the rows.
        """
        self._check_parameters()
        refuse_events(self, panel)
        if client is not None or not isinstance(panel, PanelCounts) or self._sums(panel, events):
            from gp4c.models.big import fit_large  # what only some fits need, they load themselves

            with self._whole_fit(panel):
                fit_large(self, panel, events, client)
            return self
        with self._whole_fit(panel), one_blas_thread():
            best, seen = self._fit_rows(panel, events)
        warn_unless_converged(self, best)
        # the paper's estimator is what it is; "auto" has looked already
        if self.effect is None and self.optimizer != "vem":
            found = self._dispersion(seen)
            warn_if_overdispersed(type(self).__name__, found, "effect='gamma' or effect='auto'")
        return self

    def _fit_rows(
        self, panel: PanelCounts, events: RecurrentEvents | None
    ) -> tuple[Optimum, PanelCounts]:
        """Fit to rows in memory; the optimum, and the panel adjusted for covariates."""
        window = panel.window if events is None else _union(panel.window, events.window)
        self.compression_ = self.coefficients_ = None
        if self.formula is None:
            problem, fit = self._fit_curve(observe(panel, events, window))
        else:
            if events is not None:
                raise ValueError("formula= and events= do not go together")
            panel, problem, fit = self._fit_regression(panel)
        store_fit(self, problem, fit)
        seen = self._adjusted(panel)
        self._fitted_to = (seen, events)
        self._keep_time_axis(panel)
        self.subjects_ = subject_labels(panel, events)
        self.data_summary_ = describe_data(panel, events)
        self.histories_ = SubjectHistories.of_all(seen, events)
        return fit.best, seen

    def _sums(self, panel: PanelCounts, events: RecurrentEvents | None) -> bool:
        """Whether sums stand for the rows; covariates need rows, which cheap count terms bear."""
        by_rows = self.formula is not None and self.count_term != "exact"
        return not by_rows and is_large(self, panel, events)

    def _dispersion(self, panel: PanelCounts) -> Dispersion:
        """Dispersion of the totals of subjects about the fitted curve."""
        distinct = panel.distinct()
        mass = self._posterior().expected_integral(distinct.start, distinct.stop)
        rows = panel.exposure * mass[distinct.inverse]
        return poisson_dispersion(
            np.bincount(panel.subject_index, panel.count, panel.n_subjects).astype(np.float64),
            np.bincount(panel.subject_index, rows, panel.n_subjects).astype(np.float64),
        )

    def _fit_curve(self, data: Observations) -> tuple[Problem, Fit]:
        problem = self._problem(data)
        self.effect_choice_ = "as asked"
        if self.effect == "auto":
            choice = choose_effect(problem, self.mean)
            problem, self.effect_choice_ = choice.problem, str(choice)
        return problem, self._find(problem)

    def _fit_regression(self, panel: PanelCounts) -> tuple[PanelCounts, Problem, Fit]:
        """Fit with covariates; also the panel without what ``missing="drop"`` leaves out."""
        from gp4c.data.covariate_rows import learn_design
        from gp4c.models.regression import Settings, fit_regression

        assert self.formula is not None
        design, panel = learn_design(panel, self.formula, self.missing)
        problem = self._problem(observe(panel, None, panel.window))
        settings = Settings(
            self.effect, self.mean, self.hyper, self.method, self.tol, self.max_iter,
            self._seed(None), self.n_jobs,
        )  # fmt: skip
        found = fit_regression(problem, panel, design, settings)
        self.effect_choice_, self.coefficients_ = found.effect_choice, found.effects
        return panel, found.problem, found.fit

    def _problem(self, data: Observations) -> Problem:
        effect = None if self.effect == "auto" else self.effect
        return Problem(data, KERNELS[self.kernel], self.count_term, self.b, effect, self.n_inducing)

    def _find(self, problem: Problem) -> Fit:
        if self.optimizer == "vem" and problem.data.total > 0:
            from gp4c.inference.vem import fit_vem

            mean = unit_mean(problem, self.mean)
            return single_fit(
                fit_vem(
                    problem, mean=mean, random_state=self.random_state, tol=self.tol,
                    max_rounds=self.max_iter,
                )
            )  # fmt: skip
        if self.method == "mcmc" and problem.data.total > 0:
            start = self._sampler_start(problem)
            return sample_fit(
                problem, start, mean=self.mean, hyper=self.hyper, seed=self._seed(None),
                n_jobs=self.n_jobs,
            )  # fmt: skip
        return find_fit(
            problem, mean=self.mean, hyper=self.hyper, tol=self.tol, max_iter=self.max_iter
        )

    def _sampler_start(self, problem: Problem) -> Fit:
        """The fit whose hyper-parameters a sampler keeps or, if it samples them, reports."""
        options: dict[str, Any] = {"mean": self.mean, "tol": self.tol, "max_iter": self.max_iter}
        if self.hyper == "integrate":
            return most_probable_fit(problem, **options)
        return find_fit(problem, hyper="optimize", **options)

    def _check_parameters(self) -> None:
        check_choice("count_term", self.count_term, COUNT_TERMS)
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must be in [0, 1], not {self.b!r}")
        check_choice("method", self.method, ("vi", "mcmc"))
        check_choice("optimizer", self.optimizer, ("natural", "vem"))
        if self.optimizer == "vem" and self.hyper != "optimize":
            raise ValueError("optimizer='vem' goes with hyper='optimize'")
        if self.formula is not None and (self.effect == "weight" or self.optimizer == "vem"):
            raise ValueError(
                "formula= goes with effect None, 'gamma' or 'auto' and natural gradients: free "
                "weights would explain everything that covariates could"
            )
        check_shared_parameters(self)


class GP4CW(GP4C):
    """GP4C with one free weight per subject (Appendix F of the paper): ``effect="weight"``.

    The scale that f and the weights share is fixed by a mean weight of 1. Scores of held-out
    subjects use weights fitted to those same subjects, as in the paper; that is not a
    prediction (see ``score(new_subjects=True)``).
    """

    def __init__(
        self,
        *,
        n_inducing: int | None = None,
        count_term: str = "lemma2",
        b: float = 0.3,
        kernel: str = "se",
        mean: str | float = "learn",
        hyper: str = "optimize",
        optimizer: str = "natural",
        tol: float = 1e-6,
        max_iter: int = 200,
        random_state: int | None = None,
    ):
        super().__init__(
            n_inducing=n_inducing,
            count_term=count_term,
            b=b,
            kernel=kernel,
            mean=mean,
            effect="weight",
            hyper=hyper,
            optimizer=optimizer,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
        )

    @classmethod
    def paper(cls, b: float = 0.3, n_inducing: int = 30, random_state: int | None = None) -> GP4CW:
        """The paper's estimator with weights in full; see :meth:`GP4C.paper`."""
        return GP4CW(
            n_inducing=n_inducing, b=b, optimizer="vem", tol=1e-4, random_state=random_state
        )


def _union(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return min(first[0], second[0]), max(first[1], second[1])
