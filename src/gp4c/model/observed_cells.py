"""From rows of data to cells: scaling, grouping, and what the laws need of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.exceptions import PanelDataError
from gp4c.model.cells import Cells, CountedRows
from gp4c.model.laws import CountLaw, SubjectEffect
from gp4c.model.modulation.modulator import Modulation
from gp4c.model.modulation.sheets import distinct_inputs
from gp4c.model.observations import MOST_EVENTS

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
#: factors that change within intervals, and what each row brings to them
Modulated = tuple[Modulation, Floats]

#: subjects up to which they are sorted by what was seen of them: their names then change nothing
_MOST_SORTED = 5_000


def observe_cells(
    panel: PanelCounts | None,
    events: RecurrentEvents | None,
    window: tuple[float, float],
    law: CountLaw,
    effect: SubjectEffect,
    z: Floats | None = None,
    rate: float | None = None,
    modulated: Modulated | None = None,
) -> Cells:
    """Scale a panel, exact events, or both, to the unit window and the unit rate.

    Parameters
    ----------
    z : (n_intervals, p), optional
        Covariates of the rows of the panel.
    rate : float, optional
        Events per window and unit of exposure that the unit rate stands for; default that of the
        data.
    modulated : (Modulation, (n_intervals, r)), optional
        Factors that change within intervals, and what the rows of the panel bring to them.

    Notes
    -----
    Without any event the unit rate stands for one event in the whole exposure. Events of one
    subject at the same time are one point with their number as its count.
    """
    rows, n_panel = panel_rows(panel, window, z)
    if modulated is not None:
        rows = replace(rows, inputs=modulated[1])
    spans = rows
    if events is not None:
        points, seen = _event_rows(events, window, n_panel, rows.z.shape[1])
        rows, spans = rows.joined(points), rows.joined(seen)
    n_subjects = n_panel + (0 if events is None else len(events.start))
    n_events = float(rows.count.sum())
    at_risk = float(spans.factor @ (spans.stop - spans.start))
    if n_subjects <= _MOST_SORTED:
        place = by_content(spans, rows, n_subjects)
        rows, spans = (
            replace(rows, subject=place[rows.subject]),
            replace(spans, subject=place[spans.subject]),
        )
    if rate is None:
        rate = max(n_events, 1.0) / at_risk
    length = window[1] - window[0]
    _check_number(n_events)
    seen_rows = rows.take(rows.count > 0)
    points = seen_rows.start == seen_rows.stop
    # the rate of points is per unit of the user's time
    constant = -float(law.power(seen_rows.count[points]).sum()) * np.log(length)
    return reduce_cells(
        seen_rows, _spans_for(spans, effect), law, effect,
        window=window, rate=rate, n_subjects=n_subjects, constant=constant,
        modulation=None if modulated is None else modulated[0],
    )  # fmt: skip


def by_content(spans: CountedRows, rows: CountedRows, n_subjects: int) -> Indices:
    """Subjects numbered by what was seen of them, so that their names change no rounding."""
    both = spans.joined(rows.take(rows.start == rows.stop))  # points are no spans
    table = np.column_stack([both.start, both.stop, both.count, both.factor, both.z, both.brought])
    order = np.lexsort((*table.T[::-1], both.subject))
    ends = np.searchsorted(both.subject[order], np.arange(n_subjects + 1))
    keys = [table[order[a:b]].tobytes() for a, b in pairwise(ends)]
    place = np.empty(n_subjects, dtype=np.intp)
    place[sorted(range(n_subjects), key=keys.__getitem__)] = np.arange(n_subjects)
    return place


def reduce_cells(
    rows: CountedRows,
    spans: CountedRows,
    law: CountLaw,
    effect: SubjectEffect,
    *,
    window: tuple[float, float],
    rate: float,
    n_subjects: int,
    constant: float,
    pool: bool = True,
    modulation: Modulation | None = None,
) -> Cells:
    """Keep of rows with events, and of times at risk, what the laws ask for.

    Without `pool` every subject is an owner of its own.
    """
    n_events = float(rows.count.sum())
    power = law.power(rows.count)
    constant += float(power @ np.log(rate * rows.factor))
    sheets, sheet, span_sheet = _sheets(rows, spans)
    cells, cell_of = _distinct(rows.start, rows.stop, sheet)
    remaining = law.has_remainder(rows.count)
    at_points = remaining & (rows.start == rows.stop)
    if at_points.any():  # the cell of a point has no extent: q is taken at mean 0, a constant
        constant += law.at_points(rows.count[at_points])
        remaining &= ~at_points
    hard_subjects = _hard_subjects(rows.subject[remaining], n_subjects, effect)
    subject_power = np.bincount(rows.subject, power, n_subjects).astype(float)
    owner_of, number, first_span = _owners(spans, n_subjects, hard_subjects, effect, pool)
    spans, span_sheet = spans.take(first_span), span_sheet[first_span]
    easy = np.ones(n_subjects, dtype=bool)
    easy[hard_subjects] = False
    powers, power_times = np.unique(subject_power[easy], return_counts=True)
    kept = rows.take(remaining)
    order = np.lexsort((kept.factor, cell_of[remaining], owner_of[kept.subject], -kept.count))
    kept, row_cell = kept.take(order), cell_of[remaining][order]
    row_owner = owner_of[kept.subject]
    weight = np.ones(len(row_cell))
    if pool and not effect.varies and not kept.z.shape[1]:
        kept, weight, row_cell, row_owner = _repeated(kept, row_cell, row_owner)
    counts, times = np.unique(rows.count, return_counts=True)
    return Cells(
        start=cells[0],
        stop=cells[1],
        power=np.bincount(cell_of, power, len(cells[0])).astype(float),
        power_z=power @ rows.z,
        rows=CountedRows(
            kept.start, kept.stop, kept.count, rate * kept.factor, kept.subject, kept.z, kept.inputs
        ),
        weight=weight,
        row_cell=row_cell,
        row_owner=row_owner,
        counts=counts,
        times=times.astype(float),
        span_start=spans.start,
        span_stop=spans.stop,
        span_factor=rate * spans.factor,
        span_owner=owner_of[spans.subject],
        span_z=spans.z,
        number=number,
        owner_power=np.bincount(owner_of, subject_power, len(number)).astype(float),
        powers=powers,
        power_times=power_times.astype(float),
        hard=owner_of[hard_subjects],
        constant=constant,
        window=window,
        rate=rate,
        n_events=n_events,
        n_subjects=float(n_subjects),
        modulation=modulation,
        sheets=sheets,
        cell_sheet=cells[2],
        span_sheet=span_sheet,
    )


def _sheets(rows: CountedRows, spans: CountedRows) -> tuple[Floats, Indices, Indices]:
    """Different inputs, and those of each row and each span."""
    found, sheet = distinct_inputs(np.concatenate([rows.brought, spans.brought]))
    return found, sheet[: len(rows.start)], sheet[len(rows.start) :]


def panel_rows(
    panel: PanelCounts | None, window: tuple[float, float], z: Floats | None
) -> tuple[CountedRows, int]:
    """Rows of a panel in unit time, and its number of subjects."""
    if panel is None:
        none, nobody = np.zeros(0), np.zeros(0, dtype=np.intp)
        return CountedRows(none, none, none, none, nobody, np.zeros((0, 0))), 0
    length = window[1] - window[0]
    covariates = np.zeros((panel.n_intervals, 0)) if z is None else z
    rows = CountedRows(
        (panel.start - window[0]) / length, (panel.stop - window[0]) / length,
        panel.count.astype(float), np.asarray(panel.exposure, dtype=float),
        np.asarray(panel.subject_index, dtype=np.intp), covariates,
    )  # fmt: skip
    return rows, panel.n_subjects


def _event_rows(
    events: RecurrentEvents, window: tuple[float, float], offset: int, p: int
) -> tuple[CountedRows, CountedRows]:
    """Points with their multiplicity, and the times over which they were watched for."""
    length = window[1] - window[0]
    both = np.stack([events.subject_index.astype(float), events.time], axis=1)
    distinct, times = np.unique(both, axis=0, return_counts=True)
    at = (distinct[:, 1] - window[0]) / length
    points = CountedRows(
        at, at, times.astype(float), np.ones(len(at)), distinct[:, 0].astype(np.intp) + offset,
        np.zeros((len(at), p)),
    )  # fmt: skip
    n = len(events.start)
    seen = CountedRows(
        (events.start - window[0]) / length, (events.stop - window[0]) / length, np.zeros(n),
        np.ones(n), np.arange(n) + offset, np.zeros((n, p)),
    )  # fmt: skip
    return points, seen


def merged_spans(rows: CountedRows) -> CountedRows:
    """Times at risk of each subject, with neighbours of equal exposure and covariates joined."""
    rows = rows.take(np.lexsort((rows.start, rows.subject)))
    apart = np.ones(len(rows.start), dtype=bool)
    apart[1:] = (
        (rows.subject[1:] != rows.subject[:-1])
        | (rows.start[1:] != rows.stop[:-1])
        | (rows.factor[1:] != rows.factor[:-1])
        | (rows.z[1:] != rows.z[:-1]).any(axis=1)
        | (rows.brought[1:] != rows.brought[:-1]).any(axis=1)
    )
    first = np.flatnonzero(apart)
    last = np.append(first[1:], len(apart)) - 1
    return CountedRows(
        rows.start[first], rows.stop[last], np.zeros(len(first)), rows.factor[first],
        rows.subject[first], rows.z[first], None if rows.inputs is None else rows.inputs[first],
    )  # fmt: skip


def _spans_for(rows: CountedRows, effect: SubjectEffect) -> CountedRows:
    """Merged spans; without effects and covariates equal spans of all subjects are one."""
    spans = merged_spans(rows)
    if effect.varies or spans.z.shape[1]:
        return spans
    inputs, sheet = distinct_inputs(spans.brought)
    start, stop, sheet, group = *(found := _distinct(spans.start, spans.stop, sheet))[0], found[1]
    total = np.bincount(group, spans.factor, len(start)).astype(float)
    nobody, none = np.zeros(len(total), dtype=np.intp), np.zeros((len(total), 0))
    return CountedRows(start, stop, np.zeros(len(total)), total, nobody, none, inputs[sheet])


def _hard_subjects(with_remainder: Indices, n_subjects: int, effect: SubjectEffect) -> Indices:
    """Subjects whose effect has no closed-form integral."""
    if not effect.varies:
        return np.zeros(0, dtype=np.intp)
    return np.unique(with_remainder) if effect.conjugate else np.arange(n_subjects)


def _owners(
    spans: CountedRows, n_subjects: int, hard: Indices, effect: SubjectEffect, pool: bool
) -> tuple[Indices, Floats, Indices]:
    """Owner of each subject, how many subjects an owner stands for, and the spans to keep.

    Subjects with a closed form and the same single span are one owner, whose span is kept once.
    Without effects there is one owner, everybody.
    """
    every = np.arange(len(spans.start))
    if not pool:
        return np.arange(n_subjects), np.ones(n_subjects), every
    if not effect.varies:
        return np.zeros(n_subjects, dtype=np.intp), np.array([float(n_subjects)]), every
    pooled = np.bincount(spans.subject, minlength=n_subjects) == 1
    pooled[hard] = False
    if spans.z.shape[1]:
        pooled[:] = False
    first = np.zeros(n_subjects, dtype=np.intp)
    first[spans.subject[::-1]] = np.arange(len(spans.start))[::-1]
    keys = np.stack([spans.start[first], spans.stop[first], spans.factor[first]], axis=1)
    keys = np.concatenate([keys, spans.brought[first]], axis=1)
    owner = np.empty(n_subjects, dtype=np.intp)
    distinct, group = np.unique(keys[pooled], axis=0, return_inverse=True)
    owner[pooled] = group.reshape(-1)
    owner[~pooled] = len(distinct) + np.arange(int((~pooled).sum()))
    span_owner = owner[spans.subject]
    _, once = np.unique(span_owner, return_index=True)
    keep = np.union1d(once, every[span_owner >= len(distinct)])
    return owner, np.bincount(owner).astype(float), keep


def _repeated(
    rows: CountedRows, cell: Indices, owner: Indices
) -> tuple[CountedRows, Floats, Indices, Indices]:
    """Rows that say the same, once, with their number as weight."""
    n = len(cell)
    new = np.ones(n, dtype=bool)
    new[1:] = (
        (rows.count[1:] != rows.count[:-1])
        | (cell[1:] != cell[:-1])
        | (rows.factor[1:] != rows.factor[:-1])
    )
    first = np.flatnonzero(new)
    weight = np.diff(np.append(first, n)).astype(float)
    return rows.take(first), weight, cell[first], owner[first]


def _distinct(
    start: Floats, stop: Floats, sheet: Indices
) -> tuple[tuple[Floats, Floats, Indices], Indices]:
    """Distinct intervals with the same inputs, in order, and the one of each row."""
    one_sheet = not len(sheet) or sheet.min() == sheet.max()
    order = np.lexsort((stop, start) if one_sheet else (sheet, stop, start))
    s, e, which = start[order], stop[order], sheet[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (s[1:] != s[:-1]) | (e[1:] != e[:-1]) | (which[1:] != which[:-1])
    inverse = np.empty(len(order), dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return (s[new], e[new], which[new]), inverse


def _check_number(n_events: float) -> None:
    if n_events > MOST_EVENTS:
        raise PanelDataError(
            f"Gaussian-process estimators take at most {MOST_EVENTS:g} events; found "
            f"{n_events:g}: with so many, NPMLE and HomogeneousPoisson leave little open"
        )
