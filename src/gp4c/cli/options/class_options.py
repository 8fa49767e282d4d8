"""Options of latent classes: how many, and what makes one more likely."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from gp4c.cli.options.estimator_options import FITTING, Estimator

#: the estimator that --classes stands for
_MODEL = "classes"

ClassesOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="[auto|N]",
        help="Look for subgroups of subjects with their own curves: how many, or auto.",
        rich_help_panel=FITTING,
    ),
]
MembershipOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="COVARIATES",
        help="With --classes: covariates that make a class more likely, such as 'age + arm'.",
        rich_help_panel=FITTING,
    ),
]


def with_classes(
    model: str, classes: str | None, membership: str | None
) -> tuple[str, dict[str, object]]:
    """The estimator that is meant, and its arguments besides those of all estimators."""
    if classes is None and membership is None:
        return model, {}
    if model not in (Estimator.GP4C, _MODEL):
        raise typer.BadParameter(f"--classes and --membership go with --model {_MODEL}")
    number = classes or "auto"
    if number != "auto" and not number.isdecimal():
        raise typer.BadParameter(f"--classes takes a number or auto, not {number!r}")
    chosen: dict[str, object] = {"n_classes": number if number == "auto" else int(number)}
    return _MODEL, chosen | ({} if membership is None else {"membership": membership})
