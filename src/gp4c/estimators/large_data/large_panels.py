"""Default fits to panels in memory, of any size.

Equal rows are one, so that a million rows with monthly visits are few. Where they are not, the
likelihood is expanded at its mode; if that is not close enough, Poisson counts go by sums on nodes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.tables.sources import ArraySource
from gp4c.estimators.engine_fit import EngineData, fit_engine, given_mean, run_engine
from gp4c.estimators.large_data.summed_fit import MOST_CELLS, MOST_ERROR, fit_sums
from gp4c.exceptions import ConvergenceWarning
from gp4c.inference.engine.lattice import find_modes
from gp4c.inference.engine.posterior_fit import EngineFit, Laws, Say, task_for
from gp4c.large.expanded_cells import ManyRows
from gp4c.large.needless_parts import needless_parts
from gp4c.large.resolved import SummedPanel
from gp4c.large.streaming import sum_source
from gp4c.model.cells import Cells
from gp4c.model.laws import CountLaw, SubjectEffect
from gp4c.model.observed_cells import panel_rows

if TYPE_CHECKING:
    from gp4c.estimators.gp_base import GaussianProcessModel
    from gp4c.estimators.interfaces.fitted_state import Compression

#: rows with several events up to which they are fitted as they are, without effects of subjects
#: and with: fits of these sizes take about 3 s
MOST_ROWS, MOST_HARD_ROWS = 30_000, 2_500
#: rows with several events up to which they are fitted after all if an expansion is not close
MOST_EXACT_ROWS = 30_000
#: nats on a sample of subjects behind the best law from which a law is given up
_FAR_BEHIND = 15.0
#: nats by which an expansion is off from which its evidence says nothing
_MEANINGLESS = 20.0
#: times that the likelihood is expanded anew where an expansion is not close
_MOST_REPAIRS = 4


def fit_panel(
    model: GaussianProcessModel, data: EngineData, laws: list[Laws], say: Say | None = None
) -> tuple[EngineFit, Compression | None]:
    """Fit rows in memory; also what stands for them, None if they stand for themselves."""
    if data.events is not None or data.z is not None:
        return fit_engine(model, data, laws, say), None
    return _LargePanel(model, data, say or (lambda text: None)).fit(laws)


@dataclass(frozen=True)
class _LargePanel:
    """A panel, and the forms in which it is fitted."""

    model: GaussianProcessModel
    data: EngineData
    say: Say

    def fit(self, laws: list[Laws]) -> tuple[EngineFit, Compression | None]:
        """Choose laws on a sample of subjects, then fit those that are not far behind."""
        few = self._few(laws)
        if few is not None:
            return run_engine(self.model, lambda *pair: few[pair], laws, self.say), None
        kept, behind = self._plausible(laws)
        ready, odds = self._narrowed(kept)
        fit, described = self._by_law(ready)
        top = fit.weighted.log_evidence
        scale = self.data.n_subjects / self.many.small_sample().n_subjects
        told = {pair: top - scale * gap for pair, gap in behind.items()}  # as the sample says
        base = fit.evidences.get((kept[-1][0].name, kept[-1][1].name), top)
        told |= {pair: base + value for pair, value in odds.items()}
        for (law, effect), value in told.items():
            fit.evidences.setdefault((law.name, effect.name), value)
        return fit, described

    def _few(self, laws: list[Laws]) -> dict[Laws, Cells] | None:
        """Cells of all laws; None if those of some law are too many."""
        if any(self._too_many(*pair) for pair in laws):
            return None
        found = {pair: one for pair in laws if (one := self._cells(*pair)) is not None}
        return found if len(found) == len(laws) else None

    def _narrowed(self, laws: list[Laws]) -> tuple[dict[Laws, Cells], dict[Laws, float]]:
        """Cells or expansions of the laws to fit, and log odds of those that no row asks for.

        The simplest law is looked at first: its curve tells which parts more are needless.
        """
        simplest, odds = laws[-1], dict[Laws, float]()
        known = {simplest: self._ready(simplest)}
        cells = known[simplest]
        if cells is not None and len(laws) > 1:
            self.say("looking for parts of the law that no row asks for")
            task = task_for(cells, *simplest, **self.many.settings)
            mode = find_modes(task, rounds=1).best.mode
            odds = needless_parts(self.many, mode, laws[:-1])
        for pair in laws[:-1]:
            if pair not in odds:
                known[pair] = self._ready(pair)
        ready = {pair: known[pair] for pair in laws if pair in known}
        return {pair: one for pair, one in ready.items() if one is not None}, odds

    def _too_many(self, law: CountLaw, effect: SubjectEffect) -> bool:
        """Whether the cells are clearly too many for a fit of a few seconds."""
        return (
            effect.varies and self._left(law) > MOST_HARD_ROWS
        ) or self._n_intervals > MOST_CELLS

    def _cells(self, law: CountLaw, effect: SubjectEffect) -> Cells | None:
        """Cells to which a fit takes a few seconds; None if they are too many."""
        if self._too_many(law, effect):
            return None
        cells = self.data.cells(law, effect)
        return cells if _bearable(cells) else None

    @cached_property
    def _n_intervals(self) -> int:
        """Different intervals with events: the least number of cells of any law."""
        panel = self.data.panel
        assert panel is not None
        seen = np.asarray(panel.count) > 0
        ends = np.sort(np.asarray(panel.start)[seen] + 1j * np.asarray(panel.stop)[seen])
        return int((np.diff(ends) != 0).sum()) + bool(len(ends))

    def _left(self, law: CountLaw) -> int:
        """Rows with a remainder."""
        assert self.data.panel is not None
        return int(law.has_remainder(np.asarray(self.data.panel.count, dtype=float)).sum())

    def _plausible(self, laws: list[Laws]) -> tuple[list[Laws], dict[Laws, float]]:
        """Laws to fit, and nats by which the others are behind on a sample."""
        if len(laws) == 1:
            return laws, {}
        found = self.many.sample_evidences(laws, self.say)
        top = max(found.values())
        kept = [pair for pair in laws if found[pair] > top - _FAR_BEHIND]
        return kept, {pair: top - found[pair] for pair in laws if pair not in kept}

    def _by_law(self, ready: dict[Laws, Cells]) -> tuple[EngineFit, Compression | None]:
        """Fit laws by their cells or expansions; what to do if those are not close enough."""
        fit, error = self._best(ready)
        if fit.task.likelihood.cells.expansion is None:
            return fit, None
        n_rows = self._left(fit.laws[0])
        if error > MOST_ERROR and not n_rows:
            self.say(f"sums on nodes: log probabilities are {error:.1g} off")
            return fit_sums(self.model, self._summed(fit.laws[1]), [fit.laws], self.say)
        if error > MOST_ERROR and n_rows <= MOST_EXACT_ROWS:
            self.say(f"fitting the rows: log probabilities are {error:.1g} off")
            return fit_engine(self.model, self.data, [fit.laws], self.say), None
        if error > MOST_ERROR:
            _warn_of(error)
        return fit, self._described(fit, error)

    def _best(self, ready: dict[Laws, Cells]) -> tuple[EngineFit, float]:
        """The fit of the laws that the evidence chooses, and how far its expansion is off.

        Evidences of expansions that are far off mean nothing: their laws are given up.
        """
        while ready:
            fit = run_engine(self.model, lambda *pair, r=ready: r[pair], list(ready), self.say)
            if fit.task.likelihood.cells.expansion is None:
                return fit, 0.0
            fit, error = self._repaired(fit, self.many.error(fit))
            if error <= _MEANINGLESS or len(ready) == 1:
                return fit, error
            self.say(f"giving up {fit.laws[1].title}: log probabilities are {error:.1g} off")
            ready = {pair: one for pair, one in ready.items() if pair != fit.laws}
        raise ArithmeticError("no mode of the posterior was found")

    def _ready(self, pair: Laws) -> Cells | None:
        """Cells of a law or their expansion; None where that has no mode, as without any effect."""
        try:
            return self._cells(*pair) or self.many.expanded(pair, self.say)
        except ArithmeticError:
            return None

    def _repaired(self, fit: EngineFit, error: float) -> tuple[EngineFit, float]:
        """Expand anew at the mode just found while that brings the expansion closer."""
        for _ in range(_MOST_REPAIRS):
            if error <= MOST_ERROR:
                break
            self.say(f"expanding anew: log probabilities are {error:.1g} off")
            cells = self.many.re_expanded(fit)
            try:
                again = run_engine(self.model, lambda *pair, c=cells: c, [fit.laws], self.say)
            except ArithmeticError:  # an expansion far from any mode
                break
            left = self.many.error(again)
            if left >= error:
                break
            fit, error = replace(again, evidences=fit.evidences | again.evidences), left
        return fit, error

    def _described(self, fit: EngineFit, error: float) -> Compression:
        """What stands for the rows, and how closely."""
        cells = fit.task.likelihood.cells
        length = self.data.window[1] - self.data.window[0]
        assert self.data.panel is not None
        return {
            "method": "expansion",
            "n_rows": self.data.panel.n_intervals,
            "n_intervals": len(cells.start),
            "resolution": cells.resolution * length,
            "error": error,
            "relative_error": error / max(abs(fit.weighted.log_evidence), 1.0),
        }

    @cached_property
    def many(self) -> ManyRows:
        """The rows, some subjects at a time."""
        rows, n_subjects = panel_rows(self.data.panel, self.data.window, None)
        return ManyRows.of(
            rows, n_subjects, self.data.window, kernel=self.model.kernel,
            n_inducing=self.model.n_inducing, mean=given_mean(self.model),
        )  # fmt: skip

    def _summed(self, effect: SubjectEffect) -> SummedPanel:
        """The sums."""
        assert self.data.panel is not None
        sums = sum_source(ArraySource(self.data.panel), effect=effect.name, say=self.say)
        model = self.model
        return SummedPanel(
            sums, self.data.window, model.kernel, model.n_inducing, given_mean(model)
        )


def _warn_of(error: float) -> None:
    """Say that an expansion is not close to the rows, and what to do."""
    warnings.warn(
        f"the summary that stands for the rows has log probabilities {error:.1g} off (harmless "
        f"below {MOST_ERROR:g}): bands may be wrong; compare with a fit to a sample of the "
        "subjects",
        ConvergenceWarning,
        stacklevel=6,
    )


def _bearable(cells: Cells) -> bool:
    """Whether a fit to these cells takes a few seconds."""
    n_rows, size = len(cells.rows.count), len(cells.start) + cells.n_owners
    return n_rows <= (MOST_HARD_ROWS if len(cells.hard) else MOST_ROWS) and size <= MOST_CELLS
