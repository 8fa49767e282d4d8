r"""Usage: the amount of exposure in an interval (hours run, kilometres), rather than units at risk.

With usage u in an interval of length L, evenly spread, the mean count is

.. math:: \frac{u}{L} \int_{start}^{stop} \lambda(t)\, dt

and the rate λ is per unit of usage. On the clock of usage the interval is that of the subject's
cumulative usage instead, and λ is a function of it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from gp4c.data.checks import check_choice, plural, resolving_window
from gp4c.data.subjects import FloatArray, IndexArray
from gp4c.data.tables.service import RECENT, ServiceRecord
from gp4c.data.timeaxis import TimeAxis
from gp4c.exceptions import GP4CWarning, PanelDataError

if TYPE_CHECKING:
    from gp4c.data.tables.assembly.build_panel import PanelFields
    from gp4c.data.timeaxis import Window

#: fewest rows about which a remark is made, and how much interval lengths must vary for one
_ROWS, _VARIED = 12, 0.2
#: rank correlation with the lengths of intervals above which values grow with them
_GROWS = 0.7
#: spread of log values within subjects, below which values stay as they are
_STEADY = 0.05


def check_usage(exposure: str | None, usage: str | None, clock: str) -> None:
    """Refuse two kinds of exposure at once, and a clock of usage without usage."""
    check_choice("clock", clock, ("time", "usage"))
    if exposure is not None and usage is not None:
        raise PanelDataError(
            "a table has exposure= (units at risk during the interval) or usage= (amount of use "
            f"in it), not both; found {exposure!r} and {usage!r}"
        )
    if clock == "usage" and usage is None:
        raise PanelDataError("clock='usage' needs the column of usage: usage=...")


def recent_usage(
    index: IndexArray, start: FloatArray, stop: FloatArray, usage: FloatArray, n_subjects: int
) -> FloatArray:
    """Usage per unit of time in the last intervals of each subject, (K,).

    Parameters
    ----------
    index, start, stop, usage : (n_rows,)
        Rows by subject and start, those without use among them.
    """
    last = np.searchsorted(index, index, side="right")
    late = last - np.arange(len(index)) <= RECENT
    amount = np.bincount(index[late], usage[late], n_subjects)
    length = np.bincount(index[late], (stop - start)[late], n_subjects)
    return np.asarray(amount / np.where(length > 0, length, 1.0))


def on_clock_of_usage(fields: PanelFields, window: Window | None) -> PanelFields:
    """The fields of a panel with each subject's cumulative usage as its time.

    Usage counts from a subject's first interval; what was used in a gap is not known and does not
    count.
    """
    index, length = fields["subject_index"], fields["stop"] - fields["start"]
    record, exposure = fields["service"], fields["exposure"]
    assert record is not None and exposure is not None  # noqa: PT018
    total = np.cumsum(exposure * length)
    before = np.concatenate([[0.0], total[:-1]])
    begins = np.flatnonzero(np.diff(index, prepend=-1))
    offset = np.repeat(before[begins], np.diff(np.append(begins, len(index))))
    stop = total - offset
    same = index[1:] == index[:-1]
    start = np.concatenate([[0.0], np.where(same, stop[:-1], 0.0)])
    used = np.zeros(len(fields["subjects"]))
    np.maximum.at(used, index, stop)
    end = np.where(np.isnan(record.end), np.nan, used)
    note = f"time is the usage since each subject's first interval, in {record.usage}"
    gaps = int((same & (fields["start"][1:] > fields["stop"][:-1])).sum())
    said = (note, f"usage in {plural(gaps, 'gap')} is not known and does not count") if gaps else (
        note,
    )  # fmt: skip
    if window is not None:
        window = resolving_window(TimeAxis().window(window), start, stop)
    return {
        **fields, "start": start, "stop": stop, "exposure": None, "window": window,
        "time_unit": record.usage, "time_origin": None,
        "service": ServiceRecord(end, by_usage=True), "notes": (*fields["notes"], *said),
    }  # fmt: skip


def warn_of_the_other_kind(
    name: str, values: FloatArray, length: FloatArray, index: IndexArray, *, is_usage: bool
) -> None:
    """Say that a column of exposure looks like usage, or one of usage like exposure.

    Hours run grow in proportion to the length of the interval: their rank correlation with it is
    high, and values per length vary less than the values. It is enough that they do so within
    subjects, since some machines run longer than others. Units at risk stay as they are while the
    lengths of a subject's intervals vary.
    """
    used = values > 0
    size, span, index = np.log(values[used]), np.log(length[used]), index[used]
    if len(size) < _ROWS or span.std() < _VARIED:
        return
    if is_usage:
        if _within(size, index) < _STEADY and _within(span, index) > _VARIED:
            _warn(
                f"the usage in {name!r} does not grow with the length of the intervals, as use in "
                f"an interval does; if it is the units at risk, pass exposure={name!r}"
            )
    elif _grows(size, span) or _grows(_centred(size, index), _centred(span, index)):
        _warn(
            f"the exposure in {name!r} grows with the length of the intervals, as hours run do, "
            "and it is multiplied by the length again; if it is the amount of use in the interval, "
            f"pass usage={name!r}"
        )


def _warn(message: str) -> None:
    warnings.warn(message, GP4CWarning, stacklevel=7)


def _grows(size: FloatArray, span: FloatArray) -> bool:
    """Whether values grow in proportion to lengths, both as logarithms."""
    return (
        len(size) >= _ROWS
        and bool(span.std() >= _VARIED)
        and _rank_correlation(size, span) > _GROWS
        and bool((size - span).std() < size.std())
    )


def _centred(values: FloatArray, index: IndexArray) -> FloatArray:
    """Deviations from the means of subjects, of those with three rows or more."""
    number = np.bincount(index)
    mean = np.bincount(index, values) / np.maximum(number, 1)
    return np.asarray((values - mean[index])[number[index] > 2])


def _within(values: FloatArray, index: IndexArray) -> float:
    """Standard deviation within subjects."""
    number = np.bincount(index)
    mean = np.bincount(index, values) / np.maximum(number, 1)
    freedom = len(values) - np.count_nonzero(number)
    return float(np.sqrt(((values - mean[index]) ** 2).sum() / max(freedom, 1)))


def _rank_correlation(one: FloatArray, two: FloatArray) -> float:
    from scipy.stats import rankdata

    ranks = np.stack([rankdata(one), rankdata(two)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((ranks**2).sum(axis=1).prod())
    return float((ranks[0] * ranks[1]).sum() / spread) if spread > 0 else 0.0
