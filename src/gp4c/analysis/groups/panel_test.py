"""The permutation test of a panel's groups, and the interval that goes with it; no curve is fitted.

Subjects are taken in an order that their labels and the order of rows do not change.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.groups.adjustment import Adjustment, read_adjustment
from gp4c.analysis.groups.bin_scores import subject_scores
from gp4c.analysis.groups.group_columns import (
    Column,
    read_clusters,
    read_groups,
    read_several,
    read_strata,
    trend_scores,
)
from gp4c.analysis.groups.inversion import ShiftedTest
from gp4c.analysis.groups.labellings import cell_table
from gp4c.analysis.permutation import (
    TESTS,
    WEIGHTS,
    LabelledStatistics,
    PermutationTest,
    crossed,
    permuted_statistics,
)
from gp4c.data.checks import check_choice
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class PanelTest:
    """A test of one curve for all groups, not run yet.

    `order`, in which the subjects are labelled, makes the labellings of several tests the same;
    without it the order is that of their content.

    Examples
    --------
    >>> import gp4c
    >>> from gp4c.analysis.groups.panel_test import PanelTest
    >>> found = PanelTest.of(gp4c.load_dataset("bladder"), "treatment", n_permutations=999)
    >>> found.overall.exact
    False
    """

    panel: PanelCounts = field(repr=False)
    groups: Column
    strata: Column | None = None
    blocks: Column | None = None
    kind: str = "level"
    weights: str = "even"
    scores: Floats | None = None
    n_permutations: int = 9999
    seed: int = 0
    adjustment: Adjustment | None = None
    cluster: Column | None = None
    order: Indices | None = field(default=None, repr=False)
    _known: dict[tuple[float, ...], tuple[float, float]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        panel: PanelCounts,
        by: str,
        *,
        strata: str | None = None,
        blocks: str | None = None,
        reference: Hashable | None = None,
        test: str = "level",
        weights: str = "even",
        scores: Mapping[Hashable, float] | None = None,
        formula: str | None = None,
        cluster: str | None = None,
        n_permutations: int = 9999,
        random_state: int = 0,
    ) -> PanelTest:
        """Read the columns and check what is asked; parameters as in :func:`gp4c.compare`."""
        check_choice("test", test, TESTS)
        check_choice("weights", weights, WEIGHTS)
        if weights != "even" and test in ("curve", "any"):
            raise PanelDataError(
                f"weights go with test='level' and test='trend'; test={test!r} looks at all times"
            )
        if scores is not None and test != "trend":
            raise PanelDataError(f"scores go with test='trend', not with test={test!r}")
        groups = read_groups(panel, by, reference)
        if test == "trend" and reference is None:  # the lowest dose, or the control
            lowest = int(np.argmin(trend_scores(groups, scores)))
            groups = groups.with_reference(groups.levels[lowest])
        found = cls(
            panel,
            groups,
            None if strata is None else read_strata(panel, strata, groups),
            None if blocks is None else read_several(panel, blocks, "blocks"),
            test,
            weights,
            trend_scores(groups, scores) if test == "trend" else None,
            n_permutations,
            random_state,
            read_adjustment(panel, formula, by),
            None if cluster is None else read_clusters(panel, cluster),
        )
        found._check_blocks()
        return found

    @property
    def design_columns(self) -> list[str]:
        """Names of the columns of strata, blocks and centres."""
        return [column.name for column in (self.strata, self.blocks, self.cluster) if column]

    @cached_property
    def permutes_centres(self) -> bool:
        """Whether whole centres have one group each, and are permuted as they are."""
        if self.cluster is None:
            return False
        return bool(np.all((cell_table(self.groups.codes, self.cluster.codes) > 0).sum(1) == 1))

    @cached_property
    def overall(self) -> PermutationTest:
        """All groups at once."""
        return self._run(np.arange(self.panel.n_subjects))

    def pair(self, first: int, second: int) -> PermutationTest:
        """Two groups by themselves."""
        if len(self.groups.levels) == 2:
            return self.overall
        return self._run(np.flatnonzero(np.isin(self.groups.codes, [first, second])))

    def of_level(self) -> PanelTest:
        """The same groups with the test that intervals belong to: more or fewer events."""
        if self.kind == "level":
            return self
        return replace(self, kind="level", scores=None, _known={})

    def ratio(self, first: int, second: int) -> float:
        """Ratio of rates, second to first, at which the test sees no difference at all."""
        return float(np.exp(self._pair_shifted(first, second).estimate()))

    def interval(self, level: float, first: int, second: int) -> tuple[float, float]:
        """Ratios of rates, second to first, that the test of more or fewer events keeps."""
        key = (level, first, second)
        if key not in self._known:
            low, high = self._pair_shifted(first, second).interval(level)
            self._known[key] = float(np.exp(low)), float(np.exp(high))
        return self._known[key]

    def trend_interval(self, level: float) -> tuple[float, float, float]:
        """Factor per unit of the scores, and the ends of its interval."""
        assert self.scores is not None
        shifted = self._shifted(np.arange(self.panel.n_subjects), self.scores, is_trend=True)
        low, high = shifted.interval(level)
        each = np.exp([shifted.estimate(), low, high])
        return float(each[0]), float(each[1]), float(each[2])

    # -- pieces -----------------------------------------------------------------------------

    def _check_blocks(self) -> None:
        if self.blocks is None:
            return
        cells = self.blocks.codes
        if self.strata is not None:
            cells = crossed(self.strata.codes, cells)
        if np.all((cell_table(self.groups.codes, cells) > 0).sum(axis=1) < 2):
            raise PanelDataError(
                f"no block of {self.blocks.name!r} has two groups of {self.groups.name!r}: there "
                "is nothing to permute"
            )

    def _order_of(self, members: Indices) -> Indices:
        """The given order, of some subjects."""
        assert self.order is not None
        rank = np.argsort(self.order)
        return np.asarray(np.argsort(rank[members]))

    def _pair_shifted(self, first: int, second: int) -> ShiftedTest:
        members = np.flatnonzero(np.isin(self.groups.codes, [first, second]))
        direction = np.array([0.0, 1.0] if first < second else [1.0, 0.0])
        return self._shifted(members, direction)

    def labelled(self) -> LabelledStatistics:
        """The statistics of all labellings that :attr:`overall` takes."""
        return self._statistics(np.arange(self.panel.n_subjects))

    def _run(self, members: Indices) -> PermutationTest:
        return self._statistics(members).test()

    def _statistics(self, members: Indices) -> LabelledStatistics:
        rows, groups, strata, blocks = self._ordered(members)
        scores = subject_scores(*rows, len(groups), strata, self._covariates(members))
        everybody = len(members) == self.panel.n_subjects
        kind = self.kind if everybody or self.kind != "trend" else "level"
        return permuted_statistics(
            scores, groups, kind=kind, weights=self.weights, trend=self.scores, blocks=blocks,
            n_permutations=self.n_permutations, rng=np.random.default_rng(self.seed),
        )  # fmt: skip

    def _shifted(
        self, members: Indices, direction: Floats, *, is_trend: bool = False
    ) -> ShiftedTest:
        rows, groups, strata, blocks = self._ordered(members)
        return ShiftedTest(
            rows, groups, strata, blocks, direction, self.weights, is_trend, self.n_permutations,
            self.seed, self._covariates(members),
        )  # fmt: skip

    def _covariates(self, members: Indices) -> Floats | None:
        """Covariates of the rows of some subjects."""
        return None if self.adjustment is None else self.adjustment.of(self.panel, members)

    def _ordered(
        self, members: Indices
    ) -> tuple[tuple[Floats, Floats, Floats, Floats, Indices], Indices, Indices, Indices | None]:
        """Rows, groups, strata and blocks of some subjects, in the order of their content."""
        panel = self.panel[members]
        order = panel.content_order() if self.order is None else self._order_of(members)
        place = np.empty(len(order), dtype=np.intp)
        place[order] = np.arange(len(order))
        rows = (
            panel.start, panel.stop, panel.count.astype(np.float64), panel.exposure,
            place[panel.subject_index],
        )  # fmt: skip
        chosen = members[order]
        groups, strata, blocks, centres = (
            None if column is None else _compact(column.codes[chosen])
            for column in (self.groups, self.strata, self.blocks, self.cluster)
        )
        assert groups is not None
        strata = np.zeros_like(groups) if strata is None else strata
        if centres is None:
            return rows, groups, strata, blocks
        if not self.permutes_centres:
            return rows, groups, strata, centres if blocks is None else crossed(blocks, centres)
        _, first, whole = np.unique(centres, return_index=True, return_inverse=True)
        order = np.argsort(first)  # centres in the order of their first subjects
        whole, first = np.argsort(order)[whole], first[order]
        rows = (*rows[:4], whole[rows[4]])
        return rows, groups[first], strata[first], None if blocks is None else blocks[first]


def _compact(codes: Indices) -> Indices:
    """The same classes, numbered from 0."""
    found: Indices = np.unique(codes, return_inverse=True)[1]
    return found
