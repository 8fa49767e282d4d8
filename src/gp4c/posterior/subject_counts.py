"""What a fitted law says of the counts of subjects, draw of the curve by draw.

Scores, forecasts and checks of any estimator go through here: given draws of ∫λ, of the laws'
parameters and of the coefficients, ln p of each subject's counts with its effect integrated out,
the effect's mean, and draws of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.model.cells import Cells, CountedRows
from gp4c.model.count_likelihood import TINY, CountLikelihood
from gp4c.model.effect_integral import WIDE, EffectIntegral, EffectRows
from gp4c.model.laws import CountLaw, SubjectEffect
from gp4c.model.observed_cells import merged_spans, reduce_cells

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subject_histories import SubjectHistories

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SubjectCounts:
    """Counts of subjects in the user's time, under a law of counts and one of effects.

    `start` and `stop` are the intervals over which ∫λ is needed: the cells with events, then the
    spans over which subjects were seen.
    """

    seen: CountedRows
    spans: CountedRows
    n_subjects: int
    law: CountLaw
    effect: SubjectEffect

    @classmethod
    def of(
        cls,
        panel: PanelCounts,
        law: CountLaw,
        effect: SubjectEffect,
        z: Floats | None = None,
        inputs: Floats | None = None,
    ) -> SubjectCounts:
        """The counts of a panel; `z` are the covariates of its rows.

        `inputs` (n, r) are what the rows bring to a modulated rate.
        """
        rows = _rows(panel, z, inputs)
        return cls(rows.take(rows.count > 0), merged_spans(rows), panel.n_subjects, law, effect)

    @classmethod
    def before_each_row(
        cls,
        panel: PanelCounts,
        law: CountLaw,
        effect: SubjectEffect,
        z: Floats | None = None,
        inputs: Floats | None = None,
    ) -> SubjectCounts:
        """One subject per row of a panel: what was seen of the row's subject before it."""
        rows, n = _rows(panel, z, inputs), panel.n_intervals
        first = np.flatnonzero(np.diff(panel.subject_index, prepend=-1))
        begins = np.repeat(first, np.diff(np.append(first, n)))
        number = np.arange(n) - begins
        owner = np.repeat(np.arange(n), number)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
        earlier = replace(rows.take(begins[owner] + within), subject=owner)
        spans = merged_spans(earlier) if len(owner) else earlier
        return cls(earlier.take(earlier.count > 0), spans, n, law, effect)

    @classmethod
    def of_nobody(cls, law: CountLaw, effect: SubjectEffect) -> SubjectCounts:
        """One subject of whom nothing was seen."""
        none, nobody = np.zeros(0), np.zeros(0, dtype=np.intp)
        rows = CountedRows(none, none, none, none, nobody, np.zeros((0, 0)))
        return cls(rows, rows, 1, law, effect)

    @classmethod
    def of_histories(
        cls,
        known: SubjectHistories,
        law: CountLaw,
        effect: SubjectEffect,
        z: Floats | None = None,
    ) -> SubjectCounts:
        """The counts that a fitted model keeps of its subjects, or of some of them.

        `z` (K, p) are covariates whose coefficients deviate from those in the exposures.
        """
        z = np.zeros((len(known.subjects), 0)) if z is None else z
        rows = CountedRows(
            known.row_start, known.row_stop, known.row_count, known.row_exposure,
            known.row_subject, z[known.row_subject], known.row_inputs,
        )  # fmt: skip
        spans = CountedRows(
            known.span_start, known.span_stop, np.zeros(len(known.span_start)),
            known.span_exposure, known.span_subject, z[known.span_subject], known.span_inputs,
        )  # fmt: skip
        return cls(rows, spans, len(known.subjects), law, effect)

    @cached_property
    def cells(self) -> Cells:
        """One owner per subject, nothing pooled."""
        return reduce_cells(
            self.seen, self.spans, self.law, self.effect, window=(0.0, 1.0), rate=1.0,
            n_subjects=self.n_subjects, constant=0.0, pool=False,
        )  # fmt: skip

    @cached_property
    def likelihood(self) -> CountLikelihood:
        """The likelihood of the cells."""
        return CountLikelihood(self.cells, self.law, self.effect)

    @property
    def start(self) -> Floats:
        """Starts of the intervals whose integrals are asked for."""
        return np.concatenate([self.cells.start, self.cells.span_start])

    @property
    def stop(self) -> Floats:
        """Their stops."""
        return np.concatenate([self.cells.stop, self.cells.span_stop])

    @property
    def inputs(self) -> Floats | None:
        """What the intervals bring to a modulated rate, (intervals, r); None without one."""
        cells = self.cells
        if self.seen.inputs is None and self.spans.inputs is None:
            return None
        return np.asarray(cells.sheets[np.concatenate([cells.cell_sheet, cells.span_sheet])])

    @property
    def points(self) -> NDArray[np.bool_]:
        """Which of them are exact event times: λ there stands for the integral."""
        return np.asarray(self.start == self.stop)

    def expected(self, integrals: Floats, beta: Floats | None = None) -> Floats:
        """R of each subject, at effect 1, for every draw: (intervals, S) → (K, S)."""
        return self._split(integrals, beta)[2]

    def expected_rows(self, integrals: Floats, beta: Floats | None = None) -> tuple[Floats, Floats]:
        """r of the rows with a remainder and R of the subjects, (J2, S) and (K, S)."""
        return self._split(integrals, beta)[1:]

    def log_likelihoods(
        self, integrals: Floats, params: Floats, beta: Floats | None = None
    ) -> Floats:
        """ln p of each subject's counts + Σ ln m!, (K, S).

        Parameters
        ----------
        integrals : (intervals, S)
            Draws of ∫λ over (`start`, `stop`], of λ at `points`.
        params : (P, S)
            Parameters of the laws.
        beta : (p, S), optional
            Coefficients, if the rows have covariates.
        """
        return self.log_likelihoods_at(*self._split(integrals, beta), params, beta)

    def log_likelihoods_at(
        self,
        cell: Floats,
        row: Floats,
        owner: Floats,
        params: Floats,
        beta: Floats | None = None,
    ) -> Floats:
        """The same from I of the cells, r of the rows with a remainder and R of the subjects."""
        total = self.likelihood.effect_terms(row, owner, params)
        total = total + self.power @ np.log(np.maximum(cell, TINY)) + self._log_factors[:, None]
        if beta is not None and len(beta):
            total = total + self._power_z @ beta
        return np.asarray(total + self._static(params)[0])

    def outside_effects(self, cell: Floats, params: Floats) -> tuple[Floats, Floats]:
        """What of each subject's ln p no effect enters, (K, S), and its gradient in θ, (P, K, S).

        The gradient is that of the part that no curve enters either.
        """
        static, slopes = self._static(params)
        powers = self.power @ np.log(np.maximum(cell, TINY)) + self._log_factors[:, None]
        return np.asarray(powers + static), slopes

    def effect_means(self, integrals: Floats, params: Floats, beta: Floats | None = None) -> Floats:
        """E υ of each subject given its counts, (K, S)."""
        _, row, owner = self._split(integrals, beta)
        return self.likelihood.effect_means(row, owner, params)

    def effect_draws(
        self,
        integrals: Floats,
        params: Floats,
        rng: np.random.Generator,
        beta: Floats | None = None,
        times: int = 1,
    ) -> Floats:
        """υ of each subject given its counts, (K, S · times): `times` for each draw."""
        return self.effects(integrals, params, rng, beta, times)[0]

    def effects(
        self,
        integrals: Floats,
        params: Floats,
        rng: np.random.Generator,
        beta: Floats | None = None,
        times: int = 1,
    ) -> tuple[Floats, Floats]:
        """The same, and E υ given the counts, (K, S)."""
        _, row, owner = self._split(integrals, beta)
        return self.likelihood.effects(row, owner, params, rng, times)

    def effect_nodes(
        self, integrals: Floats, params: Floats, beta: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """The law of υ of each subject given its counts: nodes and weights, (Q, K, S) each."""
        _, row, owner = self._split(integrals, beta)
        if not self.effect.varies:
            return np.ones((1, 1, 1)), np.ones((1, 1, 1))
        everybody = replace(self.cells, hard=np.arange(self.n_subjects))
        psi, theta = self.likelihood.split(params)
        integral = EffectIntegral(EffectRows.of(everybody), self.law, self.effect)
        y, weight = integral.law_of_effect(row, owner, psi, theta, WIDE)
        return np.exp(y), weight

    def _split(self, integrals: Floats, beta: Floats | None) -> tuple[Floats, Floats, Floats]:
        """I of the cells, r of the rows with a remainder, R of the subjects."""
        cells = self.cells
        cell, spans = np.split(integrals, [len(cells.start)])
        row = cells.rows.factor[:, None] * cell[cells.row_cell]
        spans = cells.span_factor[:, None] * spans
        if beta is not None and len(beta):
            row = row * np.exp(cells.rows.z @ beta)
            spans = spans * np.exp(cells.span_z @ beta)
        return cell, np.maximum(row, TINY), np.asarray(self._spans @ spans)

    @cached_property
    def _spans(self) -> sparse.csr_array:
        """Spans summed by subject."""
        n = len(self.cells.span_owner)
        shape = (self.n_subjects, n)
        return sparse.csr_array((np.ones(n), (self.cells.span_owner, np.arange(n))), shape=shape)

    @cached_property
    def _seen(self) -> tuple[CountedRows, Floats]:
        """Rows with events, and their powers."""
        return self.seen, self.law.power(self.seen.count)

    @cached_property
    def power(self) -> sparse.csr_array:
        """n of each subject in each cell."""
        seen, power = self._seen
        cells = self.cells
        known, rows = [cells.start, cells.stop], [seen.start, seen.stop]
        if seen.inputs is not None:
            places = {one.tobytes(): float(k) for k, one in enumerate(cells.sheets)}
            known.append(cells.cell_sheet.astype(float))
            rows.append(np.array([places[one.tobytes()] for one in seen.inputs]))
        key = np.searchsorted(np.rec.fromarrays(known), np.rec.fromarrays(rows))
        return sparse.csr_array(
            (power, (seen.subject, key)), shape=(self.n_subjects, len(cells.start))
        )

    @cached_property
    def _log_factors(self) -> Floats:
        """Σ n ln(factor), and q of events at the same time, of each subject."""
        seen, power = self._seen
        values = power * np.log(seen.factor)
        ties = np.flatnonzero((seen.start == seen.stop) & self.law.has_remainder(seen.count))
        values[ties] += [self.law.at_points(m) for m in seen.count[ties, None]]
        return np.asarray(np.bincount(seen.subject, values, self.n_subjects))

    @cached_property
    def _power_z(self) -> Floats:
        seen, power = self._seen
        result = np.zeros((self.n_subjects, seen.z.shape[1]))
        np.add.at(result, seen.subject, power[:, None] * seen.z)
        return result

    def _static(self, params: Floats) -> tuple[Floats, Floats]:
        """Σ s(m, θ) of each subject, (K, S), and its gradient in θ, (P, K, S)."""
        _, theta = self.likelihood.split(params)
        if not len(theta):
            return np.zeros((1, 1)), np.zeros((0, self.n_subjects, params.shape[1]))
        seen, _ = self._seen
        counts, which = np.unique(seen.count, return_inverse=True)
        n, one = len(which), np.ones(1)
        by_count = sparse.csr_array(
            (np.ones(n), (seen.subject, which)), shape=(self.n_subjects, len(counts))
        )
        parts = [self.law.static(m[None], one, theta) for m in counts]
        each = [np.broadcast_to(value, theta.shape[1:]) for value, _, _ in parts]
        values = np.array(each).reshape(len(counts), *theta.shape[1:])
        slopes = np.array([first for _, first, _ in parts]).reshape(len(counts), *theta.shape)
        first = np.array([by_count @ slopes[:, i] for i in range(len(theta))])
        return np.asarray(by_count @ values), first


def _rows(panel: PanelCounts, z: Floats | None, inputs: Floats | None = None) -> CountedRows:
    """The rows of a panel with their covariates."""
    covariates = np.zeros((panel.n_intervals, 0)) if z is None else z
    return CountedRows(
        panel.start, panel.stop, panel.count.astype(float), np.asarray(panel.exposure),
        np.asarray(panel.subject_index, dtype=np.intp), covariates, inputs,
    )  # fmt: skip
