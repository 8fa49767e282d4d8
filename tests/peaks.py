"""How much memory something takes at its peak, as Python's allocator sees it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def traced_peak(action: Callable[[], object]) -> int:
    """Bytes that were allocated at once, at most, while `action` ran."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
