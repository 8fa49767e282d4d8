"""Write the study's tables: JSON, one line per data set as CSV, and text on the screen."""

from __future__ import annotations

import csv
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from benchmarks.calibration import summary
from benchmarks.calibration.measure import LEVELS, RANKED
from benchmarks.calibration.store import STANDS_ON, Store
from benchmarks.calibration.synthetic import SETS
from benchmarks.provenance import stamp

RESULTS = Path(__file__).parents[1] / "results"
ARM_NAMES = ("default", "known", "optimize", "paper")
COLUMNS = (
    "arm", "number", "length_scale", "variation", "events_per_subject", "n_subjects",
    "n_intervals", "n_events", "effect", "converged", "seconds",
)  # fmt: skip


def chosen(store: Store, study: str, arm: str, numbers: range) -> list[dict[str, Any]]:
    """Records of an arm; of the prior study only those with these numbers."""
    records = store.read(study, arm)
    return [r for r in records if study != "prior" or r["number"] in numbers]


def tables(store: Store, numbers: range) -> dict[str, Any]:
    """Everything that the records of a version say."""
    found: dict[str, Any] = {}
    for study in ("prior", "setting"):
        for arm in ARM_NAMES:
            records = chosen(store, study, arm, numbers)
            if records:
                found.setdefault(study, {})[arm] = summary.coverage(
                    records
                ) | summary.errors_and_width(records)
    everything = chosen(store, "prior", "default", numbers)
    if everything:
        subset = {record["number"] for record in chosen(store, "prior", "optimize", numbers)}
        same = [record for record in everything if record["number"] in subset]
        if same:
            table = summary.coverage(same) | summary.errors_and_width(same)
            found["prior"]["default_on_compared"] = table
        found["regimes"] = summary.regimes(everything)
        found["ranks"] = summary.simulation_based(everything)
        found["spread"] = {
            arm: summary.spread(records)
            for arm in ("default", "known")
            if (records := chosen(store, "prior", arm, numbers))
        }
    found["synthetic"] = {
        name: summary.paired(records) for name in SETS if (records := store.read("synthetic", name))
    }
    return found


def write(store: Store, label: str, folder: Path, numbers: range) -> dict[str, Any]:
    """Summarise what is in the store: files in `folder`, and text on the screen."""
    found = tables(store, numbers)
    software = {"python": platform.python_version(), "numpy": np.__version__,
                "scipy": scipy.__version__, "source": label}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    whole = {**stamp(STANDS_ON, finished=True), "software": software, **found}
    (folder / "calibration.json").write_text(json.dumps(whole, indent=1) + "\n")
    write_sets(store, folder / "calibration_sets.csv", numbers)
    print("\n".join(text(found)))
    return found


def write_sets(store: Store, path: Path, numbers: range) -> None:
    """One line per data set and arm."""
    rows = []
    for study in ("prior", "setting"):
        for arm in ARM_NAMES:
            rows += [_line(study, record) for record in chosen(store, study, arm, numbers)]
    if not rows:
        return
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _line(study: str, record: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = {"study": study}
    for key in COLUMNS:
        value = record[key]
        line[key] = f"{value:.6g}" if isinstance(value, float) else value
    for level in LEVELS:
        line[f"covered_{level}"] = f"{summary.inside([record], f'inside_{level}').mean():.4f}"
        line[f"simultaneous_{level}"] = int(record[f"simultaneous_{level}"])
    line |= {f"rank_{i + 1}": record["rank"][place] for i, place in enumerate(RANKED)}
    return line | {"rank_Lambda": record["cumulative_rank"]}


def text(found: dict[str, Any]) -> list[str]:
    """The tables as lines of text."""
    lines = []
    for study in ("prior", "setting"):
        for arm, table in found.get(study, {}).items():
            lines += [f"\n{study}, {arm}: {table['data_sets']} data sets"]
            lines += [_coverage_line(level, table[str(level)]) for level in LEVELS]
    if "regimes" in found:
        lines += ["\nregimes (coverage; share of truth below and above the 75% band)"]
        lines += [_regime_line(row) for row in found["regimes"]]
    if "ranks" in found:
        lines += [f"\nranks, {found['ranks']['data_sets']} data sets"]
        for name, row in found["ranks"]["quantities"].items():
            lines.append(f"  {name:10s} {row}")
        lines += [f"  Bonferroni p {found['ranks']['smallest_p_times_tests']}"]
        lines += [f"  power {found['ranks']['power']}", f"  spread {found['spread']}"]
    lines += [f"\n{name}: {row}" for name, row in found["synthetic"].items()]
    return lines


def _pair(pair: list[float]) -> str:
    return f"{100 * pair[0]:5.1f}±{100 * pair[1]:3.1f}"


def _coverage_line(level: float, row: dict[str, Any]) -> str:
    fifths = " ".join(_pair(part) for part in row["fifths"])
    return (
        f"  {100 * level:.0f}%: pointwise {_pair(row['pointwise'])} | fifths {fifths} | "
        f"simultaneous {_pair(row['simultaneous'])} | Λ {_pair(row['cumulative'])}"
    )


def _regime_line(row: dict[str, Any]) -> str:
    cover = " ".join(_pair(row[str(level)]) for level in LEVELS)
    return (
        f"  {row['regime']:13s} {row['from']:8g}-{row['to']:<8g} n={row['data_sets']:3d} {cover} "
        f"| below {_pair(row['below'])} above {_pair(row['above'])}"
    )
