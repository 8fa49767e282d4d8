"""Which source a result stands on, as one hash of the files that decide it; results as text."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

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


def written(found: dict[str, Any]) -> str:
    """The results as JSON, a line for each data set."""
    rows = [
        f'"{name}": {{\n' + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in some.items()) + "\n}"
        for name, some in found["sets"].items()
    ]
    head = {key: value for key, value in found.items() if key != "sets"}
    return json.dumps(head, indent=1)[:-2] + ',\n "sets": {\n' + ",\n".join(rows) + "\n}}\n"
