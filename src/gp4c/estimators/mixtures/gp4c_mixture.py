"""GP4CMixture: every subject's rate is its own combination of a few basis intensities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.base import Numbers
from gp4c.estimators.forecasts.count_forecast import Subjects
from gp4c.estimators.forecasts.forecast_inputs import fitted_subjects, is_label, labels_of
from gp4c.estimators.gp_base import SCORE_DRAWS, GaussianProcessModel
from gp4c.estimators.inputs import check_choice, check_panel, check_shared_parameters
from gp4c.estimators.mixtures.mixture_rows import MixtureRows
from gp4c.estimators.mixtures.mixture_words import basis_facts
from gp4c.exceptions import PanelDataError
from gp4c.files import kinds
from gp4c.inference.variational.count_terms import COUNT_TERMS
from gp4c.model.laws.weights import BasisWeights
from gp4c.posterior.scoring import log_mean_exp
from gp4c.posterior.summed_posterior import SummedPosterior
from gp4c.posterior.weight_law import WeightLaw
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.estimators.forecasts.joint_counts import JointCounts
    from gp4c.model.laws import SubjectEffect

Floats = NDArray[np.float64]
Band = tuple[Numbers, Numbers]

BASIS_WEIGHTS = BasisWeights()
#: draws behind the score of new subjects: each costs as much as there are points in the law
NEW_SUBJECT_DRAWS = 1000
#: where the plots are: reporting stands after estimators in the house
_FIGURES = "gp4c.reporting.figures.mixture_plots"
#: most numbers held at once while scoring
_SCORE_CHUNK = 20_000_000


class GP4CMixture(GaussianProcessModel):
    r"""Rates that are combinations of basis intensities, with weights of every subject.

    .. math::
        \lambda_k(t) = \sum_l w_{kl} f_l(t)^2, \quad f_l \sim \mathcal{GP}(g_l, \gamma_l k_{a_l}),
        \quad w_{kl} \ge 0

    The extension that Appendix F of Ding, Lee, Sato and Sugiyama (UAI 2018) proposes, after Lloyd
    et al. (2016). Subjects differ in the course of their rate, not only in its level.
    :class:`gp4c.GP4CW` is the case of one basis.

    Use it to see which courses there are and how much of each a subject has. Weights are fitted to
    the subjects' own counts: more bases always fit these better. Let :func:`gp4c.cross_validate`
    choose `n_bases`.

    Parameters
    ----------
    n_bases : int
        Number of basis intensities, L.
    count_term : {"pointwise", "lemma2", "exact"}
        How E ln ∫ f² enters the bound: "lemma2" is the paper's Theorem 1, with `b`; the others
        are tighter (:class:`gp4c.GP4C`). Over the bases Jensen's inequality is used in each.
    n_inducing, b, kernel, mean
        As in :class:`gp4c.GP4C`, for each basis. A learned mean is one of f_l relative to its
        weights, whose scale it fixes.
    n_starts : int
        Random starts of a coarse version of the model, of which the best that differ are carried
        on; the best bound wins.
    tol : float
        Stop when a cycle of rounds gains fewer nats than this.
    max_iter : int
        Most cycles.
    random_state : int, optional
        Seed of the starts; None is 0.

    Attributes
    ----------
    weights_ : (subjects, bases) array
        Weights in the order of ``panel.subjects``; their mean over the subjects is 1 for each
        basis. The basis with most events comes first.
    shares_ : (bases,) array
        Share of all events that belongs to each basis.
    posterior_ : SummedPosterior
        The bases; their sum is the rate of a subject with mean weights.
    starts_ : array
        Bounds that the different starts had reached when they were compared, best first.
    length_scales_ : (bases,) array
        Time scale of each basis, in the unit of the data.
    law_weights_, law_masses_ : (points, bases) and (points,) arrays
        The law of the weights of new subjects: points and their probabilities.
    subject_effects_ : array
        Expected number of each subject relative to one with mean weights seen over the same times.
    objective_, elbo_, paper_bound_, terms_, history_, n_iter_, converged_
        As in :class:`gp4c.GP4C`; `elbo_` has the exact count term of all bases together.

    Examples
    --------
    >>> import gp4c
    >>> panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    >>> model = gp4c.GP4CMixture(n_bases=2).fit(panel)
    >>> model.weights_.shape, float(model.weights_.mean().round(6))
    ((47, 2), 1.0)
    >>> early, late = model.basis(5.0, 0), model.basis(5.0, 1)
    """

    name = "mixture"
    title = "combinations of basis intensities with weights of every subject"
    method_text = (
        "Event counts between visits were modelled as Poisson counts whose rate is, for every "
        "subject, a combination of basis intensities with non-negative weights; each basis is the "
        "square of a Gaussian process ({kernel} covariance; Ding, Lee, Sato and Sugiyama, 2018, "
        "Appendix F)."
    )
    effect_options: ClassVar[Mapping[str, str | None]] = {"auto": "weight", "weight": "weight"}
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": False, "no": False}
    _memory_remedy = "fewer inducing inputs (n_inducing=), or a sample of the subjects (panel[::2])"
    saved: ClassVar[Mapping[str, kinds.Check]] = {
        "posterior_": kinds.result("SummedPosterior"), "weights_": kinds.array("K", "L"),
        "basis_expected_": kinds.array("K", "L"), "shares_": kinds.array("L"),
        "length_scales_": kinds.array("L", positive=True), "starts_": kinds.array("starts"),
        "law_weights_": kinds.array("A", "L"), "law_masses_": kinds.array("A", positive=True),
    }  # fmt: skip

    #: what is fixed for this model and asked of others
    hyper = "optimize"
    effect = "weight"
    bursts = False
    posterior_: SummedPosterior  # type: ignore[assignment]
    weights_: Floats
    basis_expected_: Floats
    shares_: Floats
    starts_: Floats
    length_scales_: Floats
    law_weights_: Floats
    law_masses_: Floats

    def __init__(
        self,
        *,
        n_bases: int = 2,
        count_term: str = "pointwise",
        n_inducing: int | None = None,
        b: float = 0.3,
        kernel: str = "se",
        mean: str | float = "learn",
        n_starts: int = 20,
        tol: float = 1e-3,
        max_iter: int = 100,
        random_state: int | None = None,
    ):
        self.n_bases = n_bases
        self.count_term = count_term
        self.n_inducing = n_inducing
        self.b = b
        self.kernel = kernel
        self.mean = mean
        self.n_starts = n_starts
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(
        self, panel: PanelCounts, y: None = None, *, progress: Callable[[str], None] | None = None
    ) -> Self:
        """Fit bases and weights to panel counts.

        Parameters
        ----------
        panel : PanelCounts
        y : None
            Ignored; scikit-learn passes it.
        progress : callable, optional
            Called with one line of text whenever a new step begins.
        """
        from gp4c.estimators.mixtures.mixture_fit import fit_and_store

        check_panel(self, panel)
        self._check_parameters()
        with self._whole_fit(panel), one_blas_thread():
            self._keep_time_axis(panel)
            vars(self).pop("weight_law", None)
            fit_and_store(self, panel, progress or (lambda text: None))
        return self

    def _check_parameters(self) -> None:
        check_choice("count_term", self.count_term, tuple(COUNT_TERMS))
        for name in ("n_bases", "n_starts", "max_iter"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be an integer of at least 1, not {value!r}")
        if not 0 <= self.b <= 1:
            raise ValueError(f"b must be in [0, 1], not {self.b!r}")
        check_shared_parameters(self)

    @property
    def effect_law_(self) -> SubjectEffect:
        """Free weights on every basis."""
        return BASIS_WEIGHTS

    def _fit_bytes(self, panel: PanelCounts) -> float:
        from gp4c.estimators.footprint import bound_bytes

        return self.n_bases * bound_bytes(self, panel)

    # -- bases and weights --------------------------------------------------------------------

    def basis(self, t: ArrayLike, index: int, *, extrapolate: bool = False) -> Numbers:
        """Posterior mean of a basis intensity at times `t`, for a subject with its mean weight."""
        return self._basis(index).intensity(t, extrapolate=extrapolate)

    def basis_band(
        self, t: ArrayLike, index: int, level: float = 0.95, kind: str = "pointwise", *,
        extrapolate: bool = False,
    ) -> Band:  # fmt: skip
        """Credible band of a basis intensity: (low, high); see :meth:`GP4C.intensity_band`.

        The band is that of f_l given the weights.
        """
        return self._basis(index).intensity_band(t, level, kind, extrapolate=extrapolate)

    def components(self) -> dict[str, GaussianProcessModel]:
        """The bases by name, each with the questions that a fitted curve answers."""
        self._check_fitted()
        count = range(len(self.posterior_.parts))
        return {f"basis {k + 1}": self._basis(k) for k in count} if len(count) > 1 else {}

    def weight_table(self) -> pd.DataFrame:
        """One row per subject: its events, the weight of each basis, and the bases' shares.

        A share is the part of the subject's expected number that belongs to the basis.
        """
        import pandas as pd

        self._check_fitted()
        own = self.weights_ * self.basis_expected_
        share = own / own.sum(axis=1, keepdims=True)
        columns: dict[str, object] = {
            "subject": self.subjects_, "events": self.subject_totals_.astype(np.int64)
        }  # fmt: skip
        for k in range(self.weights_.shape[1]):
            columns[f"weight_{k + 1}"] = self.weights_[:, k]
        for k in range(self.weights_.shape[1]):
            columns[f"share_{k + 1}"] = share[:, k]
        return pd.DataFrame(columns)

    @cached_property
    def weight_law(self) -> WeightLaw:
        """The law of the weights of new subjects."""
        self._check_fitted()
        return WeightLaw(self.law_weights_, self.law_masses_)

    def facts(self) -> list[tuple[str, str, str, float]]:
        """The bases in words: their shares of the events, when they are highest, their scale."""
        return basis_facts(self)

    def plot_bases(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the basis intensities with bands."""
        found: Axes = import_module(_FIGURES).plot_bases(self, ax, level=level)
        return found

    def plot_weights(self, ax: Axes | None = None) -> Axes:
        """Draw the weights of the subjects."""
        found: Axes = import_module(_FIGURES).plot_weights(self, ax)
        return found

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """The weights of the subjects."""
        return {"weights": self.weight_table()}

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """Bases and weights."""
        return {"bases": self.plot_bases, "weights": self.plot_weights}

    # -- curves of subjects -------------------------------------------------------------------

    def intensity(
        self, t: ArrayLike, *, subjects: Subjects | None = None, extrapolate: bool = False
    ) -> Numbers:
        """Posterior mean of λ(t): with mean weights, or of `subjects` (a label, or several).

        Several subjects give an array with one row each.
        """
        return self._for(
            subjects, lambda m: GaussianProcessModel.intensity(m, t, extrapolate=extrapolate)
        )

    def cumulative(
        self, t: ArrayLike, *, subjects: Subjects | None = None, extrapolate: bool = False
    ) -> Numbers:
        """Posterior mean of Λ(t), with mean weights or of `subjects`; see :meth:`intensity`."""
        return self._for(
            subjects, lambda m: GaussianProcessModel.cumulative(m, t, extrapolate=extrapolate)
        )

    def intensity_band(
        self, t: ArrayLike, level: float = 0.95, kind: str = "pointwise", *,
        subjects: Subjects | None = None, extrapolate: bool = False,
    ) -> Band:  # fmt: skip
        """Credible band of λ given the weights, with mean weights or of `subjects`."""
        return self._band_for(
            subjects,
            lambda m: GaussianProcessModel.intensity_band(
                m, t, level, kind, extrapolate=extrapolate
            ),
        )

    def cumulative_band(
        self, t: ArrayLike, level: float = 0.95, kind: str = "pointwise", *,
        subjects: Subjects | None = None, extrapolate: bool = False,
    ) -> Band:  # fmt: skip
        """Credible band of Λ given the weights, with mean weights or of `subjects`."""
        return self._band_for(
            subjects,
            lambda m: GaussianProcessModel.cumulative_band(
                m, t, level, kind, extrapolate=extrapolate
            ),
        )

    # -- scores -------------------------------------------------------------------------------

    def score(
        self, panel: PanelCounts, y: None = None, *, joint: bool = True, constant: bool = False,
        new_subjects: bool = True, n_draws: int | None = None,
    ) -> float:  # fmt: skip
        """Log-likelihood of the counts of these subjects; higher is better. Σ ln m! is left out.

        Parameters
        ----------
        panel : PanelCounts
        joint, constant
            As in :meth:`GP4C.score`.
        new_subjects : bool
            True: a prediction, in which the weights are unknown and averaged over their law.
            False: the protocol of the paper's Table 4, which refits the weights to the scored
            subjects' own counts. That is not a prediction, and favours more bases always.
        n_draws : int, optional
            Draws of the curves; default 1,000 for new subjects, else 4,000.
        """
        return self.score_with_error(
            panel, joint=joint, constant=constant, new_subjects=new_subjects, n_draws=n_draws
        )[0]

    def score_with_error(
        self, panel: PanelCounts, *, joint: bool = True, constant: bool = False,
        new_subjects: bool = True, n_draws: int | None = None,
    ) -> tuple[float, float]:  # fmt: skip
        """The score and the Monte-Carlo standard error of it."""
        extra = -panel.log_factorials if constant else 0.0
        if joint and not new_subjects:
            with one_blas_thread():
                value, error = self._rows(panel).joint_refitted(
                    n_draws or SCORE_DRAWS, np.random.default_rng(self._seed(None))
                )
            return value + extra, error
        values = self._likelihood_draws(panel, new_subjects, n_draws)
        if joint:
            total, spread = log_mean_exp(values.sum(axis=1))
            return float(total) + extra, float(spread)
        each, errors = log_mean_exp(values)
        return float(each.sum()) + extra, float(np.sqrt((errors**2).sum()))

    def score_subjects(
        self, panel: PanelCounts, *, new_subjects: bool = True, n_draws: int | None = None
    ) -> Floats:
        """Log-likelihood of each subject's counts, in the order of ``panel.subjects``."""
        return log_mean_exp(self._likelihood_draws(panel, new_subjects, n_draws))[0]

    def _likelihood_draws(
        self, panel: PanelCounts, new_subjects: bool, n_draws: int | None
    ) -> Floats:
        """ln p(counts of subject k | curves s), (S, K), so many draws at a time."""
        rows, rng = self._rows(panel), np.random.default_rng(self._seed(None))
        size = n_draws or (NEW_SUBJECT_DRAWS if new_subjects else SCORE_DRAWS)
        chunk = max(1, _SCORE_CHUNK // max(panel.n_intervals * self.n_bases, 1))
        parts = []
        with one_blas_thread():
            for first in range(0, size, chunk):
                n = min(chunk, size - first)
                parts.append(
                    rows.new_subject_draws(self.weight_law, n, rng)
                    if new_subjects
                    else rows.refitted_draws(n, rng)
                )
        return np.concatenate(parts)

    # -- helpers ------------------------------------------------------------------------------

    def _rows(self, panel: PanelCounts) -> MixtureRows:
        """A panel in the window beside the bases."""
        self._inside([panel.start.min(), panel.stop.max()], extrapolate=False)
        return MixtureRows(panel, self.posterior_)

    def _adjusted(self, panel: PanelCounts) -> PanelCounts:
        """The panel with the subjects' own courses in its exposure, at unchanged totals.

        What weights make of a row, relative to what they make of its subject.
        """
        rows = self._rows(panel)
        factor = rows.factors(rows.own_weights())
        at_mean = panel.exposure * rows.integrals().sum(axis=0)[panel.distinct().inverse]
        own = np.bincount(panel.subject_index, factor * at_mean, panel.n_subjects)
        level = own / np.bincount(panel.subject_index, at_mean, panel.n_subjects)
        return panel._like(exposure=panel.exposure * factor / level[panel.subject_index])

    def _joint_counts(
        self, known: SubjectHistories | None, covariates: Floats | None, beyond: str,
        own: Floats | None,
    ) -> JointCounts:  # fmt: skip
        from gp4c.estimators.mixtures.mixture_counts import MixtureCounts

        return MixtureCounts(self, known, covariates, beyond, own)

    def _basis(self, index: int) -> GP4CMixture:
        """The model as if a basis were all there is."""
        self._check_fitted()
        parts = self.posterior_.parts
        if not 0 <= index < len(parts):
            raise ValueError(f"a basis is one of 0 to {len(parts) - 1}, not {index!r}")
        return self._view(SummedPosterior((parts[index],)))

    def _view(self, posterior: SummedPosterior) -> GP4CMixture:
        """A copy that answers for another sum of the bases."""
        view = object.__new__(type(self))  # a copy would evaluate the bounds
        vars(view).update(vars(self), posterior_=posterior)
        return view

    def _views(self, subjects: Subjects) -> list[GP4CMixture]:
        self._check_fitted()
        known = fitted_subjects(self).positions(labels_of(subjects))
        return [self._view(self.posterior_.weighted(self.weights_[k])) for k in known]

    def _for(
        self, subjects: Subjects | None, answer: Callable[[GP4CMixture], Numbers]
    ) -> Numbers:  # fmt: skip
        if subjects is None:
            return answer(self)
        found = [answer(view) for view in self._views(subjects)]
        return found[0] if is_label(subjects) else np.stack([np.asarray(one) for one in found])

    def _band_for(self, subjects: Subjects | None, answer: Callable[[GP4CMixture], Band]) -> Band:
        if subjects is None:
            return answer(self)
        pairs = [answer(view) for view in self._views(subjects)]
        if is_label(subjects):
            return pairs[0]
        low, high = (np.stack([np.asarray(p[side]) for p in pairs]) for side in (0, 1))
        return low, high

    def to_arviz(self, *args: object, **options: object) -> None:  # type: ignore[override]
        """Refuse: the export has one curve and one effect per subject."""
        raise PanelDataError(
            "a mixture of bases has no export to ArviZ, which has one curve and one effect for "
            "each subject: export a GP4C fit"
        )
