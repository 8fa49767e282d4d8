"""Time and trust of default fits to panels of many shapes: ``python benchmarks/shapes.py``.

Sparse and dense counts (0.1 to 1,000 events per subject), flat, wavy, stepped and spiky rates, 3 to
50 visits, monthly or all different, with and without frailty and bursts, up to a million rows.
Prints CPU seconds of ``GP4C().fit``, effective draws, Pareto k̂, the error of what stands for the
rows, and whether the 95% band of Λ(T) holds the truth; one trial each, so that only many misses
together say something. No shape may take more than 10 s.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from provenance import ENGINE, stamp

import gp4c

Floats = NDArray[np.float64]

#: what the result stands on: many rows are summed or expanded
STANDS_ON = (*ENGINE, "large")
RESULTS = Path(__file__).parent / "results" / "shapes.json"
#: end of the window, in months
END = 60.0
#: seconds of processor time that no shape may exceed
LIMIT = 10.0

RATES = {
    "flat": lambda t: np.ones_like(t),
    "wavy": lambda t: 1 + 0.8 * np.sin(2 * np.pi * t / 15),
    "step": lambda t: np.where(t < 30, 0.5, 1.5),
    "spiky": lambda t: 0.2 + 8 * np.exp(-0.5 * (t - 35) ** 2),
}


@dataclass(frozen=True)
class Shape:
    """A panel to simulate; `frailty` is the variance of effects, `excess` that of bursts, φ."""

    n_subjects: int
    n_visits: int
    events: float
    rate: str
    frailty: float = 0.0
    excess: float = 0.0
    monthly: bool = True


SHAPES = (
    Shape(1000, 10, 0.1, "flat"),
    Shape(1000, 10, 0.3, "wavy", monthly=False),
    Shape(1000, 10, 0.3, "flat", frailty=1.0),
    Shape(50, 10, 1, "flat", monthly=False),
    Shape(50, 10, 10, "wavy"),
    Shape(50, 10, 10, "step", frailty=1.0, excess=2.0),
    Shape(50, 10, 1000, "wavy", frailty=1.0, monthly=False),
    Shape(100, 3, 12, "spiky", monthly=False),
    Shape(100, 50, 1000, "spiky", frailty=0.5, monthly=False),
    Shape(200, 5, 3, "wavy", excess=2.0),
    Shape(200, 20, 30, "step", frailty=0.5),
    Shape(500, 50, 1000, "step", frailty=1.0),
    Shape(500, 50, 1000, "step", frailty=1.0, excess=2.0),
    Shape(2000, 8, 16, "wavy", monthly=False),
    Shape(2000, 8, 16, "wavy", frailty=1.0, excess=2.0, monthly=False),
    Shape(2000, 3, 12, "spiky", monthly=False),
    Shape(3000, 20, 100, "spiky", frailty=1.0, excess=3.0, monthly=False),
    Shape(20_000, 10, 1, "wavy", frailty=1.0, monthly=False),
    Shape(20_000, 10, 10, "step", excess=1.0),
    Shape(100_000, 10, 0.5, "wavy", monthly=False),
    Shape(100_000, 10, 120, "wavy"),
    Shape(100_000, 10, 120, "wavy", monthly=False),
    Shape(100_000, 10, 120, "wavy", frailty=1.0),
    Shape(100_000, 10, 120, "wavy", frailty=1.0, monthly=False),
    Shape(100_000, 10, 120, "wavy", excess=2.0),
    Shape(100_000, 10, 120, "wavy", excess=2.0, monthly=False),
    Shape(100_000, 10, 120, "wavy", frailty=1.0, excess=2.0),
    Shape(100_000, 10, 120, "wavy", frailty=1.0, excess=2.0, monthly=False),
)


def visits(shape: Shape, rng: np.random.Generator) -> Floats:
    """Times of visits, (subjects, visits); half of the subjects are seen to the end."""
    size = (shape.n_subjects, shape.n_visits)
    if shape.monthly:
        months = np.argsort(rng.random((shape.n_subjects, int(END))), axis=1)
        times = np.sort(months[:, : shape.n_visits] + 1.0, axis=1)
    else:
        times = np.sort(rng.uniform(0.0, END, size), axis=1)
    times[:, -1] = np.where(rng.random(shape.n_subjects) < 0.5, END, times[:, -1])
    return times


def simulate(shape: Shape, seed: int = 0) -> gp4c.PanelCounts:
    """Counts whose expected number over the window is `events`."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.0, END, 6001)
    rate = RATES[shape.rate](grid)
    mass = np.concatenate([[0.0], np.cumsum((rate[1:] + rate[:-1]) / 2)])
    mass *= shape.events / mass[-1]
    stop = visits(shape, rng)
    start = np.concatenate([np.zeros((shape.n_subjects, 1)), stop[:, :-1]], axis=1)
    mean = np.interp(stop, grid, mass) - np.interp(start, grid, mass)
    if shape.frailty:
        mean *= rng.gamma(1 / shape.frailty, shape.frailty, (shape.n_subjects, 1))
    if shape.excess:
        mean = rng.gamma(mean / shape.excess) * shape.excess
    count, subject = rng.poisson(mean), np.arange(shape.n_subjects)
    rows = {
        "subject": np.repeat(subject, shape.n_visits), "start": start.ravel(),
        "stop": stop.ravel(), "count": count.ravel(),
    }  # fmt: skip
    seen = rows["stop"] > rows["start"]
    return gp4c.PanelCounts.from_frame(
        {name: values[seen] for name, values in rows.items()}, window=(0.0, END)
    )


def measure(shape: Shape) -> dict[str, Any]:
    """Fit one shape."""
    panel = simulate(shape)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = gp4c.GP4C(random_state=0).fit(panel)
    seconds = time.process_time() - began
    low, high = (float(end) for end in model.cumulative_band(END))
    stands = model.compression_ or {"method": "rows", "error": 0.0}
    return {
        **asdict(shape),
        "n_rows": int(panel.n_intervals),
        "n_events": int(panel.n_events),
        "cpu_seconds": round(seconds, 2),
        "law": model.law_,
        "effect": model.effect_,
        "effective_draws": round(model.effective_draws_),
        "pareto_k": round(model.pareto_k_, 2),
        "method": stands["method"],
        "error": float(f"{stands['error']:.2g}"),
        "band": [float(f"{low:.5g}"), float(f"{high:.5g}")],
        "covered": bool(low <= shape.events <= high),
    }


def shown(found: dict[str, Any]) -> str:
    """One line of the table."""
    ends = "monthly" if found["monthly"] else "different"
    law = f"{found['law']}{' + gamma' if found['effect'] else ''}"
    return (
        f"{found['n_subjects']:>7,} × {found['n_visits']:<2} {found['events']:>6g} "
        f"{found['rate']:<5} {ends:<9} {found['frailty']:>3g} {found['excess']:>3g} | "
        f"{found['cpu_seconds']:>6.2f} {found['effective_draws']:>5} {found['pareto_k']:>5.2f} "
        f"{found['method']:<9} {found['error']:>6.2g} {'in ' if found['covered'] else 'OUT'} {law}"
    )


def main(chosen: Sequence[int] = ()) -> None:
    """Measure all shapes, or some by number; only all of them are written."""
    print(
        "subjects × visits events rate ends frailty φ | CPU s, effective, k̂, by, error, Λ(T), law"
    )
    results = []
    for number, shape in enumerate(SHAPES):
        if not chosen or number in chosen:
            results.append(measure(shape))
            print(f"{number:>2}", shown(results[-1]), flush=True)
    slow = [found for found in results if found["cpu_seconds"] > LIMIT]
    covered = sum(found["covered"] for found in results)
    print(f"Λ(T) inside the 95% band: {covered} of {len(results)}; above {LIMIT:g} s: {len(slow)}")
    if not chosen:
        written = {
            **stamp(STANDS_ON),
            "limit_seconds": LIMIT,
            "shapes": results,
        }
        RESULTS.write_text(json.dumps(written, indent=1) + "\n")
    assert not slow, f"{len(slow)} shapes take more than {LIMIT:g} s"


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]])
