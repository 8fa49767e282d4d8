"""Options that choose an estimator, and fitting it to a panel or to each group of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gp4c.reporting.fit_result import FittedGroup

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.estimators.base import PanelEstimator

#: subject bootstraps behind the bands of estimators without a posterior
_BOOTSTRAPS = 200
#: samples between two signs of life
_BATCH = 20
#: more groups than this are more likely a wrong column
_MOST_GROUPS = 12


class Estimator(StrEnum):
    """The estimator that is fitted unless another one is named; the others name themselves."""

    GP4C = "gp4c"


def estimator_names() -> list[str]:
    """Every estimator that the command line can fit, by its name."""
    from gp4c.parts import estimators, load_parts

    load_parts()
    return sorted(one.name for one in estimators() if one.name)


def estimator_kind(name: str) -> type[PanelEstimator]:
    """The class of an estimator by its name, from this package or another."""
    from gp4c.parts import estimator_by_name, load_parts

    load_parts()
    found = estimator_by_name(name)
    if found is None:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(estimator_names())}")
    return found


#: panel of the help text
FITTING = "Fitting"
EstimatorOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        autocompletion=lambda: estimator_names(),
        callback=lambda name: name if name == Estimator.GP4C else estimator_kind(name).name,
        help="Smooth rate: gp4c, gp4cw, mixture, local-em; subgroups: classes; constant rate: "
        "hpp; growth: power-law, log-linear; step functions: npmle, npmple, npmplgf.",
        rich_help_panel=FITTING,
    ),
]
EffectOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="[auto|none|gamma|weight]",
        help="Differences between subjects; auto lets the data decide. Kinds that another package "
        "adds go by their name.",
        rich_help_panel=FITTING,
    ),
]
BurstsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="[auto|yes|no]",
        help="Whether events come in bursts; auto lets the data decide. Kinds that another "
        "package adds go by their name.",
        rich_help_panel=FITTING,
    ),
]
ByOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Fit each group of subjects of this column.", rich_help_panel=FITTING),
]
BasesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10,
        help="Number of basis curves of --model mixture; 2 if absent.",
        rich_help_panel=FITTING,
    ),
]
FormulaOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COVARIATES",
        help="Adjust for covariates, such as 'treatment + log(age)'.",
        rich_help_panel=FITTING,
    ),
]
TrendOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="[loglinear|power|auto]",
        help="A trend times the smooth curve; auto lets the data decide.",
        rich_help_panel=FITTING,
    ),
]
SeasonOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="[year|week|PERIOD]",
        help="A periodic factor on the calendar; a period is in the unit of time.",
        rich_help_panel=FITTING,
    ),
]
LevelOption: TypeAlias = Annotated[
    float, typer.Option(min=0.01, max=0.999, help="Level of the bands.", rich_help_panel=FITTING)
]
SeedOption: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Seed of the random numbers.", rich_help_panel=FITTING)
]
BootstrapOption: TypeAlias = Annotated[
    int,
    typer.Option(
        min=0,
        help="Bootstrap samples of subjects, for the bands of estimators without a posterior.",
        rich_help_panel=FITTING,
    ),
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON instead of text.")
]
QuietOption: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def with_covariates(
    panel: PanelCounts, formula: str | None, drop: bool, groups: Sequence[str | None] = ()
) -> PanelCounts:
    """The panel to use: without what lacks a covariate or a group, if that is to be dropped."""
    if not drop:
        return panel
    import warnings

    from gp4c.data.formulas.covariate_rows import complete_rows, subjects_with
    from gp4c.exceptions import GP4CWarning

    kept = subjects_with(panel, [name for name in groups if name is not None])
    kept = kept if formula is None else complete_rows(kept, formula)
    for note in kept.notes[len(panel.notes) :]:
        warnings.warn(note, GP4CWarning, stacklevel=2)
    return kept


def groups_of(panel: PanelCounts, by: str | None) -> dict[str | None, PanelCounts]:
    """Split subjects by a covariate; all of them under None without one."""
    if by is None:
        return {None: panel}
    from gp4c.data.checks import refuse_varying
    from gp4c.data.ordering import levels_in_order
    from gp4c.exceptions import PanelDataError

    covariates = panel.covariates
    if by not in covariates.columns:
        refuse_varying(panel, by)
        known = ", ".join(map(str, covariates.columns)) or "none"
        raise PanelDataError(f"there is no covariate {by!r} to group by; there are: {known}")
    values = levels_in_order(covariates[by])
    if not 1 <= len(values) <= _MOST_GROUPS:
        raise PanelDataError(
            f"{by!r} has {len(values)} different values; --by takes 1 to {_MOST_GROUPS} groups"
        )
    return {str(value): panel.where(**{by: value}) for value in values}


def fit_groups(
    panel: PanelCounts,
    by: str | None,
    build: Callable[[], PanelEstimator],
    *,
    bootstraps: int = _BOOTSTRAPS,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> list[FittedGroup]:
    """Fit a fresh estimator to each group, with bootstrap bands where it has no posterior."""
    from gp4c.analysis.groups.adjustment import group_fitter
    from gp4c.classical.bootstrap import BootstrapEstimator

    groups = groups_of(panel, by)
    fit = group_fitter(build, panel, by)
    fitted = []
    for number, (name, part) in enumerate(groups.items(), start=1):
        what = f"{name or 'all subjects'} ({number} of {len(groups)})"
        say(f"fitting {what}")
        model = fit(part)
        if bootstraps and isinstance(model, BootstrapEstimator) and not model.band_text():
            for done in range(0, bootstraps, _BATCH):
                say(f"bootstrap of {what}: {done} of {bootstraps} samples")
                model.bootstrap(min(done + _BATCH, bootstraps), random_state=seed)
        fitted.append(FittedGroup(name, part, model))
    return fitted
