"""One BLAS thread for small matrices.

The matrices here are about 30 by 30. Threaded BLAS makes such products slower, and on a busy
machine slower by orders of magnitude, so every fit runs with one thread and gives the setting
back afterwards.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    """The loaded BLAS libraries; finding them takes milliseconds, so once."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Context in which BLAS uses one thread."""
    return _controller().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]
