"""Fixtures that more than one folder of tests uses, and the profile of the property tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

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


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator of its own for each test."""
    return np.random.default_rng(20180806)
