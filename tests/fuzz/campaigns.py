"""The campaigns: what is drawn, and what must hold of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st

from gp4c.exceptions import PanelDataError

from .commands import check_as_program, check_in_process, file_cases, special_cases
from .estimators import CLASSICAL, ESTIMATORS, GAUSSIAN
from .panels import (
    edge_tables,
    event_histories,
    large_panels,
    panel_of,
    small_panels,
    smooth_panels,
)
from .properties import check_estimator, check_refusal, only_our_warnings


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


def _edge(names: list[str], case: tuple[str, Any]) -> bool:
    """A table of extreme floats: refused at the door, or fitted like any other."""
    name, table = case
    with only_our_warnings():
        try:
            panel = panel_of(table)
        except PanelDataError as error:
            check_refusal(error)
            return False
    return check_estimator(name, panel)


def _campaigns() -> dict[str, Campaign]:
    found = {}
    for name, entry in ESTIMATORS.items():
        test = partial(check_estimator, name)
        if entry.on == "events":
            found[f"fit {name}"] = Campaign(event_histories(), test, 4)
        elif entry.cost == "cheap":
            found[f"fit {name}"] = Campaign(small_panels, test, 25)
        elif entry.cost == "fair":
            found[f"fit {name}"] = Campaign(st.one_of(small_panels, smooth_panels()), test, 4)
        else:
            found[f"fit {name}"] = Campaign(smooth_panels(30), test, 1)
    for name in CLASSICAL:
        found[f"large {name}"] = Campaign(large_panels(), partial(check_estimator, name), 1)
    quick = [n for n, e in (CLASSICAL | GAUSSIAN).items() if e.cost != "dear"]
    names = st.sampled_from(quick)
    found["edge tables"] = Campaign(st.tuples(names, edge_tables()), partial(_edge, quick), 20)
    found["files"] = Campaign(file_cases(), check_in_process, 60, 30)
    found["files with --out"] = Campaign(file_cases(out=True), check_in_process, 6, 60)
    found["special files"] = Campaign(special_cases(), check_in_process, 3, 60)
    found["files as a program"] = Campaign(file_cases(), check_as_program, 2, 90)
    return found


CAMPAIGNS: dict[str, Campaign] = _campaigns()
