"""How long until the program answers: ``gp4c --help``, ``gp4c fit``, and where the time goes.

Times on a warm disk are the best of a few runs: everything that a run needs is in the cache of
the operating system, and byte code is compiled. "Cold" is the first import with no byte code at
all, neither ours nor that of other packages; the disk's own cache can only be emptied by root, so
that part of a cold start is not in it. With other work on the machine wall time says nothing, so
then processor time is judged, and the result says so.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from provenance import ENGINE, stamp

#: seconds of wall time that commands may take on a warm disk
LIMITS = {"gp4c --help": 0.3, "gp4c fit bladder.csv": 2.0}
_REPEATS = 3
#: what the result stands on
STANDS_ON = ("__init__.py", "cli", "data", "estimators", *ENGINE)
_RESULT = Path(__file__).parent / "results" / "startup.json"
#: packages whose share of an import is told apart
_PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "narwhals", "matplotlib", "plotly", "typer",
             "rich", "gp4c")  # fmt: skip


def best_of(command: list[str], repeats: int = _REPEATS) -> dict[str, float]:
    """Shortest wall and processor time of a few runs, in seconds."""
    walls, processors = [], []
    for _ in range(repeats):
        before, began = os.times(), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        walls.append(time.perf_counter() - began)
        after = os.times()
        processors.append(
            after.children_user - before.children_user
            + after.children_system - before.children_system
        )  # fmt: skip
    return {"wall": round(min(walls), 4), "cpu": round(min(processors), 4)}


def itemised(arguments: list[str], *, cold: bool = False) -> dict[str, float]:
    """Seconds that a command spends importing, by package (``-X importtime``)."""
    code = f"import sys; sys.argv = {['gp4c', *arguments]!r}\nfrom gp4c.cli import main\nmain()"
    with tempfile.TemporaryDirectory() as folder:
        # a new prefix for byte code is one without any
        cache = ["-X", f"pycache_prefix={folder}"] if cold else []
        done = subprocess.run(
            [sys.executable, *cache, "-X", "importtime", "-c", code],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    shares = dict.fromkeys((*_PACKAGES, "others"), 0.0)
    for own, name in re.findall(r"import time:\s+(\d+) \|\s+\d+ \|\s*(\S+)", done.stderr):
        package = name.split(".")[0]
        shares[package if package in shares else "others"] += int(own) / 1e6
    found = {name: round(seconds, 4) for name, seconds in shares.items() if seconds > 5e-4}
    return {**found, "in all": round(sum(shares.values()), 4)}


def measure() -> dict[str, Any]:
    program = str(Path(sys.executable).with_name("gp4c"))
    bladder = str(files("gp4c.data.datasets") / "bladder.csv")
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import gp4c": [sys.executable, "-c", "import gp4c"],
            "gp4c --help": [program, "--help"],
            "gp4c describe bladder.csv": [program, "describe", bladder],
            "gp4c fit bladder.csv --model hpp": [program, "fit", bladder, "--model", "hpp"],
            "gp4c fit bladder.csv": [program, "fit", bladder],
            "gp4c fit bladder.csv --out DIR": [program, "fit", bladder, "--out", folder],
        }
        runs = {name: best_of(command) for name, command in commands.items()}
    load = os.getloadavg()[0]
    return {
        "limits": LIMITS,
        "judged_by": "wall" if load < (os.cpu_count() or 1) else "cpu",
        "load": round(load, 2),
        "processors": os.cpu_count(),
        "python": sys.version.split()[0],
        "runs": runs,
        "imports": {
            "gp4c --help": {
                "warm": itemised(["--help"]), "cold": itemised(["--help"], cold=True)
            },
            "gp4c fit bladder.csv": {
                "warm": itemised(["fit", bladder, "--quiet"]),
                "cold": itemised(["fit", bladder, "--quiet"], cold=True),
            },
        },
    }  # fmt: skip


def show(found: dict[str, Any]) -> None:
    for name, seconds in found["runs"].items():
        limit = f"  (limit {LIMITS[name]} s)" if name in LIMITS else ""
        print(f"{name:34} {seconds['wall']:6.3f} s, processor {seconds['cpu']:6.3f} s{limit}")
    for command, kinds in found["imports"].items():
        for kind, shares in kinds.items():
            listed = ", ".join(f"{name} {seconds:.3f}" for name, seconds in shares.items())
            print(f"imports of {command}, {kind}: {listed}")


def main() -> None:
    found = measure() | stamp(STANDS_ON)
    _RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    show(found)
    judge = found["judged_by"]
    broken = [name for name, limit in LIMITS.items() if found["runs"][name][judge] > limit]
    assert not broken, f"slower than allowed ({judge} time): {', '.join(broken)}"


if __name__ == "__main__":
    main()
