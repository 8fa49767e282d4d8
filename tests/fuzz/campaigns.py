"""The campaigns: what is drawn, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

from gp4c.exceptions import PanelDataError

from .analyses import ANALYSES
from .commands import (
    check_as_program,
    check_in_process,
    check_study,
    file_cases,
    format_cases,
    special_cases,
    study_cases,
)
from .estimators import WAYS, Case
from .panels import edge_tables, large_panels, panel_of
from .properties import check_fit, check_refusal, only_our_warnings


@dataclass(frozen=True)
class Campaign:
    """Cases from a strategy, `batch` at a time, that a property takes.

    The property returns False for a case that was refused as it should be; it raises whenever
    something is wrong. `limit` is in seconds of processor time.
    """

    strategy: st.SearchStrategy[Any]
    property: Callable[[Any], bool | None]
    batch: int
    limit: int = 60


def _edge(case: tuple[str, Any]) -> bool:
    """A table of extreme floats: refused at the door, or fitted like any other."""
    name, table = case
    with only_our_warnings():
        try:
            panel = panel_of(table)
        except PanelDataError as error:
            check_refusal(error)
            return False
    return check_fit(name, Case(panel, PLAIN[name]))


#: what a fit to large or extreme panels is asked for, by way
PLAIN: dict[str, dict[str, Any]] = {
    "HomogeneousPoisson": {"effect": "gamma", "bursts": True},
    "NPMPLE": {},
    "NPMPLGF": {},
    "NPMLE": {"effect": None},
    "NPMLE, gamma": {"effect": "gamma"},
    "LogLinear": {"effect": "gamma", "bursts": True},
    "LocalEM": {"bandwidth": "cv", "n_splits": 2},
}
QUICK = ["HomogeneousPoisson", "NPMPLE", "NPMPLGF", "NPMLE", "NPMLE, gamma"]


def _campaigns() -> dict[str, Campaign]:
    found = {}
    for name, way in WAYS.items():
        found[f"fit {name}"] = Campaign(way.cases(), partial(check_fit, name), way.batch)
    for name, arguments in PLAIN.items():
        large = large_panels().map(partial(Case, arguments=arguments))
        found[f"large {name}"] = Campaign(large, partial(check_fit, name), 1)
    found["edge tables"] = Campaign(st.tuples(st.sampled_from(QUICK), edge_tables()), _edge, 20)
    for name, (strategy, check, batch) in ANALYSES.items():
        found[name] = Campaign(strategy, check, batch)
    found["files"] = Campaign(file_cases(), check_in_process, 120, 30)
    found["files of every format"] = Campaign(format_cases(), check_in_process, 40, 30)
    found["studies"] = Campaign(study_cases(), check_study, 12, 60)
    found["files with --out"] = Campaign(file_cases(out=True), check_in_process, 6, 60)
    found["special files"] = Campaign(special_cases(), check_in_process, 3, 60)
    found["files as a program"] = Campaign(file_cases(), check_as_program, 2, 90)
    return found


CAMPAIGNS: dict[str, Campaign] = _campaigns()
