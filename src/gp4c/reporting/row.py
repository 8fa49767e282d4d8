"""One line of a summary."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of a summary: words, and the numbers behind them."""

    section: str
    quantity: str
    text: str
    value: float | int | bool | str | None = None
    low: float | None = None
    high: float | None = None
