"""Held-out log-likelihood on the paper's eight real sets: 40 random splits of each, 2/3 to fit.

The default against the constant rate with frailty and bursts (the yardstick), the same with frailty
alone, the paper's GP4C and LocalEM, on the same splits. All
counts of the held-out subjects are scored together (``score``), Σ ln m! left out.
Splits that are done are not done again, unless the source has changed since.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from provenance import is_current, stamp
from speed import machine

import gp4c
from gp4c.paper.studies.real import N_INDUCING, SETS, split_of
from gp4c.threads import one_blas_thread

RESULTS = Path(__file__).parent / "results" / "heldout.json"
N_SPLITS = 40
#: least mean difference of the default, in nats, from the constant rate with frailty and bursts
LIMITS = dict.fromkeys(SETS, -0.5) | dict.fromkeys(("Nausea A", "Nausea B", "Bladder A"), 0.0)
RIVALS = ("HPP both", "HPP gamma", "GP4C", "LocalEM")


def split_scores(name: str, trial: int) -> dict[str, float]:
    """Scores of every model on one split, and the Monte-Carlo error of the default's."""
    train, test, seed = split_of(name, "2/3", trial, 0)
    paper = gp4c.GP4C.paper(b=0.3, n_inducing=N_INDUCING, random_state=seed).fit(train)
    score, error = gp4c.GP4C().fit(train).score_with_error(test)
    return {
        "default": score,
        "error": error,
        "HPP both": gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(train).score(test),
        "HPP gamma": gp4c.HomogeneousPoisson(effect="gamma").fit(train).score(test),
        "GP4C": paper.score(test),
        "LocalEM": gp4c.LocalEM.paper().fit(train).score(test),
    }


def summary(splits: list[dict[str, float]]) -> dict[str, Any]:
    """Mean differences of the default from its rivals, with standard errors over splits."""
    found: dict[str, Any] = {"splits": len(splits)}
    for rival in RIVALS:
        differences = np.array([split["default"] - split[rival] for split in splits])
        error = differences.std(ddof=1) / np.sqrt(len(splits))
        found[rival] = [round(float(differences.mean()), 2), round(float(error), 2)]
    found["Monte-Carlo error"] = round(max(split["error"] for split in splits), 2)
    return found


def main() -> None:
    table: dict[str, Any] = {"sets": {}, "splits": {}}
    if RESULTS.exists() and is_current(known := json.loads(RESULTS.read_text())):
        table = known
    table |= {"machine": machine(), **stamp()}
    for name in SETS:
        splits = table["splits"].setdefault(name, [])
        while len(splits) < N_SPLITS:
            with warnings.catch_warnings(), one_blas_thread():
                warnings.simplefilter("ignore")
                scores = split_scores(name, len(splits))
            splits.append({key: round(float(value), 3) for key, value in scores.items()})
            RESULTS.write_text(json.dumps(table, indent=1) + "\n")
        table["sets"][name] = summary(splits)
        print(name, table["sets"][name], flush=True)
        RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    for name, found in table["sets"].items():
        assert found["HPP both"][0] >= LIMITS[name], f"{name}: {found['HPP both']} nats"
        assert found["GP4C"][0] > 0, f"{name}: {found['GP4C']} nats from the paper's GP4C"
        assert found["LocalEM"][0] > 0, f"{name}: {found['LocalEM']} nats from LocalEM"


if __name__ == "__main__":
    main()
