"""A fit checks itself: what the fitted law says about the panel, beside the panel.

Three questions, each with a remedy where the answer is no:

1. Do counts vary within subjects as the law of counts says?
   (:mod:`gp4c.posterior.within_subjects`)
2. Do events come when the curve says? Observed and expected numbers over time, given the
   subjects' totals.
3. Is the mean number of events that of the nonparametric estimator?
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.classical.panel_rows import PanelRows
from gp4c.classical.parametric.marginal_counts import LogMeans, MarginalCounts
from gp4c.exceptions import GP4CWarning, NotFittedError
from gp4c.posterior.within_subjects import ALARM, WithinDispersion, within_subject_dispersion

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

Floats = NDArray[np.float64]

#: share of the subjects that must still be seen where the mean numbers of events are compared
_STILL_SEEN = 0.25
#: subjects per bin of time, so that the spread between them says how sure a bin is
_SUBJECTS_PER_BIN = 5


@dataclass(frozen=True, eq=False)
class OverTime:
    """Observed and expected numbers of events over time.

    Attributes
    ----------
    table : pandas.DataFrame
        ``start``, ``stop`` of the bin, ``observed``, ``expected``, ``ratio``, ``deviation``
        (observed − expected in standard errors).
    p_value : float
        Of all bins together.
    """

    table: pd.DataFrame
    p_value: float

    @property
    def is_bad(self) -> bool:
        """Whether events come at other times than the curve says."""
        return self.p_value <= ALARM

    def worst(self) -> pd.Series[float]:
        """The bin with the largest deviation, as a row of the table."""
        return self.table.iloc[int(np.argmax(np.abs(self.table["deviation"].to_numpy())))]


def _over_time(data: _Checked, n_bins: int) -> OverTime:
    """Numbers of events in bins of time, beside those that the curve expects.

    A row belongs to the bin of its midpoint; bins have about equal numbers of events. Expected
    numbers are given the subjects' totals, so that no law of effects enters, and errors are those
    of the sum over subjects of observed − expected, so that bursts do not count as evidence.
    """
    import pandas as pd
    from scipy.stats import f

    rows, middle = data.rows, (data.rows.start + data.rows.stop) / 2.0
    with_events = int((data.total > 0).sum())
    n_bins = int(np.clip(with_events // _SUBJECTS_PER_BIN, 1, n_bins))
    seen = np.repeat(middle, rows.count.astype(np.int64))
    inner = np.arange(1, n_bins) / n_bins if len(seen) else np.zeros(0)
    cuts = np.unique(np.quantile(seen, inner)) if len(inner) else inner
    edges = np.concatenate([[rows.window[0]], cuts, [rows.window[1]]])
    bins = np.searchsorted(edges[1:-1], middle, side="left")
    shape = (rows.n_subjects, len(edges) - 1)
    difference, observed, expected = np.zeros(shape), np.zeros(shape[1]), np.zeros(shape[1])
    mean = data.given_totals()
    np.add.at(difference, (rows.subject, bins), rows.count - mean)
    np.add.at(observed, bins, rows.count)
    np.add.at(expected, bins, mean)
    error = np.sqrt((difference**2).sum(axis=0))
    sums = difference.sum(axis=0)
    table = {
        "start": edges[:-1], "stop": edges[1:], "observed": observed, "expected": expected,
        "ratio": np.divide(observed, expected, out=np.full_like(observed, np.nan),
                           where=expected > 0),
        "deviation": np.divide(sums, error, out=np.zeros_like(sums), where=error > 0),
    }  # fmt: skip
    # Hotelling's T² of the subjects' differences, whose bins add up to 0: one of them is left out
    spread, q = difference[:, 1:].T @ difference[:, 1:], len(sums) - 1
    if q == 0 or with_events <= q or not np.any(spread):
        return OverTime(pd.DataFrame(table), 1.0)
    squared = min(float(sums[1:] @ np.linalg.pinv(spread) @ sums[1:]), with_events - 1e-9)
    ratio = (with_events - q) / q * squared / (with_events - squared)
    return OverTime(pd.DataFrame(table), float(f.sf(ratio, q, with_events - q)))


@dataclass(frozen=True)
class MeanCheck:
    """Mean number of events by some time: of the model, its 99% band, and of the NPMLE."""

    time: float
    model: float
    low: float | None
    high: float | None
    npmle: float

    @property
    def is_bad(self) -> bool:
        """Whether the nonparametric estimate is outside the model's band."""
        if self.low is None or self.high is None:
            return False
        return not self.low <= self.npmle <= self.high


def mean_against_npmle(model: PanelEstimator, panel: PanelCounts) -> MeanCheck:
    """Λ of the model and of the NPMLE, at the last time when a quarter of the subjects are seen.

    A model without a band (a classical one before ``bootstrap``) is never called bad.
    """
    from gp4c.classical.step_functions.step import NPMLE

    ends = np.zeros(panel.n_subjects)
    np.maximum.at(ends, panel.subject_index, panel.stop)
    time = float(np.sort(ends)[int(np.floor((1.0 - _STILL_SEEN) * (len(ends) - 1)))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GP4CWarning)
        free = float(NPMLE().fit(model._adjusted(panel)).cumulative(time))
    try:
        low, high = (float(end) for end in model.cumulative_band(time, 1.0 - ALARM))
    except (NotFittedError, AttributeError):
        return MeanCheck(time, float(model.cumulative(time)), None, None, free)
    return MeanCheck(time, float(model.cumulative(time)), low, high, free)


@dataclass(frozen=True, eq=False)
class FitCheck:
    """Three checks of a fit; printing gives its warnings, or says that there are none."""

    within: WithinDispersion
    over_time: OverTime
    mean: MeanCheck
    warnings: tuple[str, ...]

    def to_frame(self) -> pd.DataFrame:
        """One row per check: ``check``, ``observed``, ``fitted``, ``p_value``, ``passed``."""
        import pandas as pd

        worst = self.over_time.worst()
        within = self.within
        rows = [
            ("dispersion within subjects", within.ratio, within.fitted, within.smallest_p,
             not within.is_bad),
            (f"events from {worst['start']:.4g} to {worst['stop']:.4g}", worst["observed"],
             worst["expected"], self.over_time.p_value, not self.over_time.is_bad),
            (f"mean number of events by {self.mean.time:.4g}", self.mean.npmle, self.mean.model,
             np.nan, not self.mean.is_bad),
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["check", "observed", "fitted", "p_value", "passed"])

    def __str__(self) -> str:
        return "\n".join(self.warnings) or "The fit passes its checks."

    __repr__ = __str__


def check_fit(
    model: PanelEstimator, panel: PanelCounts, *, n_bins: int = 8, random_state: int = 0
) -> FitCheck:
    """Check a fitted model against a panel: that of the fit, or of other subjects.

    Parameters
    ----------
    model : fitted estimator
    panel : PanelCounts
    n_bins : int
        Bins of time, at most.
    random_state : int
        Seed of the replicated counts.

    Returns
    -------
    FitCheck
        With ``warnings``, sentences that say what is wrong and what to do, and ``to_frame()``.

    Notes
    -----
    Each check raises a false alarm in about one panel of a hundred. The curve is held at its
    estimate. With bursts in the model, subjects' effects are held at their means given the counts.
    A curve that follows the counts closely hides some of their dispersion: on subjects that the
    fit has not seen the first check is sharper.

    Examples
    --------
    >>> import gp4c
    >>> from gp4c.analysis.fit_checks import check_fit
    >>> panel = gp4c.load_dataset("bladder").where(treatment="placebo")
    >>> check_fit(gp4c.HomogeneousPoisson(effect="gamma").fit(panel), panel).within.is_bad
    True
    """
    from gp4c.analysis.words.fit_words import warnings_about

    if n_bins < 2:
        raise ValueError(f"n_bins must be at least 2, not {n_bins!r}")
    data = _Checked.of(model, panel)
    rows, excess = data.rows, float(model.dispersion_) - 1.0
    within = within_subject_dispersion(
        rows.count, data.expected, rows.subject, rows.n_subjects, excess=excess,
        effects=data.effects() if excess > 0.0 else None, random_state=random_state,
    )  # fmt: skip
    over_time, mean = _over_time(data, n_bins), mean_against_npmle(model, panel)
    return FitCheck(within, over_time, mean, tuple(warnings_about(model, within, over_time, mean)))


@dataclass(frozen=True, eq=False)
class _Checked:
    """Rows of a panel, subjects by content, with the model's expected numbers at effect 1."""

    model: PanelEstimator
    rows: PanelRows
    expected: Floats

    @classmethod
    def of(cls, model: PanelEstimator, panel: PanelCounts) -> _Checked:
        model._inside([panel.start.min(), panel.stop.max()], False)
        rows = PanelRows.of(model._adjusted(panel))
        mass = np.asarray(model.expected_counts(rows.start, rows.stop))
        return cls(model, rows, rows.exposure * mass)

    @property
    def total(self) -> Floats:
        return self.rows.by_subject(self.rows.count)

    def given_totals(self) -> Floats:
        """Expected numbers of the rows given the subjects' totals, (N,)."""
        at_one = np.maximum(self.rows.by_subject(self.expected), 1e-300)
        return np.asarray(self.expected * (self.total / at_one)[self.rows.subject])

    def effects(self) -> Floats:
        """Means of the subjects' effects given the counts."""
        rows, model = self.rows, self.model
        expected = np.maximum(self.expected, 1e-300)
        law, effect = model.count_law_, model.effect_law_
        counts = MarginalCounts(rows.count, rows.subject, rows.n_subjects, law, effect)
        psi = model._point_params()[: len(effect.parameters), 0]
        return counts.terms(LogMeans.of(expected), psi, model.law_parameters_).mean
