"""Comparisons with centres: size of the test, and coverage of what the regression says of them.

Twelve centres of eight subjects, seen six times, with gamma frailty of variance 0.5 and rates of
centres with deviation 0.5 of ln rate. Either whole centres are randomised, or subjects within them.
The test without centres is shown beside. Fits end where they were stopped: run again to go on.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from provenance import GROUP_TEST, is_current, stamp

import gp4c
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.analysis.groups.ratios.centre_ratios import fit_centre_ratios
from gp4c.exceptions import GP4CWarning

N_TRIALS, N_PERMUTATIONS, N_FITS = 400, 199, 60
CENTRES, PER_CENTRE, VISITS = 12, 8, 6
DEVIATION, FRAILTY, RATIO = 0.5, 0.5, 0.6
DESIGNS = ("whole centres", "within centres")
RESULTS = Path(__file__).parent / "results" / "centres.json"
#: what the result stands on
STANDS_ON = (
    "analysis/groups/ratios", *GROUP_TEST, "estimators/regression/centre_regression.py",
    "estimators/regression/covariates.py", "estimators/regression/covariate_effects.py",
    "inference/engine",
)  # fmt: skip


def trial(seed: int, design: str, ratio: float = 1.0) -> gp4c.PanelCounts:
    """One simulated trial with the columns arm and centre."""
    rng = np.random.default_rng(seed)
    centre, member = np.divmod(np.arange(CENTRES * PER_CENTRE), PER_CENTRE)
    arm = (centre if design == DESIGNS[0] else member) % 2
    level = 0.6 * np.exp(DEVIATION * rng.standard_normal(CENTRES))[centre] * ratio**arm
    effect = rng.gamma(1 / FRAILTY, FRAILTY, len(arm))
    counts = rng.poisson((level * effect)[:, None], (len(arm), VISITS))
    rows = np.arange(VISITS, dtype=float)
    table = pd.DataFrame({
        "subject": np.repeat(np.arange(len(arm)), VISITS), "start": np.tile(rows, len(arm)),
        "stop": np.tile(rows + 1, len(arm)), "count": counts.ravel(),
        "arm": np.repeat(np.where(arm, "b", "a"), VISITS),
        "centre": np.repeat([f"c{c}" for c in centre], VISITS),
    })  # fmt: skip
    return gp4c.PanelCounts.from_frame(table)


def rejections(design: str, n_trials: int) -> dict[str, float]:
    """Share of trials without a difference in which p ≤ 0.05, with centres and without."""
    found: dict[str, list[bool]] = {"with centres": [], "centres ignored": []}
    for seed in range(n_trials):
        panel = trial(seed, design)
        for name, cluster in zip(found, ("centre", None), strict=True):
            test = PanelTest.of(panel, "arm", cluster=cluster, n_permutations=N_PERMUTATIONS)
            found[name].append(test.overall.p_value <= 0.05)
    return {name: float(np.mean(each)) for name, each in found.items()}


def held(design: str, seed: int) -> dict[str, bool]:
    """Which 95% intervals of one trial hold the truth."""
    panel = trial(10_000 + seed, design, RATIO)
    tested = PanelTest.of(panel, "arm", cluster="centre", n_permutations=N_PERMUTATIONS)
    found = fit_centre_ratios(gp4c.GP4C(random_state=seed), tested, lambda text: None)
    answer: dict[str, bool] = {}
    for errors in ("robust", "model"):
        (row,) = found.pair_ratios(["a", "b"], [("a", "b")], 0.95, errors).itertuples()
        answer[f"ratio, {errors}"] = bool(row.low <= RATIO <= row.high)
    between = np.expm1(DEVIATION**2)
    share = between / (between + FRAILTY + between * FRAILTY)
    for name, (low, high), truth in (
        ("deviation", found.deviation_interval(), DEVIATION),
        ("share", found.share_interval(), share),
    ):
        answer[name] = bool(low <= truth <= high)
    low, high = tested.interval(0.95, 0, 1)
    answer["ratio, by the test"] = bool(low <= RATIO <= high)
    return answer


def main() -> None:
    quick = "quick" in sys.argv
    warnings.simplefilter("ignore", GP4CWarning)
    made = stamp(STANDS_ON)
    result: dict[str, Any] = {**made, "size": {}, "fits": {}}
    if not quick and RESULTS.exists():
        known = json.loads(RESULTS.read_text(encoding="utf-8"))
        result = known if is_current(known) else result
    for design in DESIGNS:
        if design not in result["size"]:
            result["size"][design] = rejections(design, 20 if quick else N_TRIALS)
        print(f"p <= 0.05 without a difference, {design}: {result['size'][design]}", flush=True)
        fits = result["fits"].setdefault(design, [])
        for seed in range(len(fits), 2 if quick else N_FITS):
            fits.append(held(design, seed))
            if not quick:
                RESULTS.write_text(json.dumps(result) + "\n", encoding="utf-8")
        shares = pd.DataFrame(fits).mean().round(3).to_dict()
        print(f"95% intervals that hold, {len(fits)} trials, {design}: {shares}", flush=True)


if __name__ == "__main__":
    main()
