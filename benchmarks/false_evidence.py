"""Probabilities of a difference where there is none, and of a factor where there is one.

Null: two arms of 40 subjects with one constant rate, gamma frailty of variance 1 and bursts with
which the variance of a count is four times its mean. At most 5% of the data sets may have a
probability above 0.95 for a difference (a factor or separate curves). Factor: 300 units in two
sites whose rates differ by 1.4; the factor model should be named, the most probable of the three.
Data sets that are done are not done again, unless the source has changed since.

``python benchmarks/false_evidence.py --sets 200``
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from provenance import ENGINE, GROUP_TEST, is_current, stamp

import gp4c
from gp4c.exceptions import GP4CWarning
from gp4c.threads import one_blas_thread

RESULTS = Path(__file__).parent / "results" / "false_evidence.json"
#: what the results stand on: the engine, what is asked of it, and the test
FOLDERS = (
    *ENGINE,
    "analysis/groups/group_draws.py",
    "analysis/groups/hypotheses.py",
    "analysis/groups/small_groups.py",
    *GROUP_TEST,
)
N_SETS, SURE, MOST_FALSE = 200, 0.95, 0.05
#: variance of a count is 1 + PHI times its mean
PHI = 3.0
SCENARIOS: dict[str, dict[str, Any]] = {
    "null": {"n": 80, "ratio": 1.0, "frailty": 1.0, "bursts": PHI, "truth": "same"},
    "factor": {"n": 300, "ratio": 1.4, "frailty": 0.5, "bursts": None, "truth": "factor"},
}


def measure(name: str, seed: int) -> dict[str, Any]:
    """Probabilities, p-value and factor of one data set."""
    case = SCENARIOS[name]
    arms = np.arange(case["n"]) % 2
    panel, _ = gp4c.simulate_panel(
        0.08, window=(0.0, 60.0), n_subjects=case["n"], n_intervals=8, frailty=case["frailty"],
        bursts=case["bursts"], covariates={"arm": arms},
        coefficients={"arm": float(np.log(case["ratio"]))}, random_state=seed,
    )  # fmt: skip
    began = time.process_time()
    found = gp4c.compare(panel, by="arm", n_permutations=999)
    assert found.hypotheses is not None
    return {
        "seed": seed,
        "probabilities": found.probabilities,
        "log_evidence": found.hypotheses.log_evidence,
        "laws": [found.hypotheses.law, found.hypotheses.effect],
        "p_value": found.p_value,
        "factor": [found.factor, *found.factor_interval(0.95)],
        "seconds": time.process_time() - began,
    }


def summary(rows: list[dict[str, Any]], truth: str) -> dict[str, Any]:
    """Shares with their binomial errors."""
    each = [row["probabilities"] for row in rows]
    shares = {
        "difference above 0.95": np.mean([1 - p["same"] > SURE for p in each]),
        "curves above 0.95": np.mean([p["curves"] > SURE for p in each]),
        f"{truth} named": np.mean([max(p, key=p.get) == truth for p in each]),
        "p at most 0.05": np.mean([row["p_value"] <= 0.05 for row in rows]),
    }
    errors = {name: np.sqrt(s * (1 - s) / len(rows)) for name, s in shares.items()}
    return {
        "data sets": len(rows),
        **{name: [round(float(s), 4), round(float(errors[name]), 4)] for name, s in shares.items()},
    }


def main(n_sets: int = N_SETS) -> None:
    table = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not is_current(table):
        table = {**stamp(FOLDERS), "sets": {}, "summary": {}}
    for name, case in SCENARIOS.items():
        rows = table["sets"].setdefault(name, [])
        for seed in range(len(rows), n_sets):
            with warnings.catch_warnings(), one_blas_thread():
                warnings.simplefilter("ignore", GP4CWarning)
                rows.append(measure(name, seed))
            table["summary"][name] = summary(rows, case["truth"])
            RESULTS.write_text(json.dumps(table, indent=1) + "\n")
        print(name, table["summary"][name], flush=True)
    if n_sets >= N_SETS:
        share = table["summary"]["null"]["difference above 0.95"][0]
        assert share <= MOST_FALSE, f"a difference is found in {share:.1%} of null data sets"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=N_SETS)
    main(parser.parse_args().sets)
