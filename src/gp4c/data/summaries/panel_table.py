"""Subjects, visits, events, rates and covariates by group: the first table of a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import few_digits, refuse_missing, refuse_varying, unknown_name
from gp4c.data.ordering import levels_in_order
from gp4c.data.summaries.panel_summary import subject_totals
from gp4c.data.summaries.table import Table
from gp4c.exceptions import PanelDataError
from gp4c.plain import per

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.panel import PanelCounts

Floats: TypeAlias = NDArray[np.float64]
#: name of a statistic -> its value
Cell: TypeAlias = dict[str, float]

#: name of the column of everybody
ALL = "all"
#: more groups, or levels of a covariate, are more likely a wrong column
MOST_GROUPS, MOST_LEVELS = 20, 12
LEVEL = 0.95
_RANGE, _DEVIATION = "median (range)", "mean (sd)"
ABOUT_RATES = (
    "Rates have 95% intervals from the differences between subjects (jackknife, t quantiles, "
    "logarithmic scale); Poisson intervals would be too narrow where subjects differ or events "
    "come in bursts."
)


@dataclass(frozen=True)
class Quantity:
    """One quantity of all groups.

    Attributes
    ----------
    quantity : str
    cells : tuple of dict
        Statistics of each group, by name.
    text : callable
        How a cell is written.
    detail : str
        Which statistics a cell shows.
    """

    quantity: str
    cells: tuple[Cell, ...]
    text: Callable[[Cell], str]
    detail: str = ""

    @property
    def label(self) -> str:
        """Quantity and statistics, as they are printed."""
        return f"{self.quantity}, {self.detail}" if self.detail else self.quantity


def tabulate(
    panel: PanelCounts,
    by: str | None = None,
    reference: object = None,
    types: Mapping[str, PanelCounts] = MappingProxyType({}),
    codes_of: Collection[str] = (),
) -> Table:
    """Describe each group of subjects, and all of them; the events of each type besides.

    Columns of codes, `codes_of`, have no mean.
    """
    codes, names = group_codes(panel, by, reference)
    everybody = np.ones(panel.n_subjects, dtype=bool)
    masks = [*(codes == k for k in range(len(names))), everybody] if by else [everybody]
    events = [row for name, part in types.items() for row in _counted(part, masks, f", {name}")]
    rows = [*_observed(panel, masks), *_counted(panel, masks), *events]
    rows += _described(panel, by, masks, codes_of)
    between = panel._interval_covariates
    varying = () if between is None else tuple(map(str, between.columns))
    left_out = (
        (f"Not in the table, as they vary within subjects: {', '.join(varying)}.",)
        if varying
        else ()
    )
    title = f"Panel by {by}" if by else "Panel"
    taken = ("quantity", "statistic", ALL)
    groups = (*(f"{by}: {g}" if str(g) in taken else str(g) for g in names), ALL)
    texts = tuple((row.label, *map(row.text, row.cells)) for row in rows)
    notes = (ABOUT_RATES, *left_out)
    return Table(title, ("", *groups), texts, notes, numbers=_numbers(rows, groups))


def _numbers(rows: list[Quantity], groups: tuple[str, ...]) -> pd.DataFrame:
    """One row per quantity and statistic (n, median, low, high, ...), one column per group."""
    import pandas as pd

    lines = [
        [row.quantity, name, *(cell[name] for cell in row.cells)]
        for row in rows
        for name in row.cells[0]
    ]
    return pd.DataFrame(lines, columns=["quantity", "statistic", *groups])


def group_codes(
    panel: PanelCounts, by: str | None, reference: object = None
) -> tuple[NDArray[np.intp], list[object]]:
    """Group of each subject, and the groups' names: the reference, then in natural order."""
    if by is None:
        return np.zeros(panel.n_subjects, dtype=np.intp), []

    table = panel.covariates
    if by not in table.columns:
        refuse_varying(panel, by)
        raise PanelDataError(
            f"there is no covariate {by!r} to group by; {unknown_name(by, list(table.columns))}"
        )
    refuse_missing(by, table.index[table[by].isna()].tolist())
    column = table[by]
    levels = levels_in_order(column)
    if len(levels) > MOST_GROUPS:
        raise PanelDataError(
            f"{by!r} has {len(levels)} different values; a table has at most {MOST_GROUPS} groups"
        )
    if reference is not None:
        first = [level for level in levels if str(level) == str(reference)]
        if not first:
            raise PanelDataError(f"{by!r} has no level {reference!r}; it has {levels}")
        levels = [*first, *(level for level in levels if level not in first)]
    place = {level: k for k, level in enumerate(levels)}
    return np.array([place[value] for value in column], dtype=np.intp), levels


# -- what was observed ----------------------------------------------------------------------


def _observed(panel: PanelCounts, masks: list[NDArray[np.bool_]]) -> Iterator[Quantity]:
    index, n = panel.subject_index, panel.n_subjects
    length = panel.stop - panel.start
    followed = np.asarray(np.bincount(index, length, n), dtype=np.float64)
    visits = np.asarray(np.bincount(index, minlength=n), dtype=np.float64)
    risk = subject_totals(panel)[1]
    unit = f" ({panel.time_unit})" if panel.time_unit else ""

    row = partial(_row, masks)
    yield row("subjects", lambda m: {"n": float(m.sum())}, _count)
    yield row(f"follow-up, total{unit}", lambda m: {"total": followed[m].sum()}, _amount)
    yield row(f"follow-up per subject{unit}", lambda m: spread(followed[m]), _median, _RANGE)
    if not np.array_equal(followed, risk):
        name = "exposure times length, total" if panel.usage is None else f"{panel.usage}, total"
        yield row(name, lambda m: {"total": risk[m].sum()}, _amount)
    yield row("intervals per subject", lambda m: spread(visits[m]), _median, _RANGE)
    yield row(f"length of intervals{unit}", lambda m: spread(length[m[index]]), _median, _RANGE)


def _counted(
    panel: PanelCounts, masks: list[NDArray[np.bool_]], of: str = ""
) -> Iterator[Quantity]:
    totals, risk = subject_totals(panel)
    row = partial(_row, masks)
    yield row(f"events{of}", lambda m: {"n": totals[m].sum()}, _count)
    yield row(f"events per subject{of}", lambda m: moments(totals[m]), _mean, _DEVIATION)
    yield row(f"subjects without events{of}", lambda m: share(totals[m] == 0), _share)
    rate = f"rate {per(panel.time_unit, panel.usage)}{of}"
    yield row(rate, lambda m: rate_interval(totals[m], risk[m]), _estimate, "95% interval")


def _row(
    masks: list[NDArray[np.bool_]],
    name: str,
    cell: Callable[[NDArray[np.bool_]], Cell],
    text: Callable[[Cell], str],
    detail: str = "",
) -> Quantity:
    """A quantity of each group, and of everybody."""
    return Quantity(name, tuple(cell(mask) for mask in masks), text, detail)


def rate_interval(totals: Floats, risk: Floats, level: float = LEVEL) -> Cell:
    r"""Rate of a group and an interval that any differences between subjects leave right.

    .. math:: \hat\rho = \frac{\sum m_k}{\sum R_k}, \qquad
              s^2 = \frac{K - 1}{K} \sum_k \Bigl(\frac{m_k - \hat\rho R_k}{\sum R - R_k}\Bigr)^2 ,

    the jackknife's variance of ρ̂ over subjects; the interval is ρ̂ exp(± t s/ρ̂) with Student's
    quantile of K − 1 degrees of freedom. Not defined for one subject, nor without events.
    """
    from scipy.special import stdtrit

    n, time = len(totals), risk.sum()
    rate = float(totals.sum() / time)
    if n < 2 or rate == 0:
        return {"estimate": rate, "low": np.nan, "high": np.nan}
    change = (totals - rate * risk) / (time - risk)
    error = np.sqrt((n - 1) / n * (change**2).sum())
    factor = np.exp(stdtrit(n - 1, (1 + level) / 2) * error / rate)
    return {"estimate": rate, "low": float(rate / factor), "high": float(rate * factor)}


def spread(values: Floats) -> Cell:
    """Median and range."""
    return {
        "median": float(np.median(values)),
        "low": float(values.min()),
        "high": float(values.max()),
    }


def moments(values: Floats) -> Cell:
    """Mean and standard deviation of the values that are known."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {"mean": np.nan, "sd": np.nan}
    return {
        "mean": float(known.mean()),
        "sd": float(known.std(ddof=1)) if len(known) > 1 else np.nan,
    }


def share(chosen: NDArray[np.bool_]) -> Cell:
    """How many, and which share."""
    return {"n": float(chosen.sum()), "share": float(chosen.mean())}


# -- covariates -----------------------------------------------------------------------------


def _described(
    panel: PanelCounts,
    by: str | None,
    masks: list[NDArray[np.bool_]],
    codes_of: Collection[str],
) -> Iterator[Quantity]:
    table = panel.covariates
    for name in table.columns:
        if name != by:
            column = table[name].astype("category") if name in codes_of else table[name]
            yield from _covariate(str(name), column, masks)


def _covariate(
    name: str, column: pd.Series[Any], masks: list[NDArray[np.bool_]]
) -> Iterator[Quantity]:
    """Mean and deviation of a number; counts of the levels of anything else."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    missing = column.isna().to_numpy(dtype=bool)
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        values: Floats = np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        yield Quantity(name, tuple(moments(values[m]) for m in masks), _mean, _DEVIATION)
    else:
        texts = column.astype(str).to_numpy()
        levels = [str(level) for level in levels_in_order(column)]
        if len(levels) > MOST_LEVELS:
            cells = tuple({"n": float(len(set(texts[m & ~missing])))} for m in masks)
            yield Quantity(f"{name}, different values", cells, _count)
            levels = []
        for level in levels:
            chosen = (texts == level) & ~missing
            yield Quantity(f"{name}: {level}", tuple(share(chosen[m]) for m in masks), _share)
    if missing.any():
        yield Quantity(f"{name}, missing", tuple(share(missing[m]) for m in masks), _share)


# -- how cells are written ------------------------------------------------------------------


def _count(cell: Cell) -> str:
    return f"{cell['n']:,.0f}"


def _amount(cell: Cell) -> str:
    total = cell["total"]
    return f"{total:,.0f}" if total >= 1000 else few_digits(total)


def _median(cell: Cell) -> str:
    return f"{few_digits(cell['median'])} ({few_digits(cell['low'])} to {few_digits(cell['high'])})"


def _mean(cell: Cell) -> str:
    if np.isnan(cell["mean"]):
        return "–"
    deviation = "–" if np.isnan(cell["sd"]) else f"{cell['sd']:.3g}"
    return f"{cell['mean']:.3g} ({deviation})"


def _share(cell: Cell) -> str:
    return f"{cell['n']:,.0f} ({100 * cell['share']:.0f}%)"


def _estimate(cell: Cell) -> str:
    if np.isnan(cell["low"]):
        return f"{cell['estimate']:.3g} (–)"
    return f"{cell['estimate']:.3g} ({cell['low']:.3g} to {cell['high']:.3g})"
