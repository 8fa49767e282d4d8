"""Sums over interval ends that a stream of rows is reduced to: local moments on a fine grid.

A smooth function φ(s, e) of the two ends of an interval is a low polynomial on each small square
of side 1/CELLS. The sum Σ_j w_j φ(s_j, e_j) over any number of rows is then a combination of
the moments Σ_j w_j P_a(u_j) P_b(v_j) of the rows in each square, u and v the ends' places in it
and P the Legendre polynomials (docs/maths_scale.md, section 2). One pass collects them, whatever
smoothness is asked for later; moments of parts of the data add up.

Times are in unit time, the window at [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

#: small squares along each axis, and total degree of the moments kept in each
CELLS, DEGREE = 512, 4
#: pairs of degrees (a, b) with a + b ≤ DEGREE
DEGREES = tuple((a, d - a) for d in range(DEGREE + 1) for a in range(d + 1))
#: rows treated at once, so that their arrays stay in the processor's cache
CHUNK = 1 << 16


@dataclass(frozen=True)
class Places:
    """Times on the fine grid: their cells (n,), and P_0 … P_DEGREE at their places in them."""

    cell: Indices
    legendre: list[Floats]

    @classmethod
    def of(cls, times: Floats) -> Places:
        """Locate times in [0, 1]."""
        scaled = times * CELLS
        cell = np.clip(scaled.astype(np.intp), 0, CELLS - 1)
        x = 2.0 * (scaled - cell) - 1.0
        legendre = [np.ones_like(x), x]
        for k in range(1, DEGREE):  # Bonnet's recursion
            legendre.append(((2 * k + 1) * x * legendre[k] - k * legendre[k - 1]) / (k + 1))
        return cls(cell, legendre)

    def take(self, rows: Indices) -> Places:
        """Some of the times."""
        return Places(self.cell.take(rows), [values.take(rows) for values in self.legendre])


@dataclass
class PairMoments:
    """Σ_j w_j P_a(u_j) P_b(v_j) of weighted pairs (s_j, e_j) in each small square.

    Attributes
    ----------
    table : (len(DEGREES), CELLS²)
    """

    table: Floats = field(default_factory=lambda: np.zeros((len(DEGREES), CELLS * CELLS)))

    def add(self, first: Places, last: Places, weight: Floats) -> None:
        """Add weighted pairs."""
        square = first.cell * CELLS + last.cell
        left = [weight * values for values in first.legendre]
        for row, (a, b) in zip(self.table, DEGREES, strict=True):
            np.add.at(row, square, left[a] * last.legendre[b] if b else left[a])

    def add_times(self, start: Floats, stop: Floats, weight: Floats) -> None:
        """Add weighted pairs of times, a chunk at a time."""
        for i in range(0, len(start), CHUNK):
            part = slice(i, i + CHUNK)
            self.add(Places.of(start[part]), Places.of(stop[part]), weight[part])


@dataclass
class PointMoments:
    """Σ_j w_j P_a(u_j) of weighted times in each cell; `table` is (DEGREE + 1, CELLS)."""

    table: Floats = field(default_factory=lambda: np.zeros((DEGREE + 1, CELLS)))

    def add(self, places: Places, weight: Floats) -> None:
        """Add weighted times."""
        for row, values in zip(self.table, places.legendre, strict=True):
            row += np.bincount(places.cell, weight * values, CELLS)
