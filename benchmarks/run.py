"""Run the benchmarks, all of them or those named: ``python benchmarks/run.py [name ...]``.

A benchmark is a module in this folder with a function ``main()`` that measures and prints, and
raises AssertionError if a limit is broken.
"""

from __future__ import annotations

import importlib
import sys
import time
from pathlib import Path

from provenance import finish

RESULTS = Path(__file__).parent / "results"
#: modules in this folder, in the order they run
BENCHMARKS = (
    "startup",
    "simulation",
    "distinct",
    "log_quadratic",
    "classical",
    "heldout",
    "permutation_size",
    "adjusted_comparison",
    "centres",
    "power_check",
    "power_peers",
    "power_totals",
    "covariate_coverage",
    "forecast_pit",
    "modulation_fleets",
    "speed",
    "count_terms_time",
    "published_path",
    "synthetic_a",
    "scale",
    "judge",
    "shapes",
    "peers",
    "burst_calibration",
    "false_evidence",
    "mixture",
    "event_types",
    "classes",
    "growth",
)


def run(names: tuple[str, ...]) -> int:
    """Run benchmarks by name; return how many broke a limit."""
    sys.path.insert(0, str(Path(__file__).parent))
    n_broken = 0
    for name in names:
        print(f"== {name}", flush=True)
        began = time.perf_counter()
        try:
            importlib.import_module(name).main()
        except AssertionError as error:
            n_broken += 1
            print(f"BROKEN: {error}")
        finish(RESULTS / f"{name}.json")
        print(f"   ({time.perf_counter() - began:.1f} s)\n", flush=True)
    return n_broken


def main(arguments: list[str]) -> int:
    unknown = sorted(set(arguments) - set(BENCHMARKS))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
        return 2
    return min(run(tuple(arguments) or BENCHMARKS), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
