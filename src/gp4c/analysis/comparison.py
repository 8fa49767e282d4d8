"""Curves of groups and what differs between them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from importlib import import_module
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gp4c.analysis.groups.group_draws import CURVES
from gp4c.analysis.groups.holm import holm, holm_levels
from gp4c.analysis.groups.hypotheses import NAMES, Hypotheses
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.analysis.groups.ratios.contrast_answers import Pair, Question
from gp4c.analysis.groups.ratios.regression_ratios import pair_ratios
from gp4c.analysis.pair_contrasts import PairContrasts
from gp4c.analysis.words.comparison_words import summary_lines
from gp4c.estimators.inputs import check_level
from gp4c.estimators.interfaces.credible import equal_tails
from gp4c.plain import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.analysis.groups.ratios.centre_ratios import CentreRatios
    from gp4c.data.panel import PanelCounts
    from gp4c.data.summaries.table import Table
    from gp4c.estimators.gp4c import GP4C
    from gp4c.estimators.gp_base import GaussianProcessModel

Floats = NDArray[np.float64]

#: share of a group's subjects that must still be observed at the horizon
STILL_OBSERVED = 0.25


@dataclass(frozen=True)
class Comparison(PairContrasts):
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
    tested : PanelTest
        The test with its strata, blocks and weights; it needs no curves.
    probabilities : dict
        Posterior probabilities of "same" (one curve), "factor" (one shape at another level) and
        "curves" (a curve for each group), at equal prior odds.
    hypotheses : Hypotheses or None
        The evidence behind them.
    factor : float
        Ratio of rates of two groups under "factor".
    notes : tuple of str
        What to keep in mind.
    regression : GP4C or None
        Of a comparison with a formula: one shape with a factor for each group and the covariates,
        from which :meth:`adjusted` has the ratios.
    centres : CentreRatios or None
        Of a comparison with centres: how much these differ, and the ratios beside them.
    """

    panel: PanelCounts = field(repr=False)
    by: str
    groups: list[Hashable]
    models: dict[Hashable, GaussianProcessModel] = field(repr=False)
    pooled: GaussianProcessModel | None = field(repr=False)
    tested: PanelTest = field(repr=False)
    hypotheses: Hypotheses | None = field(repr=False, default=None)
    random_state: int = 0
    notes: tuple[str, ...] = ()
    regression: GP4C | None = field(repr=False, default=None)
    centres: CentreRatios | None = field(repr=False, default=None)

    # -- ratios of the regression -------------------------------------------------------------

    def adjusted(self, level: float = 0.95, *, errors: str = "auto") -> pd.DataFrame:
        """Ratios of rates of all pairs of groups at equal covariates, from the regression.

        Parameters
        ----------
        errors : {"auto", "robust", "model", "jackknife"}
            As in :meth:`gp4c.GP4C.effect_table`; with centres "auto" and "robust" are robust by
            centre.

        Returns
        -------
        DataFrame
            Columns: first, second, ratio, low, high, p_value, errors; no rows without a formula or
            centres.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> len(found.adjusted())
        0
        """
        if self.centres is not None:
            return self.centres.pair_ratios(self.groups, self.pairs, level, errors)
        known = None if self.regression is None else self.regression.coefficients_
        return pair_ratios(known, self.groups, self.pairs, level, errors)

    # -- tests ------------------------------------------------------------------------------

    @property
    def codes(self) -> NDArray[np.intp]:
        """Group of each subject, by its position in `groups`."""
        return self.tested.groups.codes

    @property
    def test(self) -> str:
        """What the permutation test looks for."""
        return self.tested.kind

    @property
    def statistic(self) -> float:
        """Studentised statistic of the permutation test."""
        return self.tested.overall.statistic

    @property
    def p_value(self) -> float:
        """Permutation p-value of "one curve for all groups"."""
        return self.tested.overall.p_value

    def interval(self, level: float = 0.95, *, pair: Pair | None = None) -> tuple[float, float]:
        """Ratios of rates that the permutation test does not reject at 1 − level.

        With ``test="level"`` the interval leaves out 1 if and only if p ≤ 1 − level. With "curve"
        and "any" it still belongs to the test of more or fewer events. With "trend", more than two
        groups and no pair it is for the factor per unit of the scores.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> low, high = found.interval(0.95)
        >>> low < 1 < high
        True
        """
        check_level(level)
        if self.test == "trend" and len(self.groups) > 2 and pair is None:
            return self.tested.trend_interval(level)[1:]
        return self.tested.interval(level, *self._places(pair))

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """All pairs: ratio by the test, its interval, and p-values; Holm's adjustment of both.

        Columns: first, second, ratio, low, high, level (of this interval), p_value, p_adjusted.
        Both are those of ``test="level"``, whatever the comparison tested: the interval of a pair
        leaves out 1 if and only if its adjusted p-value is at most 1 − level.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> list(found.intervals().columns[:5])
        ['first', 'second', 'ratio', 'low', 'high']
        """
        import pandas as pd

        check_level(level)
        test = self.tested.of_level()
        p_values = np.array([test.pair(*self._places(pair)).p_value for pair in self.pairs])
        table = pd.DataFrame(self.pairs, columns=["first", "second"])
        table = table.assign(p_value=p_values, p_adjusted=holm(p_values))
        levels = holm_levels(p_values, 1 - level)
        rows = []
        for pair, each in zip(self.pairs, levels, strict=True):
            low, high = self.tested.interval(each, *self._places(pair))
            ratio = self.tested.ratio(*self._places(pair))
            rows.append({"ratio": ratio, "low": low, "high": high, "level": each})
        found = pd.concat([table, pd.DataFrame(rows)], axis=1)
        return found[["first", "second", "ratio", "low", "high", "level", "p_value", "p_adjusted"]]

    # -- hypotheses ---------------------------------------------------------------------------

    @property
    def probabilities(self) -> dict[str, float]:
        """Posterior probabilities of "same", "factor" and "curves"; NaN without evidence."""
        if self.hypotheses is None:
            return dict.fromkeys(NAMES, float("nan"))
        return self.hypotheses.probabilities

    @property
    def factor(self) -> float:
        """Ratio of rates of the second group to the first under one shape: posterior median."""
        return self._factor(None, [0.5])[0]

    def factor_interval(
        self, level: float = 0.95, *, pair: Pair | None = None
    ) -> tuple[float, float]:
        """Credible interval of :attr:`factor`, or of that of another pair.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> low, high = found.factor_interval(0.95)
        >>> low < found.factor < high
        True
        """
        check_level(level)
        low, high = self._factor(pair, equal_tails(level))
        return low, high

    def _factor(self, pair: Pair | None, levels: list[float]) -> list[float]:
        places = self._places(pair)
        if self.hypotheses is None:
            return [float("nan")] * len(levels)
        return [float(x) for x in self.hypotheses.factor_quantiles(*places, levels)]

    @property
    def log_bayes_factor(self) -> float:
        """Log evidence of one curve per group minus that of one curve for all; NaN without."""
        if self.hypotheses is None:
            return float("nan")
        evidence = self.hypotheses.log_evidence
        return evidence["curves"] - evidence["same"]

    # -- tables -----------------------------------------------------------------------------

    def pairwise(self) -> pd.DataFrame:
        """All pairs of groups: ratio of mean numbers at the horizon, and permutation tests.

        Columns: first, second, time, ratio, low, high (95%), probability (second below first),
        p_value, p_adjusted (Holm).

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> found.pairwise()[["first", "second"]].to_dict("records")
        [{'first': 'placebo', 'second': 'thiotepa'}]
        """
        import pandas as pd

        rows = []
        for a, b in self.pairs:
            how: Question = {"curve": "cumulative", "pair": (a, b)}
            low, high = self.ratio_band(self.horizon, **how)
            rows.append(
                {
                    "first": a,
                    "second": b,
                    "time": self.horizon,
                    "ratio": self.ratio(self.horizon, **how),
                    "low": low,
                    "high": high,
                    "probability": self.probability(self.horizon, **how),
                    "p_value": self.tested.pair(*self._places((a, b))).p_value,
                }
            )
        table = pd.DataFrame(rows)
        return table.assign(p_adjusted=holm(table["p_value"].to_numpy()))

    @property
    def pairs(self) -> list[Pair]:
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

    @property
    def times(self) -> Floats:
        """Fifty times over the window, at which tables have the curves."""
        return np.linspace(*self.panel.window, 51)[1:]

    def to_frame(self, t: ArrayLike | None = None, level: float = 0.95) -> pd.DataFrame:
        """Ratio and difference of both curves over time, one row per pair, curve and time.

        Columns: first, second, curve, time, ratio, ratio_low, ratio_high, difference,
        difference_low, difference_high (pointwise at `level`), probability.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> found.to_frame([12.0, 24.0])["curve"].tolist()
        ['rate', 'rate', 'cumulative', 'cumulative']
        """
        import pandas as pd

        times = self.times if t is None else np.atleast_1d(t)
        parts = []
        for pair in self.pairs:
            for curve in CURVES:
                how: Question = {"curve": curve, "pair": pair}
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

    def table(self, level: float = 0.95) -> Table:
        """The comparison as a table to publish: ``found.table().save("table3.docx")``.

        Mean numbers and their ratios at the horizon, ratios of rates by the permutation test with
        p-values, and what the three hypotheses say, all with intervals of this level.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> found = gp4c.compare(panel, by="treatment", model=gp4c.GP4C(effect=None, bursts=False))
        >>> found.table().columns
        ('', 'estimate', '95% interval', 'p')
        """
        check_level(level)
        tables = import_module("gp4c.reporting.publication.result_tables")
        found: Table = tables.comparison_table(self, level)
        return found

    def plot(
        self,
        ax: Axes | None = None,
        *,
        what: str = "cumulative",
        level: float = 0.95,
        pair: Pair | None = None,
        at: str = "standardised",
    ) -> Axes:
        """Draw the groups' curves, or the ratio of two of them over time.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure if absent.
        what : {"cumulative", "intensity", "ratio", "rate ratio"}
            Mean numbers of events, or rates, of all groups; the ratio of mean numbers, or of
            rates, of one pair.
        level : float in (0, 1)
            Level of the bands.
        pair : (first, second), optional
            For ratios: which groups, if there are more than two.
        at : {"standardised", "average"}
            In a comparison with a formula: whose covariates the curves have.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> found = gp4c.compare(panel, by="treatment", model=gp4c.GP4C(effect=None, bursts=False))
        >>> found.plot(what="ratio").get_ylabel()
        'ratio of mean numbers, thiotepa / placebo'
        """
        check_level(level)
        draw = import_module("gp4c.reporting.figures.plots").plot_comparison
        drawn: Axes = draw(self, ax, what=what, level=level, pair=pair, at=at)
        return drawn

    def summary(self) -> str:
        """The comparison in words: ratios, the permutation test, and what the evidence adds.

        Examples
        --------
        >>> import gp4c
        >>> found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")  # doctest: +SKIP
        >>> found.summary().splitlines()[0]
        'treatment: placebo (47), thiotepa (38) subjects'
        """
        return printable("\n".join(summary_lines(self)))

    __str__ = summary

    def _repr_html_(self) -> str:
        return str(import_module("gp4c.reporting.notebook").comparison_html(self))
