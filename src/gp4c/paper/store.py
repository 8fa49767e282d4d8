"""Finished trials on disk, one small JSON file each, so that an interrupted run resumes.

A folder per version of the source that computes: changed code starts afresh, and results of
different versions never mix. A file holds the settings it belongs to, so that nothing is trusted
for its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from gp4c.atomic import replacing, write_text
from gp4c.exceptions import ModelFileError

Record: TypeAlias = dict[str, Any]

#: folders of the package whose files decide the numbers of a trial
_COMPUTING = (
    "data", "model", "posterior", "inference", "large", "estimators", "classical", "paper/studies",
)  # fmt: skip
#: parts of a record that are times, which no two runs share
TIMES = frozenset({"seconds", "cpu_seconds"})


@dataclass(frozen=True)
class Task:
    """One trial to run: a study of `gp4c.paper.studies` and its settings."""

    study: str
    settings_json: str

    @classmethod
    def of(cls, study: str, **settings: object) -> Task:
        """Build a task from keyword settings that JSON can hold."""
        return cls(study, json.dumps(settings, sort_keys=True))

    @property
    def settings(self) -> Record:
        """The settings of the trial."""
        return json.loads(self.settings_json)  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """Name of the trial's file: readable, and different for different settings."""
        settings = self.settings
        parts = [settings.get("set"), settings.get("draw"), settings.get("ratio")]
        words = [str(part).replace("/", "of").replace(" ", "") for part in parts if part]
        digest = hashlib.sha256(self.settings_json.encode()).hexdigest()[:8]
        return "-".join([self.study, *words, f"{settings.get('trial', 0):03d}", digest])

    def __str__(self) -> str:
        settings = self.settings
        where = " ".join(str(settings[k]) for k in ("set", "draw", "ratio") if k in settings)
        return f"{self.study} {where} trial {settings.get('trial', 0)}".replace("  ", " ")


@lru_cache(maxsize=1)
def source_version() -> str:
    """Short hash of every file that decides a number, and of the numerical libraries' versions."""
    import numpy
    import scipy

    import gp4c

    package = Path(gp4c.__file__).parent
    digest = hashlib.sha256(f"{numpy.__version__} {scipy.__version__}".encode())
    for folder in _COMPUTING:
        for path in sorted((package / folder).rglob("*")):
            if path.suffix in (".py", ".csv"):
                name = path.relative_to(package).as_posix()
                digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


class Store:
    """Records of one version of the source, one file each.

    Parameters
    ----------
    folder : Path
        The cache, with one folder per version.
    version : str, optional
        Version of the source; this one if absent.
    """

    def __init__(self, folder: Path, version: str | None = None):
        self.cache = Path(folder)
        self.version = version or source_version()
        self.folder = self.cache / self.version

    def read(self, task: Task) -> Record | None:
        """Return the record of a task, or None if it is not there, broken or another's."""
        try:
            found = json.loads(self._path(task).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        expected = {"study": task.study, "settings": task.settings, "version": self.version}
        if not isinstance(found, dict) or any(found.get(k) != v for k, v in expected.items()):
            return None
        return found.get("record")

    def write(self, task: Task, record: Record) -> None:
        """Keep a record; a run that is killed leaves no half-written one."""
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "study": task.study, "settings": task.settings, "version": self.version,
            "record": record,
        }  # fmt: skip
        write_text(self._path(task), json.dumps(content))

    def found(self, tasks: Iterable[Task]) -> dict[Task, Record]:
        """Records of those tasks that are done."""
        records = ((task, self.read(task)) for task in tasks)
        return {task: record for task, record in records if record is not None}

    def other_versions(self) -> dict[str, int]:
        """Versions in the cache besides this one, with their numbers of records."""
        if not self.cache.is_dir():
            return {}
        folders = (path for path in sorted(self.cache.iterdir()) if path.is_dir())
        counts = {path.name: len(list(path.glob("[!.]*.json"))) for path in folders}
        return {name: n for name, n in counts.items() if n and name != self.version}

    def _path(self, task: Task) -> Path:
        return self.folder / f"{task.name}.json"


class PackedStore(Store):
    """Records of a finished run in one compressed file, to be read only; see :func:`pack`."""

    def __init__(self, path: Path, version: str | None = None):
        import gzip

        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                entries = [json.loads(line) for line in file]
            self._records = {
                Task.of(entry["study"], **entry["settings"]): entry["record"] for entry in entries
            }
            super().__init__(Path(path), version or entries[0]["version"])
        except (EOFError, IndexError, KeyError, TypeError, ValueError, gzip.BadGzipFile) as error:
            raise ModelFileError(f"{path}: not a file of trials by gp4c reproduce") from error

    def tasks(self) -> list[Task]:
        """All trials in the file."""
        return list(self._records)

    def read(self, task: Task) -> Record | None:
        """Return the record of a task, or None."""
        return self._records.get(task)

    def write(self, task: Task, record: Record) -> None:
        """Refuse: the file is that of a finished run."""
        raise NotImplementedError("packed trials are read only")


def pack(found: Mapping[Task, Record], version: str, path: Path) -> None:
    """Write records into one compressed file, the same bytes for the same records."""
    import gzip

    lines = sorted(
        json.dumps({"study": t.study, "settings": t.settings, "version": version, "record": r})
        for t, r in found.items()
    )
    with replacing(path) as temporary:
        temporary.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))


def without_times(record: object) -> object:
    """The part of a record that a second run must repeat exactly."""
    if isinstance(record, Mapping):
        return {k: without_times(v) for k, v in record.items() if k not in TIMES}
    if isinstance(record, list | tuple):
        return [without_times(value) for value in record]
    return record


def digest(found: Mapping[Task, Record]) -> str:
    """Hash of all numbers but times: equal for two runs that agree bit for bit."""
    lines = sorted(
        f"{task.name} {json.dumps(without_times(record), sort_keys=True)}"
        for task, record in found.items()
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
