"""Groups of subjects compared: their curves, and whether there is a difference at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.analysis.comparison import Comparison
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

TESTS = ("level", "curve")


def compare(
    panel: PanelCounts,
    by: str,
    model: Any = None,
    *,
    reference: Any = None,
    test: str = "level",
    n_permutations: int = 9999,
    bayes_factor: bool = True,
    random_state: int = 0,
) -> Comparison:
    """Fit a curve to each group of subjects and compare them.

    Parameters
    ----------
    panel : PanelCounts
    by : str
        Covariate of the subjects that says which group they are in.
    model : estimator, optional
        Fitted to each group; default :class:`gp4c.GP4C` with its defaults. It must give a
        posterior (GP4C, GP3).
    reference : level of `by`, optional
        The group that the others are compared with; default the first in sorted order.
    test : {"level", "curve"}
        What the permutation test looks for. "level": more events or fewer, as the log-rank test
        does. "curve": also another course over time, such as curves that cross, at the price of
        some power against a mere factor. Decide before looking.
    n_permutations : int
    bayes_factor : bool
        Also fit one curve to everybody, for :attr:`Comparison.log_bayes_factor`.
    random_state : int
        Seed of permutations and draws.

    Returns
    -------
    Comparison

    Notes
    -----
    The p-value belongs to the hypothesis that the groups have one curve in common. Subjects are
    permuted, so dependence within subjects does no harm. It is exact if the groups differ in
    nothing else, follow-up and visits included, as in a randomised trial with the same visit
    plan. If follow-up or visits depend on the group but not on the events, the studentised
    statistic keeps the level approximately; if they depend on the events, neither the test nor
    the curves can be trusted (:mod:`gp4c.analysis.permutation`).

    Examples
    --------
    >>> import gp4c
    >>> from gp4c.analysis.compare_groups import compare
    >>> panel = gp4c.load_dataset("bladder")
    >>> found = compare(panel, by="treatment", n_permutations=999)
    >>> found.groups
    ['placebo', 'thiotepa']
    >>> 0.0 < found.p_value < 1.0
    True
    """
    if test not in TESTS:
        raise ValueError(f"test must be 'level' or 'curve', not {test!r}")
    codes, groups = _groups(panel, by, reference)
    estimator = _default_model() if model is None else model
    parts = {name: panel[codes == g] for g, name in enumerate(groups)}
    pooled = _fit(estimator, panel) if bayes_factor else None
    fits = {name: _fit(estimator, part) for name, part in parts.items()}
    return Comparison(
        panel, by, groups, fits, pooled, codes, test, n_permutations, random_state,
        _notes(estimator, pooled),
    )  # fmt: skip


def _groups(panel: PanelCounts, by: str, reference: Any) -> tuple[NDArray[np.intp], list[Any]]:
    """Group of each subject and the groups' names, the reference first."""
    import pandas as pd

    table = panel.covariates
    if by not in table.columns:
        there = ", ".join(map(str, table.columns)) or "none"
        raise PanelDataError(f"there is no covariate {by!r} of subjects; there are: {there}")
    column = table[by]
    if column.isna().any():
        missing = column.index[column.isna()].tolist()
        raise PanelDataError(
            f"{by!r} is missing for subject {missing[0]!r} ({len(missing)} in all)"
        )
    codes, levels = pd.factorize(column, sort=True)
    names = list(levels.tolist() if hasattr(levels, "tolist") else levels)
    if len(names) < 2:
        raise PanelDataError(f"{by!r} has one level only, {names[0]!r}: nothing to compare")
    if len(names) > 20:
        raise PanelDataError(f"{by!r} has {len(names)} levels; at most 20 groups are compared")
    if reference is not None:
        if reference not in names:
            raise PanelDataError(f"{by!r} has no level {reference!r}; it has {names}")
        first = names.index(reference)
        order = [first, *(k for k in range(len(names)) if k != first)]
        codes = np.argsort(order)[codes]
        names = [names[k] for k in order]
    return np.asarray(codes, dtype=np.intp), names


def _default_model() -> Any:
    from gp4c.estimators.gp4c import GP4C

    return GP4C()


def _fit(model: Any, panel: PanelCounts) -> Any:
    fresh = type(model)(**model.get_params()).fit(panel)
    if not fresh.has_posterior:
        raise TypeError(f"{type(model).__name__} gives no posterior; compare with GP4C")
    return fresh


def _notes(model: Any, pooled: Any) -> tuple[str, ...]:
    notes = []
    if pooled is not None and not pooled.has_evidence:
        notes.append("No Bayes factor: the model maximises its hyper-parameters.")
    if getattr(model, "formula", None) is not None:
        notes.append(
            "Each curve is that of its group's own average covariates: the groups are compared as "
            "they are, not at equal covariates (for that, put the group into the formula)."
        )
    return tuple(notes)
