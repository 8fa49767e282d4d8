"""What a table or figure of the page is made of, and the statistics that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.paper.store import Record, Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]
Found: TypeAlias = Mapping[Task, Record]
Lines: TypeAlias = list[str]

#: names of the estimators on the page
NAMES = {
    "GP3": "GP3 (event times)", "LocalEM": "LocalEM", "b=0": "GP4C (b = 0)",
    "b=0.3": "GP4C (b = 0.3)", "b=1": "GP4C (b = 1)", "exact": "ours, exact bound",
    "default": "ours, default", "GP4C": "GP4C (b = 0.3)", "GP4CW": "GP4CW", "HPP": "HPP",
    "GP4CW honest": "GP4CW, new subjects", "HPP gamma": "HPP + gamma",
}  # fmt: skip

#: characters up to which a cell of a table stays on one line
_UNBROKEN = 20


@dataclass(frozen=True)
class Plan:
    """Size and seed of a run."""

    trials: int = 40
    seed: int = 0


@dataclass(frozen=True)
class Picture:
    """A figure of the page: what draws it, its size in inches, and what it shows in words."""

    draw: Callable[[Figure], object]
    size: tuple[float, float]
    alt: str


@dataclass(frozen=True)
class Target:
    """A number that was asked for: what, what came out, and whether it holds."""

    asked: str
    found: str
    met: bool


@dataclass
class Section:
    """One table or figure of the page; `summary` is what the page says of it at its top."""

    title: str
    summary: Lines = field(default_factory=list)
    lines: Lines = field(default_factory=list)
    pictures: dict[str, Picture] = field(default_factory=dict)
    targets: list[Target] = field(default_factory=list)

    def show(self, name: str, picture: Picture, caption: str) -> None:
        """Add a figure at this place."""
        self.pictures[name] = picture
        self.lines += [
            f"```{{image}} images/reproduction/{name}.png", f":alt: {picture.alt}", "```", "",
            f"*{caption}*", "",
        ]  # fmt: skip


class Experiment(Protocol):
    """A module of this folder that makes one table or figure."""

    NAME: str

    def tasks(self, plan: Plan) -> list[Task]:
        """Trials that it needs."""
        ...

    def later(self, plan: Plan, found: Found) -> list[Task]:
        """Trials that can be named only when the first are done."""
        ...

    def render(self, plan: Plan, found: Found) -> Section:
        """Its section of the page."""
        ...


def no_later(plan: Plan, found: Found) -> list[Task]:
    """All trials are known from the start."""
    return []


def column(records: Sequence[Record], method: str, metric: str, group: str = "methods") -> Floats:
    """One metric of one method over trials."""
    return np.array([record[group][method][metric] for record in records], dtype=np.float64)


def matching(found: Found, study: str, **settings: object) -> list[Record]:
    """Records of a study with these settings, by trial."""
    chosen = [
        (task.settings["trial"], record)
        for task, record in found.items()
        if task.study == study and all(task.settings.get(k) == v for k, v in settings.items())
    ]
    return [record for _, record in sorted(chosen, key=lambda pair: pair[0])]


def mean_and_error(values: Floats) -> tuple[float, float]:
    """Mean and its standard error (NaN for a single trial)."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def spread(values: Floats) -> float:
    """Standard deviation over trials (NaN for a single one)."""
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def number(value: float, digits: int = 1, sign: bool = False) -> str:
    """A number for a table; an en dash if there is none."""
    if not np.isfinite(value):
        return "–"
    text = f"{value:{'+' if sign else ''},.{digits}f}"
    return text.lstrip("+-") if float(text.replace(",", "")) == 0 else text.replace("-", "−")


def plus_minus(value: float, error: float, digits: int = 1, sign: bool = False) -> str:
    """A number with its error or spread."""
    tail = f" ± {number(error, digits)}" if np.isfinite(error) else ""
    return number(value, digits, sign) + tail


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Lines:
    """Markdown table: first column to the left, the others to the right; short cells unbroken."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    whole = [[c.replace(" ", "\u00a0") if len(c) <= _UNBROKEN else c for c in row] for row in rows]
    return [*lines, *("| " + " | ".join(row) + " |" for row in whole), ""]


def trials_text(counts: Sequence[int]) -> str:
    """Say how many trials there are behind a table."""
    if not counts or max(counts) == 0:
        return "no trials yet"
    low, high = min(counts), max(counts)
    if low < high:
        return f"{low} to {high} trials"
    return f"{high} trial{'s' if high > 1 else ''}"
