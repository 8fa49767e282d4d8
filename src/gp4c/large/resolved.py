"""How close nodes must be for a fit, and how far its objective is from that of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.climb import Mode
from gp4c.inference.engine.landscape import Task
from gp4c.inference.engine.lattice import Lattice, find_modes
from gp4c.inference.engine.posterior_fit import Laws, Settings, task_for
from gp4c.large.compression import SHORTEST
from gp4c.large.interval_sums import IntervalSums, Rows, rows_to_nodes
from gp4c.large.streaming import PanelSums
from gp4c.large.subject_sums import Spans, SubjectSums, spans_to_nodes
from gp4c.large.summed_cells import cells_of_classes, cells_of_sums
from gp4c.model.cells import Cells
from gp4c.model.kernels import KERNELS, SquaredExponential
from gp4c.model.laws import CountLaw, SubjectEffect

Floats = NDArray[np.float64]
Say = Callable[[str], None]

#: length-scales, in windows, that the sparsest nodes and the first look resolve
COARSEST, FIRST_LOOK = 0.2, 0.08
#: a look that finds a length-scale within this factor of the shortest it can see, one step of the
#: lattice, looks closer
_AT_THE_END = 1.7
#: nodes are this much closer at the next look, and when the error asks for it
_CLOSER, _FINER = 3.0, 1.5
#: error of the objective above which nodes are laid closer: as a share of it, and in nats, below
#: which no weight of a draw changes visibly
TARGET, HARMLESS = 1e-7, 1e-3


@dataclass(frozen=True)
class SummedPanel:
    """Sums of a panel of any size, and what a fit to them must know.

    Attributes
    ----------
    kernel, n_inducing, mean
        As in :func:`gp4c.inference.engine.posterior_fit.fit_posterior`.
    """

    sums: PanelSums
    window: tuple[float, float]
    kernel: str = "se"
    n_inducing: int | None = None
    mean: float | None = None

    @property
    def closest(self) -> float:
        """The shortest length-scale that nodes need to resolve."""
        return SHORTEST if self.n_inducing is None else max(SHORTEST, 1 / (1.5 * self.n_inducing))

    @property
    def exact(self) -> bool:
        """Whether real intervals and subjects were kept, so that no nodes are needed."""
        subjects = self.sums.subjects
        by_node = subjects is not None and bool(len(subjects.sample))
        return self.sums.intervals.exact is not None and not by_node

    def serves(self, law: CountLaw, effect: SubjectEffect) -> bool:
        """Whether the sums know all that these laws ask for."""
        return law.one_by_one or (self.sums.intervals.classes is not None and not effect.varies)

    def cells(self, law: CountLaw, effect: SubjectEffect, resolution: float) -> Cells:
        """Cells with nodes for a length-scale; classes of rows where counts are not Poisson."""
        if not law.one_by_one:
            return cells_of_classes(self.sums.intervals, self.window, law)
        return cells_of_sums(
            self.sums.intervals, self.sums.subjects, self.window, effect, resolution
        )

    @property
    def settings(self) -> Settings:
        """What :func:`gp4c.inference.engine.posterior_fit.task_for` must know."""
        return {"kernel": self.kernel, "n_inducing": self.n_inducing, "mean": self.mean}

    def resolution(self, laws: Laws, say: Say) -> tuple[float, Mode | None]:
        """Nodes as close as the data need, for their length-scale, then for the error there.

        Also the mode that was found on the way.
        """
        if self.sums.intervals.n_events == 0:
            return max(COARSEST, self.closest), None
        look, end = max(FIRST_LOOK, self.closest), False
        while not end:
            say(f"looking for the length-scale, down to {look:.2g} of the window")
            cells = replace(self.cells(*laws, look), resolution=look)
            lattice = find_modes(self._task(cells, laws), rounds=1)
            found = float(np.exp(lattice.best.mode.landscape.log_length))
            end = found > _AT_THE_END * look or look <= self.closest
            look = max(self.closest, look / _CLOSER)
        resolution = float(np.clip(resolution_for(found, self.kernel), self.closest, COARSEST))
        while resolution > self.closest and not self.good(lattice, self.error(lattice, resolution)):
            resolution = max(self.closest, resolution / _FINER)
        return resolution, lattice.best.mode

    def good(self, lattice: Lattice, error: float) -> bool:
        """Whether an error is too small to matter."""
        return error <= max(TARGET * abs(lattice.log_evidence), HARMLESS)

    def error(self, lattice: Lattice, resolution: float) -> float:
        """Nats by which the objective may differ from that of the rows.

        Samples of rows and of subjects are put on nodes alone in the same way, and compared with
        themselves at the best mode and at the one with the shortest length-scale; the differences
        are scaled to all events and subjects. The larger of the two sums counts.
        """
        modes = [point.mode for point in lattice.points]
        shortest = min(modes, key=lambda mode: mode.landscape.log_length)
        return max(
            self._row_error(mode, resolution) + self._subject_error(mode, resolution)
            for mode in (lattice.best.mode, shortest)
        )

    def _row_error(self, mode: Mode, resolution: float) -> float:
        sums = self.sums.intervals
        if sums.exact is not None or not len(sums.sample):
            return 0.0
        rows = replace(sums.sample, exposure=np.zeros(len(sums.sample)))
        nobody = _sums_of_subjects(Rows.empty(), on_nodes=False)
        each = [
            self._value(mode, resolution, _sums_of_rows(rows, on_nodes), nobody)
            for on_nodes in (True, False)
        ]
        return abs(each[0] - each[1]) * sums.n_events / float(rows.count.sum())

    def _subject_error(self, mode: Mode, resolution: float) -> float:
        subjects = self.sums.subjects
        varies = mode.landscape.task.likelihood.effect.varies
        if subjects is None or not varies or not len(subjects.sample):
            return 0.0
        no_rows = _sums_of_rows(Rows.empty(), on_nodes=False)
        each = [
            self._value(mode, resolution, no_rows, _sums_of_subjects(subjects.sample, on_nodes))
            for on_nodes in (True, False)
        ]
        return abs(each[0] - each[1]) * subjects.n_subjects / len(subjects.sample)

    def _value(
        self,
        mode: Mode,
        resolution: float,
        rows: IntervalSums,
        subjects: SubjectSums,
    ) -> float:
        """Log density of some rows and subjects alone at a mode of the fit."""
        fitted = mode.landscape.task.likelihood
        laws, rate = (fitted.law, fitted.effect), fitted.cells.rate
        cells = cells_of_sums(rows, subjects, self.window, laws[1], resolution, rate)
        cells = replace(cells, n_events=fitted.cells.n_events)  # the quadrature of the fit
        land = self._task(cells, laws).landscape(mode.landscape.log_length)
        return float(land.log_density(mode.x[:, None], np.array([mode.u]))[0])

    def _task(self, cells: Cells, laws: Laws) -> Task:
        return task_for(cells, *laws, **self.settings)


def resolution_for(length_scale: float, kernel: str) -> float:
    """How close nodes must be for posteriors around this length-scale.

    Rougher kernels, which need closer inducing inputs, need nodes closer still.
    """
    smooth = KERNELS[kernel].spacing / SquaredExponential().spacing
    return length_scale * smooth**2


def _sums_of_rows(rows: Rows, on_nodes: bool) -> IntervalSums:
    """Some rows as sums, on nodes or as they are."""
    log_lengths = float(rows.count @ np.log(rows.stop - rows.start))
    nodes = rows_to_nodes(rows) if on_nodes else None
    exact = None if on_nodes else rows
    n_events = float(rows.count.sum())
    return IntervalSums(len(rows), n_events, 1.0, log_lengths, 0.0, exact, nodes, Rows.empty())


def _sums_of_subjects(spans: Rows, on_nodes: bool) -> SubjectSums:
    """Some subjects with single spans as sums, on nodes or as they are."""
    totals, times = np.unique(spans.exposure, return_counts=True)
    number, events = spans_to_nodes(spans if on_nodes else Rows.empty())
    key = np.arange(0 if on_nodes else len(spans))
    each = Spans(
        key.astype(np.uint64), spans.start[key], spans.stop[key], np.ones(len(key)),
        spans.exposure[key], key,
    )  # fmt: skip
    return SubjectSums(number, events, totals, times.astype(float), each, Rows.empty())
