"""Latent classes: subjects that are put right, and how often one class is taken for several.

Two classes: 100 subjects with 8 visits, curves that differ by a factor of 4 or cross. The share of
subjects in the right class stands beside that of the Bayes rule, which knows the curves. One class:
subjects are all alike, differ by frailties, or differ and have bursts; "auto" should say one.

Every data set is kept in the file of results, so that a run that was stopped goes on.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from provenance import ENGINE, is_current, stamp, written
from speed import machine

import gp4c
from gp4c.estimators.mixtures.classes.class_choice import CLEARLY_FOR

RESULTS = Path(__file__).parent / "results" / "classes.json"
N_SUBJECTS, N_VISITS, END = 100, 8, 8.0
#: rates of the classes at the start and the end of the window, linear in between, and what varies
#: within them; rates are such that the Bayes rule puts about 93% of the subjects right
SCENARIOS: dict[str, dict[str, object]] = {
    "level": {"rates": ((0.3, 0.3), (1.2, 1.2))},
    "crossing": {"rates": ((0.8, 4.0), (4.0, 0.8))},
    "one, all alike": {"rates": ((0.5, 1.5),)},
    "one, frailty": {"rates": ((0.5, 1.5),), "frailty": 0.5},
    "one, frailty and bursts": {"rates": ((0.5, 1.5),), "frailty": 0.5, "bursts": 1.0},
}
#: scenarios with two classes
TWO = ("level", "crossing")
#: data sets of a scenario with two classes and with one
N_TWO, N_ONE = 40, 34
#: folders that decide the result
FOLDERS = (*ENGINE, "inference/classes")


def simulated(
    seed: int,
    rates: tuple[tuple[float, float], ...],
    frailty: float = 0.0,
    bursts: float = 0.0,
) -> tuple[gp4c.PanelCounts, np.ndarray, np.ndarray]:
    """A panel, the class of each subject, and the class that the Bayes rule gives it."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(rates), size=N_SUBJECTS)
    visits = np.sort(rng.uniform(0.0, END, (N_SUBJECTS, N_VISITS)), axis=1)
    edges = np.column_stack([np.zeros(N_SUBJECTS), visits])
    mean = np.array([np.diff(a * edges + (b - a) * edges**2 / (2 * END), axis=1) for a, b in rates])
    effect = rng.gamma(1 / frailty, frailty, N_SUBJECTS) if frailty else np.ones(N_SUBJECTS)
    own = effect[:, None] * mean[truth, np.arange(N_SUBJECTS)]
    count = rng.negative_binomial(own / bursts, 1 / (1 + bursts)) if bursts else rng.poisson(own)
    likelihood = (count * np.log(mean) - mean).sum(axis=2)
    columns = {
        "subject": np.repeat(np.arange(N_SUBJECTS), N_VISITS),
        "start": edges[:, :-1].ravel(),
        "stop": edges[:, 1:].ravel(),
        "count": count.ravel(),
    }
    panel = gp4c.PanelCounts.from_frame(columns, window=(0.0, END))
    return panel, truth, likelihood.argmax(axis=0)


def one_set(name: str, seed: int) -> dict[str, float]:
    """Fit one data set of a scenario."""
    panel, truth, bayes = simulated(seed, **SCENARIOS[name])  # type: ignore[arg-type]
    several = name in TWO
    model = gp4c.GP4CClasses(n_classes=2 if several else "auto", n_refits=0, random_state=0)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gp4c.exceptions.GP4CWarning)
        model.fit(panel)
    found = {
        "seconds": round(time.process_time() - began, 2),
        "n_classes": model.n_classes_,
        "nats": round(float(np.diff(model.choice_.log_evidence)[0]), 3),
        "held_out": round(float(np.diff(model.choice_.held_out)[0]), 3),
        "effective": round(float(model.choice_.effective[1])),
    }
    if several:
        label = model.membership_.argmax(axis=1)
        right = float((label == truth).mean())
        found |= {"right": max(right, 1 - right), "bayes": float((bayes == truth).mean())}
    return found


def summary(sets: dict[str, dict[str, float]]) -> dict[str, float]:
    """Means over the data sets of a scenario."""
    each = list(sets.values())
    result = {
        "data_sets": len(each),
        "seconds": float(np.median([one["seconds"] for one in each])),
        "median_nats": float(np.median([one["nats"] for one in each])),
    }
    if "right" not in each[0]:
        return result | {"one_class": float(np.mean([one["n_classes"] == 1 for one in each]))}
    for key in ("right", "bayes"):
        result[key] = float(np.mean([one[key] for one in each]))
    return result | {"clear": float(np.mean([one["nats"] > CLEARLY_FOR for one in each]))}


def main(n_one: int = N_ONE, n_two: int = N_TWO) -> None:
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    sets = known["sets"] if is_current(known) else {}
    for seed in range(max(n_one, n_two)):
        for name in SCENARIOS:
            done = sets.setdefault(name, {})
            if str(seed) in done or seed >= (n_two if name in TWO else n_one):
                continue
            done[str(seed)] = one_set(name, seed)
            found = {one: summary(rows) for one, rows in sets.items() if rows}
            table = {**stamp(FOLDERS), "machine": machine(), "summary": found, "sets": sets}
            RESULTS.write_text(written(table))
    for name, rows in sets.items():
        print(f"{name:28s}", summary(rows), flush=True)
    one = [row["n_classes"] == 1 for name in sets if name not in TWO for row in sets[name].values()]
    print(f"one class in {np.mean(one):.1%} of {len(one)} data sets with one class")
    assert np.mean(one) >= 0.9, "one class is taken for several too often"
    for name in TWO:
        found = summary(sets[name])
        assert found["right"] >= found["bayes"] - 0.03, f"{name}: {found}"


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
