"""What sums over rows cannot serve (estimators/large_data/summed_fit.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

#: what sums cannot do: parameters of a model, and what they must be
SUPPORTED = {"optimizer": "natural", "method": "vi", "formula": None}


def unsupported(parameters: Mapping[str, object]) -> Iterator[str]:
    """Names of those parameters of a model that sums do not serve."""
    return (name for name, usual in SUPPORTED.items() if parameters.get(name, usual) != usual)
