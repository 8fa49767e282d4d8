"""Results of single data sets on disk, so that a study resumes where it stopped.

A folder per version of the estimator's source: changed code starts afresh, and results of
different versions never mix.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.provenance import ENGINE, source_hash

CACHE = Path(__file__).parent / "cache"
#: what a simulation and a fit stand on
STANDS_ON = ("data/simulate", *ENGINE)


def version() -> str:
    """Short hash of the source that the study stands on."""
    return source_hash(STANDS_ON)[:12]


class Store:
    """Records of one version, one small JSON file each."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, task: tuple[str, str, int]) -> Path:
        """Where the record of a task is kept."""
        study, arm, number = task
        return self.folder / f"{study}-{arm}-{number:05d}.json"

    def has(self, task: tuple[str, str, int]) -> bool:
        """Whether the task is done."""
        return self.path(task).exists()

    def write(self, task: tuple[str, str, int], record: dict[str, Any]) -> None:
        """Keep a record; a run that is killed leaves no half-written one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.path(task).with_suffix(".part")
        part.write_text(json.dumps(record))
        part.replace(self.path(task))

    def read(self, study: str, arm: str) -> list[dict[str, Any]]:
        """All records of one arm of a study, by number."""
        paths = sorted(self.folder.glob(f"{study}-{arm}-*.json"))
        return [json.loads(path.read_text()) for path in paths]
