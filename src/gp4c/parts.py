"""Parts from other packages, and how parts are found: laws, effects, kernels, estimators.

A part joins its registry when its class is defined (`LAWS` and `EFFECTS` of `gp4c.model.laws`,
`KERNELS` of `gp4c.model.kernels`, `ESTIMATORS` of `gp4c.estimators.base`). A package that brings
parts names its module as an entry point of the group ``gp4c.parts``; the command line imports all
of them before it fits or reads a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # also for annotations in folders that stand before these
    from gp4c.estimators.base import PanelEstimator as PanelEstimator
    from gp4c.estimators.gp_base import GaussianProcessModel as GaussianProcessModel
    from gp4c.reporting.summary import ModelSummary as ModelSummary

GROUP = "gp4c.parts"
#: where the estimators of the package are
_FOLDERS = ("gp4c.estimators.", "gp4c.classical.")


def load_parts() -> list[str]:
    """Import the modules that other packages name; their names."""
    found = entry_points(group=GROUP)
    for one in found:
        one.load()
    return [one.name for one in found]


def estimators() -> Iterator[type[PanelEstimator]]:
    """Every estimator; modules of the package are imported one by one, as far as is asked.

    Yields
    ------
    type
        Those in memory first, then the public ones of the package.
    """
    from gp4c import _HOMES
    from gp4c.estimators.base import ESTIMATORS

    seen = list(ESTIMATORS.values())
    yield from seen
    for home in _HOMES.values():
        if not home.startswith(_FOLDERS):
            continue
        import_module(home)
        new = [one for one in ESTIMATORS.values() if one not in seen]
        seen += new
        yield from new


def estimator_by_class(name: object) -> type[PanelEstimator] | None:
    """The estimator whose class has a name, public or in memory; None without one."""
    from gp4c import _HOMES
    from gp4c.estimators.base import ESTIMATORS

    if not isinstance(name, str):
        return None
    home = _HOMES.get(name, "")
    if home.startswith(_FOLDERS):
        import_module(home)
    return ESTIMATORS.get(name)


def estimator_by_name(name: str) -> type[PanelEstimator] | None:
    """The estimator with a name on the command line; None without one."""
    return next((one for one in estimators() if one.name == name), None)
