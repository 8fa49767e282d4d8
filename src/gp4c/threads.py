"""One BLAS thread for small matrices; Ctrl-C for the first process.

The matrices here are about 30 by 30. Threaded BLAS makes such products slower, and on a busy
machine slower by orders of magnitude, so every fit runs with one thread and gives the setting
back afterwards.
"""

from __future__ import annotations

import signal
import threading
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


def leave_interrupts_to_the_parent() -> None:
    """In a worker process: Ctrl-C reaches all processes, and only the first one should act."""
    from multiprocessing import parent_process

    if parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
