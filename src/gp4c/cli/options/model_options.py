"""Which model is fitted: options of every command that fits, and what estimator they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from gp4c.cli.options.class_options import ClassesOption, MembershipOption, with_classes
from gp4c.cli.options.estimator_options import (
    BasesOption,
    BurstsOption,
    EffectOption,
    Estimator,
    EstimatorOption,
    FormulaOption,
    SeasonOption,
    TrendOption,
    estimator_kind,
)
from gp4c.cli.options.grouped import grouped
from gp4c.plain import number_or_text

if TYPE_CHECKING:
    from gp4c.estimators.base import PanelEstimator

Choices = Mapping[str, str | bool | None]


@dataclass(frozen=True)
class ModelOptions:
    """An estimator and its laws, as asked for on the command line."""

    model: EstimatorOption = Estimator.GP4C
    effect: EffectOption = "auto"
    bursts: BurstsOption = "auto"
    formula: FormulaOption = None
    bases: BasesOption = None
    trend: TrendOption = None
    season: SeasonOption = None
    classes: ClassesOption = None
    membership: MembershipOption = None

    @property
    def name(self) -> str:
        """The estimator that is meant."""
        return with_classes(self.model, self.classes, self.membership)[0]

    def build(self, seed: int) -> PanelEstimator:
        """Build the estimator; what it cannot do is a usage error."""
        name, own = with_classes(self.model, self.classes, self.membership)
        kind = estimator_kind(name)
        effects, laws = _laws_of(kind)
        arguments = {
            "effect": _chosen(effects, self.effect, "--effect", name),
            "bursts": _chosen(laws, self.bursts, "--bursts", name),
            "formula": self.formula,
            "trend": self.trend,
            "season": None if self.season is None else number_or_text(self.season),
            "random_state": seed,
        } | ({} if self.bases is None else {"n_bases": self.bases})
        self._check(kind, arguments["bursts"])
        taken = kind().get_params().keys()
        known = {name: value for name, value in arguments.items() if name in taken}
        return kind(**known, **own)

    def _check(self, kind: type[PanelEstimator], bursts: object) -> None:
        """Refuse options that do not go together."""
        from gp4c.model.laws import EFFECTS
        from gp4c.model.modulation import TRENDS

        taken = kind().get_params().keys()
        free = self.effect in EFFECTS and EFFECTS[self.effect].is_free
        if self.formula is not None and ("formula" not in taken or free):
            raise typer.BadParameter(
                "--formula goes with --model gp4c, power-law, log-linear and --effect auto, none, "
                "gamma"
            )
        if self.bases is not None and "n_bases" not in taken:
            raise typer.BadParameter(f"--bases goes with --model mixture, not {kind.name}")
        if self.trend is not None and self.trend not in (*TRENDS, "auto"):
            raise typer.BadParameter(f"--trend takes {', '.join(TRENDS)}, auto; not {self.trend}")
        asked = self.trend is not None or self.season is not None
        if asked and ("trend" not in taken or free):
            raise typer.BadParameter(
                "--trend and --season go with --model gp4c and --effect auto, none, gamma; "
                "power-law and log-linear are trends by themselves"
            )
        if free and bursts not in ("auto", False):
            raise typer.BadParameter(
                f"--bursts {self.bursts} does not go with --effect {self.effect}"
            )


#: gives a command every option of :class:`ModelOptions`, together as ``model``
takes_model = grouped("model", ModelOptions)


def _laws_of(kind: type[PanelEstimator]) -> tuple[Choices, Choices]:
    """Values of --effect and --bursts; a posterior under any law takes those that were added."""
    from gp4c.model.laws import EFFECTS, LAWS

    effects: Choices = kind.effect_options
    laws: Choices = kind.burst_options
    if kind.has_posterior and "yes" in kind.burst_options:
        added = {name: name for name, law in EFFECTS.items() if name and not law.is_free}
        effects, laws = {**effects, **added}, {**laws, **{name: name for name in LAWS}}
    return effects, laws


def _chosen(options: Choices, asked: str, flag: str, estimator: str) -> str | bool | None:
    """What a choice on the command line means to an estimator."""
    if asked not in options:
        names = ", ".join(options)
        raise typer.BadParameter(f"--model {estimator} takes {flag} {names}; not {asked}")
    return options[asked]
