r"""A fit looks back at its own data: three numbers that should agree with it.

1. Counts vary within subjects as the law says. Given a subject's total M and shares p of its
   expected numbers,

   .. math::
       D = \frac{\sum (m - M p)^2}{\sum M p (1 - p)}, \qquad
       E D = \frac{\sum F M p (1 - p)}{\sum M p (1 - p)}, \quad F = \frac{M + A}{1 + A},

   where F = 1 without bursts, and A = υR/φ with them (Dirichlet-multinomial counts).
2. Events come when the curve says: observed and expected numbers in bins of time.
3. The mean number of events is that of a nonparametric estimate, which spreads the events of an
   interval evenly over it.

There is no simulation here: a check costs about a millisecond.
:func:`gp4c.analysis.fit_checks.check_fit` draws replicates, and takes any panel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: p-value and excess of the variance from which a fit warns
LOUD, CLEAR = 0.001, 1.5
#: bins of time at most, and subjects with events that each of them needs
_BINS, _SUBJECTS_PER_BIN = 8, 5
#: share of the subjects that must still be seen where mean numbers of events are compared
_STILL_SEEN = 0.25


@dataclass(frozen=True)
class OwnCheck:
    """What a fit found when it looked back at its data.

    Attributes
    ----------
    dispersion, allowed : float
        Variance of counts within subjects over that of Poisson counts, and its mean under the
        fitted law.
    p_value : float
        Chance of such a dispersion or a larger one under the fitted law.
    worst_start, worst_stop, worst_observed, worst_expected : float
        The bin of time whose number of events is farthest from the expected one.
    time_p_value : float
        Chance that all bins together differ so much from what the curve says.
    time, mean, nonparametric : float
        The last time when a quarter of the subjects are seen, and the mean number of events by
        then: of the model and of the nonparametric estimate.
    """

    dispersion: float
    allowed: float
    p_value: float
    worst_start: float
    worst_stop: float
    worst_observed: float
    worst_expected: float
    time_p_value: float
    time: float
    mean: float
    nonparametric: float

    @property
    def excess(self) -> float:
        """Variance within subjects relative to what the fitted law allows."""
        return self.dispersion / self.allowed

    @property
    def varies_more(self) -> bool:
        """Whether counts vary within subjects clearly more than the law allows."""
        return self.p_value < LOUD and self.excess >= CLEAR

    @property
    def comes_at_other_times(self) -> bool:
        """Whether events come at other times than the curve says."""
        return self.time_p_value < LOUD


def check_rows(
    panel: PanelCounts, expected: Floats, mean: tuple[float, float],
    excess: float = 0.0, effects: Floats | None = None,
) -> OwnCheck:  # fmt: skip
    """Check a fit against the rows it was fitted to.

    Parameters
    ----------
    panel : PanelCounts
        With what multiplies the rate of a row in its exposure.
    expected : (N,)
        Expected numbers of events at effect 1.
    mean : (time, Λ(time))
        The model's mean number of events by `compared_by(panel)`.
    excess : float
        φ of the fitted law.
    effects : (K,), optional
        υ of the subjects given their counts; default 1.
    """
    given = _Given.of(panel, expected)
    dispersion, allowed, p_value = _dispersion(given, excess, effects)
    worst, time_p_value = _over_time(given)
    return OwnCheck(
        dispersion, allowed, p_value, *worst, time_p_value, *mean, _spread_mean(panel, mean[0])
    )


def compared_by(panel: PanelCounts) -> float:
    """The last time when a quarter of the subjects are still seen."""
    ends = np.full(panel.n_subjects, -np.inf)
    np.maximum.at(ends, panel.subject_index, panel.stop)
    return float(np.sort(ends)[int((1.0 - _STILL_SEEN) * (len(ends) - 1))])


@dataclass(frozen=True, eq=False)
class _Given:
    """Rows of subjects with events: counts, and their means given the subjects' totals."""

    panel: PanelCounts
    rows: NDArray[np.intp]
    subject: NDArray[np.intp]
    count: Floats
    mean: Floats
    share: Floats
    total: Floats
    at_one: Floats

    @classmethod
    def of(cls, panel: PanelCounts, expected: Floats) -> _Given:
        size, subject = panel.n_subjects, panel.subject_index
        count = panel.count.astype(np.float64)
        total, at_one = _sums(subject, count, size), _sums(subject, expected, size)
        rows = np.flatnonzero((total > 0)[subject] & (expected > 0))
        who = subject[rows]
        share = expected[rows] / at_one[who]
        return cls(panel, rows, who, count[rows], total[who] * share, share, total, at_one)

    def sums(self, values: Floats) -> Floats:
        """Sums over the rows of each subject, (K,)."""
        return _sums(self.subject, values, len(self.total))


def _sums(group: NDArray[np.intp], values: Floats, size: int) -> Floats:
    return np.bincount(group, values, size).astype(np.float64, copy=False)


def _dispersion(given: _Given, excess: float, effects: Floats | None) -> tuple[float, float, float]:
    """D, E D and the upper tail of a gamma law with the mean and the variance of Σ (m − Mp)².

    The variance is that of Gaussian deviations with the right covariance, and of each count's own
    fourth cumulant, which matters where few events are expected.
    """
    from scipy.special import gammaincc

    total, factor = given.total, np.ones_like(given.total)
    if excess > 0:
        strength = given.at_one * (1.0 if effects is None else effects) / excess
        factor = np.maximum((total + strength) / (1.0 + strength), 1.0)
    own = given.sums(given.mean * (1.0 - given.share))
    unit, mean = own.sum(), (factor * own).sum()
    if unit <= 1e-9 * max(total.sum(), 1.0):
        return 1.0, 1.0, 1.0
    squares, cubes = given.sums(given.share**2), given.sums(given.share**3)
    gaussian = 2.0 * (factor * total) ** 2 * (squares - 2.0 * cubes + squares**2)
    phi = factor - 1.0
    fourth = own * factor * (1.0 + 6.0 * phi + 6.0 * phi**2)
    shape = mean**2 / (gaussian + fourth).sum()
    found = ((given.count - given.mean) ** 2).sum()
    return float(found / unit), float(mean / unit), float(gammaincc(shape, shape * found / mean))


def _over_time(given: _Given) -> tuple[tuple[float, float, float, float], float]:
    """The bin that differs most, and a p-value of all bins (Hotelling's T² over subjects)."""
    from scipy.special import fdtrc

    panel, window = given.panel, given.panel.window
    middle = (panel.start + panel.stop)[given.rows] / 2.0
    with_events = int((given.total > 0).sum())
    n_bins = int(np.clip(with_events // _SUBJECTS_PER_BIN, 1, _BINS))
    cuts = _cuts(middle, given.count, n_bins)
    edges = np.concatenate([[window[0]], cuts, [window[1]]])
    bins, size = np.searchsorted(cuts, middle, side="left"), len(edges) - 1
    cell = given.subject * size + bins
    each = _sums(cell, given.count - given.mean, len(given.total) * size).reshape(-1, size)
    observed, expected = _sums(bins, given.count, size), _sums(bins, given.mean, size)
    error, sums = np.sqrt((each**2).sum(axis=0)), each.sum(axis=0)
    deviation = np.divide(sums, error, out=np.zeros_like(sums), where=error > 0)
    k = int(np.argmax(np.abs(deviation)))
    worst = (float(edges[k]), float(edges[k + 1]), float(observed[k]), float(expected[k]))
    free = size - 1  # bins of a subject add up to 0: one of them is left out
    spread = each[:, 1:].T @ each[:, 1:]
    if free == 0 or with_events <= free or not np.any(spread):
        return worst, 1.0
    squared = min(float(sums[1:] @ np.linalg.pinv(spread) @ sums[1:]), with_events - 1e-9)
    ratio = (with_events - free) / free * squared / (with_events - squared)
    return worst, float(fdtrc(free, with_events - free, ratio))


def _cuts(middle: Floats, count: Floats, n_bins: int) -> Floats:
    """Inner edges of bins with about equal numbers of events."""
    if n_bins < 2:
        return np.zeros(0)
    order = np.argsort(middle, kind="stable")
    reached = np.cumsum(count[order])
    at = np.searchsorted(reached, np.arange(1, n_bins) / n_bins * reached[-1])
    return np.unique(middle[order][at])[: n_bins - 1]


def _spread_mean(panel: PanelCounts, time: float) -> float:
    """∫ events by time at risk up to a time, the events of an interval spread evenly over it."""
    both = np.concatenate([panel.start, panel.stop])
    edges, place = np.unique(both, return_inverse=True)
    first, last = np.split(place, 2)

    def covering(values: Floats) -> Floats:
        size = len(edges)
        steps = _sums(first, values, size) - _sums(last, values, size)
        return np.cumsum(steps)[:-1]

    at_risk = covering(panel.exposure)
    events = covering(panel.count / (panel.stop - panel.start))
    seen = at_risk > 1e-9 * panel.exposure.max()
    rate = np.divide(events, at_risk, out=np.zeros_like(events), where=seen)
    return float(rate @ np.diff(np.minimum(edges, time)))
