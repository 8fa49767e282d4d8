"""Are forecasts of the next visit's count calibrated? Randomised PIT of subjects not in the fit.

Simulated: 2,000 forecasts, one per held-out subject (a visit chosen at random, given the subject's
earlier ones), spread over 40 data sets with a fit each. Every data set has a curve, a level and a
spread of the frailties of its own, neither drawn from the model's prior nor the same throughout,
because a PIT is uniform on average over truths and training data, not for a single fit: the error
of one fitted curve is common to all forecasts from it. With 200 subjects per fit that error is
small beside the chance in a count, so that the forecasts are nearly independent. Once with the
gamma frailties of the model, once with lognormal ones of the same variance.

Real: all visits after a subject's first, each subject held out once (three folds). P-values take
forecasts for independent, which they are if the model is right.

Finished fits are kept in ``results/forecast_pit.partial.json`` until all are done, so that an
interrupted run resumes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from provenance import ENGINE, stamp
from scipy import stats

import gp4c
from gp4c.analysis.diagnostics import next_visit_pit
from gp4c.data.panel import PanelCounts
from gp4c.paper.studies.real import SETS, real_panel

Floats = NDArray[np.float64]

N_SETS, N_TRAINING, N_HELD_OUT = 40, 200, 50
N_FOLDS, N_BINS = 3, 20
WEEKS = 48.0
FRAILTIES = ("gamma", "lognormal")
#: smallest p-value that passes for "no departure detectable" under the model's own frailties
SMALLEST = 0.01
#: what the result stands on
STANDS_ON = (*ENGINE, "analysis/diagnostics.py")
RESULTS = Path(__file__).parent / "results" / "forecast_pit.json"
PARTIAL = RESULTS.with_suffix(".partial.json")


def simulated(number: int, frailty: str) -> PanelCounts:
    """Visits about every eight weeks, some patients leaving; a curve of the data set's own."""
    rng = np.random.default_rng((2018, number))
    heights = np.exp(rng.normal(0.0, 0.6, 5))
    events = np.exp(rng.uniform(np.log(2.0), np.log(12.0)))
    variance = np.exp(rng.uniform(np.log(0.3), np.log(2.0)))

    def visits(generator: np.random.Generator, n: int) -> list[Floats]:
        last = generator.integers(2, 7, n)
        plan = 8.0 * np.arange(1, 7) + generator.integers(-2, 3, (n, 6))
        return [np.minimum(row[:k], WEEKS) for row, k in zip(plan, last, strict=True)]

    law = ("gamma", 1 / variance)
    if frailty == "lognormal":
        law = ("lognormal", float(np.sqrt(np.log1p(variance))))
    panel, _ = gp4c.simulate_panel(
        (np.linspace(0.0, WEEKS, 5), heights * events / (WEEKS * heights.mean())),
        window=(0.0, WEEKS), n_subjects=N_TRAINING + N_HELD_OUT, visits=visits, frailty=law,
        random_state=rng,
    )  # fmt: skip
    return panel


def forecasts(train: PanelCounts, test: PanelCounts, seed: int) -> Any:
    """Forecasts of all visits of the test subjects but their first."""
    model = gp4c.GP4C(random_state=0).fit(train)
    table = next_visit_pit(model, test, random_state=seed)
    return table[table["subject"].duplicated()]


def simulated_forecasts(number: int, frailty: str) -> dict[str, Any]:
    """One forecast for each held-out subject of a data set."""
    panel = simulated(number, frailty)
    table = forecasts(
        panel[np.arange(N_TRAINING)], panel[np.arange(N_TRAINING, len(panel))], number
    )
    return record(table.groupby("subject").sample(1, random_state=number))


def real_forecasts(name: str, fold: int) -> dict[str, Any]:
    """The forecasts of a third of the subjects of a real data set."""
    panel = real_panel(name)
    fold_of = np.random.default_rng(0).permutation(panel.n_subjects) % N_FOLDS
    return record(forecasts(panel[fold_of != fold], panel[fold_of == fold], fold))


def record(table: Any) -> dict[str, Any]:
    return {name: table[name].round(6).tolist() for name in ("lower", "upper", "pit")}


def tasks() -> Iterator[tuple[str, str, Any]]:
    """All fits: what they belong to, their name, and the function that makes their forecasts."""
    for frailty in FRAILTIES:
        for number in range(N_SETS):
            yield frailty, str(number), lambda n=number, f=frailty: simulated_forecasts(n, f)
    for name in SETS:
        for fold in range(N_FOLDS):
            yield name, str(fold), lambda n=name, k=fold: real_forecasts(n, k)


def run() -> dict[str, dict[str, dict[str, Any]]]:
    """All fits, taking up an interrupted run."""
    done = json.loads(PARTIAL.read_text(encoding="utf-8")) if PARTIAL.exists() else {}
    for group, name, make in tasks():
        if name in done.get(group, {}):
            continue
        done.setdefault(group, {})[name] = made = make()
        PARTIAL.write_text(json.dumps(done), encoding="utf-8")
        print(f"{group} {name}: {len(made['pit'])} forecasts", flush=True)
    return done


def summarise(parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Tests of uniformity, and what a departure looks like."""
    joined = {
        name: np.concatenate([part[name] for part in parts.values()])
        for name in ("lower", "upper", "pit")
    }
    u = joined["pit"]
    bins = np.histogram(u, N_BINS, (0.0, 1.0))[0]
    distance = stats.kstest(u, "uniform")
    inside = (joined["upper"] >= 0.05) & (joined["lower"] < 0.95)
    return {
        "forecasts": len(u),
        "fits": len(parts),
        "ks_distance": float(distance.statistic),
        "ks_p_value": float(distance.pvalue),
        "chi_square_p_value": float(stats.chisquare(bins).pvalue),
        "mean": float(u.mean()),
        "below_0.05": float(np.mean(u < 0.05)),
        "above_0.95": float(np.mean(u > 0.95)),
        "inside_90%_interval": float(inside.mean()),
        "histogram": bins.tolist(),
    }


def main() -> None:
    summary = {group: summarise(parts) for group, parts in run().items()}
    RESULTS.write_text(
        json.dumps({**stamp(STANDS_ON), "forecasts": summary}, indent=1) + "\n", encoding="utf-8"
    )
    PARTIAL.unlink()
    print(f"{'':10s} forecasts   KS   p-value  chi² p    mean   < 0.05  > 0.95  in 90% interval")
    for group, s in summary.items():
        print(
            f"{group:10s} {s['forecasts']:9d} {s['ks_distance']:6.3f} {s['ks_p_value']:8.3f} "
            f"{s['chi_square_p_value']:7.3f} {s['mean']:7.3f} {s['below_0.05']:8.3f} "
            f"{s['above_0.95']:7.3f} {s['inside_90%_interval']:12.3f}"
        )
    own = summary["gamma"]
    least = min(own["ks_p_value"], own["chi_square_p_value"])
    assert least >= SMALLEST, f"forecasts under gamma frailty depart from uniform, p = {least:.4f}"


if __name__ == "__main__":
    main()
