"""What all tests of large data share."""

from __future__ import annotations

import pytest

from gp4c.large import interval_sums


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a hundred different intervals be too many to keep."""
    monkeypatch.setattr(interval_sums, "MOST_DISTINCT", 100)
