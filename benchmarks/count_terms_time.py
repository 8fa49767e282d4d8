"""What exactness costs: fits of Synthetic A by count term, and by the default engine.

Everything but the compared option is the same; times are CPU seconds of this process with one BLAS
thread, best of two, and every claim is a ratio within one run. Results go to
``results/count_terms_time.json``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from provenance import ENGINE, stamp
from speed import machine, synthetic_a

import gp4c
from gp4c.threads import one_blas_thread

#: what the result stands on
STANDS_ON = ("inference/variational", *ENGINE)
RESULTS = Path(__file__).parent / "results" / "count_terms_time.json"
SEEDS = tuple(range(4))
FITS: dict[str, dict[str, Any]] = {
    "lemma2": {"count_term": "lemma2", "hyper": "optimize", "effect": None},
    "exact": {"count_term": "exact", "hyper": "optimize", "effect": None},
    "default": {},
}
#: dearer fit, cheaper fit, and how many times as long it may take
LIMITS = (("exact", "lemma2", 10.0), ("default", "exact", 5.0))


def seconds(options: dict[str, Any], seed: int) -> float:
    """CPU seconds of one fit, the better of two."""
    panel, taken = synthetic_a(seed), []
    for _ in range(2):
        began = time.process_time()
        gp4c.GP4C(**options).fit(panel)
        taken.append(time.process_time() - began)
    return min(taken)


def main() -> None:
    with one_blas_thread():
        seconds(FITS["default"], SEEDS[0])  # imports
        times = {name: [seconds(options, s) for s in SEEDS] for name, options in FITS.items()}
    table: dict[str, Any] = {
        **stamp(STANDS_ON),
        "machine": machine(),
        "seeds": len(SEEDS),
        "ratios": {},
    }
    table["median_seconds"] = {name: float(np.median(taken)) for name, taken in times.items()}
    for dear, cheap, limit in LIMITS:
        ratio = np.array(times[dear]) / np.array(times[cheap])
        in_all = float(np.sum(times[dear]) / np.sum(times[cheap]))
        table["ratios"][f"{dear} / {cheap}"] = {
            "limit": limit,
            "in_all": in_all,
            "median": float(np.median(ratio)),
            "smallest": float(ratio.min()),
            "largest": float(ratio.max()),
        }
        print(f"{dear} / {cheap}: {in_all:.1f} in all, median {np.median(ratio):.1f}, "
              f"{ratio.min():.1f} to {ratio.max():.1f}", flush=True)  # fmt: skip
    RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    for name, found in table["ratios"].items():
        assert found["in_all"] <= found["limit"], f"{name} is {found['in_all']:.1f}"


if __name__ == "__main__":
    main()
