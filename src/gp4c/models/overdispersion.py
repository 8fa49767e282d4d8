"""The warning of models that take counts for Poisson."""

from __future__ import annotations

import warnings

from gp4c.exceptions import OverdispersionWarning
from gp4c.inference.dispersion import Dispersion


def warn_if_overdispersed(name: str, found: Dispersion, remedy: str) -> None:
    """Say that subjects differ more than the fitted model allows, by how much, and what to do."""
    if not found.is_bad:
        return
    warnings.warn(
        f"subjects' totals vary {found.ratio:.1f} times as much as Poisson counts would "
        f"(dispersion Σ(m − R)²/ΣR, {found.deviation:.0f} standard errors above 1), and this "
        f"{name} has no subject effects: its bands and forecasts are too narrow; use {remedy}",
        OverdispersionWarning,
        stacklevel=3,
    )
