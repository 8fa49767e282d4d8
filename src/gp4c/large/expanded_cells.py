r"""Bursts in panels with very many rows: the likelihood of all subjects, expanded at the mode.

Counts in bursts have no sums that stand for any number of rows, and each subject with an effect
costs an integral. With very many rows the posterior is narrow, and within it the log-likelihood
is quadratic in the cube root of f² at the inducing inputs and in the parameters:

.. math::
    \ln p \approx \ell_1 + g^\top \delta + \tfrac12 \delta^\top H \delta .

The expansion point is found on small samples of the subjects first; all of them are visited a few
times. What higher orders would add is measured on some draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from gp4c.inference.engine.climb import Mode, carried_over, climb
from gp4c.inference.engine.landscape import Landscape, split_level
from gp4c.inference.engine.lattice import Lattice, find_modes
from gp4c.inference.engine.posterior_fit import (
    EngineFit,
    Laws,
    Settings,
    compare_laws,
    task_for,
)
from gp4c.large.many_landscape import ManyLandscape, of_prior, parts_of, with_curvature_of
from gp4c.model.cells import Cells, CountedRows, Expansion
from gp4c.model.count_likelihood import SMALL
from gp4c.model.observed_cells import merged_spans, reduce_cells

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Say = Callable[[str], None]

#: rows with several events in the sample that finds length-scale and laws
SAMPLE = 600
#: the expansion resolves length-scales shorter than the one that the sample finds, by this much
#: of their logarithm
_CLOSER = 0.5
#: gain in nats below which a climb on many subjects ends, since the expansion has the rest, and
#: its most steps
_NEAR, _MOST_STEPS = 1.0, 15
#: shares of the subjects whose modes are looked for in turn before all are visited, and rows up
#: to which they are climbed to; the mode of more rows is that of their expansion
_SHARES, _MOST_CLIMBED = (0.03, 0.2), 60_000
#: rows that are treated at once
_AT_ONCE = 20_000
#: most curvature of the expansion along any direction: where data say less, they say nothing
_FLAT = -1e-6
#: draws on which the error is measured
_CHECKED = 8


@dataclass(frozen=True)
class ManyRows:
    """All rows of a panel in unit time, ready to be visited some subjects at a time.

    Attributes
    ----------
    rows, spans : CountedRows
        Rows with events, and merged times at risk, by subject.
    rate : float
        The rate that the unit rate stands for.
    settings : Settings
        Kernel, inducing inputs and mean of :func:`gp4c.inference.engine.posterior_fit.task_for`.
    """

    rows: CountedRows
    spans: CountedRows
    n_subjects: int
    window: tuple[float, float]
    rate: float
    settings: Settings = field(default_factory=Settings)

    @classmethod
    def of(
        cls,
        rows: CountedRows,
        n_subjects: int,
        window: tuple[float, float],
        **settings: Unpack[Settings],
    ) -> ManyRows:
        """From rows in unit time."""
        spans = merged_spans(rows)  # by subject
        at_risk = float(spans.factor @ (spans.stop - spans.start))
        rate = max(float(rows.count.sum()), 1.0) / at_risk
        seen = rows.take(rows.count > 0)
        seen = seen.take(np.argsort(seen.subject, kind="stable"))
        return cls(seen, spans, n_subjects, window, rate, settings)

    def sample(self, size: int) -> ManyRows:
        """Every so-many-th subject in the order of their events."""
        places = ((np.arange(size) + 0.5) * (self.n_subjects / size)).astype(np.intp)
        chosen = np.sort(self._by_events[places])
        new = np.full(self.n_subjects, -1)
        new[chosen] = np.arange(size)
        return replace(
            self, rows=_renamed(self.rows, new), spans=_renamed(self.spans, new), n_subjects=size
        )

    def small_sample(self) -> ManyRows:
        """As many subjects as a quick fit can bear."""
        several = max(int((self.rows.count > 1).sum()), 1)
        size = np.clip(SAMPLE / several, 0.0, 1.0) * self.n_subjects
        return self.sample(max(int(size), 1))

    def cells(self, laws: Laws) -> Cells:
        """Cells of all subjects at once, for samples."""
        return next(self.chunks(laws, self.n_subjects))

    def chunks(self, laws: Laws, most: int | None = None) -> Iterator[Cells]:
        """Cells of all subjects, some of them at a time."""
        per_row = self.n_subjects / max(len(self.rows.start), 1)
        step = most or max(int(_AT_ONCE * per_row), 1)
        for first in range(0, self.n_subjects, step):
            last = min(first + step, self.n_subjects)
            part = reduce_cells(
                _between(self.rows, first, last), _between(self.spans, first, last), *laws,
                window=self.window, rate=self.rate, n_subjects=last - first, constant=0.0,
            )  # fmt: skip
            yield replace(part, n_events=self.n_events)  # the same quadrature for all parts

    def sample_evidences(self, laws: list[Laws], say: Say) -> dict[Laws, float]:
        """Log evidences of laws, the richest first, on a sample of the subjects."""
        small = self.small_sample()
        say(f"on {small.n_subjects:,} subjects: {len(laws)} laws")
        tasks = {pair: task_for(small.cells(pair), *pair, **self.settings) for pair in laws}
        search = compare_laws(tasks, 0, say, roughly=True)
        self._looks.update(search.lattices)
        return search.known

    def _look(self, laws: Laws, say: Say) -> Lattice:
        """Modes of a sample of the subjects."""
        if laws not in self._looks:
            small = self.small_sample()
            say(f"on {small.n_subjects:,} subjects: {laws[0].title}, {laws[1].title}")
            task = task_for(small.cells(laws), *laws, **self.settings)
            self._looks[laws] = find_modes(task, rounds=1)
        return self._looks[laws]

    def expanded(self, laws: Laws, say: Say = lambda text: None) -> Cells:
        """The expansion of all subjects' likelihood, as cells.

        A sample's mode is climbed on from sample to larger sample. All subjects are visited twice:
        at the last of these modes, where the sample says how the density bends, and at the mode
        of the expansion there.
        """
        mode = self._look(laws, say).best.mode
        small, length = self.small_sample(), mode.landscape.log_length
        shortest, bent = length - _CLOSER, None
        for share in _SHARES:
            some = self.sample(max(int(share * self.n_subjects), 1))
            if some.n_subjects > small.n_subjects:
                if len(some.rows.start) <= _MOST_CLIMBED or bent is None:
                    mode, bent = some.climbed(laws, mode, shortest), some
                else:
                    mode = some.stepped(laws, mode, shortest, bent)
        if bent is None:
            mode = self.climbed(laws, mode, shortest)
        say(f"visiting {self.n_subjects:,} subjects")
        found = self.stepped(laws, mode, shortest, bent)
        say(f"visiting {self.n_subjects:,} subjects again")
        shortest = min(length, found.landscape.log_length) - _CLOSER
        cells = self._expanded_near(laws, found, shortest)
        find_modes(task_for(cells, *laws, **self.settings), rounds=1)  # raises if there is none
        return cells

    def re_expanded(self, fit: EngineFit) -> Cells:
        """The expansion at the best mode of a fit, which may be far from where it was before."""
        log_length = float(np.log(fit.task.likelihood.cells.resolution))
        return self._expanded_near(fit.laws, fit.lattice.best.mode, log_length)

    def stepped(self, laws: Laws, start: Mode, log_length: float, bent: ManyRows | None) -> Mode:
        """The mode of the expansion at another one, with the curvature of the sample `bent`."""
        cells = self._expanded_near(laws, start, log_length, bent)
        return find_modes(task_for(cells, *laws, **self.settings), rounds=1).best.mode

    def _expanded_near(
        self, laws: Laws, mode: Mode, log_length: float, bent: ManyRows | None = None
    ) -> Cells:
        """The expansion at the curve of a mode, for length-scales from this one on."""
        land = ManyLandscape.of(self, laws, min(log_length, mode.landscape.log_length))
        if bent is not None:
            land = with_curvature_of(land, bent)
        there = replace(mode, landscape=land, x=carried_over(mode, land, mode.u))
        return replace(expanded_at(land, there), n_subjects=float(self.n_subjects))

    def climbed(self, laws: Laws, start: Mode, log_length: float) -> Mode:
        """The mode of these subjects at one length-scale, from that of others."""
        land = ManyLandscape.of(self, laws, log_length)
        x, u = carried_over(start, land, start.u)[:, None], np.array([start.u])
        return climb(land, x, u, tol=_NEAR, max_steps=_MOST_STEPS)[0]

    def error(self, fit: EngineFit) -> float:
        """Deviation over some draws, in nats, of the expansion from the log-likelihood itself."""
        return expansion_error(fit, self.chunks(fit.laws), self.settings)

    @cached_property
    def _looks(self) -> dict[Laws, Lattice]:
        return {}

    @cached_property
    def n_events(self) -> float:
        """All events."""
        return float(self.rows.count.sum())

    @cached_property
    def _by_events(self) -> Indices:
        """Subjects by their events, those with as many by the time they were seen."""
        events = np.bincount(self.rows.subject, self.rows.count, self.n_subjects)
        seen = self.spans.factor * (self.spans.stop - self.spans.start)
        return np.lexsort((np.bincount(self.spans.subject, seen, self.n_subjects), events))


def expand(land: Landscape, mode: Mode) -> Expansion:
    """The likelihood around a mode in coordinates of :class:`Expansion`, at the inducing inputs.

    f = e^{l/2} (m₀ + k L v) there; at a fixed level l derivatives in v give those in f, and these
    the ones in the cube roots c. Functions of parameters follow by the chain rule. With the height
    e^s as a coordinate, c = e^s y, and y = c at the mode.
    """
    x, u = mode.x[:, None], np.array([mode.u])
    at = [whole[0] - prior[0] for whole, prior in
          zip(parts_of(land.derivatives(x, u)), of_prior(land, x, u), strict=True)]  # fmt: skip
    m, likelihood = land.size, land.task.likelihood
    params = land.parts(mode.x)[2]
    keep = np.r_[0:m, m + 1 : m + 1 + len(params)]
    k, _ = split_level(u)
    scale = float(np.exp(mode.x[m] / 2))
    f = scale * land.curve_at(land.prior.inducing, x, u)[:, 0]
    root = np.cbrt(np.maximum(f**2, SMALL))
    natural = np.array(
        [q.natural for q in (*likelihood.effect.parameters, *likelihood.law.parameters)]
    )
    function = np.where(natural == 0.0, params, np.exp(natural * params))
    # ∂/∂(root, function) of (f, θ): f = ± root^{3/2}, θ = ln(function)/n
    by_param = np.where(
        natural == 0.0, 1.0, 1.0 / np.where(natural == 0.0, 1.0, natural * function)
    )
    change = np.concatenate([1.5 * np.sign(f) * np.sqrt(root), by_param])
    again = np.concatenate([0.75 * np.sign(f) / np.sqrt(root), -natural * by_param**2])
    back = np.eye(len(keep))
    back[:m, :m] = land.prior.inverse_factor / (scale * k[0])
    by_f, bend = back.T @ at[1][keep], back.T @ at[2][np.ix_(keep, keep)] @ back
    hessian = _concave(change[:, None] * bend * change + np.diag(by_f * again))
    plain = Expansion(
        np.concatenate([root, function]), float(at[0]), change * by_f, hessian, np.zeros(0), natural
    )
    return _with_height(plain, m) if likelihood.effect.varies else plain


def _concave(hessian: Floats) -> Floats:
    """Without rising directions: far from the point an expansion must fall."""
    values, axes = np.linalg.eigh(hessian)
    return np.asarray((axes * np.minimum(values, _FLAT)) @ axes.T)


def _with_height(plain: Expansion, m: int) -> Expansion:
    """The same with the height as a coordinate: ℓ(e^s y), to second order in (y, s)."""
    root, size = plain.at[:m], len(plain.at)
    weight = np.full(m, 1.0) if m < 3 else np.concatenate([[0.5], np.ones(m - 2), [0.5]])
    turn = np.zeros((size, size + 1))  # ∂(c, functions)/∂(y, s, functions)
    turn[:m, :m], turn[:m, m], turn[m:, m + 1 :] = np.eye(m), root, np.eye(size - m)
    hessian = turn.T @ plain.hessian @ turn
    hessian[:m, m] += plain.gradient[:m]
    hessian[m, :m] += plain.gradient[:m]
    hessian[m, m] += plain.gradient[:m] @ root
    hessian = _concave(hessian)  # y and s share a direction along which nothing can move
    return replace(
        plain, at=np.concatenate([root, [0.0], plain.at[m:]]), gradient=turn.T @ plain.gradient,
        hessian=hessian, height=weight / (weight @ root**3),
    )  # fmt: skip


def expanded_at(land: Landscape, mode: Mode) -> Cells:
    """Cells that are nothing but an expansion; its points are the inducing inputs."""
    points, none, nobody = land.prior.inducing, np.zeros(0), np.zeros(0, dtype=np.intp)
    cells = land.task.likelihood.cells
    return replace(
        cells, start=points, stop=points, power=np.zeros(len(points)),
        rows=cells.rows.take(nobody), weight=none, row_cell=nobody, row_owner=nobody,
        span_start=none, span_stop=none, span_factor=none, span_owner=nobody,
        span_z=np.zeros((0, 0)), number=none, owner_power=none, hard=nobody,
        constant=0.0, resolution=land.prior.length_scale, expansion=expand(land, mode), _maps={},
    )  # fmt: skip


def expanded_cells(cells: Cells, laws: Laws, near: Mode, settings: Settings) -> Cells:
    """The expansion of cells that are many, at the mode next to one that is known."""
    task = task_for(cells, *laws, **settings)
    land = task.landscape(max(near.landscape.log_length - _CLOSER, np.log(cells.resolution)))
    x = np.zeros((land.dimension, 1))
    carried = carried_over(near, land, near.u)
    n = min(len(carried), land.size + 1)
    x[:n, 0] = carried[:n]
    if near.landscape.task.n_params == task.n_params:
        x[:, 0] = carried
    return expanded_at(land, climb(land, x, np.array([near.u]), tol=_NEAR, max_steps=20)[0])


def expansion_error(fit: EngineFit, parts: Iterator[Cells], settings: Settings) -> float:
    """Deviation over some draws, in nats, of an expansion from the log-likelihood itself."""
    mode = fit.lattice.best.mode
    x = _draws_near(fit, mode)
    u = np.full(x.shape[1], mode.u)
    left = -mode.landscape.log_density(x, u)
    for number, cells in enumerate(parts):
        land = task_for(cells, *fit.laws, **settings).landscape(mode.landscape.log_length)
        left += land.log_density(x, u) - (land.log_prior(x, u) if number else 0.0)
    return float(np.std(left))


def _draws_near(fit: EngineFit, mode: Mode) -> Floats:
    """Draws of the sheaf at a mode, by their weights."""
    first, rng = 0, np.random.default_rng(0)
    for sheaf in fit.weighted.sheaves:
        size = sheaf.x.shape[1]
        if sheaf.point.mode is mode:
            weights = fit.weighted.weights[first : first + size]
            return np.asarray(sheaf.x[:, rng.choice(size, _CHECKED, p=weights / weights.sum())])
        first += size
    raise AssertionError("a mode without draws")


def _renamed(rows: CountedRows, new: Indices) -> CountedRows:
    """Rows of the subjects that have a new number, which is not negative."""
    rows = rows.take(new[rows.subject] >= 0)
    return replace(rows, subject=new[rows.subject])


def _between(rows: CountedRows, first: int, last: int) -> CountedRows:
    """Rows of consecutive subjects, which are in order."""
    low, high = np.searchsorted(rows.subject, [first, last])
    rows = rows.take(np.arange(low, high))
    return replace(rows, subject=rows.subject - first)
