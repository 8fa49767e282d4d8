"""All tables and figures by the names that the command line knows."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from gp4c.paper.sections import Experiment

#: in the order of the page
NAMES = (
    "fig-bound", "table1", "fig-synthetic", "fig-inducing", "fig-subjects", "table2", "table3",
    "table4", "fig-bladder",
)  # fmt: skip


def experiment(name: str) -> Experiment:
    """Return the module of one table or figure."""
    module = import_module(f"gp4c.paper.exhibits.{name.replace('-', '_')}")
    return cast(Experiment, module)
