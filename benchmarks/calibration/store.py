"""Results of single data sets on disk, so that a study resumes where it stopped.

A folder per version of the estimator's source: changed code starts afresh, and results of
different versions never mix.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import gp4c.data.simulate.simulate_panel
import gp4c.estimators.gp4c  # noqa: F401  # loads every module that a fit uses

CACHE = Path(__file__).parent / "cache"


def version() -> str:
    """Short hash of the source that a simulation and a fit stand on."""
    import gp4c

    root, digest = Path(gp4c.__file__).parent, hashlib.sha256()
    for folder in ("data", "model", "posterior", "inference", "large", "estimators"):
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


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
