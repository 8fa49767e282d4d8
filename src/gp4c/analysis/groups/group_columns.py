"""Columns that say which group, stratum or block a subject is in, checked and coded."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import plural, refuse_missing, refuse_varying, unknown_name
from gp4c.data.ordering import natural_key
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: more groups than this are more likely a wrong column
MOST_GROUPS = 20
#: fewer centres than this do not tell how much centres differ; more take too long to fit
FEWEST_CENTRES, MOST_CENTRES = 4, 200
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Column:
    """A category of the subjects.

    Attributes
    ----------
    name : str
    levels : list
        In natural order: "5 mg" before "10 mg"; an ordered category keeps its own.
    codes : (K,)
        Position of each subject's level.
    ordered : bool
        Whether the column itself says in which order its levels are.
    """

    name: str
    levels: list[Hashable]
    codes: Indices
    ordered: bool = False

    def with_reference(self, reference: Hashable) -> Column:
        """The same with one level first."""
        if reference not in self.levels:
            raise PanelDataError(f"{self.name!r} has no level {reference!r}; it has {self.levels}")
        first = self.levels.index(reference)
        order = [first, *(k for k in range(len(self.levels)) if k != first)]
        levels = [self.levels[k] for k in order]
        return Column(
            self.name, levels, np.argsort(order)[self.codes].astype(np.intp), self.ordered
        )


def read_column(panel: PanelCounts, name: str) -> Column:
    """A column of the subjects without gaps."""
    table = panel.covariates
    if name not in table.columns:
        refuse_varying(panel, name)
        there = ", ".join(map(str, table.columns)) or "none"
        raise PanelDataError(f"there is no covariate {name!r} of subjects; there are: {there}")
    column = table[name]
    refuse_missing(name, column.index[column.isna()].tolist())
    values = column.tolist()
    ordered = str(column.dtype) == "category" and bool(column.cat.ordered)
    if ordered:
        present = set(values)
        levels = [level for level in column.cat.categories.tolist() if level in present]
    else:
        levels = sorted(set(values), key=natural_key)
    place = {level: k for k, level in enumerate(levels)}
    return Column(name, levels, np.array([place[v] for v in values], dtype=np.intp), ordered)


def read_groups(panel: PanelCounts, by: str, reference: Hashable | None = None) -> Column:
    """The groups to compare, the reference first."""
    column = read_column(panel, by)
    if len(column.levels) < 2:
        raise PanelDataError(f"{by!r} has one level only, {column.levels[0]!r}: nothing to compare")
    if len(column.levels) > MOST_GROUPS:
        raise PanelDataError(
            f"{by!r} has {len(column.levels)} levels; at most {MOST_GROUPS} groups are compared"
        )
    return column if reference is None else column.with_reference(reference)


def read_several(panel: PanelCounts, name: str, role: str) -> Column:
    """Strata or blocks, of which there are at least two."""
    column = read_column(panel, name)
    if len(column.levels) < 2:
        raise PanelDataError(
            f"{name!r} has one level only, {column.levels[0]!r}: leave it out of the {role}"
        )
    return column


def read_strata(panel: PanelCounts, name: str, groups: Column) -> Column:
    """Strata, each with at least two groups, and each group in at least two of them."""
    column = read_several(panel, name, "strata")
    table = np.zeros((len(column.levels), len(groups.levels)), dtype=np.intp)
    np.add.at(table, (column.codes, groups.codes), 1)
    for g, group in enumerate(groups.levels):
        where = np.flatnonzero(table[:, g])
        if len(where) == 1:
            raise PanelDataError(
                f"group {group!r} of {groups.name!r} is in one stratum only, {name!r} = "
                f"{column.levels[where[0]]!r}: its difference cannot be told from that of the "
                "stratum; compare without these strata, or without the group"
            )
    for s, stratum in enumerate(column.levels):
        there = np.flatnonzero(table[s])
        if len(there) == 1:
            raise PanelDataError(
                f"stratum {stratum!r} of {name!r} has one group only, {groups.name!r} = "
                f"{groups.levels[there[0]]!r} ({plural(int(table[s].sum()), 'subject')}): it says "
                "nothing about a difference; join it to another stratum or leave it out"
            )
    return column


def read_clusters(panel: PanelCounts, name: str) -> Column:
    """Centres, of which there must be some to tell how much they differ."""
    column = read_column(panel, name)
    if not FEWEST_CENTRES <= len(column.levels) <= MOST_CENTRES:
        raise PanelDataError(
            f"cluster={name!r} has {plural(len(column.levels), 'level')}; a random "
            f"effect takes {FEWEST_CENTRES} to {MOST_CENTRES} centres; take few of them as strata"
        )
    return column


def trend_scores(groups: Column, given: Mapping[Hashable, float] | None) -> Floats:
    """Scores of ordered groups: those given, the numbers in their names, or their ranks.

    A single group without a number, such as "placebo", has the score 0. Ranks are taken of an
    ordered category without numbers.
    """
    if given is not None:
        return _given_scores(groups, given)
    found = [_number(level) for level in groups.levels]
    without = [level for level, number in zip(groups.levels, found, strict=True) if number is None]
    if len(without) == 1 and 0.0 not in found:
        found = [0.0 if number is None else number for number in found]
    elif without and groups.ordered:
        found = [float(k) for k in range(len(found))]
    elif without:
        raise PanelDataError(
            f"test='trend' needs a number for each group of {groups.name!r}, and {without[0]!r} "
            "has none in its name: give scores, such as scores={'low': 1, 'high': 2} "
            '(--scores "low=1,high=2")'
        )
    return _distinct(groups, np.array(found, dtype=np.float64))


def _given_scores(groups: Column, given: Mapping[Hashable, float]) -> Floats:
    by_text = {str(name): value for name, value in given.items()}
    names = [str(level) for level in groups.levels]
    unknown = [name for name in by_text if name not in names]
    if unknown:
        raise PanelDataError(
            f"{groups.name!r} has no group {unknown[0]!r} to score; "
            f"{unknown_name(unknown[0], names)}"
        )
    lacking = [name for name in names if name not in by_text]
    if lacking:
        raise PanelDataError(f"group {lacking[0]!r} of {groups.name!r} has no score")
    return _distinct(groups, np.array([by_text[name] for name in names], dtype=np.float64))


def _distinct(groups: Column, scores: Floats) -> Floats:
    if not np.isfinite(scores).all() or np.ptp(scores) <= 0:
        raise PanelDataError(
            f"scores of {groups.name!r} must be numbers that differ; found {scores.tolist()}"
        )
    return scores


def _number(level: Hashable) -> float | None:
    """The number that a level is or has in its name."""
    if isinstance(level, int | float | np.number) and not isinstance(level, bool):
        return float(level)
    found = _NUMBER.search(str(level))
    return None if found is None else float(found[0])
