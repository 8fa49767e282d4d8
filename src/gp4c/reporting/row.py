"""One line of a summary."""

from __future__ import annotations

from dataclasses import dataclass

#: what stands on the fold with the details
FOLD = "Details of the computation"


@dataclass(frozen=True)
class Row:
    """One line of a summary: words, and the numbers behind them.

    A `detail` is for those who know the method: tables and JSON have it, printed summaries leave it
    out, and pages fold it away.
    """

    section: str
    quantity: str
    text: str
    value: float | int | bool | str | None = None
    low: float | None = None
    high: float | None = None
    detail: bool = False
