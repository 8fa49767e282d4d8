"""Which subjects are out of service, and how much each was used of late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.data.checks import Problems, few_digits
from gp4c.data.subjects import FloatArray, IndexArray, LabelArray, SubjectData, frozen
from gp4c.data.tables.columns import BoolArray, Column, missing_cells

if TYPE_CHECKING:
    from gp4c.data.timeaxis import TimeAxis

_YES, _NO = ("yes", "true", "y", "t", "retired"), ("no", "false", "n", "f")
#: intervals whose usage per time is called recent
RECENT = 3


@dataclass(frozen=True)
class ServiceRecord:
    """What is known of each subject beyond its counts.

    Attributes
    ----------
    end : (K,)
        When it went out of service; NaN while it is in service.
    usage_rate : (K,), optional
        Usage per unit of time in its last three intervals, if the data have a column of usage.
    usage : str, optional
        What usage is counted in: the name of its column.
    entry : (K,), optional
        Where time is counted from each subject's entry: when that was on the common clock, in the
        unit of time; since 2000-01-01 if `dated`.
    dated : bool
        Whether the common clock is the calendar.
    by_usage : bool
        Whether time is each subject's own cumulative usage.
    """

    end: FloatArray
    usage_rate: FloatArray | None = None
    usage: str | None = None
    entry: FloatArray | None = None
    dated: bool = False
    by_usage: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "end", frozen(self.end))
        if self.usage_rate is not None:
            object.__setattr__(self, "usage_rate", frozen(self.usage_rate))
        if self.entry is not None:
            object.__setattr__(self, "entry", frozen(self.entry))

    @property
    def is_told(self) -> bool:
        """Whether the data say anything of service or usage, and not of entries alone."""
        return self.entry is None or self.usage is not None or bool(np.isfinite(self.end).any())

    def take(self, positions: IndexArray) -> ServiceRecord:
        """The record of the subjects at these positions."""
        rate = None if self.usage_rate is None else self.usage_rate[positions]
        entry = None if self.entry is None else self.entry[positions]
        return ServiceRecord(
            self.end[positions], rate, self.usage, entry, self.dated, self.by_usage
        )

    @classmethod
    def joined(
        cls, parts: list[ServiceRecord | None], sizes: list[int]
    ) -> ServiceRecord | None:  # fmt: skip
        """The records of several containers, one after the other; None if none has one."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        nothing = [ServiceRecord(np.full(n, np.nan)) for n in sizes]
        every = [a if b is None else b for a, b in zip(nothing, parts, strict=True)]
        rates = [part.usage_rate for part in every if part.usage_rate is not None]
        entries = [part.entry for part in every if part.entry is not None]
        return cls(
            np.concatenate([part.end for part in every]),
            np.concatenate(rates) if len(rates) == len(every) else None,
            known[0].usage,
            np.concatenate(entries) if len(entries) == len(every) else None,
            known[0].dated,
            known[0].by_usage,
        )


def with_entries(
    record: ServiceRecord | None, labels: LabelArray, parts: Sequence[SubjectData]
) -> ServiceRecord | None:
    """A record of these subjects with the entries that the parts of a panel know.

    Without entries where some part has none, or where parts disagree about a subject.
    """
    found: dict[Any, float] = {}
    for part in parts:
        if part.service is None or part.service.entry is None:
            return record
        for label, entry in zip(part.subjects.tolist(), part.service.entry.tolist(), strict=True):
            if found.setdefault(label, entry) != entry:
                return record
    known = ServiceRecord(np.full(len(labels), np.nan)) if record is None else record
    entries = np.array([found[label] for label in labels.tolist()])
    dated = all(part.service is not None and part.service.dated for part in parts)
    return replace(known, entry=entries, dated=dated)


def says_yes_or_no(column: Column) -> BoolArray | None:
    """Which cells say yes, of a column that says yes or no; None of any other column."""
    texts = column.astype(object).map(lambda cell: str(cell).strip().lower())
    known = texts.isin([*_YES, *_NO]).to_numpy(dtype=bool) | missing_cells(column)
    if not known.all() or missing_cells(column).all():
        return None
    return np.asarray(texts.isin(_YES).to_numpy(dtype=bool))


def end_of_service(
    problems: Problems,
    name: str,
    end: FloatArray,
    stop: FloatArray,
    index: IndexArray,
    labels: LabelArray,
    axis: TimeAxis,
) -> FloatArray:
    """When each subject went out of service, (K,), from the cells of its rows.

    A subject has one such time, in one of its rows or in all, and no visit after it.

    Parameters
    ----------
    problems : Problems
        Collects rows that say otherwise.
    name : str
        The column.
    end, stop : (n_rows,)
        NaN where the cell is missing.
    index : (n_rows,)
        -1 where the label is missing.
    labels : (K,)
    axis : TimeAxis
        Of the times, for messages.
    """

    def shown(time: float) -> str:
        return axis.date(time) or few_digits(time)

    first, last = np.full(len(labels), np.inf), np.full(len(labels), -np.inf)
    seen = np.full(len(labels), -np.inf)
    known, placed = np.isfinite(end) & (index >= 0), np.isfinite(stop) & (index >= 0)
    np.minimum.at(first, index[known], end[known])
    np.maximum.at(last, index[known], end[known])
    np.maximum.at(seen, index[placed], stop[placed])
    problems.flag(
        known & (end > np.where(index >= 0, first[index], end)),
        f"{name!r} must be the same in all rows of a subject",
        lambda row: (
            f"subject {labels[index[row]]} has {shown(first[index[row]])} and {shown(end[row])}"
        ),
    )
    problems.flag(
        placed & (stop > first[index]) & (stop == seen[index]),
        f"{name!r} must not be before the subject's last visit",
        lambda row: (
            f"subject {labels[index[row]]} was out of service from {shown(first[index[row]])} on "
            f"and was seen until {shown(stop[row])}"
        ),
    )
    return np.where(np.isfinite(last), first, np.nan)
