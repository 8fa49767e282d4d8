"""Ratios and differences of two groups' curves, answered from their draws."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.analysis.groups.group_draws import CURVES, GroupDraws, shown
from gp4c.data.checks import check_choice
from gp4c.estimators.inputs import check_level
from gp4c.exceptions import OutsideWindowError
from gp4c.posterior.quantiles import simultaneous_level

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.estimators.base import Numbers
    from gp4c.estimators.gp_base import GaussianProcessModel

Floats = NDArray[np.float64]
#: two groups: the first is what the second is compared with
Pair: TypeAlias = tuple[Hashable, Hashable]

#: times behind a simultaneous band
BAND_POINTS = 60


class Question(TypedDict, total=False):
    """Which curves are compared, and how they are meant.

    Attributes
    ----------
    curve : {"rate", "cumulative"}
    pair : (first, second)
    under : {"curves", "factor", "same", "average"}
        A curve for each group; one shape at different levels; one curve, whose ratio is 1; or the
        three averaged with their probabilities.
    at : {"standardised", "average"}
        In a comparison with a formula: curves averaged over the covariates of all subjects, or
        curves of a subject with average covariates.
    """

    curve: str
    pair: Pair | None
    under: str
    at: str


@dataclass(frozen=True)
class Asked:
    """A question about two curves: how they are compared, which ones, under which account.

    Attributes
    ----------
    how : callable
        :func:`ratio` or :func:`difference`.
    curve : {"rate", "cumulative"}
    pair : (first, second)
    under : {"curves", "factor", "same", "average"}
    at : {"standardised", "average"}
        Whose covariates the curves have in an adjusted comparison.
    """

    how: Callable[[Floats, Floats], Floats]
    curve: str
    pair: Pair
    under: str
    at: str


@dataclass(frozen=True)
class ContrastAnswers:
    """Answers about pairs of curves on a window."""

    draws: GroupDraws
    window: tuple[float, float]

    def summary(self, t: ArrayLike, asked: Asked, reduce: Callable[[Floats], Floats]) -> Numbers:
        """What `reduce` makes of the draws, (draws, times) → (times,), shaped like `t`."""
        times = self._inside(t)
        value = reduce(self._contrast(times.ravel(), asked))
        return float(value[0]) if times.ndim == 0 else value.reshape(times.shape)

    def band(self, t: ArrayLike, level: float, kind: str, asked: Asked) -> tuple[Numbers, Numbers]:
        """Band with equal tails at each time, or of the whole curve."""
        check_level(level)
        check_choice("kind", kind, ("pointwise", "simultaneous"))
        if kind == "simultaneous":
            inner = np.linspace(*self.window, BAND_POINTS + 1)[1:]
            level = simultaneous_level(self._contrast(inner, asked), level)
        tail = (1 - level) / 2

        def quantile(p: float) -> Numbers:
            return self.summary(t, asked, lambda x: np.asarray(np.quantile(x, p, axis=0)))

        return quantile(tail), quantile(1 - tail)

    def _contrast(self, t: Floats, asked: Asked) -> Floats:
        check_choice("curve", asked.curve, CURVES)
        a, b = (self.draws.of(t, asked.curve, name, asked.under, asked.at) for name in asked.pair)
        return asked.how(a, b)

    def _inside(self, t: ArrayLike) -> Floats:
        times = np.asarray(t, dtype=np.float64)
        low, high = self.window
        if not np.all((times >= low) & (times <= high)):
            raise OutsideWindowError(f"times must be in the observation window [{low:g}, {high:g}]")
        return times


def ratio(first: Floats, second: Floats) -> Floats:
    """second / first; 1 where both curves have not begun."""
    both = (first <= 0) & (second <= 0)
    with np.errstate(divide="ignore"):
        return np.where(both, 1.0, second / np.where(both, 1.0, first))


def difference(first: Floats, second: Floats) -> Floats:
    """second − first."""
    return second - first


def group_curves(
    models: Mapping[Hashable, GaussianProcessModel], t: ArrayLike, level: float, at: str
) -> pd.DataFrame:
    """Rate and mean number of events of each group at times t, with pointwise bands."""
    import pandas as pd

    from gp4c.estimators.regression.covariate_tables import curve_table

    times = np.atleast_1d(np.asarray(t, dtype=np.float64))
    parts = []
    for group, model in models.items():
        table = curve_table(shown(model, at), times, level)
        table.insert(0, "group", group)  # type: ignore[arg-type]
        parts.append(table)
    return pd.concat(parts, ignore_index=True)
