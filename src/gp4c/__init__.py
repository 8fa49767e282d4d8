"""gp4c: smooth event rates with honest uncertainty from panel count data.

Public names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

#: public name -> module that defines it
_HOMES = {
    "PanelCounts": "gp4c.data.panel",
    "RecurrentEvents": "gp4c.data.events",
    "read_panel": "gp4c.data.readers",
    "scan_panel": "gp4c.data.sources",
    "PanelSource": "gp4c.data.sources",
    "load_dataset": "gp4c.data.datasets",
    "list_datasets": "gp4c.data.datasets",
    "simulate_panel": "gp4c.data.simulate",
    "GP4C": "gp4c.models.gp4c",
    "GP4CW": "gp4c.models.gp4c",
    "GP3": "gp4c.models.gp3",
    "LocalEM": "gp4c.models.local_em",
    "NPMPLE": "gp4c.models.step",
    "NPMLE": "gp4c.models.step",
    "NPMPLGF": "gp4c.models.step",
    "HomogeneousPoisson": "gp4c.models.homogeneous",
    "load_model": "gp4c.models.persistence",
    "compare": "gp4c.analysis.compare",
    "cross_validate": "gp4c.analysis.validation",
    "score_differences": "gp4c.analysis.validation",
}

__all__ = ["__version__", "exceptions", *_HOMES]


def __getattr__(name: str) -> object:
    if name == "exceptions":
        return import_module("gp4c.exceptions")
    if name not in _HOMES:
        raise AttributeError(f"module 'gp4c' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from gp4c import exceptions as exceptions
    from gp4c.analysis.compare import compare as compare
    from gp4c.analysis.validation import cross_validate as cross_validate
    from gp4c.analysis.validation import score_differences as score_differences
    from gp4c.data.datasets import list_datasets as list_datasets
    from gp4c.data.datasets import load_dataset as load_dataset
    from gp4c.data.events import RecurrentEvents as RecurrentEvents
    from gp4c.data.panel import PanelCounts as PanelCounts
    from gp4c.data.readers import read_panel as read_panel
    from gp4c.data.simulate import simulate_panel as simulate_panel
    from gp4c.data.sources import PanelSource as PanelSource
    from gp4c.data.sources import scan_panel as scan_panel
    from gp4c.models.gp3 import GP3 as GP3
    from gp4c.models.gp4c import GP4C as GP4C
    from gp4c.models.gp4c import GP4CW as GP4CW
    from gp4c.models.homogeneous import HomogeneousPoisson as HomogeneousPoisson
    from gp4c.models.local_em import LocalEM as LocalEM
    from gp4c.models.persistence import load_model as load_model
    from gp4c.models.step import NPMLE as NPMLE
    from gp4c.models.step import NPMPLE as NPMPLE
    from gp4c.models.step import NPMPLGF as NPMPLGF
