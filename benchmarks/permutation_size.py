"""Size and power of the permutation tests between groups, over simulated trials.

Size: both arms have the same curve. Where follow-up or visits differ between the arms the test
is not exact any more; the same limit is asked of it. Strata that matter: centres whose rates
differ and whose shares of the arms differ, tested within centres, and with the centres ignored.
Power: the arms differ by a factor, early, late, or cross. There "any" is compared with the best of
the tests with one question, trial by trial. Scenarios end where they were stopped: run again to go
on.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from provenance import GROUP_TEST, is_current, stamp

import gp4c
from gp4c.analysis.permutation import permutation_test, subject_scores

#: trials without a difference, and with one, where two tests are compared within a point
N_SIMULATIONS, N_DIFFERENT = 1000, 2000
N_PERMUTATIONS = 399
N_PER_ARM = 30
LEVEL = 0.05
#: size may be this far from 5%: three binomial errors of 1,000 trials
MARGIN = 0.021
#: points of power that "any" may be behind the best of the other tests
MOST_BEHIND = 0.08
#: what the result stands on
STANDS_ON = GROUP_TEST
RESULTS = Path(__file__).parent / "results" / "permutation_size.json"

#: rates at the ends of the window or at more times, linear in between
RISING, FALLING = (0.04, 0.12), (0.12, 0.04)
EVEN, EARLY, LATE = (0.08,) * 5, (0.03, 0.05, 0.08, 0.08, 0.08), (0.08, 0.08, 0.08, 0.05, 0.03)
#: rates of five centres, and share of their subjects in the second arm
CENTRES, SECOND_ARM = (0.4, 0.4, 0.4, 2.0, 2.0), (0.3, 0.3, 0.3, 0.7, 0.7)
#: bursts with which the variance of a count is four times its mean
PHI = 3.0

#: what the two arms are like; "a" and "b" may each have their own rate, drop-out and visits
SCENARIOS: dict[str, dict[str, Any]] = {
    "null, Poisson": {},
    "null, gamma frailty, variance 2": {"frailty": 2.0},
    "null, lognormal frailty, sigma 1": {"frailty": ("lognormal", 1.0)},
    "null, gamma frailty, drop-out in both arms": {"frailty": 1.0, "dropout": (0.03, 0.03)},
    "null, gamma frailty, drop-out in one arm": {"frailty": 1.0, "dropout": (0.0, 0.04)},
    "null, gamma frailty, four times the visits in one arm": {"frailty": 1.0, "visits": (3, 12)},
    "null, gamma frailty, three arms": {"frailty": 1.0, "arms": 3},
    "null, gamma frailty, bursts": {"frailty": 1.0, "bursts": PHI},
    "null, gamma frailty, bursts, strata that matter": {
        "frailty": 1.0, "bursts": PHI, "strata": "used",
    },
    "the same, strata ignored": {"frailty": 1.0, "bursts": PHI, "strata": "ignored"},
    "rate ratio 0.6, Poisson": {"ratio": 0.6},
    "rate ratio 0.6, gamma frailty, variance 0.5": {"ratio": 0.6, "frailty": 0.5},
    "rate ratio 0.6, gamma frailty, variance 2": {"ratio": 0.6, "frailty": 2.0},
    "early difference, gamma frailty, variance 0.5": {"rates": (EVEN, EARLY), "frailty": 0.5},
    "late difference, gamma frailty, variance 0.5": {"rates": (EVEN, LATE), "frailty": 0.5},
    "crossing rates, Poisson": {"rates": (RISING, FALLING)},
    "crossing rates, gamma frailty, variance 0.5": {"rates": (RISING, FALLING), "frailty": 0.5},
}  # fmt: skip


def trial(seed: int, scenario: dict[str, Any]) -> tuple[gp4c.PanelCounts, np.ndarray, np.ndarray]:
    """One simulated trial: all subjects, the arm and the centre of each."""
    n_arms = scenario.get("arms", 2)
    rates = scenario.get("rates", (RISING,) * n_arms)
    dropout = scenario.get("dropout", (0.0,) * n_arms)
    visits = scenario.get("visits", (6,) * n_arms)
    ratio = scenario.get("ratio", 1.0)
    columns: dict[str, list[np.ndarray]] = {"subject": [], "start": [], "stop": [], "count": []}
    centres = []
    for arm, rng in enumerate(np.random.default_rng(seed).spawn(n_arms)):
        factor = ratio if arm == 1 else 1.0
        frailty = scenario.get("frailty")
        centre = np.zeros(N_PER_ARM, dtype=np.intp)
        if "strata" in scenario:
            share = np.array(SECOND_ARM) if arm else 1 - np.array(SECOND_ARM)
            centre = np.searchsorted(np.cumsum(share) / share.sum(), rng.random(N_PER_ARM))
            frailty = np.array(CENTRES)[centre] * rng.gamma(frailty, 1 / frailty, N_PER_ARM)
        panel, _ = gp4c.simulate_panel(
            (np.linspace(0.0, 60.0, len(rates[arm])), factor * np.array(rates[arm])),
            n_subjects=N_PER_ARM,
            n_intervals=visits[arm],
            dropout=dropout[arm],
            frailty=frailty,
            bursts=scenario.get("bursts"),
            random_state=rng,
        )
        centres.append(centre)
        columns["subject"].append(panel.subject_index + arm * N_PER_ARM)
        for name in ("start", "stop", "count"):
            columns[name].append(getattr(panel, name))
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    panel = gp4c.PanelCounts.from_frame(joined, window=(0.0, 60.0))
    return panel, panel.subjects.astype(np.intp) // N_PER_ARM, np.concatenate(centres)


def rejections(scenario: dict[str, Any], n_simulations: int) -> dict[str, np.ndarray]:
    """Which trials have p ≤ 0.05, by kind of test."""
    found: dict[str, list[bool]] = {}
    for seed in range(n_simulations):
        panel, arm, centre = trial(seed, scenario)
        strata = np.unique(centre, return_inverse=True)[1]
        scores = subject_scores(
            panel.start, panel.stop, panel.count.astype(float), panel.exposure,
            panel.subject_index, panel.n_subjects,
            strata if scenario.get("strata") == "used" else None,
        )  # fmt: skip
        test = permutation_test(
            scores, arm, kind="any", n_permutations=N_PERMUTATIONS, rng=np.random.default_rng(seed)
        )
        for kind, p in {**test.parts, "any": test.p_value}.items():
            found.setdefault(kind, []).append(p <= LEVEL)
    return {kind: np.array(each, dtype=float) for kind, each in found.items()}


def behind(rejected: dict[str, np.ndarray]) -> dict[str, Any]:
    """By how much "any" is behind the best of the others, with the error of that difference."""
    best = max((kind for kind in rejected if kind != "any"), key=lambda k: rejected[k].mean())
    less = rejected[best] - rejected["any"]
    error = less.std() / np.sqrt(len(less))
    return {"best": best, "behind": round(less.mean(), 4), "error": round(error, 4)}


def start(n_simulations: int, n_different: int) -> dict[str, Any]:
    """What was found before with the same source and numbers of trials, or nothing yet."""
    fresh = {
        "simulations": n_simulations,
        "simulations_with_a_difference": n_different,
        "permutations": N_PERMUTATIONS,
        "subjects_per_arm": N_PER_ARM,
        "nominal": LEVEL,
        **stamp(STANDS_ON),
        "rejected": {},
        "any behind the best": {},
    }
    if n_simulations == N_SIMULATIONS and RESULTS.exists():
        known = json.loads(RESULTS.read_text())
        if is_current(known) and known.get("simulations_with_a_difference") == n_different:
            return dict(known)
    return fresh


def main(n_simulations: int = N_SIMULATIONS, n_different: int = N_DIFFERENT) -> None:
    result = start(n_simulations, n_different)
    for name, scenario in SCENARIOS.items():
        differs = "ratio" in scenario or "rates" in scenario
        if name not in result["rejected"]:
            found = rejections(scenario, n_different if differs else n_simulations)
            result["rejected"][name] = {kind: float(each.mean()) for kind, each in found.items()}
            if differs:
                result["any behind the best"][name] = behind(found)
            if n_simulations == N_SIMULATIONS:
                RESULTS.write_text(json.dumps(result, indent=2) + "\n")
        shares = result["rejected"][name]
        said = "  ".join(f"{kind} {share:.3f}" for kind, share in shares.items())
        print(f"{name:55s} {said}", flush=True)
    rows = result["rejected"].items()
    sizes = [p for name, row in rows if name.startswith("null") for p in row.values()]
    worst = max(sizes, key=lambda p: abs(p - LEVEL))
    assert abs(worst - LEVEL) <= MARGIN, f"size {worst:.3f} at the nominal {LEVEL}"
    short = max(each["behind"] for each in result["any behind the best"].values())
    assert short <= MOST_BEHIND, f"any is {100 * short:.1f} points behind the best"


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
