"""The shape of the source in numbers: ``python benchmarks/house.py [src/gp4c] [--label NAME]``.

It counts lines and files per folder, the modules that ``gp4c fit bladder`` loads, comparisons with
the name of a part outside the part's own file, ``Any`` in signatures, and files and functions
longer than CONTRIBUTING allows. The table is printed and kept in ``results/house.json`` under the
label, so that trees can be compared.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "house.json"
#: names of count terms, laws and subject effects; a part's own file has a name that begins so
PARTS = ("gamma", "weight", "bursts", "lemma2", "pointwise", "exact")
#: what CONTRIBUTING allows a file, and a function without its docstring
MOST_LINES, MOST_IN_FUNCTION = 400, 40
#: run in another process, with the tree to be measured first on its path
FIT = """
import sys
from gp4c.cli import main
sys.argv = ["gp4c", "fit", "bladder"]
try:
    main()
except SystemExit as end:
    assert not end.code
files = (getattr(m, "__file__", "") or "" for n, m in sys.modules.items() if n.startswith("gp4c."))
print("LOADED", sum(not file.endswith("__init__.py") for file in files))
"""
Function = ast.FunctionDef | ast.AsyncFunctionDef
Trees = dict[Path, ast.Module]


def per_folder(trees: Trees, package: Path) -> dict[str, dict[str, int]]:
    """Files and lines of each folder of the package; modules at its top count as ``top``."""
    found: dict[str, dict[str, int]] = {}
    for path in trees:
        inside = path.relative_to(package).parts
        folder = found.setdefault(inside[0] if len(inside) > 1 else "top", {"files": 0, "lines": 0})
        folder["files"] += 1
        folder["lines"] += len(lines_of(path))
    return found


def lines_of(path: Path) -> list[str]:
    """The lines of a file, with docstrings and comments."""
    return path.read_text(encoding="utf-8").splitlines()


def modules_loaded(package: Path) -> int:
    """Modules of the package in memory after a fit of the bladder data."""
    environment = {**os.environ, "PYTHONPATH": str(package.resolve().parent)}
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [sys.executable, "-c", FIT],
            cwd=place, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
    return int(done.stdout.rsplit("LOADED", 1)[1])


def texts(node: ast.expr) -> list[str]:
    """The texts that one side of a comparison names."""
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [i.value for i in items if isinstance(i, ast.Constant) and isinstance(i.value, str)]


def part_comparisons(path: Path, tree: ast.Module) -> int:
    """Comparisons (==, !=, in, not in) with a part's name in a file that is not its own."""
    foreign = {part for part in PARTS if not path.stem.startswith(part)}
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):  # no text stands beside < or "is"
            named = {text for side in (node.left, *node.comparators) for text in texts(side)}
            found += bool(named & foreign)
    return found


def functions(tree: ast.Module) -> list[Function]:
    """All functions and methods of a file."""
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def any_in_signature(function: Function) -> int:
    """Arguments and results of a public function whose annotation says ``Any``."""
    if function.name.startswith("_"):
        return 0
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    annotations = [a.annotation for a in arguments if a is not None] + [function.returns]
    return sum(bool(re.search(r"\bAny\b", ast.unparse(a))) for a in annotations if a is not None)


def body_lines(function: Function) -> int:
    """Lines of a function below its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def duplicated_runs(package: Path) -> int | None:
    """Pairs of places that share six or more lines; None where they are not all counted."""
    if shutil.which("duplicates") is None:
        return None
    done = subprocess.run(
        ["duplicates", "--repo", str(package), "--most", "1", "--seconds", "600"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if "\nincomplete:" in done.stdout:  # a busy machine: part of the pairs is no number of pairs
        return None
    number = re.search(r"\d+", done.stdout.splitlines()[0].replace(",", ""))
    return 0 if done.stdout.startswith("no duplicates") or not number else int(number[0])


def measure(package: Path) -> dict[str, Any]:
    """All numbers of one tree."""
    trees = {p: ast.parse(p.read_text(encoding="utf-8")) for p in sorted(package.rglob("*.py"))}
    compared = {path: part_comparisons(path, tree) for path, tree in trees.items()}
    every = [function for tree in trees.values() for function in functions(tree)]
    longest = max(every, key=body_lines)
    return {
        "folders": per_folder(trees, package),
        "modules loaded by gp4c fit bladder": modules_loaded(package),
        "comparisons with names of parts": sum(compared.values()),
        "files with such comparisons": sum(number > 0 for number in compared.values()),
        "Any in public signatures": sum(any_in_signature(f) for f in every),
        "files above 400 lines": sum(len(lines_of(path)) > MOST_LINES for path in trees),
        "functions above 40 lines": sum(body_lines(f) > MOST_IN_FUNCTION for f in every),
        "longest function": longest.name,
        "its lines without docstring": body_lines(longest),
        "pairs of places with six or more lines alike": duplicated_runs(package),
    }


def show_and_keep(package: Path, label: str) -> None:
    """Print the numbers of a tree as a table, and put them into the file of results."""
    found = measure(package)
    print(f"{label}: {package}")
    for name, size in found["folders"].items():
        print(f"  {name + '/':46}{size['files']:4} files {size['lines']:6} lines")
    for name, value in list(found.items())[1:]:
        print(f"  {name:46}{value}")
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**kept, label: found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The shape of the source in numbers.")
    parser.add_argument("package", nargs="?", type=Path, default=Path("src/gp4c"))
    parser.add_argument("--label", default="now")
    chosen = parser.parse_args()
    show_and_keep(chosen.package, chosen.label)
