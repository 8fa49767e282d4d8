"""Which way a fit goes: by its rows, or by sums that stand for very many (models/big.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gp4c.data.distinct import MOST_DISTINCT
from gp4c.data.panel import PanelCounts

if TYPE_CHECKING:
    from gp4c.data.events import RecurrentEvents

#: rows in memory from which even few different intervals go the way of sums: per subject and
#: iteration they cost more than nodes
MOST_ROWS = 200_000
#: different intervals up to which models that cannot do with sums are fitted to the rows
MOST_BY_ROW = 10_000
#: what sums cannot do: attributes of a model, and what they must be
SUPPORTED = {"optimizer": "natural", "method": "vi", "formula": None}


def is_large(model: Any, panel: PanelCounts, events: RecurrentEvents | None = None) -> bool:
    """Whether a panel in memory goes the way of sums: so many rows or different intervals."""
    most = MOST_DISTINCT if next(unsupported(model), None) is None else MOST_BY_ROW
    if events is not None or panel.n_intervals <= most:
        return False
    return panel.n_intervals > MOST_ROWS or len(panel.distinct()) > most


def unsupported(model: Any) -> Iterator[str]:
    """Attributes of a model that sums do not serve."""
    return (name for name, usual in SUPPORTED.items() if getattr(model, name, usual) != usual)
