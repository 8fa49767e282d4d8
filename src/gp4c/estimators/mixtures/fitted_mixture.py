"""What a fitted mixture says of subjects: their curves, their scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.base import Numbers
from gp4c.estimators.forecasts.count_forecast import Subjects
from gp4c.estimators.forecasts.forecast_inputs import fitted_subjects, is_label, labels_of
from gp4c.estimators.gp_base import SCORE_DRAWS, GaussianProcessModel
from gp4c.estimators.mixtures.mixture_bases import Band, MixtureBases
from gp4c.estimators.mixtures.mixture_rows import MixtureRows
from gp4c.exceptions import PanelDataError
from gp4c.posterior.scoring import log_mean_exp
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories
    from gp4c.estimators.forecasts.joint_counts import JointCounts

Floats = NDArray[np.float64]

#: draws behind the score of new subjects, each of which costs as much as the law has points; fewer
#: where all of them together would be more numbers than this
NEW_SUBJECT_DRAWS, FEWEST_DRAWS, _ALL_NUMBERS = 1000, 200, 100_000_000
#: most numbers held at once while scoring
_SCORE_CHUNK = 20_000_000


class FittedMixture(MixtureBases):
    """Curves of subjects, and scores."""

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
