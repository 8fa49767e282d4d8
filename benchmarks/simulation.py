"""100,000 subjects with 10 intervals each, relative to drawing the random numbers alone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from provenance import stamp

import gp4c

RESULTS = Path(__file__).parent / "results" / "simulation.json"
#: a simulated event may cost this many times the three random numbers it needs, visits included
LIMIT = 30.0


def main() -> None:
    result: dict[str, Any] = {**stamp(("data/simulate",)), "limit": LIMIT, "panels": {}}
    for name, rate in (("sparse", 0.05), ("square wave", "square_wave")):
        began = time.perf_counter()
        panel, events = gp4c.simulate_panel(rate, n_subjects=100_000, n_intervals=10)
        took = time.perf_counter() - began
        n_drawn = panel.n_intervals + events.n_events
        began = time.perf_counter()
        rng = np.random.default_rng(0)
        for draw in (rng.standard_exponential, rng.random, rng.random):
            draw(n_drawn)
        alone = time.perf_counter() - began
        result["panels"][name] = {
            "intervals": panel.n_intervals, "events": events.n_events, "seconds": took,
            "ratio": took / alone,
        }  # fmt: skip
        print(
            f"{name:12s} {panel.n_intervals:,} intervals, {events.n_events:,} events: "
            f"{took:.2f} s, {took / alone:.1f} times the random numbers alone"
        )
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    for name, found in result["panels"].items():
        assert found["ratio"] < LIMIT, f"{name}: {found['ratio']:.1f} times, more than {LIMIT}"


if __name__ == "__main__":
    main()
