"""Fixtures that more than one folder of tests uses, and the profile of the property tests."""

from __future__ import annotations

import os
import platform
import signal

# OpenBLAS rounds as the machine's kernels do, and the early stop of the paper's algorithm makes a
# per cent of it: the frozen numbers are those of these kernels. Set before NumPy is loaded.
if platform.machine() == "x86_64":
    os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# a shell that starts the tests in the background tells them, and all their children, to ignore
# Ctrl-C; some of them are about it
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# derandomised: the same examples in every run, so that a failure is a change of the code
settings.register_profile(
    "gp4c",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gp4c")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Plain Poisson models of small, uneven panels are what many tests are about.

    That they warn of overdispersion has tests of its own (estimators/test_overdispersion.py).
    """
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("ignore::gp4c.exceptions.OverdispersionWarning"))


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator of its own for each test."""
    return np.random.default_rng(20180806)
