"""The default beside mgcv's negative-binomial GAM on the same panels: accuracy, bands and time.

Wavy rates of random period and phase, 50 subjects with 10 irregular intervals each, without and
with frailty and bursts. A user of mgcv fits

    gam(n ~ s(mid) + s(id, bs = "re") + offset(log(length)), family = nb(), method = "REML")

at the intervals' midpoints, and predicts with the subjects' effects left out. Where subjects
differ, the mean over subjects is e^{s²/2} times that, s² the variance of the random effects: both
are measured, and the better one counts. Needs R with mgcv (Debian: r-cran-mgcv); skipped if
it is not there. ``python benchmarks/mgcv_peer.py --trials 20``
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from provenance import stamp
from speed import machine

import gp4c
from gp4c.threads import one_blas_thread

Floats = NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "mgcv_peer.json"
END, N_SUBJECTS, N_INTERVALS = 60.0, 50, 10
TIMES = np.linspace(0.0, END, 301)
#: variance of the subjects' effects and φ of the bursts
LAWS: dict[str, tuple[float, float]] = {
    "none": (0.0, 0.0), "frailty": (1.0, 0.0), "both": (1.0, 2.0),
}  # fmt: skip
#: expected events of a subject
LEVELS = (6.0, 30.0)
#: asked for: integrated squared error at most this share of mgcv's, coverage of 95% bands between
MOST_ERROR, COVERAGE = 0.5, (0.92, 0.98)

R_PROGRAM = r"""
suppressMessages(library(mgcv))
folder <- commandArgs(TRUE)[1]
times <- read.csv(file.path(folder, "times.csv"))$t
for (path in list.files(folder, pattern = "^panel.*csv$", full.names = TRUE)) {
  d <- read.csv(path)
  d$id <- factor(d$subject)
  began <- proc.time()
  m <- gam(count ~ s(mid, k = 20) + s(id, bs = "re") + offset(log(length)), data = d,
           family = nb(), method = "REML")
  used <- proc.time() - began
  new <- data.frame(mid = times, id = d$id[1], length = 1)
  p <- predict(m, new, se.fit = TRUE, exclude = "s(id)", unconditional = TRUE)
  s <- gam.vcomp(m, rescale = FALSE)
  s <- if (is.list(s)) s$vc else s
  sd <- if (is.matrix(s)) s["s(id)", 1] else s["s(id)"]
  out <- data.frame(fit = p$fit, se = p$se.fit, sd = sd, cpu = used[1] + used[2])
  write.csv(out, sub("panel", "gam", path), row.names = FALSE)
}
"""


def wavy(rng: np.random.Generator, level: float) -> Floats:
    """A rate at `TIMES` that waves, with `level` events over the window."""
    period, phase = rng.uniform(10.0, 30.0), rng.uniform(0.0, 2 * np.pi)
    rate = 1 + 0.8 * np.sin(2 * np.pi * TIMES / period + phase)
    return np.asarray(rate * level / np.trapezoid(rate, TIMES))


def one_panel(law: str, level: float, seed: int) -> tuple[gp4c.PanelCounts, Floats]:
    """A panel and its rate."""
    rng = np.random.default_rng([seed, int(level), list(LAWS).index(law)])
    rate = wavy(rng, level)
    frailty, phi = LAWS[law]
    panel, _ = gp4c.simulate_panel(
        lambda t: np.interp(t, TIMES, rate), window=(0.0, END), n_subjects=N_SUBJECTS,
        n_intervals=N_INTERVALS, frailty=frailty or None, bursts=phi or None, random_state=rng,
    )  # fmt: skip
    return panel, rate


def judged(estimate: Floats, low: Floats, high: Floats, rate: Floats) -> dict[str, float]:
    """Integrated squared error, and the share of times at which the band holds the rate."""
    return {
        "ise": float(np.trapezoid((estimate - rate) ** 2, TIMES)),
        "coverage": float(np.mean((low <= rate) & (rate <= high))),
    }


def ours(panel: gp4c.PanelCounts, rate: Floats) -> dict[str, float]:
    """The default fit."""
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model = gp4c.GP4C().fit(panel)
        cpu = time.process_time() - began
    low, high = model.intensity_band(TIMES, level=0.95)
    return {**judged(model.intensity(TIMES), low, high, rate), "cpu": cpu}


def gam_fits(panels: list[gp4c.PanelCounts]) -> list[pd.DataFrame]:
    """Fits by R, all panels in one process."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pd.DataFrame({"t": TIMES}).to_csv(folder / "times.csv", index=False)
        for number, panel in enumerate(panels):
            frame = panel.to_frame()
            frame["mid"] = (frame["start"] + frame["stop"]) / 2
            frame["length"] = frame["stop"] - frame["start"]
            frame.to_csv(folder / f"panel{number:04d}.csv", index=False)
        (folder / "fit.R").write_text(R_PROGRAM)
        subprocess.run(["Rscript", str(folder / "fit.R"), name], check=True)
        return [pd.read_csv(folder / f"gam{number:04d}.csv") for number in range(len(panels))]


def of_gam(fit: pd.DataFrame, rate: Floats, marginal: bool) -> dict[str, float]:
    """mgcv's curve: of the typical subject, or of the mean over subjects."""
    shift = fit["sd"].iloc[0] ** 2 / 2 if marginal else 0.0
    low, middle, high = (
        np.exp(fit["fit"] + shift + z * fit["se"]).to_numpy() for z in (-1.96, 0.0, 1.96)
    )
    return {**judged(middle, low, high, rate), "cpu": float(fit["cpu"].iloc[0])}


def means(rows: list[dict[str, float]]) -> dict[str, float]:
    """Averages over trials."""
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def measure(law: str, level: float, trials: int) -> dict[str, Any]:
    """Both on the same panels."""
    drawn = [one_panel(law, level, seed) for seed in range(trials)]
    fits = gam_fits([panel for panel, _ in drawn])
    found = {
        "gp4c": [ours(panel, rate) for panel, rate in drawn],
        "mgcv": [of_gam(f, rate, False) for f, (_, rate) in zip(fits, drawn, strict=True)],
        "mgcv, mean": [of_gam(f, rate, True) for f, (_, rate) in zip(fits, drawn, strict=True)],
    }
    best = [
        min(a["ise"], b["ise"]) for a, b in zip(found["mgcv"], found["mgcv, mean"], strict=True)
    ]
    pairs = np.array([[row["ise"], other] for row, other in zip(found["gp4c"], best, strict=True)])
    one_out = [np.delete(pairs, k, axis=0).mean(axis=0) for k in range(trials)]
    ratios = np.array([a / b for a, b in one_out])
    error = np.sqrt((trials - 1) * ratios.var())
    return {
        "law": law, "events": level, "trials": trials,
        **{name: means(rows) for name, rows in found.items()},
        "error ratio": [float(pairs[:, 0].mean() / pairs[:, 1].mean()), float(error)],
        "time ratio": float(means(found["gp4c"])["cpu"] / means(found["mgcv"])["cpu"]),
    }  # fmt: skip


def shown(row: dict[str, Any]) -> str:
    """One line."""
    parts = [
        f"{name}: ISE {row[name]['ise']:.3g}, 95% bands {row[name]['coverage']:.1%}, "
        f"{row[name]['cpu']:.2f} s"
        for name in ("gp4c", "mgcv", "mgcv, mean")
    ]
    ratio, error = row["error ratio"]
    return (
        f"{row['law']:<8} {row['events']:>3g} | {' | '.join(parts)} | "
        f"error {ratio:.2f} ± {error:.2f}, time {row['time ratio']:.2f}"
    )


def main(trials: int = 20) -> None:
    if shutil.which("Rscript") is None:
        print("skipped: R is not here (Debian: r-cran-mgcv)")
        return
    rows = []
    for law in LAWS:
        for level in LEVELS:
            rows.append(measure(law, level, trials))
            print(shown(rows[-1]), flush=True)
    table = {**stamp(), "machine": machine(), "rows": rows}
    RESULTS.write_text(json.dumps(table, indent=1) + "\n")
    slow = [row for row in rows if row["time ratio"] > 1]
    wrong = [r for r in rows if not COVERAGE[0] <= r["gp4c"]["coverage"] <= COVERAGE[1]]
    far = [row for row in rows if row["error ratio"][0] > MOST_ERROR]
    broken = len(slow) + len(wrong) + len(far)
    assert not broken, f"slower: {len(slow)}, bands: {len(wrong)}, far: {len(far)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20)
    main(parser.parse_args().trials)
