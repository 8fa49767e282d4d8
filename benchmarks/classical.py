"""Classical estimators: NPMLE on the full skin data, LocalEM against a direct transcription.

The transcription (local_em_reference.py) and LocalEM choose a bandwidth by cross-validation and
fit, in one run, each with one BLAS thread; times are CPU seconds, which other work on the machine
does not change much. ``LocalEM.paper()`` does the same work as the
transcription (its folds, grid and early stop); ``LocalEM()`` does more (it iterates to the fixed
point). Name groups to run only some: ``python benchmarks/classical.py "Nausea A"``.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from local_em_reference import local_em_reference
from provenance import stamp

import gp4c
from gp4c.threads import one_blas_thread

#: what the result stands on
STANDS_ON = ("classical/smoothed", "classical/step_functions")
#: LocalEM must be at least this many times faster than the transcription
LEAST_RATIO = 20.0
#: seconds for NPMLE on the full skin data
NPMLE_LIMIT = 1.0
REPEATS = 3
RESULTS = Path(__file__).parent / "results" / "classical.json"

GROUPS = {
    "Nausea A": ("nausea", None, "high_dose"),
    "Bladder A": ("bladder", None, "thiotepa"),
    "Skin A": ("skin", "basal", "dfmo"),
    "Skin B": ("skin", "squamous", "dfmo"),
    "Skin C": ("skin", "basal", "placebo"),
    "Skin D": ("skin", "squamous", "placebo"),
}
SKIN = ("Skin A", "Skin B", "Skin C", "Skin D")


def group(name: str) -> gp4c.PanelCounts:
    data, event, treatment = GROUPS[name]
    options: dict[str, Any] = {"event": event, "unit": "paper"} if event else {}
    return gp4c.load_dataset(data, **options).where(treatment=treatment)


def seconds(run: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """Best CPU time of some runs, and what the last one returned."""
    best, result = np.inf, None
    for _ in range(repeats):
        began = time.process_time()
        result = run()
        best = min(best, time.process_time() - began)
    return best, result


def step_functions() -> dict[str, float]:
    """Seconds of the step-function estimators on the full skin data."""
    panel = gp4c.load_dataset("skin_full", event="all")
    models = {
        "NPMLE": gp4c.NPMLE,
        "NPMLE, gamma frailty": lambda: gp4c.NPMLE(effect="gamma"),
        "NPMPLE": gp4c.NPMPLE,
        "NPMPLGF": gp4c.NPMPLGF,
    }
    found = {}
    for name, build in models.items():
        found[name], model = seconds(lambda build=build: build().fit(panel))
        assert model.converged_, f"{name} did not converge"
        print(f"{name} on the full skin data: {found[name]:.4f} s", flush=True)
    return found


def local_em(name: str) -> dict[str, float]:
    """Seconds of the transcription and of LocalEM on one group, after checking they agree."""
    panel = group(name)
    with one_blas_thread():
        reference, theirs = seconds(lambda: local_em_reference(panel), repeats=1)
    paper, ours = seconds(lambda: gp4c.LocalEM.paper().fit(panel))
    default, _ = seconds(lambda: gp4c.LocalEM().fit(panel))
    mass = np.diff(ours.cumulative(ours.points_))
    assert np.isclose(theirs.bandwidth, ours.bandwidth_), "another bandwidth was chosen"
    apart = float(np.abs(mass - theirs.mass).max() / theirs.mass.max())
    assert apart < 1e-6, f"the fitted masses differ by {apart:.1e}"
    found = {
        "bandwidth": ours.bandwidth_,
        "reference_seconds": reference,
        "reference_iterations": theirs.n_steps,
        "paper_seconds": paper,
        "default_seconds": default,
        "ratio_paper": reference / paper,
        "ratio_default": reference / default,
        "masses_apart": apart,
    }
    print(
        f"{name}: transcription {reference:.1f} s, LocalEM.paper() {paper:.2f} s "
        f"({found['ratio_paper']:.0f}x), LocalEM() {default:.2f} s "
        f"({found['ratio_default']:.0f}x), masses agree to {apart:.0e}",
        flush=True,
    )
    return found


def main(names: tuple[str, ...] = SKIN) -> None:
    steps = step_functions()
    groups = {name: local_em(name) for name in names}
    if set(SKIN) <= set(names):
        about = {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "cores": os.cpu_count(),
            "least_ratio": LEAST_RATIO,
            "npmle_limit_seconds": NPMLE_LIMIT,
        }
        RESULTS.parent.mkdir(exist_ok=True)
        results = {**about, **stamp(STANDS_ON), "skin_full_seconds": steps, "local_em": groups}
        RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    assert steps["NPMLE"] < NPMLE_LIMIT, f"NPMLE took {steps['NPMLE']:.2f} s"
    for name in set(names) & set(SKIN):
        worst = min(groups[name]["ratio_paper"], groups[name]["ratio_default"])
        assert worst >= LEAST_RATIO, f"LocalEM on {name} is only {worst:.1f} times faster"


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or SKIN)
