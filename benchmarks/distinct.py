"""Distinct intervals of 10 million rows, against polars grouping and summing the same rows.

Both are timed in turns in one run, so that a busy machine slows both. Polars returns the groups
in any order; ours are sorted and come with the group of every row.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from provenance import stamp

from gp4c.data.distinct import distinct_intervals

N_ROWS = 10_000_000
REPEATS = 3
#: at most this many times polars's time
LIMIT = 4.0
#: what the result stands on
STANDS_ON = ("data/distinct.py",)
RESULTS = Path(__file__).parent / "results" / "distinct.json"


def rows(n_rows: int, n_different: int, fractional: bool) -> dict[str, np.ndarray]:
    """Random intervals, counts and exposures."""
    random = np.random.default_rng(0)
    start = random.uniform(0.0, 50.0, n_different)
    stop = start + random.uniform(0.1, 5.0, n_different)
    if n_different < n_rows:
        which = random.integers(0, n_different, n_rows)
        start, stop = start[which], stop[which]
    exposure = random.gamma(2.0, 0.5, n_rows) if fractional else np.ones(n_rows)
    return {
        "start": start,
        "stop": stop,
        "count": random.poisson(1.0, n_rows),
        "exposure": exposure,
    }


def compare(n_rows: int, n_different: int, fractional: bool) -> dict[str, float]:
    """Best times of both in alternation, after a check that they agree."""
    columns = rows(n_rows, n_different, fractional)
    frame = pl.DataFrame(columns)

    def by_polars() -> pl.DataFrame:
        return frame.group_by("start", "stop").agg(pl.col("count").sum(), pl.col("exposure").sum())

    def by_gp4c() -> object:
        return distinct_intervals(**columns)

    theirs, ours = by_polars().sort("start", "stop"), distinct_intervals(**columns)
    assert np.array_equal(theirs["start"], ours.start), "not the same intervals"
    assert np.array_equal(theirs["count"], ours.count), "not the same counts"
    assert np.allclose(theirs["exposure"], ours.exposure, rtol=1e-12), "not the same exposures"
    del theirs, ours
    times = [(seconds(by_polars), seconds(by_gp4c)) for _ in range(REPEATS)]
    polars, gp4c = (min(column) for column in zip(*times, strict=True))
    return {"polars_seconds": polars, "gp4c_seconds": gp4c, "ratio": gp4c / polars}


def seconds(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def main(n_rows: int = N_ROWS) -> None:
    results = {}
    for label, n_different in (("2,000 different", min(2000, n_rows)), ("all different", n_rows)):
        for kind in ("unit", "fractional"):
            name = f"{label}, {kind} exposure"
            results[name] = found = compare(n_rows, n_different, kind == "fractional")
            print(
                f"{n_rows:,} rows, {name}: polars {found['polars_seconds']:.2f} s, "
                f"gp4c {found['gp4c_seconds']:.2f} s, ratio {found['ratio']:.2f} (limit {LIMIT:g})",
                flush=True,
            )
    if n_rows == N_ROWS:
        about = {
            "rows": n_rows,
            "limit": LIMIT,
            "numpy": np.__version__,
            "polars": pl.__version__,
            "python": platform.python_version(),
        } | stamp(STANDS_ON)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({**about, "results": results}, indent=2) + "\n")
    worst = max(found["ratio"] for found in results.values())
    assert worst <= LIMIT, f"distinct() took {worst:.2f} times as long as polars"


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
