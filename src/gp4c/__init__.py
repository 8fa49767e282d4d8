"""gp4c: smooth event rates with honest uncertainty from panel count data.

Public names are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.2.0"

#: public name -> module that defines it
_HOMES = {
    "PanelCounts": "gp4c.data.panel",
    "RecurrentEvents": "gp4c.data.events",
    "read_panel": "gp4c.data.tables.readers",
    "scan_panel": "gp4c.data.tables.sources",
    "PanelSource": "gp4c.data.tables.sources",
    "load_dataset": "gp4c.data.datasets.bundled",
    "list_datasets": "gp4c.data.datasets.bundled",
    "simulate_panel": "gp4c.data.simulate.simulate_panel",
    "GP4C": "gp4c.estimators.gp4c",
    "GP4CW": "gp4c.estimators.variants.gp4cw",
    "GP4CMixture": "gp4c.estimators.mixtures.gp4c_mixture",
    "GP4CClasses": "gp4c.estimators.mixtures.classes.gp4c_classes",
    "GP3": "gp4c.estimators.variants.gp3",
    "LocalEM": "gp4c.classical.smoothed.local_em",
    "NPMPLE": "gp4c.classical.step_functions.step",
    "NPMLE": "gp4c.classical.step_functions.step",
    "NPMPLGF": "gp4c.classical.step_functions.step",
    "HomogeneousPoisson": "gp4c.classical.parametric.homogeneous",
    "PowerLaw": "gp4c.classical.parametric.growth",
    "LogLinear": "gp4c.classical.parametric.growth",
    "load_model": "gp4c.files.persistence",
    "compare": "gp4c.analysis.compare_groups",
    "power": "gp4c.analysis.planning.trial_power",
    "cross_validate": "gp4c.analysis.validation",
    "score_differences": "gp4c.analysis.validation",
    "backtest": "gp4c.analysis.backtests.backtest",
    "trend_test": "gp4c.analysis.units.trend_testing",
    "Report": "gp4c.reporting.page.html_report",
    "citation": "gp4c.reporting.page.report_method",
}

__all__ = ["__version__", "exceptions", *_HOMES]


def __getattr__(name: str) -> object:
    if name == "exceptions":
        return import_module("gp4c.exceptions")
    if name not in _HOMES:
        from difflib import get_close_matches

        near = get_close_matches(name, __all__, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(_HOMES)}"
        raise AttributeError(f"module 'gp4c' has no attribute {name!r}{hint}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from gp4c import exceptions as exceptions
    from gp4c.analysis.backtests.backtest import backtest as backtest
    from gp4c.analysis.compare_groups import compare as compare
    from gp4c.analysis.planning.trial_power import power as power
    from gp4c.analysis.units.trend_testing import trend_test as trend_test
    from gp4c.analysis.validation import cross_validate as cross_validate
    from gp4c.analysis.validation import score_differences as score_differences
    from gp4c.classical.parametric.growth import LogLinear as LogLinear
    from gp4c.classical.parametric.growth import PowerLaw as PowerLaw
    from gp4c.classical.parametric.homogeneous import HomogeneousPoisson as HomogeneousPoisson
    from gp4c.classical.smoothed.local_em import LocalEM as LocalEM
    from gp4c.classical.step_functions.step import NPMLE as NPMLE
    from gp4c.classical.step_functions.step import NPMPLE as NPMPLE
    from gp4c.classical.step_functions.step import NPMPLGF as NPMPLGF
    from gp4c.data.datasets.bundled import list_datasets as list_datasets
    from gp4c.data.datasets.bundled import load_dataset as load_dataset
    from gp4c.data.events import RecurrentEvents as RecurrentEvents
    from gp4c.data.panel import PanelCounts as PanelCounts
    from gp4c.data.simulate.simulate_panel import simulate_panel as simulate_panel
    from gp4c.data.tables.readers import read_panel as read_panel
    from gp4c.data.tables.sources import PanelSource as PanelSource
    from gp4c.data.tables.sources import scan_panel as scan_panel
    from gp4c.estimators.gp4c import GP4C as GP4C
    from gp4c.estimators.mixtures.classes.gp4c_classes import GP4CClasses as GP4CClasses
    from gp4c.estimators.mixtures.gp4c_mixture import GP4CMixture as GP4CMixture
    from gp4c.estimators.variants.gp3 import GP3 as GP3
    from gp4c.estimators.variants.gp4cw import GP4CW as GP4CW
    from gp4c.files.persistence import load_model as load_model
    from gp4c.reporting.page.html_report import Report as Report
    from gp4c.reporting.page.report_method import citation as citation
