"""GP4C against the paper's O(N·M³) algorithm, and how one evaluation of the bound grows.

Times are CPU seconds of this process with one BLAS thread, so that other work on the machine
disturbs them little; every claim is a ratio or a slope within one run. Results go to
``results/speed.json``.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import naive_reference
import numpy as np
import scipy
from provenance import stamp

import gp4c
from gp4c.data.panel import PanelCounts
from gp4c.inference.variational.bound import theorem2
from gp4c.inference.variational.hyper import Problem, positive_start
from gp4c.inference.variational.vem import InducingValues, rate_scale
from gp4c.model.kernels import KERNELS
from gp4c.model.observations import observe
from gp4c.model.sparse_prior import Hyper
from gp4c.threads import one_blas_thread

#: what the result stands on
STANDS_ON = ("inference/variational", "model")
RESULTS = Path(__file__).parent / "results" / "speed.json"
NAIVE = ("naive", "naive_remembering")
SEEDS = (0, 1, 2, 3, 4)
N_INDUCING, B = 30, 0.3
#: our fits must in all be this many times faster than the naive reference
RATIO_LIMIT = 200.0
#: CPU seconds the naive reference may take: about twice the published code's 19
NAIVE_LIMIT = 40.0
#: the two programs must mean the same bound, in nats
SAME_BOUND = 1e-3
#: largest slopes of log time over log size: linear in end points, quadratic in M
SLOPE_LIMITS = {"end_points": 1.1, "inducing": 2.0}
END_POINTS = (100, 1_000, 10_000, 100_000)
INDUCING = (20, 30, 40, 60, 80, 100)


def cpu_seconds(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median CPU time of a few calls, and the last result."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        result = function()
        times.append(time.process_time() - began)
    return float(np.median(times)), result


def synthetic_a(seed: int) -> PanelCounts:
    """Training half of one trial of the paper's Synthetic A: 50 subjects with 10 intervals."""
    panel, _ = gp4c.simulate_panel(
        "square_wave", window=(0, 60), n_subjects=100, n_intervals=10, random_state=seed
    )
    return panel.split(test_size=0.5, random_state=seed)[0]


def bound_of(panel: PanelCounts, naive: naive_reference.NaiveFit) -> float:
    """The package's value of the bound at the naive reference's q and hyper-parameters."""
    data = observe(panel, None, panel.window)
    problem = Problem(data, KERNELS["se"], "lemma2", B, None, N_INDUCING)
    scale, length = rate_scale(data), panel.window[1] - panel.window[0]
    hyper = Hyper(naive.length_scale / length, naive.variance / scale**2, naive.prior_mean / scale)
    work = problem.workspace(hyper.length_scale, N_INDUCING)
    q = InducingValues(naive.mean, naive.factor).whiten(work, hyper, scale)
    return theorem2(work, hyper, q).bound.total


def compare(seed: int) -> dict[str, float]:
    """Both programs on one data set."""
    panel = synthetic_a(seed)
    model = gp4c.GP4C(
        count_term="lemma2", b=B, n_inducing=N_INDUCING, effect=None, hyper="optimize"
    )
    model.fit(panel)  # imports and tables that are made once
    ours, _ = cpu_seconds(lambda: model.fit(panel), 7)
    naive, fit = cpu_seconds(lambda: naive_reference.fit(panel, b=B, seed=seed), 1)
    kind, _ = cpu_seconds(lambda: naive_reference.fit(panel, b=B, seed=seed, remember=True), 1)
    return {
        "seed": seed,
        "ours_seconds": ours,
        "naive_seconds": naive,
        "naive_remembering_seconds": kind,
        "ratio": naive / ours,
        "ratio_remembering": kind / ours,
        "ours_objective": model.objective_,
        "naive_objective": fit.objective,
        "naive_objective_by_package": bound_of(panel, fit),
        "naive_rounds": fit.rounds,
        "naive_evaluations": fit.evaluations,
    }


def evaluation_seconds(panel: PanelCounts, n_inducing: int) -> float:
    """CPU time of one evaluation of the bound with its gradients by m and S."""
    data = observe(panel, None, panel.window)
    hyper = Hyper(1.0 / (n_inducing - 1), 0.1, 0.95)
    problem = Problem(data, KERNELS["se"], "lemma2", B, None, n_inducing)
    work = problem.workspace(hyper.length_scale, n_inducing)
    q = positive_start(work, hyper)
    one, _ = cpu_seconds(lambda: theorem2(work, hyper, q), 3)
    calls = max(3, int(0.05 / max(one, 1e-6)))
    times = [
        cpu_seconds(lambda: [theorem2(work, hyper, q) for _ in range(calls)], 1)[0] / calls
        for _ in range(7)
    ]
    return min(times)  # the least disturbed


def panel_with(n_end_points: int) -> PanelCounts:
    """A panel with about so many different end points: nine inner ones per subject."""
    return gp4c.simulate_panel(
        0.5, window=(0, 60), n_subjects=max(n_end_points // 9, 1), n_intervals=10, random_state=0
    )[0]


def slope(sizes: list[int], seconds: list[float]) -> float:
    """Steepest slope of log time over log size between neighbours."""
    return float(np.max(np.diff(np.log(seconds)) / np.diff(np.log(sizes))))


def growth() -> dict[str, Any]:
    """Time of one evaluation against end points and against inducing inputs."""
    points, point_seconds = [], []
    for wanted in END_POINTS:
        panel = panel_with(wanted)
        points.append(len(np.union1d(panel.start, panel.stop)))
        point_seconds.append(evaluation_seconds(panel, N_INDUCING))
    panel = panel_with(10_000)
    inducing_seconds = [evaluation_seconds(panel, size) for size in INDUCING]
    overall = np.log(inducing_seconds[-1] / inducing_seconds[0]) / np.log(
        INDUCING[-1] / INDUCING[0]
    )
    return {
        "end_points": points,
        "end_points_seconds": point_seconds,
        "end_points_slope": slope(points, point_seconds),
        "inducing": list(INDUCING),
        "inducing_seconds": inducing_seconds,
        "inducing_slope": float(overall),
        "inducing_steepest_slope": slope(list(INDUCING), inducing_seconds),
    }


def overall_ratio(trials: list[dict[str, float]], naive: str) -> float:
    """Time of the naive reference over ours, both summed over the trials."""
    return sum(t[naive] for t in trials) / sum(t["ours_seconds"] for t in trials)


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), "")
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "load_average": [round(x, 2) for x in os.getloadavg()],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas_threads": 1,
    }


def main() -> None:
    with one_blas_thread():
        trials = [compare(seed) for seed in SEEDS]
        grown = growth()
    overall = {key: overall_ratio(trials, f"{key}_seconds") for key in NAIVE}
    result = {
        **stamp(STANDS_ON),
        "machine": machine(),
        "ratio": overall,
        "trials": trials,
        "growth": grown,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    for t in trials:
        print(
            f"seed {t['seed']}: naive {t['naive_seconds']:6.2f} s "
            f"(remembering {t['naive_remembering_seconds']:5.2f} s), ours "
            f"{1e3 * t['ours_seconds']:5.1f} ms: {t['ratio']:4.0f} times faster "
            f"({t['ratio_remembering']:4.0f}); objective {t['ours_objective']:.2f}, "
            f"naive {t['naive_objective']:.2f}"
        )
    print(
        f"in all {overall['naive']:.0f} times faster ({overall['naive_remembering']:.0f} times "
        "faster than with remembered products)"
    )
    for name in SLOPE_LIMITS:
        steps = zip(grown[name], grown[f"{name}_seconds"], strict=True)
        print(f"{name}: " + ", ".join(f"{n:,}: {1e3 * s:.3g} ms" for n, s in steps))
        print(f"  slope {grown[name + '_slope']:.2f} (limit {SLOPE_LIMITS[name]})")
    check(trials, grown)


def check(trials: list[dict[str, float]], grown: dict[str, Any]) -> None:
    """Raise if a limit is broken."""
    for t in trials:
        gap = abs(t["naive_objective"] - t["naive_objective_by_package"])
        assert gap < SAME_BOUND, f"the two bounds differ by {gap:.2g} nats at the same q"
        assert t["ours_objective"] > t["naive_objective"], "the naive reference found more"
        assert t["naive_seconds"] < NAIVE_LIMIT, f"naive reference: {t['naive_seconds']:.1f} s"
    for name, limit in SLOPE_LIMITS.items():
        found = grown[f"{name}_slope"]
        assert found <= limit, f"time grows with {name} to the power {found:.2f}"
    ratio = overall_ratio(trials, "naive_seconds")
    assert ratio >= RATIO_LIMIT, f"only {ratio:.0f} times faster than the naive reference"


if __name__ == "__main__":
    main()
