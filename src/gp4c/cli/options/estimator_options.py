"""Options that choose an estimator, and fitting it to a panel or to each group of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gp4c.plain import number_or_text
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


class Effect(StrEnum):
    """Differences between subjects."""

    AUTO = "auto"
    NONE = "none"
    GAMMA = "gamma"
    WEIGHT = "weight"


_FITTING = "Fitting"
EstimatorOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        autocompletion=lambda: estimator_names(),
        callback=lambda name: name if name == Estimator.GP4C else _kind(name).name,
        help="Smooth rate: gp4c, gp4cw, mixture, local-em; subgroups: classes; constant rate: "
        "hpp; growth: power-law, log-linear; step functions: npmle, npmple, npmplgf.",
        rich_help_panel=_FITTING,
    ),
]
EffectOption: TypeAlias = Annotated[
    Effect,
    typer.Option(
        help="Differences between subjects; auto lets the data decide.", rich_help_panel=_FITTING
    ),
]
BurstsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="[auto|yes|no]",
        help="Whether events come in bursts; auto lets the data decide.",
        rich_help_panel=_FITTING,
    ),
]
ByOption: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Fit each group of subjects of this column.", rich_help_panel=_FITTING),
]
BasesOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=10,
        help="Number of basis curves of --model mixture; 2 if absent.",
        rich_help_panel=_FITTING,
    ),
]
FormulaOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COVARIATES",
        help="Adjust for covariates, such as 'treatment + log(age)'.",
        rich_help_panel=_FITTING,
    ),
]
TrendOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="[loglinear|power|auto]",
        help="A trend times the smooth curve; auto lets the data decide.",
        rich_help_panel=_FITTING,
    ),
]
SeasonOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="[year|week|PERIOD]",
        help="A periodic factor on the calendar; a period is in the unit of time.",
        rich_help_panel=_FITTING,
    ),
]
LevelOption: TypeAlias = Annotated[
    float, typer.Option(min=0.01, max=0.999, help="Level of the bands.", rich_help_panel=_FITTING)
]
SeedOption: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Seed of the random numbers.", rich_help_panel=_FITTING)
]
BootstrapOption: TypeAlias = Annotated[
    int,
    typer.Option(
        min=0,
        help="Bootstrap samples of subjects, for the bands of estimators without a posterior.",
        rich_help_panel=_FITTING,
    ),
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="Print the result as JSON instead of text.")
]
QuietOption: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


def make_estimator(
    estimator: str, effect: Effect, bursts: str, seed: int, formula: str | None = None,
    bases: int | None = None, trend: str | None = None, season: str | None = None,
    own: Mapping[str, object] | None = None,
) -> PanelEstimator:  # fmt: skip
    """Build an estimator; what it cannot do is a usage error. `own` are arguments of its kind."""
    from gp4c.model.laws import EFFECTS, LAWS

    kind = _kind(estimator)
    taken, free = kind().get_params().keys(), effect in EFFECTS and EFFECTS[effect].is_free
    if formula is not None and ("formula" not in taken or free):
        raise typer.BadParameter(
            "--formula goes with --model gp4c, power-law, log-linear and --effect auto, none, gamma"
        )
    if bases is not None and "n_bases" not in taken:
        raise typer.BadParameter(f"--bases goes with --model mixture, not {estimator}")
    _check_factors(trend, season, kind, free)
    laws = dict(kind.burst_options)
    if kind.has_posterior:  # any law of counts that was added
        laws |= {name: name for name in LAWS}
    arguments = {
        "effect": _argument(kind.effect_options, effect, "--effect", estimator),
        "bursts": _argument(laws, bursts, "--bursts", estimator),
        "formula": formula,
        "trend": trend,
        "season": None if season is None else number_or_text(season),
        "random_state": seed,
    } | ({} if bases is None else {"n_bases": bases})
    if free and arguments["bursts"] not in ("auto", False):
        raise typer.BadParameter(f"--bursts {bursts} does not go with --effect {effect}")
    known = {name: value for name, value in arguments.items() if name in taken}
    return kind(**known, **(own or {}))


def has_option(estimator: str, argument: str) -> bool:
    """Whether an estimator has an argument of this name."""
    return argument in _kind(estimator)().get_params()


def _check_factors(
    trend: str | None, season: str | None, kind: type[PanelEstimator], free: bool
) -> None:
    from gp4c.model.modulation import TRENDS

    if trend is not None and trend not in (*TRENDS, "auto"):
        raise typer.BadParameter(f"--trend takes {', '.join(TRENDS)}, auto; not {trend}")
    asked = trend is not None or season is not None
    if asked and ("trend" not in kind().get_params() or free):
        raise typer.BadParameter(
            "--trend and --season go with --model gp4c and --effect auto, none, gamma; power-law "
            "and log-linear are trends by themselves"
        )


def _kind(name: str) -> type[PanelEstimator]:
    """The class of an estimator by its name, from this package or another."""
    from gp4c.parts import estimator_by_name, load_parts

    load_parts()
    found = estimator_by_name(name)
    if found is None:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(estimator_names())}")
    return found


def _argument(
    options: Mapping[str, str | bool | None], asked: str, flag: str, estimator: str
) -> str | bool | None:
    """What a choice on the command line means to an estimator."""
    if asked not in options:
        names = ", ".join(options)
        raise typer.BadParameter(f"--model {estimator} takes {flag} {names}; not {asked}")
    return options[asked]


def with_covariates(panel: PanelCounts, formula: str | None, drop: bool) -> PanelCounts:
    """The panel to fit: without what lacks a covariate, if that is to be dropped."""
    if formula is None or not drop:
        return panel
    import warnings

    from gp4c.data.formulas.covariate_rows import complete_rows
    from gp4c.exceptions import GP4CWarning

    kept = complete_rows(panel, formula)
    if kept is not panel:
        warnings.warn(kept.notes[-1], GP4CWarning, stacklevel=2)
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
