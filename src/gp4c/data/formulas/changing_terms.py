"""Terms of a formula whose effect changes over time: ``over_time(arm)``."""

from __future__ import annotations

import re

from gp4c.exceptions import PanelDataError

_CALL = "over_time("
_NO_TERM = re.compile(r"[+*:/^~|-]")


def changing_terms(formula: str) -> tuple[str, tuple[str, ...]]:
    """The formula with the terms inside ``over_time()`` as they are, and these terms.

    Examples
    --------
    >>> changing_terms("age + over_time(arm)")
    ('age + arm', ('arm',))
    """
    if _CALL not in formula:
        return formula, ()
    parts, found = [], []
    for part in _summands(formula):
        text = part.strip()
        if _CALL in text:
            text = _inside(text, formula)
            found.append(text)
        parts.append(text)
    return " + ".join(parts), tuple(dict.fromkeys(found))


def refuse_changing(formula: str, who: str) -> None:
    """Raise where a formula has effects that change over time."""
    if _CALL in formula:
        raise PanelDataError(f"over_time() goes with GP4C; {who} has constant effects alone")


def _summands(formula: str) -> list[str]:
    """Parts between plus signs that are inside no parentheses."""
    parts, depth = [""], 0
    for sign in formula:
        depth += (sign == "(") - (sign == ")")
        if sign == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def _inside(text: str, formula: str) -> str:
    """The term inside ``over_time()``, which must be a whole summand."""
    inner = text[len(_CALL) : -1].strip()
    depths, depth = [], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        depths.append(depth)
    whole = text.startswith(_CALL) and text.endswith(")") and 0 not in depths[len(_CALL) : -1]
    outside = re.sub(r"\(.*\)", "", inner)
    if not whole or not inner or _CALL in inner or _NO_TERM.search(outside):
        raise PanelDataError(
            f"over_time() takes one covariate and stands between plus signs, such as 'age + "
            f"over_time(arm)'; found {text!r} in {formula!r}"
        )
    return inner
