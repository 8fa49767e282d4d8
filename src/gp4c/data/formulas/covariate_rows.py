"""The covariates of a panel as a table for formulas, and back to the rows of the panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import check_choice, plural, unknown_name
from gp4c.data.formulas.formula import FormulaDesign
from gp4c.data.formulas.formula_text import parse_formula
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from gp4c.data.panel import PanelCounts
    from gp4c.data.subjects import Scalar

Floats = NDArray[np.float64]

#: singular values of the standardised columns below this share of the largest are zero
COLLINEAR = 1e-7
#: subjects named in a message
_NAMED = 5


def learn_design(
    panel: PanelCounts, formula: str, missing: str = "error"
) -> tuple[FormulaDesign, PanelCounts]:
    """Learn a formula from a panel.

    Parameters
    ----------
    missing : {"error", "drop"}
        What to do where a covariate is missing: an error that names the subjects, or leave those
        intervals out (all of a subject whose own covariate is missing).

    Returns
    -------
    FormulaDesign, PanelCounts
        The panel is the one to fit: that given, or without the intervals dropped.
    """
    check_choice("missing", missing, ("error", "drop"))
    names = parse_formula(formula).columns
    if missing == "drop":
        panel = _without_missing(panel, names)
    table = _table(panel, names)
    _check_complete(panel, table)
    design = FormulaDesign.learn(formula, table.frame, _shares(panel, table.per_interval))
    _check_columns(design.matrix(table.frame), design.names)
    return design, panel


def complete_rows(panel: PanelCounts, formula: str) -> PanelCounts:
    """The panel without the rows that lack a covariate of the formula."""
    return _without_missing(panel, parse_formula(formula).columns)


def subjects_with(panel: PanelCounts, names: Sequence[str]) -> PanelCounts:
    """The panel without the subjects that lack one of these columns of subjects.

    A column that is not one of subjects is left to whoever uses it.
    """
    table = panel.covariates
    asked = [name for name in names if name in table and table[name].isna().any()]
    known = table[asked].notna().all(axis=1).to_numpy(dtype=bool)
    if known.all():
        return panel
    columns = " or ".join(map(repr, asked))
    if not known.any():
        raise PanelDataError(f"every subject lacks {columns}; nothing is left")
    gone = panel.subjects[~known].tolist()
    note = f"{plural(len(gone), 'subject')} without {columns} left out: {_named(gone)}"
    kept = panel[np.flatnonzero(known)]
    return kept._like(notes=(*panel.notes, note))


def design_rows(design: FormulaDesign, panel: PanelCounts) -> Floats:
    """Centred columns of the regression for the rows of a panel, (n_intervals, p)."""
    table = _table(panel, tuple(design.columns))
    _check_complete(panel, table)
    return np.asarray(table.rows(panel, design.matrix(table.frame)))


def last_rows(panel: PanelCounts) -> NDArray[np.intp]:
    """Each subject's last row."""
    return np.searchsorted(panel.subject_index, np.arange(panel.n_subjects), side="right") - 1


def last_covariates(design: FormulaDesign, panel: PanelCounts) -> pd.DataFrame:
    """The columns of a formula at each subject's last row, (n_subjects, columns)."""
    table = _table(panel, tuple(design.columns))
    rows = last_rows(panel) if table.per_interval else np.arange(panel.n_subjects)
    return table.frame.iloc[rows].reset_index(drop=True)


@dataclass(frozen=True)
class _Table:
    """Columns of a formula, one row per subject or, if some vary within subjects, per interval."""

    frame: pd.DataFrame
    per_interval: bool

    def rows(self, panel: PanelCounts, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Values of the table's rows, for each row of the panel."""
        return values if self.per_interval else values[panel.subject_index]


def _table(panel: PanelCounts, names: Sequence[str]) -> _Table:
    import pandas as pd

    subjects, rows = panel.covariates, panel.interval_covariates
    for name in names:
        if name not in subjects and name not in rows:
            known = [*subjects.columns, *rows.columns]
            raise PanelDataError(f"there is no covariate {name!r}; {unknown_name(name, known)}")
    if all(name in subjects for name in names):
        return _Table(subjects[list(names)].reset_index(drop=True), False)
    spread = subjects.iloc[panel.subject_index].reset_index(drop=True)
    return _Table(pd.concat([spread, rows], axis=1)[list(names)], True)


def _check_complete(panel: PanelCounts, table: _Table) -> None:
    """Name the subjects without a covariate."""
    gaps = np.asarray(table.frame.isna().to_numpy(), dtype=bool)
    if not gaps.any():
        return
    column = int(np.argmax(gaps.any(axis=0)))
    owner = panel.subject_index[table.rows(panel, gaps[:, column])]
    who = panel.subjects[np.unique(owner)].tolist()
    raise PanelDataError(
        f"{table.frame.columns[column]!r} is missing for {plural(len(who), 'subject')}: "
        f'{_named(who)}; missing="drop" (--drop-missing) leaves them out'
    )


def _named(labels: list[Any]) -> str:
    """The first few labels."""
    return ", ".join([*map(repr, labels[:_NAMED]), *(["..."] if len(labels) > _NAMED else [])])


def _without_missing(panel: PanelCounts, names: Sequence[str]) -> PanelCounts:
    """The panel without the rows that lack a covariate."""
    table = _table(panel, names)
    complete = table.frame.notna().all(axis=1).to_numpy(dtype=bool)
    if complete.all():
        return panel
    rows = table.rows(panel, complete)
    if not rows.any():
        raise PanelDataError("no subject has all covariates of the formula")
    kept, index = np.unique(panel.subject_index[rows], return_inverse=True)
    between = panel._interval_covariates
    lost = panel.n_intervals - int(rows.sum())
    owners = np.unique(panel.subject_index[~rows])
    note = (
        f"{plural(lost, 'interval')} without covariates left out, of "
        f"{plural(len(owners), 'subject')}: {_named(panel.subjects[owners].tolist())}"
    )
    return panel._like(
        subjects=panel.subjects[kept],
        subject_index=index.astype(np.intp),
        start=panel.start[rows],
        stop=panel.stop[rows],
        count=panel.count[rows],
        exposure=panel.exposure[rows],
        service=None if panel.service is None else panel.service.take(kept),
        notes=(*panel.notes, note),
        _covariates=None if panel._covariates is None else panel._covariates.iloc[kept],
        _interval_covariates=None if between is None else between.iloc[np.flatnonzero(rows)],
    )


def _shares(panel: PanelCounts, per_interval: bool) -> Floats:
    """Each subject counts once, its rows in proportion to their length."""
    if not per_interval:
        return np.full(panel.n_subjects, 1.0 / panel.n_subjects)
    length = panel.stop - panel.start
    watched = np.bincount(panel.subject_index, length, panel.n_subjects)
    return np.asarray(length / watched[panel.subject_index] / panel.n_subjects)


def _check_columns(values: Floats, names: tuple[str, ...]) -> None:
    """Refuse columns that cannot be told from the curve or from one another."""
    spread = values.std(axis=0)
    size = np.abs(values).max(axis=0, initial=0.0)
    constant = spread <= 1e-12 * np.maximum(size, 1e-300)
    if constant.any():
        listed = ", ".join(repr(names[k]) for k in np.flatnonzero(constant))
        raise PanelDataError(
            f"{listed} is the same for everybody, so it has no effect to estimate; leave it out"
        )
    _, sizes, directions = np.linalg.svd(
        (values - values.mean(axis=0)) / spread, full_matrices=False
    )
    rank = int((sizes > COLLINEAR * sizes[0]).sum())
    if rank < len(names):
        involved = np.abs(directions[rank:] if rank < len(directions) else directions).max(axis=0)
        listed = ", ".join(repr(names[k]) for k in np.flatnonzero(involved > 1e-3))
        raise PanelDataError(
            f"the effects of {listed} cannot be told apart (the columns are collinear); "
            "leave one out"
        )
