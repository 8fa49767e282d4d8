"""``gp4c reproduce fig-subjects`` with trials that take no time: for campaign.py to interrupt."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from gp4c.cli import main
from gp4c.paper import running, studies
from gp4c.paper.store import Task

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "paper"))
import made_up


def study(name: str) -> Any:
    """Trials whose numbers depend on the settings only."""

    def trial(**settings: Any) -> Any:
        time.sleep(0.02)
        return made_up.record_of(Task.of(name, **settings))

    return trial


if __name__ == "__main__":
    studies.study = study
    running.time.thread_time = lambda: 0.0  # times are the only thing that two runs differ in
    options = ["--trials", "150", "--jobs", "1", "--out", sys.argv[1]]
    sys.argv[1:] = ["reproduce", "fig-subjects", *options]
    main()
