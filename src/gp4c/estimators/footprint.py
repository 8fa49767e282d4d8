"""How much memory a fit takes at its peak, told from sizes before it starts.

The formulas count the largest arrays of each estimator, with factors measured once; they hold
within a factor of two on the panels of tests/trust/test_memory.py. They need the data's sizes and
a guess at the number of inducing inputs, so they refuse what cannot be and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.panel import PanelCounts
from gp4c.exceptions import NotEnoughMemoryError
from gp4c.inference.variational.count_terms import count_term
from gp4c.memory import available_memory, in_words
from gp4c.model.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]

#: what any fit takes besides its large arrays
_BASE = 3e6
_NUMBER = 8
#: inducing inputs, and a length-scale in windows, where the fit chooses them: usual ones
_USUAL_INDUCING, _USUAL_LENGTH_SCALE = 45, 0.05
#: arrays of (rows × inducing inputs) of the default engine, and numbers of its draws per input
_ENGINE_COPIES, _ENGINE_DRAWS = 12.0, 60_000.0
#: numbers per row while rows are grouped
_ROW_COPIES = 40.0
#: more of them with effects of subjects
_EFFECT_COPIES = 8.0
#: most weighted intervals that stand for the rows of large data (large/compression.py)
_MOST_COMPRESSED = 30_000
#: entries up to which the classical estimators keep a matrix of intervals by cells
_MATRIX_ENTRIES = 20_000_000

_REMEDIES = {
    "gaussian": (
        "fewer inducing inputs (n_inducing=), count_term='pointwise', or a sample of the subjects "
        "(panel[::2]) needs less"
    ),
    "cells": (
        "it grows with the square of the number of different visit times: round them, take a "
        "sample of the subjects (panel[::2]), or use GP4C, which needs far less"
    ),
    "rows": "read the table in parts (gp4c.scan_panel) and fit GP4C, or take a sample of subjects",
}


def check_memory(model: PanelEstimator, data: Any) -> None:
    """Refuse a fit that needs more memory than there is, with what would help."""
    needed = expected_peak(model, data)
    there = available_memory()
    if there is not None and needed > there:
        raise NotEnoughMemoryError(
            f"this fit of {type(model).__name__} would take about {in_words(needed)} of memory, "
            f"and {in_words(there)} are free: {_REMEDIES[_kind(model)]}"
        )


def expected_peak(model: PanelEstimator, data: Any) -> float:
    """Bytes that a fit takes at its peak, the data themselves not counted; 0 if unknown.

    Parameters
    ----------
    model : PanelEstimator
    data : PanelCounts
        Other data (event times, tables read in parts) are not large, or not in memory.
    """
    if not isinstance(data, PanelCounts):
        return 0.0
    return _BASE + {"gaussian": _gaussian, "cells": _cells, "rows": _rows}[_kind(model)](
        model, data
    )


def _kind(model: PanelEstimator) -> str:
    if hasattr(model, "kernel"):
        return "gaussian"
    return "cells" if type(model).__name__ in _BY_CELLS else "rows"


def _gaussian(model: Any, panel: PanelCounts) -> float:
    distinct, size = panel.distinct(), model.n_inducing or _USUAL_INDUCING
    if not model._is_variational:
        rows = min(panel.n_intervals, _MOST_COMPRESSED)  # sums or a sample stand for more
        return _NUMBER * (
            size * (_ENGINE_COPIES * rows + _ENGINE_DRAWS) + _ROW_COPIES * panel.n_intervals
        )
    term = count_term(model.count_term)
    copies = term.copies + (_EFFECT_COPIES if model.effect is not None else 0.0)
    if model.optimizer == "vem":
        copies = term.copies / 2
    numbers = len(distinct) * size * copies + term.numbers(*_counted_lengths(model, panel))
    return float(_NUMBER * numbers)


def _counted_lengths(model: Any, panel: PanelCounts) -> tuple[Floats, Kernel]:
    """Lengths of counted intervals in the length-scale that the inducing inputs carry."""
    kernel, distinct = KERNELS[model.kernel], panel.distinct()
    scale = _USUAL_LENGTH_SCALE
    if model.n_inducing is not None:
        scale = 1.0 / (kernel.spacing * max(model.n_inducing - 1, 1))
    scale *= panel.window[1] - panel.window[0]
    return (distinct.stop - distinct.start)[distinct.count > 0] / scale, kernel


def _cells(model: Any, panel: PanelCounts) -> float:
    """Intervals by cells between visit times, and what the estimator makes of the cells."""
    distinct = panel.distinct()
    points = np.unique(np.concatenate([distinct.start, distinct.stop]))
    first, last = (np.searchsorted(points, side) for side in (distinct.start, distinct.stop))
    entries = min(int((last - first).sum()), _MATRIX_ENTRIES)
    return _BY_CELLS[type(model).__name__](len(points) - 1, entries, panel)


def _rows(model: Any, panel: PanelCounts) -> float:
    return 25.0 * _NUMBER * panel.n_intervals


def _local_em(cells: int, entries: int, panel: PanelCounts) -> float:
    """Sparse intervals by cells and folds; kernel weights of the narrowest bandwidth."""
    return 8e6 + 4400.0 * _NUMBER * cells + 66.0 * entries


def _npmle(cells: int, entries: int, panel: PanelCounts) -> float:
    """The matrix of second derivatives at the cells that may hold a jump."""
    sites = min(cells, 2 * int((panel.distinct().count > 0).sum()))
    return 0.75 * _NUMBER * sites**2 + 20.0 * entries


def _npmplgf(cells: int, entries: int, panel: PanelCounts) -> float:
    """The same for cumulative counts, which all reach back to the beginning."""
    visits = len(np.unique(panel.stop))
    return 4.5 * _NUMBER * visits**2


_BY_CELLS = {"LocalEM": _local_em, "NPMLE": _npmle, "NPMPLGF": _npmplgf}
