"""``--covariate NAME=VALUE``: whose curve or forecast is wanted, of a fit with a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from gp4c.data.formulas.formula import FormulaDesign
    from gp4c.estimators.base import PanelEstimator
    from gp4c.estimators.regression.covariate_effects import CovariateEffects

CovariateOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--covariate",
        metavar="NAME=VALUE",
        help="For a fit with --formula: a value of a covariate; may be repeated. "
        "Those not named are at their average.",
    ),
]


def chosen_covariates(model: PanelEstimator, texts: list[str] | None) -> dict[str, object] | None:
    """Turn ``NAME=VALUE`` texts into values of the kind that the fit knows.

    Parameters
    ----------
    model : fitted estimator
    texts : list of str or None
        As given on the command line.

    Returns
    -------
    dict or None
        Name to number or level; None where nothing was chosen.
    """
    if not texts:
        return None
    from gp4c.exceptions import PanelDataError

    effects = effects_of(model)
    if effects is None:
        raise PanelDataError("--covariate needs a fit with covariates: gp4c fit --formula ...")
    chosen: dict[str, object] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if not name or not value:
            raise PanelDataError(
                f"--covariate takes NAME=VALUE, such as --covariate "
                f"{next(iter(effects.design.columns))}={_example(effects.design)}; found {text!r}"
            )
        if name in chosen:
            raise PanelDataError(f"--covariate has two values of {name!r}; it takes one")
        chosen[name] = _value(effects.design, name, value)
    return chosen


def say_averages(model: PanelEstimator, chosen: dict[str, object] | None) -> None:
    """Tell on stderr which covariates are at their average: nobody chose that."""
    effects = effects_of(model)
    left = [] if effects is None else [n for n in effects.design.columns if n not in (chosen or {})]
    if left:
        typer.echo(
            f"covariates at their average: {', '.join(left)} (--covariate {left[0]}=... sets one)",
            err=True,
        )


def effects_of(model: PanelEstimator) -> CovariateEffects | None:
    """The covariates of a fit; of one to several types of events those of the first type."""
    from gp4c.estimators.types.typed_answers import TypedCurves

    if isinstance(model, TypedCurves) and model.event_types_:
        return model.of_type(model.event_types_[0]).coefficients_
    return model.coefficients_


def _value(design: FormulaDesign, name: str, text: str) -> object:
    """A level of a category, or a number."""
    from gp4c.data.checks import unknown_name
    from gp4c.exceptions import PanelDataError

    if name not in design.columns:
        raise PanelDataError(
            f"the formula has no covariate {name!r}; {unknown_name(name, [*design.columns])}"
        )
    if name in design.levels:
        return _level(design, name, text)
    number = _number(text)
    if number is None and set(design.columns[name].tolist()) <= {0.0, 1.0}:
        number = {"true": 1.0, "false": 0.0}.get(text.lower())
    if number is None:
        raise PanelDataError(f"{name!r} was numeric in the fit; found {text!r}")
    return number


def _level(design: FormulaDesign, name: str, text: str) -> object:
    """The level that is written so, or is the same number."""
    from gp4c.exceptions import PanelDataError

    levels = design.levels[name]
    number = _number(text)
    for level in levels:
        if str(level) == text or (number is not None and _number(str(level)) == number):
            return level
    listed = ", ".join(map(str, levels))
    raise PanelDataError(f"{name!r} had no level {text!r} in the fit; its levels were {listed}")


def _number(text: str) -> float | None:
    """A finite number, or None."""
    import math

    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _example(design: FormulaDesign) -> str:
    name = next(iter(design.columns))
    return str(design.levels[name][-1]) if name in design.levels else "1"
