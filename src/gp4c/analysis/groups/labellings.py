r"""Ways to give subjects their groups' labels: how many there are, all of them, or random ones.

Labels are exchanged within cells of subjects (strata, blocks), so that every cell keeps its number
of subjects of each group. With n_c subjects in cell c, n_cg of them in group g, there are

.. math::  \prod_c \frac{n_c!}{\prod_g n_{cg}!}

different labellings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]
Labels = NDArray[np.integer]


def cell_table(groups: Indices, cells: Indices) -> Labels:
    """Subjects of each group in each cell, (C, G)."""
    _, cell = np.unique(cells, return_inverse=True)
    table = np.zeros((int(cell.max()) + 1, int(groups.max()) + 1), dtype=np.intp)
    np.add.at(table, (cell, groups), 1)
    return table


def n_labellings(table: Labels) -> int:
    """Number of different labellings, the given one included; exact, however large."""
    total = 1
    for row in table.tolist():
        left = 0
        for number in row:
            left += number
            total *= math.comb(left, number)
    return total


def log_labellings(table: Labels) -> float:
    """Logarithm of the number of labellings, which is quick also for millions of subjects."""
    from scipy.special import gammaln

    return float(gammaln(table.sum(axis=1) + 1).sum() - gammaln(table + 1).sum())


def every_labelling(groups: Indices, cells: Indices) -> Labels:
    """All labellings, each once, (n_labellings, K)."""
    result = np.zeros((1, len(groups)), dtype=np.intp)
    for cell in np.unique(cells):
        members = np.flatnonzero(cells == cell)
        ways = _ways(np.bincount(groups[members]).tolist())
        result = np.repeat(result, len(ways), axis=0)
        result[:, members] = np.tile(ways, (len(result) // len(ways), 1))
    return result


def _ways(numbers: list[int]) -> Labels:
    """All orders of labels 0, 1, … that occur so often, one per row."""
    size = sum(numbers)
    rows = np.full((1, size), -1, dtype=np.intp)
    for label, number in enumerate(numbers):
        extended = []
        for row in rows:
            free = np.flatnonzero(row < 0)
            chosen = np.array(list(combinations(free.tolist(), number)), dtype=np.intp)
            more = np.tile(row, (len(chosen), 1))
            np.put_along_axis(more, chosen.reshape(len(chosen), number), label, axis=1)
            extended.append(more)
        rows = np.concatenate(extended)
    return rows


def random_labellings(
    groups: Indices, cells: Indices, n: int, chunk: int, rng: np.random.Generator
) -> Iterator[Labels]:
    """Random labellings, (at most chunk, K) at a time; the same whatever the chunk.

    Cells are taken in the order in which they first occur, each with a generator of its own.
    """
    first = np.unique(cells, return_index=True)[1]
    members = [np.flatnonzero(cells == cells[place]) for place in np.sort(first)]
    streams = rng.spawn(len(members)) if len(members) > 1 else [rng]
    for begin in range(0, n, chunk):
        size = min(chunk, n - begin)
        result = np.empty((size, len(groups)), dtype=np.intp)
        for some, stream in zip(members, streams, strict=True):
            result[:, some] = stream.permuted(np.tile(groups[some], (size, 1)), axis=1)
        yield result
