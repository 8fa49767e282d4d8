"""What Tables 3 and 4 share: the splits of the real data, and statistics over them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gp4c.paper import paper_numbers
from gp4c.paper.sections import (
    Floats,
    Found,
    Lines,
    Plan,
    column,
    matching,
    mean_and_error,
    spread,
    trials_text,
)
from gp4c.paper.store import Record, Task
from gp4c.paper.studies.real import RATIOS, SETS

#: the two ways to split, in words
RATIO_TITLES = {"1/2": "halves", "2/3": "two thirds for training"}


def split_tasks(plan: Plan) -> list[Task]:
    """Every split of every set, both ratios."""
    return [
        Task.of("split", set=name, ratio=ratio, trial=trial, seed=plan.seed)
        for trial in range(plan.trials)
        for ratio in reversed(RATIOS)
        for name in SETS
    ]


def splits(found: Found, name: str, ratio: str) -> list[Record]:
    """Records of one set and ratio."""
    return matching(found, "split", set=name, ratio=ratio)


def counts(found: Found, ratio: str) -> list[int]:
    """Splits there are of each set."""
    return [len(splits(found, name, ratio)) for name in SETS]


def for_each_ratio(
    found: Found, title: str, lines_of: Callable[[Found, str, list[str]], Lines]
) -> Lines:
    """A heading and the lines of the sets that there are, two thirds for training first."""
    lines: Lines = []
    for ratio in reversed(RATIOS):
        there = [name for name in SETS if splits(found, name, ratio)]
        words = title.format(RATIO_TITLES[ratio])
        heading = words[0].upper() + words[1:]
        lines += [f"### {heading} ({trials_text(counts(found, ratio))})", ""]
        lines += lines_of(found, ratio, there) if there else ["No trials yet.", ""]
    return lines


def difference(
    records: list[Record], method: str, other: str, metric: str = "l_test"
) -> tuple[float, float]:
    """Mean paired difference of L_test and its standard error."""
    return mean_and_error(column(records, method, metric) - column(records, other, metric))


def deviation(records: list[Record], method: str, name: str, metric: str = "l_test_50") -> float:
    """Our mean minus the paper's in standard errors of a difference of two means over 40 splits.

    The paper's mean has the spread of ours, as far as one can tell.
    """
    values: Floats = column(records, method, metric)
    error = spread(values) * np.sqrt(1 / len(values) + 1 / paper_numbers.TRIALS)
    return float((values.mean() - paper_numbers.TABLE4[name][method].l_test) / error)
