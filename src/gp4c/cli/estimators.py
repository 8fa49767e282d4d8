"""Options that choose an estimator, and fitting it to a panel or to each group of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

#: subject bootstraps behind the bands of estimators without a posterior
_BOOTSTRAPS = 200
#: samples between two signs of life
_BATCH = 20
#: more groups than this are more likely a wrong column
_MOST_GROUPS = 12


class Estimator(StrEnum):
    """Estimators by their names on the command line."""

    GP4C = "gp4c"
    GP4CW = "gp4cw"
    LOCAL_EM = "local-em"
    NPMLE = "npmle"
    NPMPLE = "npmple"
    NPMPLGF = "npmplgf"
    HPP = "hpp"


class Effect(StrEnum):
    """Differences between subjects."""

    AUTO = "auto"
    NONE = "none"
    GAMMA = "gamma"
    WEIGHT = "weight"


_FITTING = "Fitting"
EstimatorOption: TypeAlias = Annotated[
    Estimator,
    typer.Option(
        "--model",
        help="gp4c: smooth rate; hpp: constant rate; npm...: step functions.",
        rich_help_panel=_FITTING,
    ),
]
EffectOption: TypeAlias = Annotated[
    Effect,
    typer.Option(
        help="Differences between subjects; auto lets the data decide.", rich_help_panel=_FITTING
    ),
]
ByOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Fit each group of subjects of this column.", rich_help_panel=_FITTING),
]
FormulaOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COVARIATES",
        help="Adjust for covariates, such as 'treatment + log(age)'; with --model gp4c.",
        rich_help_panel=_FITTING,
    ),
]
LevelOption: TypeAlias = Annotated[
    float, typer.Option(min=0.01, max=0.999, help="Level of the bands.", rich_help_panel=_FITTING)
]
SeedOption: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Seed of whatever is random.", rich_help_panel=_FITTING)
]
BootstrapOption: TypeAlias = Annotated[
    int,
    typer.Option(
        min=0,
        help="Subject bootstraps for the bands of estimators without a posterior.",
        rich_help_panel=_FITTING,
    ),
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON instead of text.")
]
QuietOption: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


@dataclass(frozen=True)
class FittedGroup:
    """One fit: the group's name (None for all subjects), its data and its model.

    Data that are read in parts are not kept.
    """

    name: str | None
    panel: PanelCounts | None
    model: Any


def make_estimator(
    estimator: Estimator, effect: Effect, seed: int, formula: str | None = None
) -> Any:
    """Build an estimator; what it cannot do is a usage error."""
    import gp4c

    if formula is not None and (estimator is not Estimator.GP4C or effect is Effect.WEIGHT):
        raise typer.BadParameter("--formula goes with --model gp4c and --effect auto, none, gamma")
    possible = _EFFECTS[estimator]
    if effect not in possible:
        names = ", ".join(possible)
        raise typer.BadParameter(f"--model {estimator} takes --effect {names}; not {effect}")
    kind = possible[effect]
    if estimator is Estimator.GP4C:
        return gp4c.GP4C(effect=kind, formula=formula, random_state=seed)
    if estimator is Estimator.GP4CW:
        return gp4c.GP4CW(random_state=seed)
    if estimator is Estimator.LOCAL_EM:
        return gp4c.LocalEM(random_state=seed)
    if estimator is Estimator.NPMLE:
        return gp4c.NPMLE(effect=kind)
    if estimator is Estimator.HPP:
        return gp4c.HomogeneousPoisson(effect=kind)
    return gp4c.NPMPLE() if estimator is Estimator.NPMPLE else gp4c.NPMPLGF()


# what each estimator makes of --effect; a gamma frailty of variance 0 is no frailty, so that
# estimators which can fit one need no choice
_EFFECTS: dict[Estimator, dict[Effect, str | None]] = {
    Estimator.GP4C: {
        Effect.AUTO: "auto", Effect.NONE: None, Effect.GAMMA: "gamma", Effect.WEIGHT: "weight"
    },
    Estimator.GP4CW: {Effect.AUTO: "weight", Effect.WEIGHT: "weight"},
    Estimator.LOCAL_EM: {Effect.AUTO: None, Effect.NONE: None},
    Estimator.NPMLE: {Effect.AUTO: "gamma", Effect.NONE: None, Effect.GAMMA: "gamma"},
    Estimator.NPMPLE: {Effect.AUTO: None, Effect.NONE: None},
    Estimator.NPMPLGF: {Effect.AUTO: "gamma", Effect.GAMMA: "gamma"},
    Estimator.HPP: {Effect.AUTO: "gamma", Effect.NONE: None, Effect.GAMMA: "gamma"},
}  # fmt: skip


def with_covariates(panel: PanelCounts, formula: str | None, drop: bool) -> PanelCounts:
    """The panel to fit: without what lacks a covariate, if that is to be dropped."""
    if formula is None or not drop:
        return panel
    import warnings

    from gp4c.data.covariate_rows import complete_rows
    from gp4c.exceptions import GP4CWarning

    kept = complete_rows(panel, formula)
    if kept is not panel:
        warnings.warn(kept.notes[-1], GP4CWarning, stacklevel=2)
    return kept


def groups_of(panel: PanelCounts, by: str | None) -> dict[str | None, PanelCounts]:
    """Split subjects by a covariate; all of them under None without one."""
    if by is None:
        return {None: panel}
    from gp4c.exceptions import PanelDataError

    covariates = panel.covariates
    if by not in covariates.columns:
        known = ", ".join(map(str, covariates.columns)) or "none"
        raise PanelDataError(f"there is no covariate {by!r} to group by; there are: {known}")
    values = list(covariates[by].dropna().unique())
    if not 1 <= len(values) <= _MOST_GROUPS:
        raise PanelDataError(
            f"{by!r} has {len(values)} different values; --by takes 1 to {_MOST_GROUPS} groups"
        )
    return {str(value): panel.where(**{by: value}) for value in sorted(values, key=str)}


def fit_groups(
    panel: PanelCounts,
    by: str | None,
    build: Callable[[], Any],
    *,
    bootstraps: int = _BOOTSTRAPS,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> list[FittedGroup]:
    """Fit a fresh estimator to each group, with bootstrap bands where it has no posterior."""
    groups = groups_of(panel, by)
    fitted = []
    for number, (name, part) in enumerate(groups.items(), start=1):
        what = f"{name or 'all subjects'} ({number} of {len(groups)})"
        say(f"fitting {what}")
        model = build().fit(part)
        if bootstraps and not hasattr(model, "posterior_") and not hasattr(model, "rate_interval"):
            for done in range(0, bootstraps, _BATCH):
                say(f"bootstrap of {what}: {done} of {bootstraps} samples")
                model.bootstrap(min(done + _BATCH, bootstraps), random_state=seed)
        fitted.append(FittedGroup(name, part, model))
    return fitted
