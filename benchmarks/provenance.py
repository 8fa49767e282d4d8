"""Which source a result stands on: one hash of the files that decide it."""

from __future__ import annotations

import hashlib
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "gp4c"
#: folders that decide what the default engine answers
ENGINE = ("model", "posterior", "inference/engine")


def source_hash(folders: tuple[str, ...] = ENGINE) -> str:
    """SHA-256 over the Python files below some folders of the package, names included."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((SOURCE / folder).rglob("*.py")):
            digest.update(str(path.relative_to(SOURCE)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()
