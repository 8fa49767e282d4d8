"""Fit one data set and record where the truth lies in the posterior."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.calibration.cases import LENGTH, WINDOW, Case
from benchmarks.calibration.known import fit_known
from numpy.typing import NDArray

import gp4c
from gp4c.exceptions import ConvergenceWarning

Floats = NDArray[np.float64]

LEVELS = (0.5, 0.75, 0.95)
N_TIMES = 60
#: middles of equal cells, so that each fifth of the window holds as many
TIMES = WINDOW[0] + LENGTH * (np.arange(N_TIMES) + 0.5) / N_TIMES
#: ends at which Λ is checked
CUMULATIVE_TIMES = WINDOW[0] + LENGTH * np.arange(1, 11) / 10
#: positions in TIMES of the five times whose ranks are tested: the middle of each fifth
RANKED = (5, 17, 29, 41, 53)
#: draws a rank is taken among: 1000 possible ranks, so 20 bins of equal probability
N_DRAWS = 999

OPTIMIZED = {"count_term": "exact", "hyper": "optimize", "effect": None}
#: fitted models by name
ARMS: dict[str, Callable[[Case], Any]] = {
    "default": lambda case: gp4c.GP4C().fit(case.panel),
    "optimize": lambda case: gp4c.GP4C(**OPTIMIZED).fit(case.panel),
    "paper": lambda case: gp4c.GP4C.paper(0.3, random_state=0).fit(case.panel),
    "known": fit_known,
}


def measure(case: Case, arm: str) -> dict[str, Any]:
    """Fit by `arm` and compare its posterior with the truth."""
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = ARMS[arm](case)
    seconds = time.process_time() - began
    record = case.describe() | {"arm": arm, "seconds": round(seconds, 3)}
    record |= {"converged": not caught, "effect": model.effect_}
    return record | intensity_record(model, case) | cumulative_record(model, case)


def intensity_record(model: Any, case: Case) -> dict[str, Any]:
    """Bands and ranks of λ at TIMES, and the error of its estimate."""
    truth = case.truth(TIMES)
    draws = model.sample_intensity(TIMES, N_DRAWS, random_state=1)
    found: dict[str, Any] = {"rank": (draws < truth).sum(axis=0).tolist()}
    for level in LEVELS:
        low, high = model.intensity_band(TIMES, level)
        found[f"inside_{level}"] = bits((low <= truth) & (truth <= high))
        if level == 0.75:
            found["relative_width_0.75"] = float((high - low).mean() / truth.mean())
        low, high = model.intensity_band(TIMES, level, kind="simultaneous")
        found[f"simultaneous_{level}"] = bool(np.all((low <= truth) & (truth <= high)))
    found["mise"] = float(np.mean((model.intensity(TIMES) - truth) ** 2) * LENGTH)
    return found


def cumulative_record(model: Any, case: Case) -> dict[str, Any]:
    """Pointwise bands of Λ, and the rank of Λ at the end of the window.

    The band is asked of the posterior for all levels at once, which is what
    ``cumulative_band`` does level by level.
    """
    truth = case.truth.cumulative(CUMULATIVE_TIMES)
    start = np.full_like(CUMULATIVE_TIMES, WINDOW[0])
    tails = np.array([p for level in LEVELS for p in ((1 - level) / 2, (1 + level) / 2)])
    quantiles = model.posterior_.integral_quantile(start, CUMULATIVE_TIMES, tails)
    found: dict[str, Any] = {}
    for i, level in enumerate(LEVELS):
        low, high = quantiles[2 * i], quantiles[2 * i + 1]
        found[f"cumulative_inside_{level}"] = bits((low <= truth) & (truth <= high))
    rng = np.random.default_rng(2)
    whole = model.posterior_.sample_integrals(start[-1:], CUMULATIVE_TIMES[-1:], N_DRAWS, rng)
    found["cumulative_rank"] = int((whole[:, 0] < truth[-1]).sum())
    return found


def bits(inside: NDArray[np.bool_]) -> str:
    """Booleans as a string of 0 and 1, to keep records small."""
    return "".join("1" if x else "0" for x in inside)
