"""Limits on the size of numbers: beyond them double precision would answer with nonsense."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gp4c.data.checks import check_window, shown_interval, shown_number
from gp4c.data.subjects import FloatArray, IntArray
from gp4c.exceptions import PanelDataError

#: shortest interval as a share of the window: a thousand roundings of a time at its end
SHORTEST_SHARE = 1e-12
LARGEST_TOTAL = 2**62


def resolving_window(
    window: tuple[float, float] | None,
    start: FloatArray,
    stop: FloatArray,
    locate: Callable[[Sequence[int]], str] | None = None,
) -> tuple[float, float]:
    """A valid window, long enough for every interval and not too long for the shortest.

    Parameters
    ----------
    window : (t0, t1), optional
        Default from the first start to the last stop.
    start, stop : (n_rows,)
    locate : callable, optional
        Names rows by their positions, for the message.
    """
    low, high = float(start.min()), float(stop.max())
    t0, t1 = check_window((low, high) if window is None else window, low, high)
    row = int(np.argmin(stop - start))
    if stop[row] - start[row] < SHORTEST_SHARE * (t1 - t0):
        where = f" ({locate([row])})" if locate is not None else ""
        raise PanelDataError(
            f"an interval must be at least {SHORTEST_SHARE:g} of the window "
            f"({shown_number(t0)}, {shown_number(t1)}) long; found "
            f"{shown_interval(start[row], stop[row])}{where}"
        )
    return t0, t1


def check_total(count: IntArray) -> None:
    """Raise if the sum of the counts would not fit its integer type."""
    total = float(count.sum(dtype=np.float64))
    if total > LARGEST_TOTAL:
        raise PanelDataError(f"all counts together must be at most 2^62; found {total:g}")
