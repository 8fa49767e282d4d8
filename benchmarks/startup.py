"""How long until ``gp4c --help`` answers, and where the time goes."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

#: seconds that ``gp4c --help`` may take on a warm disk
LIMIT = 0.3
_REPEATS = 7


def best_of(command: list[str]) -> float:
    """Shortest wall time of a few runs, in seconds."""
    times = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return min(times)


def import_times(module: str) -> dict[str, float]:
    """Seconds that an import takes in all, and its ten most expensive parts."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", f"import {module}"],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"\|\s+(\d+) \|\s*(\S+)", done.stderr)
    by_cost = sorted(((int(us) / 1e6, name) for us, name in lines), reverse=True)
    return {name: seconds for seconds, name in by_cost[:10]}


def main() -> None:
    program = str(Path(sys.executable).with_name("gp4c"))
    python = best_of([sys.executable, "-c", "pass"])
    package = best_of([sys.executable, "-c", "import gp4c"])
    usage = best_of([program, "--help"])
    print(f"python alone      {python:6.3f} s")
    print(f"import gp4c       {package:6.3f} s")
    print(f"gp4c --help       {usage:6.3f} s  (limit {LIMIT} s)")
    for name, seconds in import_times("gp4c.cli").items():
        print(f"  import {name:24s} {seconds:6.3f} s")
    assert usage < LIMIT, f"gp4c --help took {usage:.3f} s, more than {LIMIT} s"


if __name__ == "__main__":
    main()
