"""Comparisons adjusted for covariates: size, power against the unadjusted test, and coverage.

Trials of 40 subjects per arm: a rate that rises and falls, six random visits, gamma frailty of
variance 0.5, events in bursts (variance twice the mean), and two covariates that matter (log rate
ratios 0.6 and -0.4 per deviation). In "groups by age" the arm is not randomised: it depends on a
covariate, and the unadjusted test must find what is not there.

Coverage is that of the 95% interval of the adjusted ratio of two arms with 30 subjects each, by
kind of standard error.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from provenance import GROUP_TEST, stamp

import gp4c
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.exceptions import GP4CWarning

N_TRIALS, N_PERMUTATIONS, N_FITS = 400, 199, 100
N_PER_ARM, N_FITTED = 40, 30
LEVEL, RATIO = 0.05, 0.6
AGE, BASELINE = 0.6, -0.4
TESTS = ("level", "curve", "any")
ERRORS = ("auto", "robust", "jackknife", "model")
RESULTS = Path(__file__).parent / "results" / "adjusted_comparison.json"
#: what the result stands on
STANDS_ON = ("analysis/groups/adjustment.py", *GROUP_TEST, "model", "inference/engine")
SCENARIOS: dict[str, dict[str, Any]] = {
    "null, randomised": {},
    "null, groups by age": {"by_age": True},
    "rate ratio 0.6, randomised": {"ratio": RATIO},
}


def trial(
    seed: int, n_per_arm: int = N_PER_ARM, ratio: float = 1.0, by_age: bool = False
) -> gp4c.PanelCounts:
    """One simulated trial with the columns arm, age and baseline."""
    rng = np.random.default_rng(seed)
    n = 2 * n_per_arm
    age, baseline = rng.standard_normal((2, n))
    second = np.arange(n) % 2 == 1
    if by_age:
        second = age + rng.standard_normal(n) > 0
    panel, _ = gp4c.simulate_panel(
        ([0.0, 20.0, 60.0], [0.05, 0.15, 0.06]), window=(0.0, 60.0), n_subjects=n, n_intervals=6,
        frailty=0.5, bursts=1.0,
        covariates={"arm": np.where(second, "b", "a"), "age": age, "baseline": baseline},
        coefficients={"arm": {"b": float(np.log(ratio))}, "age": AGE, "baseline": BASELINE},
        random_state=rng,
    )  # fmt: skip
    return panel


def rejections(scenario: dict[str, Any], n_trials: int) -> dict[str, dict[str, float]]:
    """Share of trials with p ≤ 0.05, by test, with and without the covariates."""
    found = {test: {"adjusted": 0.0, "unadjusted": 0.0} for test in TESTS}
    for seed in range(n_trials):
        panel = trial(seed, **scenario)
        for name, formula in (("adjusted", "age + baseline"), ("unadjusted", None)):
            tested = PanelTest.of(
                panel, "arm", test="any", formula=formula, n_permutations=N_PERMUTATIONS,
                random_state=seed,
            )  # fmt: skip
            p_values = {**tested.overall.parts, "any": tested.overall.p_value}
            for test, shares in found.items():
                shares[name] += (p_values[test] <= LEVEL) / n_trials
    return found


def coverage(n_fits: int) -> dict[str, float]:
    """Share of 95% intervals of the adjusted ratio that hold it, by kind of error."""
    held = dict.fromkeys(ERRORS, 0.0)
    for seed in range(n_fits):
        panel = trial(10_000 + seed, N_FITTED, RATIO)
        model = gp4c.GP4C(formula="arm + age + baseline", effect="gamma", bursts=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GP4CWarning)
            model.fit(panel)
        for kind in ERRORS:
            row = model.effect_table(errors=kind).set_index("covariate").loc["arm[b]"]
            held[kind] += float(row["low"] < RATIO < row["high"]) / n_fits
    return held


def main() -> None:
    quick = "quick" in sys.argv
    n_trials, n_fits = (20, 3) if quick else (N_TRIALS, N_FITS)
    shares = {}
    for name, scenario in SCENARIOS.items():
        shares[name] = rejections(scenario, n_trials)
        said = "; ".join(
            f"{test} {each['adjusted']:.3f} ({each['unadjusted']:.3f})"
            for test, each in shares[name].items()
        )
        print(f"{name:32s} {said}", flush=True)
    held = coverage(n_fits)
    print("coverage of 95% intervals", {kind: round(share, 3) for kind, share in held.items()})
    if not quick:
        result = {
            "trials": n_trials, "permutations": N_PERMUTATIONS, "subjects": 2 * N_PER_ARM,
            "share with p <= 0.05": shares, "fits": n_fits, "fitted subjects": 2 * N_FITTED,
            "coverage": held,
            **stamp(STANDS_ON),
        }  # fmt: skip
        RESULTS.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    # four binomial errors of 400 trials above 5%; coverage three errors of 100 below 95%
    for name in ("null, randomised", "null, groups by age"):
        for test, each in shares[name].items():
            assert quick or each["adjusted"] <= 0.094, f"{name}, {test}: {each['adjusted']:.3f}"
    assert quick or held["auto"] >= 0.88, held["auto"]


if __name__ == "__main__":
    main()
