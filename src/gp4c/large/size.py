"""What sums over rows cannot serve (estimators/large_data/summed_fit.py)."""

from __future__ import annotations

from collections.abc import Iterator

#: what sums cannot do: attributes of a model, and what they must be
SUPPORTED = {"optimizer": "natural", "method": "vi", "formula": None}


def unsupported(model: object) -> Iterator[str]:
    """Attributes of a model that sums do not serve."""
    return (name for name, usual in SUPPORTED.items() if getattr(model, name, usual) != usual)
