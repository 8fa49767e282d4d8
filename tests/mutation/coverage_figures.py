"""The figures of ``make coverage``, kept in ``coverage.json`` beside this file; 95% or it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from provenance import stamp

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LEAST = 95.0
COUNTED = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def percent(counts: dict[str, int]) -> float:
    """Share of statements and branches that were run, as coverage.py reports it."""
    reached = counts["covered_lines"] + counts["covered_branches"]
    return round(100 * reached / (counts["num_statements"] + counts["num_branches"]), 2)


def branch_percent(counts: dict[str, int]) -> float:
    """Share of the branches alone."""
    return round(100 * counts["covered_branches"] / max(counts["num_branches"], 1), 2)


def figures(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, object]:
    """Totals, and the same for each folder of the package."""
    folders: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTED, 0))
    for name, file in report["files"].items():
        inside = Path(name.rpartition("gp4c/")[2])
        folder = inside.parts[0] if len(inside.parts) > 1 else "top"
        for counted in COUNTED:
            for place in (folder, "all"):
                folders[place][counted] += file["summary"][counted]
    return {
        name: {**counts, "percent": percent(counts), "branch_percent": branch_percent(counts)}
        for name, counts in sorted(folders.items())
    }


def commit() -> str:
    """What was measured."""
    command = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def main() -> None:
    found = figures(json.loads((ROOT / ".coverage.json").read_text(encoding="utf-8")))
    content = {
        **stamp((".",), finished=True),
        "measured": f"Measured at commit {commit()}.",
        "folders": found,
    }
    (HERE / "coverage.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    total = found["all"]
    print("\n".join(f"{name:12s} {counts}" for name, counts in found.items()))
    if min(total["percent"], total["branch_percent"]) < LEAST:
        sys.exit(f"less than {LEAST:g}% of src is run by the tests")


if __name__ == "__main__":
    main()
