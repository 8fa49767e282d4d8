"""Texts that a spreadsheet would take for formulas: guarded when written, restored when read.

A text that begins like a formula gets an apostrophe in front, and so does one that begins with
apostrophes before such a beginning: the rule can be undone. Numbers stay as they are.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from gp4c.plain import is_number

if TYPE_CHECKING:
    from gp4c.data.tables.columns import Column

#: beginnings of formulas, also in the wide characters that some spreadsheets accept
_BEGINNING = "[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_FORMULA = re.compile(f"'*{_BEGINNING}")
_GUARDED = re.compile(f"'+{_BEGINNING}")


Cell = TypeVar("Cell")


def guarded(value: Cell) -> Cell | str:
    """A cell that no spreadsheet runs: what is no text, and texts of numbers, stay as they are."""
    if isinstance(value, str) and _FORMULA.match(value) and not is_number(value):
        return f"'{value}"
    return value


def restored_names(names: list[str]) -> list[str]:
    """Names of columns without their guards, unless that would give two the same name."""
    plain = _restored(names)
    return plain if len(set(plain)) == len(plain) else names


def restored(column: Column) -> Column:
    """A column of texts without the guards of :func:`guarded`.

    A column with a formula that has no guard was written by somebody else and stays as it is.
    """
    import pandas as pd

    if not pd.api.types.is_string_dtype(column.dtype):
        return column
    codes, unique = pd.factorize(column)
    texts = [str(text) for text in unique]
    if not any(_GUARDED.match(text) for text in texts):
        return column
    plain = pd.Series(_restored(texts), dtype=column.dtype)
    return pd.Series(plain.array.take(codes, allow_fill=True))


def _restored(texts: list[str]) -> list[str]:
    if any(text[:1] != "'" and guarded(text) != text for text in texts):
        return texts
    return [text[1:] if _GUARDED.match(text) else text for text in texts]
