r"""Joint draws of counts in windows of subjects, and of sums of them.

A cell of the answer is a sum over pairs of a subject k and a window w. Given the curve and the
effects its mean is

.. math:: \sum_{(k, w)} e_k \upsilon_k \int_w \lambda(t)\, dt ,

and since a sum of counts of one law has that law, each cell is drawn once per draw of the curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.data.subject_histories import SubjectHistories
from gp4c.model.modulation.sheets import distinct_inputs
from gp4c.posterior.fitted_counts import coefficient_deviations
from gp4c.posterior.subject_counts import SubjectCounts
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Counts = NDArray[np.int64]

#: most numbers held at once; laws of effects need some of these several times over, and are
#: computed in half the time where they stay in the processor's cache
_CHUNK = 2_000_000
#: laws of effects without a closed form that are computed for one forecast, and fewest curves
_DEAR, _FEWEST = 150_000, 500


@dataclass(frozen=True)
class Asked:
    """Pairs of subjects and windows, and the cells of the answer that they are summed to.

    Attributes
    ----------
    subject : (P,)
        Position among the known subjects; new ones come after them.
    start, stop, units : (P,)
        The window, and units at risk in it.
    cell : (P,)
        Position of the cell that the pair belongs to.
    n_cells : int
    n_new : int
        Number of subjects of whom nothing is known.
    sheet : (K,), optional
        Which of the different inputs of a modulated rate each subject brings.
    """

    subject: Indices
    start: Floats
    stop: Floats
    units: Floats
    cell: Indices
    n_cells: int
    n_new: int = 0
    sheet: Indices | None = None

    @cached_property
    def windows(self) -> tuple[Floats, Floats, Indices]:
        """Starts and stops of the different windows, and the window of each pair."""
        distinct, which = np.unique(self.start + 1j * self.stop, return_inverse=True)
        if self.sheet is None:
            return distinct.real, distinct.imag, which.reshape(-1)
        sheet = self.sheet[self.subject]
        codes, which = np.unique(which.reshape(-1) + len(distinct) * sheet, return_inverse=True)
        found = distinct[codes % len(distinct)]
        return found.real, found.imag, which.reshape(-1)

    @property
    def window_sheets(self) -> Indices:
        """The sheet of each different window, where subjects have sheets."""
        assert self.sheet is not None
        _, _, which = self.windows
        sheets = np.empty(int(which.max(initial=-1)) + 1, dtype=np.intp)
        sheets[which] = self.sheet[self.subject]
        return sheets

    @property
    def n_subjects(self) -> int:
        """Known and new ones."""
        return int(self.subject.max(initial=-1)) + 1

    @cached_property
    def _terms(self) -> tuple[Indices, Indices, sparse.csr_array, Indices]:
        """Cell and window of each term of the sums, and the units of subjects in it.

        A sum over a fleet has the same subjects in every window: their rows of units are kept
        once, with the row of each term.
        """
        start, _, window = self.windows
        codes, which = np.unique(self.cell * len(start) + window, return_inverse=True)
        shape = (len(codes), self.n_subjects)
        units = sparse.csr_array((self.units, (which.reshape(-1), self.subject)), shape)
        units.sum_duplicates()
        ends = zip(units.indptr, units.indptr[1:], strict=False)
        keys = [(units.indices[a:b].tobytes(), units.data[a:b].tobytes()) for a, b in ends]
        rows: dict[tuple[bytes, bytes], int] = {}
        place = np.array([rows.setdefault(key, len(rows)) for key in keys], dtype=np.intp)
        first = np.unique(place, return_index=True)[1]
        cell, at = np.divmod(codes, len(start))
        return cell, at, units[first], place

    def means(self, effect: Floats, inside: Floats) -> Floats:
        """Means of the cells: effects (K, S), integrals over the windows (W, S) → (cells, S)."""
        cell, window, units, place = self._terms
        each = np.asarray(units @ effect)[place] * inside[window]
        if len(cell) == self.n_cells and np.array_equal(cell, np.arange(self.n_cells)):
            return np.asarray(each)
        ones, number = np.ones(len(cell)), np.arange(len(cell))
        gather = sparse.csr_array((ones, (cell, number)), (self.n_cells, len(cell)))
        return np.asarray(gather @ each)


@dataclass(frozen=True)
class JointCounts:
    """Counts to come of known and new subjects under a fitted model.

    Attributes
    ----------
    model : PanelEstimator
    known : SubjectHistories or None
        Subjects of whom something is known.
    covariates : (K, p), optional
        Centred covariates of all subjects, known ones first, if the model has coefficients.
    beyond : str
        How the curve goes on outside the observation window.
    own : (K, p), optional
        Covariates that known subjects had when they were seen, if they are others.
    """

    model: PanelEstimator
    known: SubjectHistories | None
    covariates: Floats | None
    beyond: str
    own: Floats | None = None

    def draw(
        self, asked: Asked, n_draws: int, rng: np.random.Generator
    ) -> tuple[Floats, Counts]:  # fmt: skip
        """Means (cells,) and joint draws (cells, n_draws)."""
        mean, draws = np.zeros(asked.n_cells), np.empty((asked.n_cells, n_draws), dtype=np.int64)
        asked, _ = self._on_sheets(asked)
        with one_blas_thread():
            for some, drawn, average, params in self.rates(asked, n_draws, rng):
                mean += average.sum(axis=1) / n_draws
                draws[:, some] = self.model.count_law_.draw(drawn, self.theta(params), rng)
            exact = self._closed_form(asked)
        return mean if exact is None else exact, draws

    def rates(
        self, asked: Asked, n_draws: int, rng: np.random.Generator
    ) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
        """Means of the cells, some draws at a time.

        Yields
        ------
        which draws
        (cells, S)
            Means given curve and effects.
        (cells, S)
            Means given the curve, the effects averaged out.
        (P, S)
            Parameters of the laws.
        """
        asked, brought = self._on_sheets(asked)
        counts, (first, last, _) = self._seen(), asked.windows
        inputs = None
        if brought is not None:
            seen_inputs = np.zeros((0, brought.shape[1]))
            seen_inputs = seen_inputs if counts.inputs is None else counts.inputs
            inputs = np.concatenate([seen_inputs, brought[asked.window_sheets]])
        n_seen, n_subjects = len(counts.start), counts.n_subjects + asked.n_new
        start = np.concatenate([counts.start, first])
        stop = np.concatenate([counts.stop, last])
        times = self._times(n_draws)
        size = max(1, _CHUNK // (len(start) + times * (n_subjects + 2 * asked.n_cells)))
        for k in range(0, n_draws, size * times):
            some = slice(k, min(k + size * times, n_draws))
            curves = -(-(some.stop - k) // times)
            found = self.model._curve_draws(start, stop, curves, rng, self.beyond, inputs)
            integrals, params, beta = found
            beta = coefficient_deviations(self.model, beta)
            seen, inside = integrals[:n_seen], integrals[n_seen:]
            drawn = self._effects(counts, seen, params, beta, rng, times)
            kept = np.repeat(np.arange(curves), times)[: some.stop - k]
            inside, params = inside[:, kept], params[:, kept]
            effect, average = (part[:, : len(kept)] for part in drawn)
            if asked.n_new:
                effect, average = _with_new(self.model, asked.n_new, params, effect, average, rng)
            if self.covariates is not None:
                scatter = np.exp(self.covariates @ beta)[:, kept]
                effect, average = effect * scatter, average * scatter
            yield some, asked.means(effect, inside), asked.means(average, inside), params

    def effects(self, n_draws: int, rng: np.random.Generator) -> Iterator[Floats]:
        """Joint draws of the effects of the known subjects, (K, S), some at a time."""
        counts = self._seen()
        times = self._times(n_draws)
        size = max(1, _CHUNK // (len(counts.start) + times * counts.n_subjects + 1)) * times
        for k in range(0, n_draws, size):
            some = min(size, n_draws - k)
            curves = -(-some // times)
            found = self.model._curve_draws(
                counts.start, counts.stop, curves, rng, self.beyond, counts.inputs
            )
            seen, params, beta = found
            beta = coefficient_deviations(self.model, beta)
            yield self._effects(counts, seen, params, beta, rng, times)[0][:, :some]

    def _on_sheets(self, asked: Asked) -> tuple[Asked, Floats | None]:
        """The same with the inputs of the subjects to a modulated rate: different ones, (P, r)."""
        neutral = self.model._neutral_inputs()
        if not len(neutral):
            return asked, None
        last = None if self.known is None else self.known.last_inputs
        own = np.zeros((0, len(neutral))) if last is None else last
        every = np.concatenate([own, np.tile(neutral, (asked.n_new, 1))])
        distinct, sheet = distinct_inputs(self.model._inputs_with(every, self.covariates))
        return replace(asked, sheet=sheet), distinct

    def theta(self, params: Floats) -> Floats:
        """The parameters of the law of counts."""
        return params[len(self.model.effect_law_.parameters) :]

    def _seen(self) -> SubjectCounts:
        """What was seen of the known subjects, as far as their effects need it."""
        short = self.known is not None and self._totals_suffice
        return replace(self, known=self.known.without_rows() if short else self.known).seen_counts()  # type: ignore[union-attr]

    def seen_counts(self) -> SubjectCounts:
        """What was seen of the known subjects."""
        law, effect = self.model.count_law_, self.model.effect_law_
        if self.known is None:
            return SubjectCounts.of_histories(_NOBODY, law, effect)
        n_known = len(self.known.subjects)
        z = self.covariates if self.own is None else self.own
        z = None if z is None else z[:n_known]
        return SubjectCounts.of_histories(self.known, law, effect, z)

    @property
    def _totals_suffice(self) -> bool:
        """Whether the totals of subjects say all about their effects, wherever the events were."""
        law, effect = self.model.count_law_, self.model.effect_law_
        return not effect.varies or (law.one_by_one and effect.conjugate)

    def _times(self, n_draws: int) -> int:
        """How often each draw of the curve is used: more than once where effects are dear.

        Then several effects are drawn from each of their laws.
        """
        if self.known is None or self._totals_suffice or self.known.mean_expected is not None:
            return 1
        curves = max(_DEAR // len(self.known.subjects), _FEWEST)
        return -(-n_draws // min(curves, n_draws))

    def _effects(
        self,
        counts: SubjectCounts,
        seen: Floats,
        params: Floats,
        beta: Floats,
        rng: np.random.Generator,
        times: int = 1,
    ) -> tuple[Floats, Floats]:
        """υ of known subjects, and its mean given each draw of the curve, (K, S · times)."""
        law, known = self.model.effect_law_, self.known
        if known is None:
            return np.empty((0, params.shape[1])), np.empty((0, params.shape[1]))
        if not law.varies:
            size = (len(known.subjects), params.shape[1])
            weights = np.broadcast_to(fixed_effects(self.model, known)[:, None], size)
            return weights, weights
        if known.mean_expected is not None or self._totals_suffice:
            psi, totals = params[: len(law.parameters)], known.totals[:, None]
            expected = counts.expected(seen, beta)
            if known.mean_expected is not None:  # the spans were not kept: R is its mean
                expected = known.mean_expected[:, None]
            return law.draw(psi, totals, expected, rng), law.mean(psi, totals, expected)
        drawn, mean = counts.effects(seen, params, rng, beta, times)
        return drawn, np.repeat(mean, times, axis=1)

    def _closed_form(self, asked: Asked) -> Floats | None:
        """Means with the curve averaged out exactly, where no effect depends on it."""
        if self.covariates is not None and self.covariates.any():
            return None
        effects = np.ones(asked.n_new)
        if self.known is not None:
            if self.model.effect_law_.varies:
                return None
            effects = np.concatenate([fixed_effects(self.model, self.known), effects])
        start, stop, _ = asked.windows
        _, brought = self._on_sheets(asked)
        inputs = None if brought is None else brought[asked.window_sheets]
        expected = self.model._mean_integrals(start, stop, self.beyond, inputs)
        return asked.means(effects[:, None], expected[:, None])[:, 0]


def _with_new(
    model: PanelEstimator,
    n_new: int,
    params: Floats,
    effect: Floats,
    average: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Effects, and their means, with those of subjects of whom nothing is known."""
    new = new_effects(model, n_new, params, rng)
    return np.concatenate([effect, new]), np.concatenate([average, np.ones(new.shape)])


def new_effects(
    model: PanelEstimator, n_new: int, params: Floats, rng: np.random.Generator
) -> Floats:
    """υ of subjects of whom nothing is known, (n_new, S)."""
    law, size = model.effect_law_, (n_new, params.shape[1])
    if law.is_free:
        return np.asarray(rng.choice(np.asarray(model.subject_effects_), size))
    return law.draw(params[: len(law.parameters)], np.zeros(size), np.zeros(1), rng)


def fixed_effects(model: PanelEstimator, known: SubjectHistories) -> Floats:
    """Free weights of known subjects; 1 without."""
    if not model.effect_law_.is_free:
        return np.ones(len(known.subjects))
    order = {label: k for k, label in enumerate(model.subjects_.tolist())}
    return np.asarray(model.subject_effects_)[[order[label] for label in known.subjects.tolist()]]


_NOBODY = SubjectHistories.without_spans(np.zeros(0, dtype=object), np.zeros(0), np.zeros(0))
