"""How much memory a fit takes at its peak, told from sizes before it starts.

Each estimator counts its largest arrays (``_fit_bytes``), with factors measured once; the counts
hold within a factor of two on the panels of tests/trust/test_memory.py. They need the data's sizes
and, for a Gaussian process, a guess at the number of inducing inputs, so they refuse what cannot be
and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.panel import PanelCounts
from gp4c.exceptions import NotEnoughMemoryError
from gp4c.inference.variational.count_terms import count_term
from gp4c.memory import available_memory, in_words
from gp4c.model.kernels import KERNELS, Kernel

if TYPE_CHECKING:
    from gp4c.data.tables.sources import PanelSource
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.gp4c import GP4C
    from gp4c.estimators.gp_base import GaussianProcessModel

Floats = NDArray[np.float64]

#: what any fit takes besides its large arrays
_BASE = 3e6
_NUMBER = 8
#: inducing inputs, and a length-scale in windows, where the fit chooses them: usual ones
_USUAL_INDUCING, _USUAL_LENGTH_SCALE = 45, 0.05
#: arrays of (rows × inducing inputs) of the default engine, and numbers of its draws per input
_ENGINE_COPIES, _ENGINE_DRAWS = 12.0, 100_000.0
#: numbers per row while rows are grouped
_ROW_COPIES = 40.0
#: more of them with effects of subjects
_EFFECT_COPIES = 8.0
#: most weighted intervals that stand for the rows of large data (large/compression.py)
_MOST_COMPRESSED = 30_000


def check_memory(model: PanelEstimator, data: PanelCounts | PanelSource | None) -> None:
    """Refuse a fit that needs more memory than there is, with what would help."""
    needed = expected_peak(model, data)
    there = available_memory()
    if there is not None and needed > there:
        raise NotEnoughMemoryError(
            f"this fit of {type(model).__name__} would take about {in_words(needed)} of memory, "
            f"and {in_words(there)} are free: {model._memory_remedy}"
        )


def expected_peak(model: PanelEstimator, data: PanelCounts | PanelSource | None) -> float:
    """Bytes that a fit takes at its peak, the data themselves not counted; 0 if unknown.

    Parameters
    ----------
    model : PanelEstimator
    data : PanelCounts
        Other data (event times, tables read in parts) are not large, or not in memory.
    """
    return _BASE + model._fit_bytes(data) if isinstance(data, PanelCounts) else 0.0


def gaussian_bytes(model: GP4C, panel: PanelCounts) -> float:
    """Bytes of the largest arrays of a Gaussian-process fit: draws and modes, or a bound."""
    size = model.n_inducing or _USUAL_INDUCING
    if not model._is_variational:
        rows = min(panel.n_intervals, _MOST_COMPRESSED)  # sums or a sample stand for more
        return _NUMBER * (
            size * (_ENGINE_COPIES * rows + _ENGINE_DRAWS) + _ROW_COPIES * panel.n_intervals
        )
    share = 0.5 if model.optimizer == "vem" else 1.0  # which does without effects' arrays
    return bound_bytes(model, panel, share)


def bound_bytes(model: GaussianProcessModel, panel: PanelCounts, share: float = 1.0) -> float:
    """Bytes of the largest arrays of a fit that maximises a bound; `share` of the usual copies."""
    term, distinct = count_term(model.count_term), panel.distinct()
    size = model.n_inducing or _USUAL_INDUCING
    copies = share * term.copies
    if share == 1.0 and model.effect is not None:
        copies += _EFFECT_COPIES
    numbers = len(distinct) * size * copies + term.numbers(*_counted_lengths(model, panel))
    return float(_NUMBER * numbers)


def _counted_lengths(model: GaussianProcessModel, panel: PanelCounts) -> tuple[Floats, Kernel]:
    """Lengths of counted intervals in the length-scale that the inducing inputs carry."""
    kernel, distinct = KERNELS[model.kernel], panel.distinct()
    scale = _USUAL_LENGTH_SCALE
    if model.n_inducing is not None:
        scale = 1.0 / (kernel.spacing * max(model.n_inducing - 1, 1))
    scale *= panel.window[1] - panel.window[0]
    return (distinct.stop - distinct.start)[distinct.count > 0] / scale, kernel
