"""Everything that a fitted mixture answers: bases, weights, curves of subjects, scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.base import Numbers
from gp4c.estimators.forecasts.count_forecast import Subjects
from gp4c.estimators.forecasts.forecast_inputs import fitted_subjects, is_label, labels_of
from gp4c.estimators.gp_base import SCORE_DRAWS, GaussianProcessModel
from gp4c.estimators.mixtures.mixture_rows import MixtureRows
from gp4c.estimators.mixtures.mixture_words import basis_facts
from gp4c.exceptions import PanelDataError
from gp4c.files import kinds
from gp4c.model.laws.weights import BasisWeights
from gp4c.posterior.scoring import log_mean_exp
from gp4c.posterior.summed.summed_posterior import SummedPosterior
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
#: draws behind the score of new subjects, each of which costs as much as the law has points; fewer
#: where all of them together would be more numbers than this
NEW_SUBJECT_DRAWS, FEWEST_DRAWS, _ALL_NUMBERS = 1000, 200, 100_000_000
#: where the plots are: reporting stands after estimators in the house
_FIGURES = "gp4c.reporting.figures.mixture_plots"
#: most numbers held at once while scoring
_SCORE_CHUNK = 20_000_000


class FittedMixture(GaussianProcessModel):
    """Prediction and scoring from bases and weights."""

    effect_options: ClassVar[Mapping[str, str | None]] = {"auto": "weight", "weight": "weight"}
    burst_options: ClassVar[Mapping[str, str | bool]] = {"auto": False, "no": False}
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

    @property
    def effect_law_(self) -> SubjectEffect:
        """Free weights on every basis."""
        return BASIS_WEIGHTS

    # -- bases and weights --------------------------------------------------------------------

    def basis(self, t: ArrayLike, index: int, *, extrapolate: bool = False) -> Numbers:
        """Posterior mean of a basis intensity at times `t`, for a subject with its mean weight.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.basis([12.0, 24.0], 0).shape
        (2,)
        """
        return self._basis(index).intensity(t, extrapolate=extrapolate)

    def basis_band(
        self, t: ArrayLike, index: int, level: float = 0.95, kind: str = "pointwise", *,
        extrapolate: bool = False,
    ) -> Band:  # fmt: skip
        """Credible band of a basis intensity: (low, high); see :meth:`GP4C.intensity_band`.

        The band is that of f_l given the weights.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> low, high = model.basis_band(24.0, 0)
        >>> bool(low < high)
        True
        """
        return self._basis(index).intensity_band(t, level, kind, extrapolate=extrapolate)

    def components(self) -> dict[str, GaussianProcessModel]:
        """The bases by name, each with the questions that a fitted curve answers.

        :meta private:
        """
        self._check_fitted()
        count = range(len(self.posterior_.parts))
        return {f"basis {k + 1}": self._basis(k) for k in count} if len(count) > 1 else {}

    def weight_table(self) -> pd.DataFrame:
        """One row per subject: its events, the weight of each basis, and the bases' shares.

        A share is the part of the subject's expected number that belongs to the basis.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> list(model.weight_table().columns[2:])
        ['weight_1', 'weight_2', 'share_1', 'share_2']
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
        """The bases in words: their shares of the events, when they are highest, their scale.

        :meta private:
        """
        return basis_facts(self)

    def plot_bases(self, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """Draw the basis intensities with bands.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> ax = model.plot_bases()
        """
        found: Axes = import_module(_FIGURES).plot_bases(self, ax, level=level)
        return found

    def plot_weights(self, ax: Axes | None = None) -> Axes:
        """Draw the weights of the subjects.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> ax = model.plot_weights()
        """
        found: Axes = import_module(_FIGURES).plot_weights(self, ax)
        return found

    def own_tables(self) -> dict[str, pd.DataFrame]:
        """The weights of the subjects.

        :meta private:
        """
        return {"weights": self.weight_table()}

    def own_plots(self) -> dict[str, Callable[[Axes], Axes]]:
        """Bases and weights.

        :meta private:
        """
        return {"bases": self.plot_bases, "weights": self.plot_weights}

    # -- curves of subjects -------------------------------------------------------------------

    def intensity(
        self, t: ArrayLike, *, subjects: Subjects | None = None, extrapolate: bool = False
    ) -> Numbers:
        """Posterior mean of λ(t): with mean weights, or of `subjects` (a label, or several).

        Several subjects give an array with one row each.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.intensity([12.0, 24.0], subjects=[1, 2, 3]).shape
        (3, 2)
        """
        return self._for(
            subjects, lambda m: GaussianProcessModel.intensity(m, t, extrapolate=extrapolate)
        )

    def cumulative(
        self, t: ArrayLike, *, subjects: Subjects | None = None, extrapolate: bool = False
    ) -> Numbers:
        """Posterior mean of Λ(t), with mean weights or of `subjects`; see :meth:`intensity`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.cumulative(24.0) > 0
        True
        """
        return self._for(
            subjects, lambda m: GaussianProcessModel.cumulative(m, t, extrapolate=extrapolate)
        )

    def intensity_band(
        self, t: ArrayLike, level: float = 0.95, kind: str = "pointwise", *,
        subjects: Subjects | None = None, extrapolate: bool = False,
    ) -> Band:  # fmt: skip
        """Credible band of λ given the weights, with mean weights or of `subjects`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> low, high = model.intensity_band(24.0, subjects=1)
        >>> bool(low < model.intensity(24.0, subjects=1) < high)
        True
        """
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
        """Credible band of Λ given the weights, with mean weights or of `subjects`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> low, high = model.cumulative_band(24.0)
        >>> bool(low < model.cumulative(24.0) < high)
        True
        """
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
            subjects' own counts. That is not a prediction, and always favours more bases.
        n_draws : int, optional
            Draws of the curves; default 1,000 for new subjects (200 for large panels), else 4,000.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.score(panel, n_draws=20) < 0
        True
        """
        return self.score_with_error(
            panel, joint=joint, constant=constant, new_subjects=new_subjects, n_draws=n_draws
        )[0]

    def score_with_error(
        self, panel: PanelCounts, *, joint: bool = True, constant: bool = False,
        new_subjects: bool = True, n_draws: int | None = None,
    ) -> tuple[float, float]:  # fmt: skip
        """The score and the Monte-Carlo standard error of it.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> score, error = model.score_with_error(panel, n_draws=20)
        >>> error > 0
        True
        """
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
        """Log-likelihood of each subject's counts, in the order of ``panel.subjects``.

        Σ ln m! over the subject's counts m is left out.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.score_subjects(panel, n_draws=20).shape
        (85,)
        """
        return log_mean_exp(self._likelihood_draws(panel, new_subjects, n_draws))[0]

    def _likelihood_draws(
        self, panel: PanelCounts, new_subjects: bool, n_draws: int | None
    ) -> Floats:
        """ln p(counts of subject k | curves s), (S, K), so many draws at a time."""
        rows, rng = self._rows(panel), np.random.default_rng(self._seed(None))
        size = n_draws or (self._new_draws(panel) if new_subjects else SCORE_DRAWS)
        chunk = max(1, _SCORE_CHUNK // max(panel.n_intervals * self.weights_.shape[1], 1))
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

    def _new_draws(self, panel: PanelCounts) -> int:
        """Draws that score new subjects in a few seconds."""
        each = panel.n_intervals * len(self.law_masses_)
        return int(np.clip(_ALL_NUMBERS // each, FEWEST_DRAWS, NEW_SUBJECT_DRAWS))

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

    def _basis(self, index: int) -> FittedMixture:
        """The model as if a basis were all there is."""
        self._check_fitted()
        parts = self.posterior_.parts
        if not 0 <= index < len(parts):
            raise ValueError(f"a basis is one of 0 to {len(parts) - 1}, not {index!r}")
        return self._view(SummedPosterior((parts[index],)))

    def _view(self, posterior: SummedPosterior) -> FittedMixture:
        """A copy that answers for another sum of the bases."""
        view = object.__new__(type(self))  # a copy would evaluate the bounds
        vars(view).update(vars(self), posterior_=posterior)
        return view

    def _views(self, subjects: Subjects) -> list[FittedMixture]:
        self._check_fitted()
        known = fitted_subjects(self).positions(labels_of(subjects))
        return [self._view(self.posterior_.weighted(self.weights_[k])) for k in known]

    def _for(
        self, subjects: Subjects | None, answer: Callable[[FittedMixture], Numbers]
    ) -> Numbers:  # fmt: skip
        if subjects is None:
            return answer(self)
        found = [answer(view) for view in self._views(subjects)]
        return found[0] if is_label(subjects) else np.stack([np.asarray(one) for one in found])

    def _band_for(self, subjects: Subjects | None, answer: Callable[[FittedMixture], Band]) -> Band:
        if subjects is None:
            return answer(self)
        pairs = [answer(view) for view in self._views(subjects)]
        if is_label(subjects):
            return pairs[0]
        low, high = (np.stack([np.asarray(p[side]) for p in pairs]) for side in (0, 1))
        return low, high

    def to_arviz(self, *args: object, **options: object) -> None:  # type: ignore[override]
        """Refuse: the export has one curve and one effect per subject.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> model = gp4c.GP4CMixture(n_bases=2, n_starts=2, n_inducing=8).fit(panel)
        >>> model.to_arviz()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        gp4c.exceptions.PanelDataError: a mixture of bases has no export to ArviZ...
        """
        raise PanelDataError(
            "a mixture of bases has no export to ArviZ, which has one curve and one effect for "
            "each subject: export a GP4C fit"
        )
