"""The default engine against the sampler, which shares its likelihood and nothing else.

Both at hyper-parameters of the project's design notes (a = √T in a window of length T, γ = g²/2)
and with hyper-parameters integrated, for each law of counts and effects. Compared are log evidence
and, by their relative L1 distance, mean and quartile curves of the intensity. `difference` is that
of one fit, with the noise of its draws; `pooled` is that of the draws of several fits together, and
shows what is left of the engine's own error. The judge's own noise is half the distance between
the two halves of its populations.

``python benchmarks/judge.py "Bladder A" both fixed`` renews the rows that match all words given.
Rows that stand on other source files are dropped.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from provenance import ENGINE, is_current, stamp
from speed import machine

import gp4c
from gp4c.inference.engine.landscape import Task, split_level
from gp4c.inference.engine.lattice import Lattice, find_modes
from gp4c.inference.engine.posterior_fit import DRAWS
from gp4c.inference.engine.single import log_prior_at, modes_at
from gp4c.inference.engine.weigh import Weighted, weigh
from gp4c.inference.sampler.judge import Draws, sample_posterior
from gp4c.model.count_likelihood import CountLikelihood
from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS
from gp4c.model.observed_cells import observe_cells
from gp4c.posterior.quantiles import weighted_quantiles

Floats = NDArray[np.float64]

ROOT = Path(__file__).parents[1]
#: what the result stands on
STANDS_ON = (*ENGINE, "inference/sampler")
RESULTS = Path(__file__).parent / "results" / "judge.json"
SETS = {"Bladder A": ("bladder", "A"), "Bladder B": ("bladder", "B"), "Nausea A": ("nausea", "A")}
#: law of counts and of effects
MODELS = {
    "none": ("poisson", None),
    "frailty": ("poisson", "gamma"),
    "bursts": ("bursts", None),
    "both": ("bursts", "gamma"),
}
SETTINGS = ("fixed", "integrated")
U = float(np.log(np.sqrt(0.5)))
#: draws of the judge at one point, and in all populations where hyper-parameters are integrated
N_DRAWS = {"fixed": 160_000, "integrated": 4_000}
N_POPULATIONS = {"fixed": 8, "integrated": 6}
N_TIMES = 200
#: fits whose draws are pooled
N_FITS = 32

CURVES = ("mean", "lower quartile", "upper quartile")


def task_of(name: str, model: str) -> Task:
    dataset, group = SETS[name]
    panel = gp4c.load_dataset(dataset).where(group=group)
    law, effect = LAWS[MODELS[model][0]], EFFECTS[MODELS[model][1]]
    cells = observe_cells(panel, None, panel.window, law, effect)
    return Task(CountLikelihood(cells, law, effect), KERNELS["se"])


def curves(values: Floats, weights: Floats) -> list[Floats]:
    """Mean and quartiles of draws (T, S)."""
    quartiles = weighted_quantiles(values, weights / weights.sum(), np.array([0.25, 0.75]))
    return [values @ weights / weights.sum(), *quartiles]


def distances(ours: list[Floats], theirs: list[Floats]) -> dict[str, float]:
    pairs = zip(CURVES, ours, theirs, strict=True)
    return {name: round(float(np.abs(a - b).sum() / b.sum()), 4) for name, a, b in pairs}


def engine_values(found: Weighted, times: Floats) -> Floats:
    """Draws of the intensity at times, (T, S)."""
    columns = []
    for sheaf in found.sheaves:
        land = sheaf.point.mode.landscape
        k, mean = split_level(np.array(sheaf.u))
        h = mean + k * (land.prior.features(times) @ sheaf.x[: land.size])
        columns.append(np.exp(sheaf.x[land.size]) * h**2)
    return np.concatenate(columns, axis=1)


def judge_noise(draws: Draws, values: Floats) -> dict[str, float]:
    """Half the distance between even and odd populations."""
    odd = draws.population % 2 == 1
    halves = [curves(values[:, half], draws.weights[half]) for half in (odd, ~odd)]
    return {name: round(value / 2, 4) for name, value in distances(*halves).items()}


def compare(task: Task, setting: str) -> dict[str, Any]:
    """One row of the table."""
    length = task.likelihood.cells.window[1] - task.likelihood.cells.window[0]
    at: dict[str, float | None] = {"length_scale": None, "u": None}
    if setting == "fixed":
        at = {"length_scale": float(length**-0.5), "u": U}
    times = np.linspace(0.0, 1.0, N_TIMES)
    began = time.perf_counter()
    lattice: Lattice = find_modes(task) if setting == "integrated" else modes_at(task, **at)  # type: ignore[arg-type]
    prior = 0.0 if setting == "integrated" else log_prior_at(lattice)
    found = [weigh(lattice, DRAWS, np.random.default_rng(seed)) for seed in range(N_FITS)]
    drawn = [engine_values(one, times) for one in found]
    ours = [curves(one, fit.weights) for one, fit in zip(drawn, found, strict=True)]
    pooled = curves(
        np.concatenate(drawn, axis=1),
        np.concatenate([fit.weights * fit.effective for fit in found]),
    )
    engine_seconds, began = time.perf_counter() - began, time.perf_counter()
    draws, report = sample_posterior(
        task, n_draws=N_DRAWS[setting], n_populations=N_POPULATIONS[setting], random_state=0,
        **at,
    )  # fmt: skip
    values = draws.squares(times)
    theirs = curves(values, draws.weights)
    return {
        "difference": distances(ours[0], theirs),
        "pooled": distances(pooled, theirs),
        "judge_noise": judge_noise(draws, values),
        "engine_noise": distances(ours[0], ours[1]),
        "log_evidence": {
            "engine": [round(one.log_evidence - prior, 3) for one in found],
            "judge": round(report.log_evidence, 3),
            "judge_error": round(report.log_evidence_error, 3),
        },
        "engine": {
            "effective_share": round(found[0].effective / found[0].size, 3),
            "pareto_k": round(found[0].pareto_k, 2),
            "points": len(lattice.points),
            "seconds": round(engine_seconds, 2),
            "fits": N_FITS,
        },
        "judge": {
            "draws": draws.size,
            "r_hat": round(float(np.nanmax(report.r_hat)), 3),
            "least_ess": round(float(np.nanmin(report.ess))),
            "seconds": round(time.perf_counter() - began, 1),
        },
    }


def asked(words: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Rows that match all words; all rows without words."""
    for setting in SETTINGS:
        for name in SETS:
            for model in MODELS:
                if all(word in (name, model, setting) for word in words):
                    yield name, model, setting


def main(words: Sequence[str] = ()) -> None:
    kept = []
    if RESULTS.exists():
        old = json.loads(RESULTS.read_text())
        kept = old["comparisons"] if is_current(old) else []
    for name, model, setting in asked(words):
        row: dict[str, Any] = {"set": name, "model": model, "setting": setting}
        row |= compare(task_of(name, model), setting)
        print(json.dumps(row), flush=True)
        kept = [r for r in kept if (r["set"], r["model"], r["setting"]) != (name, model, setting)]
        kept.append(row)
        table = {"machine": machine(), **stamp(STANDS_ON), "comparisons": kept}
        RESULTS.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
