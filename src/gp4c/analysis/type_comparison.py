"""Groups of subjects compared in several types of events: all types together, and each."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.analysis.groups.holm import holm, holm_levels
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.analysis.permutation import PermutationTest, combined_test
from gp4c.data.summaries.table import Table
from gp4c.data.types.typed_panel import TypedPanel
from gp4c.estimators.inputs import check_level
from gp4c.exceptions import PanelDataError
from gp4c.plain import printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.groups.ratios.contrast_answers import Pair
    from gp4c.data.panel import PanelCounts


@dataclass(frozen=True)
class TypeComparison:
    """What :func:`gp4c.compare` finds in a panel with several types of events.

    Attributes
    ----------
    panel : TypedPanel
    by : str
    by_type : dict
        The comparison of each type by itself; ``of_type("basal")``.
    common : tuple of PanelTest
        The tests of the types among subjects in whom all types were counted, which are relabelled
        together.

    Examples
    --------
    >>> import gp4c
    >>> found = gp4c.compare(gp4c.load_dataset("skin"), by="treatment")  # doctest: +SKIP
    >>> found.tests()["event"].tolist()
    ['basal', 'squamous']
    """

    panel: TypedPanel = field(repr=False)
    by: str
    by_type: dict[str, Comparison] = field(repr=False)
    common: tuple[PanelTest, ...] = field(repr=False)

    def of_type(self, event: str) -> Comparison:
        """The comparison of one type, with its curves, ratios and probabilities.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect=None, bursts=False)
        >>> found = gp4c.compare(panel, by="treatment", model=model, n_permutations=99)
        >>> found.of_type("basal").groups
        ['dfmo', 'placebo']
        """
        self.panel.of_type(event)  # names the types if this is none
        return self.by_type[event]

    @property
    def groups(self) -> list[Hashable]:
        """Levels, the reference first."""
        return self.common[0].groups.levels

    @property
    def test(self) -> str:
        """What the permutation tests look for."""
        return self.common[0].kind

    @cached_property
    def together(self) -> PermutationTest:
        """The test of all types together; see :func:`gp4c.analysis.permutation.combined_test`."""
        return combined_test([one.labelled() for one in self.common])

    @property
    def p_value(self) -> float:
        """p-value of "no type has curves that differ between the groups"."""
        return self.together.p_value

    def tests(self, level: float = 0.95) -> pd.DataFrame:
        """Each type by itself: p-value, and Holm's adjustment for the number of types.

        Columns: event, p_value, p_adjusted; with two groups also ratio, low, high and the level of
        this interval. Ratios are those of ``test="level"``, and leave out 1 if and only if the
        p-value of that test, adjusted for the number of types, is at most 1 − level.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect=None, bursts=False)
        >>> found = gp4c.compare(panel, by="treatment", model=model, n_permutations=99)
        >>> found.tests()["event"].tolist()
        ['basal', 'squamous']
        """
        import pandas as pd

        check_level(level)
        p_values = np.array([found.p_value for found in self.by_type.values()])
        table = pd.DataFrame({"event": list(self.by_type), "p_value": p_values})
        table = table.assign(p_adjusted=holm(p_values))
        if len(self.groups) != 2:
            return table
        tests = [found.tested.of_level() for found in self.by_type.values()]
        levels = holm_levels(np.array([test.overall.p_value for test in tests]), 1 - level)
        ends = np.array([test.interval(at, 0, 1) for test, at in zip(tests, levels, strict=True)])
        ratio = [test.ratio(0, 1) for test in tests]
        return table.assign(ratio=ratio, low=ends[:, 0], high=ends[:, 1], level=levels)

    def table(self, level: float = 0.95) -> Table:
        """The tests as a table to publish.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect=None, bursts=False)
        >>> found = gp4c.compare(panel, by="treatment", model=model, n_permutations=99)
        >>> found.table().columns[1:]
        ('ratio of rates (interval by Holm)', 'p', 'p adjusted (Holm)')
        """
        tests, cells = self.tests(level), []
        for row in tests.to_dict("records"):
            ratio = f"{row['ratio']:.2f} ({_interval(row)})" if "ratio" in row else ""
            cells.append((row["event"], ratio, f"{row['p_value']:.4f}", f"{row['p_adjusted']:.4f}"))
        cells.append(("all types together", "", f"{self.p_value:.4f}", ""))
        columns = ("", "ratio of rates (interval by Holm)", "p", "p adjusted (Holm)")
        title = f"Comparison of {self.by} by type of event"
        return Table(title, columns, tuple(cells), (f"{self._words()}.",), "", tests)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        event: str,
        what: str = "cumulative",
        level: float = 0.95,
        pair: Pair | None = None,
        at: str = "standardised",
    ) -> Axes:
        """Draw the groups' curves of one type; the options are those of `Comparison.plot`.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect=None, bursts=False)
        >>> found = gp4c.compare(panel, by="treatment", model=model, n_permutations=99)
        >>> ax = found.plot(event="basal")
        """
        return self.of_type(event).plot(ax, what=what, level=level, pair=pair, at=at)

    def conclusions(self) -> list[str]:
        """The test of all types together, and of each.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect=None, bursts=False)
        >>> found = gp4c.compare(panel, by="treatment", model=model, n_permutations=99)
        >>> len(found.conclusions())
        2
        """
        each = []
        for row in self.tests().to_dict("records"):
            text = f"{row['event']} p = {row['p_value']:.4f}, adjusted {row['p_adjusted']:.4f}"
            if "ratio" in row:
                text += f", ratio of rates {row['ratio']:.2f} ({_interval(row)})"
            each.append(text)
        return [
            f"{self._words()}: p = {self.p_value:.4f}",
            f"Each type, adjusted for their number by Holm's method: {'; '.join(each)}",
        ]

    def summary(self) -> str:
        """All types together, then each type in words.

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("skin")[::10]
        >>> model = gp4c.GP4C(effect=None, bursts=False)
        >>> found = gp4c.compare(panel, by="treatment", model=model, n_permutations=99)
        >>> "== basal ==" in found.summary()
        True
        """
        lines = self.conclusions()
        for name, found in self.by_type.items():
            lines += ["", f"== {name} ==", found.summary()]
        return printable("\n".join(lines))

    __str__ = summary

    def _words(self) -> str:
        first, many = self.common[0], self.together
        how = f"{first.n_permutations:,} permutations"
        if many.exact:
            how = f"all {many.n_labellings} ways to label the subjects"
        left_out = self.panel.n_subjects - first.panel.n_subjects
        among = f", {left_out} subjects without a count of some type left out" if left_out else ""
        return (
            f"Permutation test of all types together ({self.test}; Fisher's combination of the "
            f"tests of {', '.join(self.by_type)}; {how}{among})"
        )


def compare_types(
    panel: TypedPanel,
    by: str,
    compare: Callable[[str, PanelCounts], Comparison],
    test: Callable[[PanelCounts], PanelTest],
) -> TypeComparison:
    """Compare groups in every type.

    Parameters
    ----------
    panel : TypedPanel
    by : str
    compare : callable
        Compares the groups in one type, of which it is told the name.
    test : callable
        Makes the test of a plain panel.
    """
    from dataclasses import replace

    everywhere = panel[np.flatnonzero((panel.place >= 0).all(axis=0))]
    if not everywhere.n_subjects:
        raise PanelDataError(
            "no subject has counts of every type, so that the types cannot be tested together: "
            f"compare one type, panel.of_type({panel.event_types[0]!r})"
        )
    assert isinstance(everywhere, TypedPanel)
    order = everywhere.content_order()
    common = tuple(replace(test(part), order=order) for part in everywhere.parts)
    each = {name: compare(name, panel.of_type(name)) for name in panel.event_types}
    return TypeComparison(panel, by, each, common)


def _interval(row: Mapping[Hashable, Any]) -> str:
    return f"{100 * row['level']:.4g}% {row['low']:.2f} to {row['high']:.2f}"
