"""Time and memory of fits to many rows; ``python benchmarks/scale.py --big`` runs 10⁸ alone.

Subjects are seen over ten irregular intervals each, all end points different. Every measurement
runs in a process of its own, so that its peak of memory is its own; polars and the fits take
turns three times on the same files, and the fastest turn of each counts. Limits: at 10⁷ rows the
whole default fit without frailty takes at most three times as long as polars takes to read the
same Parquet files and group them by (start, stop), with less than 4 GB at the peak; with gamma
frailty at most twice the plain fit; time and memory per row do not grow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from provenance import ENGINE, stamp

#: what the result stands on
STANDS_ON = ("large", *ENGINE)
RESULTS = Path(__file__).parent / "results" / "scale.json"
PLOT = Path(__file__).parents[1] / "docs" / "images" / "scale.png"
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
BIG = 100_000_000
#: turns of each program on each size up to 10⁷ rows
TURNS = 3
#: growth of time per row from one size to the next that is noise
NOISE = 1.1
PIECE = 1_000_000
GIGABYTE = 1e9

_POLARS = """
import polars as pl
print(len(pl.read_parquet({path!r}).group_by("start", "stop").agg(pl.col("count").sum())))
"""
_FIT = """
import gp4c
source = gp4c.scan_panel({path!r})
model = gp4c.GP4C(n_inducing=30, effect={effect!r}, random_state=0).fit(source)
print(model.compression_)
"""
_SUMS = """
import gp4c
from gp4c.large.streaming import sum_source
source = gp4c.scan_panel({path!r})
sums = sum_source(source, effect=None)
print(sums.n_subjects)
"""
#: runs code; a last line of JSON has seconds by the clock, of processor time, and peak memory
_MEASURED = """
import json, resource, sys, time
code = sys.argv[1]
began = time.perf_counter()
exec(code)
seconds = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
cpu = used.ru_utime + used.ru_stime
print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": used.ru_maxrss * 1024}))
"""


def write_rows(folder: Path, n_rows: int, frailty: float | None = None) -> str:
    """Write rows in pieces of a million, one file each; return what reads them."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    for number, first in enumerate(range(0, n_rows, PIECE)):
        rng = np.random.default_rng([n_rows, number])
        subjects = min(PIECE, n_rows - first) // 10
        entry, length = rng.uniform(0, 6, (subjects, 1)), rng.uniform(20, 54, (subjects, 1))
        stop = entry + length * np.cumsum(rng.dirichlet(np.ones(10), subjects), axis=1)
        start = np.concatenate([entry, stop[:, :-1]], axis=1)
        effect = 1.0 if frailty is None else rng.gamma(frailty, 1 / frailty, (subjects, 1))
        rate = 0.2 * (1 + 0.6 * np.sin((start + stop) / 12))
        count = rng.poisson(effect * rate * (stop - start))
        label = np.repeat(np.arange(subjects) + first // 10, 10)
        columns = {"subject": label, "start": start, "stop": stop, "count": count}
        table = pa.table({name: np.ravel(values) for name, values in columns.items()})
        parquet.write_table(table, folder / f"part-{number:04d}.parquet", row_group_size=2**17)
    return f"{folder}/*.parquet"


def measured(code: str) -> dict[str, float]:
    """Run code in a fresh process; seconds (imports included) and peak of memory."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _MEASURED, code], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    lines = run.stdout.strip().splitlines()
    return {**json.loads(lines[-1]), "said": lines[0] if len(lines) > 1 else ""}


def measure_size(n_rows: int, turns: int = TURNS) -> dict[str, object]:
    """Polars and the fits on one size, in turn; the fastest of each, and the seconds of all."""
    folder = Path(tempfile.mkdtemp(prefix="gp4c-scale-"))
    try:
        path = write_rows(folder, n_rows)
        programs = {"polars": _POLARS.format(path=path)} if n_rows < BIG else {}
        programs["sums"] = _SUMS.format(path=path)
        programs["plain"] = _FIT.format(path=path, effect=None)
        programs["gamma"] = _FIT.format(path=path, effect="gamma")
        found: dict[str, list] = {name: [] for name in programs}
        row: dict[str, object] = {"rows": n_rows, "date": time.strftime("%Y-%m-%d")}
        row["load"] = os.getloadavg()[0]
        for _ in range(turns):
            for name, code in programs.items():
                found[name].append(measured(code))
        for name, runs in found.items():
            best = min(runs, key=lambda run: run["seconds"])
            row[name] = {**best, "all_seconds": [run["seconds"] for run in runs]}
    finally:
        shutil.rmtree(folder)
    return row


def report(row: dict[str, object]) -> None:
    n_rows = row["rows"]
    assert isinstance(n_rows, int)
    for name in ("polars", "sums", "plain", "gamma"):
        found = row.get(name)
        if isinstance(found, dict):
            seconds, peak = found["seconds"], found["peak_bytes"]
            per_row = seconds / n_rows * 1e6
            print(
                f"{n_rows:>11,} rows  {name:<7}{seconds:8.2f} s ({found['cpu_seconds']:.1f} s of "
                f"processor)  {per_row:9.3f} µs/row"
                f"  peak {peak / GIGABYTE:5.2f} GB",
                flush=True,
            )


def check(rows: list[dict]) -> None:
    """Raise if a limit is broken."""
    largest = next(row for row in rows if row["rows"] == SIZES[-1])
    ratio = largest["plain"]["seconds"] / largest["polars"]["seconds"]
    print(f"plain fit / polars at 10⁷ rows: {ratio:.2f} (limit 3)")
    with_frailty = largest["gamma"]["seconds"] / largest["plain"]["seconds"]
    print(f"gamma / plain at 10⁷ rows: {with_frailty:.2f} (limit 2)")
    assert ratio <= 3, f"a plain fit takes {ratio:.1f} times as long as polars"
    assert with_frailty <= 2, f"frailty takes {with_frailty:.1f} times as long as a plain fit"
    for name in ("sums", "plain", "gamma"):
        for measure in ("seconds", "peak_bytes"):
            per_row = [row[name][measure] / row["rows"] for row in rows]
            for less, more in pairwise(per_row):
                assert more <= NOISE * less, f"{measure} per row of {name} grow: {per_row}"


def draw(rows: list[dict]) -> None:
    """The scaling plot of the guide: seconds and peak memory against rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    styles = {"plain": ("o-", "GP4C"), "gamma": ("s--", "GP4C, gamma frailty")}
    styles |= {"sums": ("^:", "reading and summing up alone"), "polars": ("x-.", "polars group_by")}
    for name, (style, label) in styles.items():
        known = [row for row in rows if name in row]
        size = [row["rows"] for row in known]
        left.loglog(size, [row[name]["seconds"] for row in known], style, label=label)
        right.loglog(size, [row[name]["peak_bytes"] / GIGABYTE for row in known], style)
    left.set(xlabel="rows", ylabel="seconds")
    right.set(xlabel="rows", ylabel="peak of memory, GB")
    right.axhline(4, color="0.5", lw=1)
    for axes, ticks in ((left, (0.1, 0.3, 1, 3, 10, 30)), (right, (0.1, 0.2, 0.5, 1, 2, 4))):
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks([], minor=True)
    left.legend(frameon=False, fontsize=8)
    figure.savefig(PLOT, dpi=110)


def main(big: bool = False) -> None:
    """Measure up to 10⁷ rows, or 10⁸ alone; the results of the other run stay on record."""
    document = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"sizes": []}
    if big:
        needed, free = 45 * 10**8, shutil.disk_usage(tempfile.gettempdir()).free
        assert free > 2 * needed, f"10⁸ rows need {2 * needed / GIGABYTE:.0f} GB of disk"
    new = []
    for n_rows in (BIG,) if big else SIZES:
        new.append(measure_size(n_rows, turns=1 if big else TURNS))
        report(new[-1])
    old = [row for row in document["sizes"] if (row["rows"] < BIG) == big]
    rows = sorted([*old, *new], key=lambda row: row["rows"])
    document = {**stamp(STANDS_ON), "cores": os.cpu_count(), "sizes": rows}
    RESULTS.write_text(json.dumps(document, indent=1) + "\n")
    draw(rows)
    for row in new:
        for name in ("plain", "gamma"):
            assert row[name]["peak_bytes"] < 4 * GIGABYTE, "more than 4 GB"
    check([row for row in rows if row["rows"] < BIG])


if __name__ == "__main__":
    main(big="--big" in sys.argv)
