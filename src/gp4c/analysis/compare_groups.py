"""Groups of subjects compared: their curves, and whether there is a difference at all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, overload

from gp4c.analysis.comparison import Comparison
from gp4c.analysis.groups.adjustment import fit_alike
from gp4c.analysis.groups.hypotheses import weigh_hypotheses
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.analysis.groups.ratios.centre_ratios import fit_centre_ratios
from gp4c.analysis.groups.ratios.regression_ratios import group_formula, with_groups
from gp4c.analysis.groups.small_groups import informed_fits, small_groups
from gp4c.analysis.type_comparison import TypeComparison, compare_types
from gp4c.data.formulas.covariate_rows import complete_rows
from gp4c.data.types.typed_panel import TypedPanel
from gp4c.estimators.gp4c import GP4C
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from gp4c.analysis.groups.adjustment import Adjustment
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.gp_base import GaussianProcessModel

#: rows up to which the factor model is fitted
MOST_ROWS = 20_000


@overload
def compare(  # type: ignore[overload-overlap]
    panel: TypedPanel, by: str, model: GaussianProcessModel | None = ..., *,
    strata: str | None = ..., blocks: str | None = ..., formula: str | None = ...,
    cluster: str | None = ..., reference: Hashable | None = ..., test: str = ...,
    weights: str = ..., scores: Mapping[Hashable, float] | None = ..., n_permutations: int = ...,
    bayes_factor: bool = ..., random_state: int = ..., progress: Callable[[str], None] | None = ...,
) -> TypeComparison: ...  # fmt: skip
@overload
def compare(
    panel: PanelCounts, by: str, model: GaussianProcessModel | None = ..., *,
    strata: str | None = ..., blocks: str | None = ..., formula: str | None = ...,
    cluster: str | None = ..., reference: Hashable | None = ..., test: str = ...,
    weights: str = ..., scores: Mapping[Hashable, float] | None = ..., n_permutations: int = ...,
    bayes_factor: bool = ..., random_state: int = ..., progress: Callable[[str], None] | None = ...,
) -> Comparison: ...  # fmt: skip
def compare(
    panel: PanelCounts,
    by: str,
    model: GaussianProcessModel | None = None,
    *,
    strata: str | None = None,
    blocks: str | None = None,
    formula: str | None = None,
    cluster: str | None = None,
    reference: Hashable | None = None,
    test: str = "level",
    weights: str = "even",
    scores: Mapping[Hashable, float] | None = None,
    n_permutations: int = 9999,
    bayes_factor: bool = True,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Comparison | TypeComparison:
    """Fit a curve to each group of subjects and compare them.

    Parameters
    ----------
    panel : PanelCounts
        With several types of events each type is compared, and all of them together.
    by : str
        Covariate of the subjects that says which group they are in.
    model : estimator, optional
        Fitted to each group; default :class:`gp4c.GP4C` with its defaults. It must give a
        posterior (GP4C, GP3).
    strata, blocks : str, optional
        Covariates of the subjects within which the test permutes. Each stratum (a centre) has its
        own pooled rate; blocks (of a randomisation) only keep labels together.
    formula : str, optional
        Covariates to adjust for, such as ``"age + log(baseline)"``. The test takes their part out
        of its scores, every fit has them, and a regression gives the ratio at equal covariates
        (:meth:`Comparison.adjusted`). Default: the formula of `model`.
    cluster : str, optional
        Covariate of the subjects that says in which centre they are. A regression then gives every
        centre a random effect above those of its subjects (:attr:`Comparison.centres`), and the
        ratio standard errors that are robust by centre (:meth:`Comparison.adjusted`). The test
        permutes whole centres where each has one group, and subjects within centres otherwise.
    reference : level of `by`, optional
        The group that the others are compared with; default the first in natural order, in which
        "5 mg" comes before "10 mg".
    test : {"level", "curve", "trend", "any"}
        What the permutation test looks for. "level": more events or fewer, as the log-rank test
        does. "curve": mean numbers of events so far that differ at some time, also of curves that
        part and meet again. "trend": rates that rise or fall with the groups' scores. "any": the
        smallest p-value of level, early, late, crossing (one group first more, then less) and
        curve, judged by its own permutations. Decide before looking.
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
    Comparison, or TypeComparison of a panel with types

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
    >>> panel = gp4c.load_dataset("bladder")
    >>> model = gp4c.GP4C(effect=None, bursts=False)
    >>> found = gp4c.compare(panel, by="treatment", model=model, n_permutations=999)
    >>> found.groups
    ['placebo', 'thiotepa']
    >>> 0.0 < found.p_value < 1.0
    True
    """
    say = progress or (lambda text: None)
    estimator = GP4C() if model is None else model
    how: dict[str, Any] = {
        "strata": strata, "blocks": blocks, "reference": reference, "test": test,
        "weights": weights, "scores": scores, "cluster": cluster,
        "n_permutations": n_permutations, "random_state": random_state,
    }  # fmt: skip
    panel, formula = _with_formula(estimator, panel, formula)

    def test_of(part: PanelCounts) -> PanelTest:
        return PanelTest.of(part, by, formula=formula, **how)

    def compared(part: PanelCounts, tell: Callable[[str], None]) -> Comparison:
        tell("permuting subjects")
        return _compared(estimator, test_of(part), formula, bayes_factor, tell)

    if isinstance(panel, TypedPanel):
        return compare_types(
            panel, by, lambda name, part: compared(part, lambda text: say(f"{name}: {text}")),
            test_of,
        )  # fmt: skip
    return compared(panel, say)


def _compared(
    estimator: GaussianProcessModel, tested: PanelTest, formula: str | None, bayes_factor: bool,
    say: Callable[[str], None],
) -> Comparison:  # fmt: skip
    """Fit the groups of a test."""
    panel, by = tested.panel, tested.groups.name
    groups, codes, adjustment = tested.groups.levels, tested.groups.codes, tested.adjustment
    shared = None if adjustment is None else adjustment.shared(panel)
    small, weighed = small_groups(estimator, tested), bayes_factor and tested.cluster is None
    everybody = None
    if weighed or small:
        say("fitting one curve for all groups")
        everybody = fit_alike(estimator, panel, adjustment, shared)
    pooled = everybody if weighed else None
    fits = {}
    for g, name in enumerate(groups):
        say(f"fitting {name} ({g + 1} of {len(groups)} groups)")
        fits[name] = fit_alike(estimator, panel[codes == g], adjustment, shared)
    regression = centres = None
    if tested.cluster is not None:
        centres = fit_centre_ratios(_of_centres(estimator), tested, say)
    elif adjustment is not None:
        say("fitting one shape with groups and covariates")
        regression = _regression(estimator, tested, adjustment)
    refused = _why_no_evidence(pooled, tested)
    hypotheses = None
    if isinstance(pooled, GP4C) and not refused:
        say("weighing one curve, one shape and separate curves")
        alone = [fit for fit in fits.values() if isinstance(fit, GP4C)]
        hypotheses = weigh_hypotheses(pooled, alone, panel, codes, adjustment)
    if small and everybody is not None:
        fits |= informed_fits(fits, small, everybody, tested, shared)
    return Comparison(
        panel, by, groups, fits, pooled, tested, hypotheses, tested.seed,
        _notes(adjustment, formula, by, refused), regression, centres,
    )  # fmt: skip


def _with_formula(
    model: GaussianProcessModel, panel: PanelCounts, formula: str | None
) -> tuple[PanelCounts, str | None]:
    """The panel to compare and the formula, which the model may have brought."""
    if not isinstance(model, GP4C):
        if formula is not None:
            raise PanelDataError(f"{type(model).__name__} has no covariates; compare with GP4C")
        return panel, None
    formula = model.formula if formula is None else formula
    if formula is not None and model.missing == "drop":
        panel = complete_rows(panel, formula)
    return panel, formula


def _regression(model: GaussianProcessModel, tested: PanelTest, adjustment: Adjustment) -> GP4C:
    """One shape with a factor for each group and the covariates."""
    assert isinstance(model, GP4C)
    fresh = type(model)().set_params(**model.get_params())
    fresh.formula = group_formula(tested.groups.name, adjustment.formula)
    return fresh.fit(with_groups(tested.panel, tested.groups))


def _of_centres(model: GaussianProcessModel) -> GP4C:
    """The model whose options a regression with effects of centres has."""
    if not isinstance(model, GP4C):
        raise PanelDataError(f"{type(model).__name__} has no covariates; compare with GP4C")
    if model.has_factors:
        raise PanelDataError(
            "cluster= does not go with a trend or a season yet; leave one out: without season=, "
            "curves over the calendar still follow the seasons"
        )
    return model


def _why_no_evidence(pooled: GaussianProcessModel | None, tested: PanelTest) -> str:
    """Why the three accounts are not weighed, if they were asked for or there are centres."""
    if tested.cluster is not None:
        return (
            "they take subjects as independent, also those of one centre, as the bands of the "
            "curves do; the test and the adjusted ratio do not"
        )
    if pooled is None:
        return ""
    if not pooled.has_evidence:
        return "the model takes the length scale at its best value (hyper='optimize')"
    if pooled.has_factors:
        return "the model has a trend or a season"
    if tested.panel.n_intervals > MOST_ROWS:
        return f"the panel has more than {MOST_ROWS:,} rows"
    return ""


def _notes(
    adjustment: Adjustment | None, formula: str | None, by: str, refused: str
) -> tuple[str, ...]:
    notes = []
    if adjustment is not None and adjustment.note:
        notes.append(adjustment.note)
    elif adjustment is None and formula is not None:
        notes.append(
            f"The formula {formula!r} has nothing but {by!r}, which makes the groups: nothing is "
            "adjusted for."
        )
    if refused:
        notes.append(f"No probabilities of one curve, one shape or separate curves: {refused}.")
    return tuple(notes)
