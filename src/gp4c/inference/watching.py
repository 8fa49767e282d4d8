"""A problem that tells what the search over hyper-parameters is doing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from itertools import count
from typing import Any

from gp4c.inference.hyper import Problem
from gp4c.inference.variational import Workspace


@dataclass
class WatchedProblem(Problem):
    """Says at each step over the hyper-parameters its number and the objective there."""

    say: Callable[[str], None] = print
    steps: Any = field(default_factory=count)

    @classmethod
    def of(cls, problem: Problem, say: Callable[[str], None]) -> WatchedProblem:
        """The same problem, watched."""
        same = {f.name: getattr(problem, f.name) for f in fields(problem)}
        return cls(**same, say=say)

    def workspace(self, length_scale: float, size: int | None = None) -> Workspace:
        """The usual workspace, whose gradients by the hyper-parameters are steps."""
        work = super().workspace(length_scale, size)
        gradient = work.hyper_gradient

        def told(hyper: Any, q: Any, at: Any, *rest: Any) -> Any:
            self.say(f"iteration {next(self.steps) + 1}: objective {at.bound.total:,.2f}")
            return gradient(hyper, q, at, *rest)

        work.hyper_gradient = told  # type: ignore[method-assign,assignment]
        return work
