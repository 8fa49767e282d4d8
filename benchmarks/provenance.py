"""Which source a result stands on: one hash of the code of the files that decide it.

Comments, docstrings, blank lines and trailing spaces do not count, so that a better sentence does
not make a measurement stale.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "gp4c"
#: folders that decide what the default engine answers
ENGINE = ("model", "posterior", "inference/engine")
#: modules that decide what the permutation test of groups answers
GROUP_TEST = (
    "analysis/groups/bin_scores.py", "analysis/groups/contrasts.py",
    "analysis/groups/labellings.py", "analysis/groups/null_regression.py",
    "analysis/permutation.py",
)  # fmt: skip


def stamp(stands_on: tuple[str, ...] = ENGINE, finished: bool = False) -> dict[str, Any]:
    """What a result says of itself: folders or modules of the package, their hash, today's date.

    Benchmarks write while they run; `run.py` marks what they leave behind as finished.
    """
    return {
        "source": source_hash(stands_on),
        "stands_on": sorted(stands_on),
        "date": date.today().isoformat(),
        "finished": finished,
    }


def finish(path: Path) -> None:
    """Mark the committed file of a benchmark that has come to its end."""
    if path.exists():
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('"finished": false', '"finished": true', 1), encoding="utf-8")


def is_current(found: Mapping[str, Any]) -> bool:
    """Whether the code that a result stands on is still what it was."""
    if not {"source", "stands_on"} <= set(found):
        return False
    return bool(found["source"] == source_hash(tuple(found["stands_on"])))


def source_hash(stands_on: tuple[str, ...] = ENGINE) -> str:
    """SHA-256 over the code of Python files, or folders of them, of the package, names included."""
    digest = hashlib.sha256()
    for place in sorted(stands_on):
        for path in _modules(SOURCE / place):
            digest.update(str(path.relative_to(SOURCE)).encode())
            digest.update(code_of(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def _modules(place: Path) -> list[Path]:
    """The Python files of a place; a place that is gone has none, and its hash says so."""
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


@cache
def code_of(text: str) -> str:
    """A module without its comments, docstrings and blank lines.

    Only places are asked of `ast` and `tokenize`, which all versions of Python report alike.
    """
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in _docstrings(ast.parse(text)):
        for row in range(node.lineno - 1, node.end_lineno or node.lineno):
            lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that are a string and nothing else."""
    for node in ast.walk(tree):
        is_constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_constant and isinstance(node.value.value, str):
            yield node


def written(found: dict[str, Any]) -> str:
    """The results as JSON, a line for each data set."""
    rows = [
        f'"{name}": {{\n' + ",\n".join(f'"{k}": {json.dumps(v)}' for k, v in some.items()) + "\n}"
        for name, some in found["sets"].items()
    ]
    head = {key: value for key, value in found.items() if key != "sets"}
    return json.dumps(head, indent=1)[:-2] + ',\n "sets": {\n' + ",\n".join(rows) + "\n}}\n"
