"""Types of events: intervals of the correlation, and held-out likelihood against separate fits.

Simulated: 100 subjects with 6 visits, two Poisson types with about 3 and 2 events per subject and
frailty variances 1 and 0.7, scores of the effects with correlation 0.7; 40 new subjects are scored.
Real: the skin data, random thirds held out. Scores are the sums of subjects' own log-means, over
the same number of draws for both. A run that was stopped goes on while the source is the same.

``python benchmarks/event_types.py [data sets] [splits of the skin data]``
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from provenance import ENGINE, is_current, stamp, written
from scipy.special import ndtr
from scipy.stats import gamma
from speed import machine

import gp4c

RESULTS = Path(__file__).parent / "results" / "event_types.json"
#: folders that decide the result
FOLDERS = (*ENGINE, "inference/types")
N_SETS, N_SPLITS, RHO = 120, 12, 0.7
#: subjects fitted and scored, visits, follow-up, rates and frailty variances of the types
N_SUBJECTS, N_NEW, N_VISITS, LENGTH = 100, 40, 6, 10.0
RATES, VARIANCES = (0.35, 0.23), (1.0, 0.7)


def draw_panel(seed: int) -> gp4c.PanelCounts:
    """One data set: gamma effects with a Gaussian copula, rates that rise and fall."""
    rng = np.random.default_rng((2026, seed))
    n = N_SUBJECTS + N_NEW
    scores = rng.multivariate_normal([0, 0], [[1, RHO], [RHO, 1]], n)
    ends = np.sort(rng.uniform(0, LENGTH, (n, N_VISITS)), axis=1)
    starts = np.concatenate([np.zeros((n, 1)), ends[:, :-1]], axis=1)
    table = {"subject": np.repeat(np.arange(n), N_VISITS), "start": starts.ravel()}
    table["stop"] = ends.ravel()
    for e, name in enumerate(("first", "second")):
        variance = VARIANCES[e]
        effect = gamma.ppf(ndtr(scores[:, e]), 1 / variance, scale=variance)[:, None]
        wave = LENGTH / (2 * np.pi) * 0.5 * (1 if e else -1)
        mean = [t + wave * np.sin(2 * np.pi * t / LENGTH) for t in (starts, ends)]
        table[name] = rng.poisson(RATES[e] * effect * (mean[1] - mean[0])).ravel()
    return gp4c.PanelCounts.from_frame(
        pd.DataFrame(table), count=["first", "second"], window=(0, LENGTH)
    )


def compared(train: Any, test: Any, **options: Any) -> dict[str, Any]:
    """A joint fit and separate ones, scored on the same subjects."""
    began = time.process_time()
    joint = gp4c.GP4C(**options).fit(train)
    seconds = time.process_time() - began
    alone = sum(
        gp4c.GP4C(**options).fit(train.of_type(name)).score_subjects(test.of_type(name)).sum()
        for name in train.event_types
    )
    found = joint.effect_correlation_
    row = {
        "mean": float(found), "interval_95": found.interval(0.95),
        "interval_50": found.interval(0.5),
        "effective": joint.effective_draws_, "pareto_k": joint.pareto_k_, "cpu_seconds": seconds,
        "gain": joint.log_evidence_gain_,
        "score_gain": float(joint.score_subjects(test).sum() - alone),
    }  # fmt: skip
    return {key: np.round(value, 4).tolist() for key, value in row.items()}


def simulated(seed: int) -> dict[str, Any]:
    """One simulated data set."""
    panel = draw_panel(seed)
    new = np.arange(panel.n_subjects) >= N_SUBJECTS
    return compared(panel[~new], panel[new], effect="gamma", bursts=False)


def skin(seed: int) -> dict[str, Any]:
    """One random third of the skin data held out."""
    train, test = gp4c.load_dataset("skin").split(random_state=seed)
    return compared(train, test)


def summary(found: dict[str, Any]) -> dict[str, float]:
    """Coverage, gains and seconds."""
    sets, splits = list(found["simulated"].values()), list(found["skin"].values())
    ends = {level: np.array([one[f"interval_{level}"] for one in sets]).T for level in (50, 95)}
    held = {level: np.mean((low < RHO) & (high > RHO)) for level, (low, high) in ends.items()}
    seconds = [[one["cpu_seconds"] for one in some] for some in (sets, splits)]
    gains, real = (np.array([one["score_gain"] for one in some]) for some in (sets, splits))
    return {
        "n_sets": len(sets), "held_95": float(held[95]), "held_50": float(held[50]),
        "mean_of_rho": float(np.mean([one["mean"] for one in sets])),
        "score_gain": float(gains.mean()),
        "score_gain_error": float(gains.std() / len(gains) ** 0.5),
        "n_splits": len(splits), "skin_gain": float(real.mean()) if len(real) else np.nan,
        "skin_gain_deviation": float(real.std()) if len(real) else np.nan,
        "least_effective": float(min(one["effective"] for one in sets + splits)),
        "cpu_seconds": float(np.median(seconds[0])),
        "skin_cpu_seconds": float(np.median(seconds[1])) if splits else np.nan,
    }  # fmt: skip


def main(n_sets: int = N_SETS, n_splits: int = N_SPLITS) -> None:
    """Do what is not done yet, print and check."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    fresh: dict[str, Any] = {"simulated": {}, "skin": {}}
    sets = known["sets"] if is_current(known) else fresh
    jobs = [("simulated", simulated, k) for k in range(n_sets)]
    jobs += [("skin", skin, k) for k in range(n_splits)]
    for name, job, seed in jobs:
        if str(seed) in sets[name]:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sets[name][str(seed)] = job(seed)
        found = {**stamp(FOLDERS), "machine": machine(), "summary": summary(sets), "sets": sets}
        RESULTS.write_text(written(found), encoding="utf-8")
    told = summary(sets)
    for key, value in told.items():
        print(f"{key:24} {value:.4g}")
    error = (0.95 * 0.05 / told["n_sets"]) ** 0.5
    assert told["held_95"] > 0.95 - 3 * error, "intervals of the correlation are too short"
    assert told["score_gain"] > 0, "separate fits predict better where types are correlated"
    assert not told["skin_gain"] < 0, "separate fits predict the skin data better"


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
