"""Options that several commands share, together in one argument."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Command: TypeAlias = Callable[..., None]


def grouped(argument: str, kind: type[DataclassInstance]) -> Callable[[Command], Command]:
    """Give a command every option of a dataclass, in the place of one argument.

    Parameters
    ----------
    argument : str
        The command takes the options together under this name.
    kind : type
        A dataclass whose fields are annotated for typer.
    """

    def expand(command: Command) -> Command:
        types = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            plain = one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[one.name])
            parameters += _parameters(kind) if one.name == argument else [plain]

        @functools.wraps(command)
        def run(**given: object) -> None:
            together = {field.name: given.pop(field.name) for field in fields(kind)}
            command(**{argument: kind(**together)}, **given)

        signature = inspect.Signature(parameters)
        run.__signature__ = signature  # type: ignore[attr-defined]
        run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
        return run

    return expand


def _parameters(kind: type[DataclassInstance]) -> list[inspect.Parameter]:
    types = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default,
            annotation=types[field.name],
        )
        for field in fields(kind)
    ]  # fmt: skip
