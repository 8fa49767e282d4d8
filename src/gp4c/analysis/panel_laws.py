"""Draws of the expected counts of a panel, and the laws of its counts given them.

What the diagnostics of any fitted model have in common: rows and totals of subjects, new data from
the model, probabilities of counts with the effect of the subject integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.model.laws import EFFECTS, LAWS, CountLaw, SubjectEffect
from gp4c.posterior.effect_given import EffectGiven, effect_given
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: most numbers that draws of the rows may take; fewest draws
MAX_NUMBERS, FEWEST_DRAWS = 50_000_000, 20
#: the smallest free weight, of a subject without events
_LEAST_WEIGHT = 1e-6


@dataclass(frozen=True)
class PanelLaws:
    """Counts of a panel under a fitted model, draw by draw.

    Attributes
    ----------
    panel : PanelCounts
        With free weights in its exposure, if the model has any.
    means : (N, S)
        Expected count of each row at effect 1.
    window : (S,)
        ∫λ over the window.
    params : (P, S)
        Parameters of the law of effects, then of the law of counts.
    law, effect
    subjects : SubjectCounts
        What was seen of subjects, as asked for.
    integrals, beta : (intervals, S), (p, S)
        ∫λ over the intervals of `subjects`, and coefficients.
    """

    panel: PanelCounts
    means: Floats
    window: Floats
    params: Floats
    law: CountLaw
    effect: SubjectEffect
    subjects: SubjectCounts
    integrals: Floats
    beta: Floats

    @property
    def counts(self) -> Floats:
        """Count of each row."""
        return self.panel.count.astype(np.float64)

    @cached_property
    def totals(self) -> Floats:
        """Events of each subject."""
        index = self.panel.subject_index
        return np.asarray(np.bincount(index, self.counts, self.panel.n_subjects))

    @cached_property
    def subject_means(self) -> Floats:
        """Expected total of each subject at effect 1, (K, S)."""
        return by_subject(self.panel, self.means)

    def units(self, per: str) -> tuple[Floats, Floats]:
        """Counts and their means, of intervals or of subjects.

        Laws of counts are divisible: a subject's total has the law of one count with the summed
        mean.
        """
        if per == "interval":
            return self.counts, self.means
        if per == "subject":
            return self.totals, self.subject_means
        raise ValueError(f"per must be 'interval' or 'subject', not {per!r}")

    def without_differences(self) -> PanelLaws:
        """The same curve with Poisson counts and equal subjects."""
        none = np.zeros((0, self.params.shape[1]))
        return replace(self, law=LAWS["poisson"], effect=EFFECTS[None], params=none)

    def new_subjects(self) -> EffectGiven:
        """The effect of a subject of whom nothing is known."""
        nobody = SubjectCounts.of_nobody(self.law, self.effect)
        return effect_given(nobody, np.zeros((0, self.params.shape[1])), self.params)

    def seen_subjects(self) -> EffectGiven:
        """The effects of `subjects`."""
        return effect_given(self.subjects, self.integrals, self.params, self.beta)

    def log_likelihoods(self) -> Floats:
        """ln p of the counts of `subjects` + Σ ln m!, (K, S)."""
        return self.subjects.log_likelihoods(self.integrals, self.params, self.beta)

    def replicate_totals(self, size: int, rng: np.random.Generator) -> Floats:
        """Totals of the same subjects in new data from the model, (size, K)."""
        who = np.arange(size) % self.params.shape[1]
        means, params = self.subject_means[:, who], self.params[:, who]
        psi, theta = np.split(params, [len(self.effect.parameters)])
        nothing = np.zeros((len(means), 1))
        effects = self.effect.draw(psi, nothing, nothing, rng)
        return self.law.draw(effects * means, theta, rng).T.astype(np.float64)


def panel_laws(
    model: PanelEstimator, panel: PanelCounts, n_draws: int, *, earlier: bool = False
) -> PanelLaws:
    """Draw curves and parameters of a fitted model for a panel in its window.

    Parameters
    ----------
    n_draws : int
        Fewer for very large panels; one for a curve that is plugged in.
    earlier : bool
        Whether `subjects` are those of the panel, or each row's subject before that row.
    """
    model._inside([panel.start.min(), panel.stop.max()], False)
    z = model._covariates_of(panel)
    panel = _with_weights(model, panel)
    law, effect = model.count_law_, model.effect_law_
    seen = SubjectCounts.before_each_row if earlier else SubjectCounts.of
    inputs = model._inputs_of(panel)
    subjects = seen(panel, law, effect, z, inputs)
    first, last, which = _intervals(panel, inputs)
    start = np.concatenate([first, [model.window_[0]], subjects.start])
    stop = np.concatenate([last, [model.window_[1]], subjects.stop])
    brought = None
    if inputs is not None and subjects.inputs is not None:
        neutral = model._neutral_inputs()[None]
        brought = np.concatenate([inputs, neutral, subjects.inputs])
    size = max(min(n_draws, MAX_NUMBERS // panel.n_intervals), FEWEST_DRAWS)
    size = 1 if model._plugs_in else size
    with one_blas_thread():
        rng = np.random.default_rng(0)
        integrals, params, beta = model._curve_draws(start, stop, size, rng, "prior", brought)
    rows, window, rest = np.split(integrals, [len(first), len(first) + 1])
    means = panel.exposure[:, None] * rows[which]
    if z is not None:
        means = means * np.exp(z @ beta)
    return PanelLaws(panel, means, window[0], params, law, effect, subjects, rest, beta)


def _intervals(panel: PanelCounts, inputs: Floats | None) -> tuple[Floats, Floats, Indices]:
    """Intervals to integrate over, and the one of each row; rows with inputs have their own."""
    if inputs is not None:
        return panel.start, panel.stop, np.arange(panel.n_intervals)
    distinct = panel.distinct()
    return distinct.start, distinct.stop, distinct.inverse


def by_subject(panel: PanelCounts, rows: Floats) -> Floats:
    """Sums over the rows of each subject, (N, S) → (K, S)."""
    first = np.flatnonzero(np.diff(panel.subject_index, prepend=-1))
    sums = np.zeros((panel.n_subjects, rows.shape[1]))
    sums[panel.subject_index[first]] = np.add.reduceat(rows, first, axis=0)
    return sums


def _with_weights(model: PanelEstimator, panel: PanelCounts) -> PanelCounts:
    """The panel with free weights that fit its own counts in the exposure; else as it is."""
    if not model.effect_law_.is_free:
        return panel
    panel = model._adjusted(panel)
    mean = panel.exposure * model._mean_integrals(panel.start, panel.stop, "prior")
    expected = np.bincount(panel.subject_index, mean, panel.n_subjects)
    totals = np.bincount(panel.subject_index, panel.count, panel.n_subjects)
    weights = np.maximum(totals / np.maximum(expected, 1e-300), _LEAST_WEIGHT)
    return panel._like(exposure=panel.exposure * weights[panel.subject_index])
