"""Curves of groups and what differs between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.analysis.comparison_words import summary_lines
from gp4c.analysis.permutation import permutation_p_value, subject_scores
from gp4c.exceptions import OutsideWindowError
from gp4c.plain import printable
from gp4c.posterior.forecasting import intensity_paths
from gp4c.posterior.quantiles import simultaneous_level
from gp4c.threads import one_blas_thread

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]

#: draws of each group's curve, and times behind a simultaneous band
N_DRAWS, BAND_POINTS = 4000, 60
#: sets of draws kept
CACHED = 8
#: share of a group's subjects that must still be observed at the horizon
STILL_OBSERVED = 0.25
CURVES = ("rate", "cumulative")


@dataclass(frozen=True)
class Comparison:
    """Curves of groups and what differs between them.

    Differences and ratios are of the second group of a pair to the first. With two groups the
    pair need not be given; with more it is ``pair=("a", "b")``: b compared with a. `curve` is
    "rate" for λ(t), or "cumulative" for the mean number of events Λ(t) from the window's start.

    Attributes
    ----------
    groups : list
        Levels, the reference first.
    models : dict
        The fitted model of each group.
    pooled : fitted model or None
        One curve for everybody.
    statistic, p_value : float
        Permutation test of one curve for all groups.
    notes : tuple of str
        What to keep in mind.
    """

    panel: PanelCounts = field(repr=False)
    by: str
    groups: list[Any]
    models: dict[Any, Any] = field(repr=False)
    pooled: Any = field(repr=False)
    codes: NDArray[np.intp] = field(repr=False)
    test: str
    n_permutations: int
    random_state: int
    notes: tuple[str, ...] = ()
    _cache: dict[Any, Floats] = field(default_factory=dict, repr=False)

    # -- curves -----------------------------------------------------------------------------

    def ratio(self, t: ArrayLike, *, curve: str = "rate", pair: Any = None) -> Any:
        """Posterior median of the ratio of curves at times t."""
        return self._summary(t, curve, pair, _ratio, lambda x: np.median(x, axis=0))

    def difference(self, t: ArrayLike, *, curve: str = "rate", pair: Any = None) -> Any:
        """Posterior mean of the difference of curves at times t."""
        return self._summary(t, curve, pair, _difference, lambda x: x.mean(axis=0))

    def ratio_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        curve: str = "rate",
        pair: Any = None,
    ) -> tuple[Any, Any]:
        """Credible band of the ratio: (low, high), each shaped like `t`.

        Parameters
        ----------
        level : float in (0, 1)
        kind : {"pointwise", "simultaneous"}
            Probability at each time; or of the whole curve over the window.
        """
        return self._band(t, level, kind, curve, pair, _ratio)

    def difference_band(
        self,
        t: ArrayLike,
        level: float = 0.95,
        kind: str = "pointwise",
        *,
        curve: str = "rate",
        pair: Any = None,
    ) -> tuple[Any, Any]:
        """Credible band of the difference; see :meth:`ratio_band`."""
        return self._band(t, level, kind, curve, pair, _difference)

    def probability(self, t: ArrayLike, *, curve: str = "rate", pair: Any = None) -> Any:
        """Posterior probability that the second group's curve lies below the first's at t."""
        return self._summary(t, curve, pair, _difference, lambda x: (x < 0).mean(axis=0))

    # -- tests ------------------------------------------------------------------------------

    @cached_property
    def _test(self) -> tuple[float, float]:
        return self._permute(np.arange(self.panel.n_subjects))

    @property
    def statistic(self) -> float:
        """Studentised statistic of the permutation test."""
        return self._test[0]

    @property
    def p_value(self) -> float:
        """Permutation p-value of "one curve for all groups"."""
        return self._test[1]

    @property
    def log_bayes_factor(self) -> float:
        """Log evidence of one curve per group minus that of one curve for all.

        Positive: the data speak for different curves. NaN without the pooled fit, or where the
        hyper-parameters were maximised instead of integrated: that gives no evidence.
        """
        if self.pooled is None or not self.pooled.has_evidence:
            return float("nan")
        each = sum(fit.log_evidence_ for fit in self.models.values())
        return float(each - self.pooled.log_evidence_)

    def pairwise(self) -> pd.DataFrame:
        """All pairs of groups: ratio of mean numbers at the horizon, and permutation tests.

        Columns: first, second, time, ratio, low, high (95%), probability (second below first),
        p_value, p_adjusted (Holm).
        """
        import pandas as pd

        rows = []
        for a, b in self.pairs:
            low, high = self.ratio_band(self.horizon, curve="cumulative", pair=(a, b))
            members = np.isin(self.codes, [self.groups.index(a), self.groups.index(b)])
            rows.append(
                {
                    "first": a,
                    "second": b,
                    "time": self.horizon,
                    "ratio": self.ratio(self.horizon, curve="cumulative", pair=(a, b)),
                    "low": low,
                    "high": high,
                    "probability": self.probability(self.horizon, curve="cumulative", pair=(a, b)),
                    "p_value": self.p_value
                    if len(self.groups) == 2
                    else self._permute(np.flatnonzero(members))[1],
                }
            )
        table = pd.DataFrame(rows)
        return table.assign(p_adjusted=_holm(table["p_value"].to_numpy()))

    def _permute(self, members: NDArray[np.intp]) -> tuple[float, float]:
        """Permutation test among some subjects, in an order that labels and rows do not change."""
        panel = self.panel[members]
        order = panel.content_order()
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        scores = subject_scores(
            panel.start, panel.stop, panel.count.astype(np.float64), panel.exposure,
            place[panel.subject_index], panel.n_subjects,
        )  # fmt: skip
        _, codes = np.unique(self.codes[members][order], return_inverse=True)
        return permutation_p_value(
            scores,
            codes,
            kind=self.test,
            n_permutations=self.n_permutations,
            rng=np.random.default_rng(self.random_state),
        )

    # -- tables -----------------------------------------------------------------------------

    @property
    def pairs(self) -> list[tuple[Any, Any]]:
        """All pairs of groups, (first, second)."""
        return list(combinations(self.groups, 2))

    @property
    def horizon(self) -> float:
        """Last time at which a quarter of the subjects of every group was still observed."""
        first = np.flatnonzero(np.diff(self.panel.subject_index, prepend=-1))
        ends = np.maximum.reduceat(self.panel.stop, first)
        each = [ends[self.codes == g] for g in range(len(self.groups))]
        share = 1 - STILL_OBSERVED
        return float(min(np.quantile(some, share, method="inverted_cdf") for some in each))

    def to_frame(self, t: ArrayLike | None = None, level: float = 0.95) -> pd.DataFrame:
        """Ratio and difference of both curves over time, one row per pair, curve and time.

        Columns: first, second, curve, time, ratio, ratio_low, ratio_high, difference,
        difference_low, difference_high (pointwise at `level`), probability.
        """
        import pandas as pd

        low, high = self.panel.window
        times = np.linspace(low, high, 51)[1:] if t is None else np.atleast_1d(t)
        parts = []
        for pair in self.pairs:
            for curve in CURVES:
                how: dict[str, Any] = {"curve": curve, "pair": pair}
                ratio = self.ratio_band(times, level, **how)
                difference = self.difference_band(times, level, **how)
                columns = {
                    "time": times,
                    "ratio": self.ratio(times, **how),
                    "ratio_low": ratio[0],
                    "ratio_high": ratio[1],
                    "difference": self.difference(times, **how),
                    "difference_low": difference[0],
                    "difference_high": difference[1],
                    "probability": self.probability(times, **how),
                }
                names = {"first": pair[0], "second": pair[1], "curve": curve}
                parts.append(pd.DataFrame({**names, **columns}))
        return pd.concat(parts, ignore_index=True)

    def summary(self) -> str:
        """The comparison in words: ratios, the permutation test, and what the evidence adds."""
        return printable("\n".join(summary_lines(self)))

    __str__ = summary

    def _repr_html_(self) -> str:
        return str(import_module("gp4c.reporting.notebook").comparison_html(self))

    # -- draws ------------------------------------------------------------------------------

    def _pair(self, pair: Any) -> tuple[Any, Any]:
        if pair is None:
            if len(self.groups) > 2:
                raise ValueError(
                    f"say which of the {len(self.groups)} groups: pair=(first, second)"
                )
            return self.groups[0], self.groups[1]
        a, b = pair
        for name in (a, b):
            if name not in self.groups:
                raise ValueError(f"there is no group {name!r}; there are {self.groups}")
        return a, b

    def _draws(self, t: Floats, curve: str, name: Any) -> Floats:
        """Draws of a group's curve, (N_DRAWS, T); each draw is one path, whatever times are asked.

        The order of draws is shuffled, as a posterior gives those of one component together.
        The last few answers are kept: a ratio and its band are often asked in turn.
        """
        key = (curve, self.groups.index(name), t.tobytes())
        if key not in self._cache:
            while len(self._cache) >= CACHED:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = self._new_draws(t, curve, name)
        return self._cache[key]

    def _new_draws(self, t: Floats, curve: str, name: Any) -> Floats:
        # a group's draws are its own: another reference inverts ratios, and changes nothing else
        stream = sorted(self.groups, key=lambda g: (str(g), type(g).__name__)).index(name)
        seed = np.random.SeedSequence((self.random_state, stream))
        posterior = self.models[name].posterior_
        order = np.random.default_rng(seed.spawn(1)[0]).permutation(N_DRAWS)
        with one_blas_thread():
            if curve == "rate":
                return intensity_paths(posterior, t, N_DRAWS, seed)[order]
            start = np.full_like(t, self.panel.window[0])
            rng = np.random.default_rng(seed)
            return np.asarray(posterior.sample_integrals(start, t, N_DRAWS, rng)[order])

    def _contrast(self, t: Floats, curve: str, pair: Any, how: Callable[..., Floats]) -> Floats:
        if curve not in CURVES:
            raise ValueError(f"curve must be 'rate' or 'cumulative', not {curve!r}")
        first, second = self._pair(pair)
        return how(self._draws(t, curve, first), self._draws(t, curve, second))

    def _summary(
        self,
        t: ArrayLike,
        curve: str,
        pair: Any,
        how: Callable[..., Floats],
        reduce: Callable[[Floats], Floats],
    ) -> Any:
        times = self._inside(t)
        value = reduce(self._contrast(times.ravel(), curve, pair, how))
        return float(value[0]) if times.ndim == 0 else value.reshape(times.shape)

    def _band(
        self,
        t: ArrayLike,
        level: float,
        kind: str,
        curve: str,
        pair: Any,
        how: Callable[..., Floats],
    ) -> tuple[Any, Any]:
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, not {level!r}")
        if kind not in ("pointwise", "simultaneous"):
            raise ValueError(f"kind must be 'pointwise' or 'simultaneous', not {kind!r}")
        if kind == "simultaneous":
            inner = np.linspace(*self.panel.window, BAND_POINTS + 1)[1:]
            level = simultaneous_level(self._contrast(inner, curve, pair, how), level)
        tail = (1 - level) / 2
        low, high = (
            self._summary(t, curve, pair, how, lambda x, p=p: np.quantile(x, p, axis=0))  # type: ignore[misc]
            for p in (tail, 1 - tail)
        )
        return low, high

    def _inside(self, t: ArrayLike) -> Floats:
        times = np.asarray(t, dtype=np.float64)
        low, high = self.panel.window
        if not np.all((times >= low) & (times <= high)):
            raise OutsideWindowError(f"times must be in the observation window [{low:g}, {high:g}]")
        return times


def _ratio(first: Floats, second: Floats) -> Floats:
    """second / first; 1 where both curves have not begun."""
    both = (first <= 0) & (second <= 0)
    with np.errstate(divide="ignore"):
        return np.where(both, 1.0, second / np.where(both, 1.0, first))


def _difference(first: Floats, second: Floats) -> Floats:
    return second - first


def _holm(p_values: Floats) -> Floats:
    """Holm's step-down adjustment."""
    order = np.argsort(p_values)
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
