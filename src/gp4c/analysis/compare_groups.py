"""Groups of subjects compared: their curves, and whether there is a difference at all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

from gp4c.analysis.comparison import Comparison
from gp4c.analysis.groups.hypotheses import weigh_hypotheses
from gp4c.analysis.groups.panel_test import PanelTest

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

#: rows up to which the factor model is fitted
MOST_ROWS = 20_000


def compare(
    panel: PanelCounts,
    by: str,
    model: Any = None,
    *,
    strata: str | None = None,
    blocks: str | None = None,
    reference: Hashable | None = None,
    test: str = "level",
    weights: str = "even",
    scores: Mapping[Hashable, float] | None = None,
    n_permutations: int = 9999,
    bayes_factor: bool = True,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
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
    strata, blocks : str, optional
        Covariates of the subjects within which the test permutes. Each stratum (a centre) has its
        own pooled rate; blocks (of a randomisation) only keep labels together.
    reference : level of `by`, optional
        The group that the others are compared with; default the first in natural order, in which
        "5 mg" comes before "10 mg".
    test : {"level", "curve", "trend", "any"}
        What the permutation test looks for. "level": more events or fewer, as the log-rank test
        does. "curve": mean numbers of events so far that differ at some time, also of curves that
        part and meet again. "trend": rates that rise or fall with the groups' scores. "any": the
        largest of level, early, late, crossing (one group first more, then less) and curve, at
        the price of asking five questions. Decide
        before looking.
    weights : {"even", "early", "late"}
        When differences count, for "level" and "trend".
    scores : dict, optional
        Score of each group for "trend"; default the numbers in the groups' names (0 for a single
        one without), or the ranks of an ordered category.
    n_permutations : int
        All labellings are taken instead where they are at most this many, or 10,000.
    bayes_factor : bool
        Also weigh three accounts of the curves, for :attr:`Comparison.probabilities`.
    random_state : int
        Seed of permutations and draws.
    progress : callable, optional
        Called with a few words before each step.

    Returns
    -------
    Comparison

    Notes
    -----
    The p-value belongs to the hypothesis that the groups have one curve in common (in each
    stratum). Subjects are permuted, so dependence within subjects does no harm. It is exact if the
    groups differ in nothing else, follow-up and visits included, as in a randomised trial with the
    same visit plan. If follow-up or visits depend on the group but not on the events, the
    studentised statistic keeps the level approximately; if they depend on the events, neither the
    test nor the curves can be trusted (:mod:`gp4c.analysis.permutation`).

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
    say = progress or (lambda text: None)
    say("permuting subjects")
    tested = PanelTest.of(
        panel, by, strata=strata, blocks=blocks, reference=reference, test=test, weights=weights,
        scores=scores, n_permutations=n_permutations, random_state=random_state,
    )  # fmt: skip
    groups, codes = tested.groups.levels, tested.groups.codes
    estimator = _default_model() if model is None else model
    pooled = None
    if bayes_factor:
        say("fitting one curve for all groups")
        pooled = _fit(estimator, panel)
    fits = {}
    for g, name in enumerate(groups):
        say(f"fitting {name} ({g + 1} of {len(groups)} groups)")
        fits[name] = _fit(estimator, panel[codes == g])
    refused = "" if pooled is None else _why_no_evidence(pooled, panel)
    hypotheses = None
    if pooled is not None and not refused:
        say("weighing one curve, one shape and separate curves")
        hypotheses = weigh_hypotheses(pooled, list(fits.values()), panel, codes)
    return Comparison(
        panel, by, groups, fits, pooled, tested, hypotheses, random_state,
        _notes(estimator, refused),
    )  # fmt: skip


def _default_model() -> Any:
    from gp4c.estimators.gp4c import GP4C

    return GP4C()


def _fit(model: Any, panel: PanelCounts) -> Any:
    fresh = type(model)(**model.get_params()).fit(panel)
    if not fresh.has_posterior:
        raise TypeError(f"{type(model).__name__} gives no posterior; compare with GP4C")
    return fresh


def _why_no_evidence(pooled: Any, panel: PanelCounts) -> str:
    """Why the three accounts are not weighed, if they are not."""
    if not pooled.has_evidence:
        return "the model maximises its hyper-parameters"
    if pooled.get_params().get("formula") is not None:
        return "the model has covariates"
    if pooled.has_factors:
        return "the model has a trend or a season"
    if panel.n_intervals > MOST_ROWS:
        return f"the panel has more than {MOST_ROWS:,} rows"
    return ""


def _notes(model: Any, refused: str) -> tuple[str, ...]:
    notes = [f"No probabilities of one curve, one shape or separate curves: {refused}."]
    if model.get_params().get("formula") is not None:
        notes.append(
            "Each curve is that of its group's own average covariates: the groups are compared as "
            "they are, not at equal covariates (for that, put the group into the formula)."
        )
    return tuple(notes if refused else notes[1:])
