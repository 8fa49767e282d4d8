"""Texts of users made safe to show or read as numbers; rates and odds in words."""

from __future__ import annotations

import math
import re

#: what a terminal would obey instead of show: control characters but for the ends of lines and
#: tabs, changes of the direction of writing, other line ends, halves of characters
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    r"""The text with every control character written out, such as ``\x1b`` for an escape.

    Examples
    --------
    >>> from gp4c.plain import printable
    >>> print(printable("arm \x1b[31mred"))
    arm \x1b[31mred
    """
    return _COMMANDS.sub(lambda found: repr(found[0])[1:-1], text)


def singular(unit: str) -> str:
    """One of a unit: ``months`` gives ``month``."""
    return unit[:-1] if unit.endswith("s") else unit


def per(unit: str | None, usage: str | None = None) -> str:
    """What a rate is counted per: ``per month``, or ``per hour of usage``."""
    if usage:
        return f"per {singular(usage)} of usage"
    return f"per {singular(unit)}" if unit else "per unit of time"


def p_words(p_value: float, least: float = 0.001) -> str:
    """A p-value: ``p = 0.031``; below the least that is told apart ``p < 0.001``."""
    return f"p < {least:g}" if p_value < least else f"p = {p_value:.2g}"


def odds(nats: float) -> str:
    """Odds from a difference of log evidences: ``odds 1.1 to 1``, ``odds above 1000 to 1``."""
    if abs(nats) > math.log(1000.0):
        return "odds above 1000 to 1"
    return f"odds {math.exp(abs(nats)):.2g} to 1"


def number_or_text(text: str) -> float | str:
    """A number where a text is one; else the text, which may be a date or a name."""
    try:
        return float(text)
    except ValueError:
        return text


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    return not isinstance(number_or_text(text), str)
