"""Run the reproduction with 40 trials, or what is missing of it, and record its source.

The trials carry a version of their own, which a changed comment makes another. The record beside
them, ``results/trials.json``, is the one of all committed results: ``make evidence`` reads it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
sys.path.insert(0, str(ROOT / "benchmarks"))

from provenance import stamp  # noqa: E402  (the folder of benchmarks is no package)

from gp4c.paper.store import PackedStore  # noqa: E402

#: what decides the numbers of a trial
STANDS_ON = (
    "data", "model", "posterior", "inference", "large", "estimators", "classical", "paper/studies",
)  # fmt: skip


def main() -> None:
    """Run, then record."""
    command = [sys.executable, "-m", "gp4c", "reproduce", "all", "--trials", "40", "--jobs", "2"]
    subprocess.run(
        [*command, "--out", str(RESULTS), "--docs", str(ROOT / "docs")], cwd=ROOT, check=True
    )
    subprocess.run([sys.executable, str(ROOT / "docs/_extensions/guide_tables.py")], check=True)
    store = PackedStore(RESULTS / "trials.jsonl.gz")
    made = stamp(STANDS_ON, finished=True)
    record = made | {"version": store.version, "trials": len(store.tasks())}
    (RESULTS / "trials.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
