"""Integrals of a modulated rate: one sheet of nodes for every set of inputs that rows bring.

Rows with the same inputs see the same factor at every node, so they share a sheet: a copy of the
nodes with its own factors. The map from nodes to integrals then has as many columns as there are
nodes on all sheets, and stays linear. With one sheet it is the map of a plain fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gp4c.model.modulation.modulator import Modulation
from gp4c.model.quadrature import Grid, IntervalIntegrals

if TYPE_CHECKING:
    from collections.abc import Iterator

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: intervals whose rows of a matrix are made at once
_ROWS = 2000


def distinct_inputs(inputs: Floats) -> tuple[Floats, Indices]:
    """Different rows of inputs (P, r), and the one of each row."""
    if not inputs.shape[1]:
        return np.zeros((1, 0)), np.zeros(len(inputs), dtype=np.intp)
    found, sheet = np.unique(inputs, axis=0, return_inverse=True)
    return found, sheet.reshape(-1)


def sheet_matrix(
    grid: Grid, start: Floats, stop: Floats, sheet: Indices, n_sheets: int
) -> sparse.csr_array:
    """Integrals over intervals on their sheets, as a matrix (intervals, sheets · nodes)."""
    size = len(grid.nodes)
    blocks = []
    for first in range(0, max(len(start), 1), _ROWS):
        some = slice(first, first + _ROWS)
        dense = IntervalIntegrals(grid, start[some], stop[some]).apply(np.eye(size))
        block = sparse.csr_array(dense).tocoo()
        row, column = block.coords
        column = column + size * sheet[some][row]
        shape = (len(dense), size * n_sheets)
        blocks.append(sparse.csr_array((block.data, (row, column)), shape=shape))
    return blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")


class SheetIntegrals:
    """Integrals of f² exp(xᵀw) over intervals with inputs, for draws of f² at nodes and of w.

    Parameters
    ----------
    modulation : Modulation
    grid : Grid
    start, stop : (n,)
        In windows.
    inputs : (n, r)
    goes_on : bool
        Whether trends go on outside the window.
    """

    def __init__(
        self,
        modulation: Modulation,
        grid: Grid,
        start: Floats,
        stop: Floats,
        inputs: Floats,
        goes_on: bool = True,
    ):
        distinct, sheet = distinct_inputs(inputs)
        self.grid, self.size = grid, len(start)
        self._sheets = [
            (
                np.flatnonzero(sheet == p),
                modulation.features(grid.nodes, one, goes_on),
            )
            for p, one in enumerate(distinct)
        ]
        self._maps = [IntervalIntegrals(grid, start[rows], stop[rows]) for rows, _ in self._sheets]

    def apply(self, values: Floats, w: Floats) -> Floats:
        """(Q, S) and (size, S) → (n, S)."""
        result = np.empty((self.size, values.shape[1]))
        for rows, features, integrals in self._each():
            result[rows] = integrals.apply(values * np.exp(features @ w))
        return result

    def _each(self) -> Iterator[tuple[Indices, Floats, IntervalIntegrals]]:
        for (rows, features), integrals in zip(self._sheets, self._maps, strict=True):
            yield rows, features, integrals
