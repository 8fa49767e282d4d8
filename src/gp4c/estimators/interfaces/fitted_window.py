"""Times at which a fitted curve is asked for: checked against the window of the fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.estimators.interfaces.fitted_state import FittedState
from gp4c.exceptions import OutsideWindowError

if TYPE_CHECKING:
    from gp4c.estimators.base import Numbers

Floats = NDArray[np.float64]


class FittedWindow(FittedState):
    """Functions of time over the observation window; a scalar in gives a float."""

    def _inside(self, times: ArrayLike, extrapolate: bool) -> Floats:
        """Check times against the window; return them as an array of their own shape."""
        self._check_fitted()
        t = self._as_numbers(times)
        if not np.all(np.isfinite(t)):
            raise ValueError("times must be finite numbers")
        low, high = self.window_
        outside = (t < low) | (t > high)
        if np.any(outside) and not extrapolate:
            worst = float(t[outside].flat[0])
            raise OutsideWindowError(
                f"time {worst:g} is outside the observation window [{low:g}, {high:g}]; "
                "pass extrapolate=True to go beyond it"
            )
        return t

    def _as_numbers(self, times: ArrayLike) -> Floats:
        """Times as numbers; dates are such where the data had dates."""
        plain = np.asarray(times)
        if plain.dtype.kind in "iuf":
            return plain.astype(np.float64, copy=False)
        from gp4c.data.timeaxis import TimeAxis

        return TimeAxis.of(self).numbers(times)

    def _evaluate(
        self, times: ArrayLike, function: Callable[[Floats], Floats], extrapolate: bool = False
    ) -> Numbers:
        """Apply a function of a flat array of times; a scalar in gives a float."""
        t = self._inside(times, extrapolate)
        return shaped_like(t, function(t.ravel()))

    def _over_intervals(
        self, start: ArrayLike, stop: ArrayLike, extrapolate: bool,
        integral: Callable[[Floats, Floats], Floats],
    ) -> Numbers:  # fmt: skip
        """Apply a function of flat starts and stops; two scalars in give a float."""
        first, last = np.broadcast_arrays(
            self._inside(start, extrapolate), self._inside(stop, extrapolate)
        )
        if np.any(last < first):
            raise ValueError("each stop must not be before its start")
        return shaped_like(first, integral(first.ravel(), last.ravel()))


def shaped_like(times: Floats, values: Floats) -> Numbers:
    """Flat values in the shape of the times; a float for a single time."""
    return float(values[0]) if times.ndim == 0 else values.reshape(times.shape)
