"""Growth models and trend tests: beside SurPyval, under frailty and bursts, without a trend.

*SurPyval*: the same panels, none of whose counts is zero (SurPyval refuses those), through its
Crow-AMSAA and Cox-Lewis models, in the environment that ``make peers`` sets up; parameters may
differ by 1e-4. *Intervals*: 90% intervals of the shape on fleets of 25 machines with frailty and
bursts, by the model that knows of both and by the textbook's. *Tests*: fleets without a trend,
share with p at most 0.05. Limits: three binomial errors, but for what presumes Poisson counts.
"""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from peer_fits.roster import ROOT
from provenance import stamp
from speed import machine

import gp4c

RESULTS = Path(__file__).parent / "results" / "growth.json"
STANDS_ON = ("analysis/units/trend_testing.py", "classical/parametric", "model/laws")
SURPYVAL = ROOT / ".venv-peers" / "bin" / "python"
TOLERANCE, N_PANELS, N_FLEETS, N_LEVEL = 1e-4, 10, 200, 400
SHAPE, SCALE, LEVEL, ALPHA = 1.5, 4.0, 0.9, 0.05
#: variance of frailties; excess of the variance of a count over its mean, relative to the mean
VARIANCE, EXCESS = 0.5, 1.0

_PEER = """
import json, sys
import numpy as np, pandas as pd, surpyval
data = pd.read_csv(sys.argv[1])
fits = [(surpyval.CrowAMSAA, "power"), (surpyval.CoxLewis, "line")]
rows = data[["start", "stop"]].to_numpy(), data["subject"].to_numpy(), data["count"].to_numpy()
found = {name: list(kind.fit(x=rows[0], i=rows[1], c=np.full(len(data), 2), n=rows[2]).params)
         for kind, name in fits}
print(json.dumps({**found, "version": surpyval.__version__}))
"""


def fleet(
    seed: int, edges: np.ndarray, n: int, variance: float, excess: float, shape: float = SHAPE
) -> gp4c.PanelCounts:
    """Machines with a power-law rate, gamma frailty and bursts, all seen at the same times."""
    rng = np.random.default_rng((2026, seed))
    effect = rng.gamma(1 / variance, variance, (n, 1)) if variance else np.ones((n, 1))
    mean = effect * np.diff((edges / SCALE) ** shape)
    count = rng.poisson(rng.gamma(mean / excess) * excess if excess else mean)
    return panel_of(np.tile(edges, (n, 1)), count)


def panel_of(edges: np.ndarray, count: np.ndarray) -> gp4c.PanelCounts:
    """A panel from a row of visits and a row of counts for each machine."""
    columns = {"start": edges[:, :-1], "stop": edges[:, 1:], "count": count}
    table = pd.DataFrame({name: values.ravel() for name, values in columns.items()})
    table["subject"] = np.repeat(np.arange(len(edges)), count.shape[1])
    return gp4c.PanelCounts.from_frame(table, window=(0, float(edges.max())))


# -- beside SurPyval -----------------------------------------------------------------------------


def without_zeros(seed: int) -> gp4c.PanelCounts:
    """Machines of which at least one failure is seen at every visit."""
    rng = np.random.default_rng((26, seed))
    edges = np.concatenate([np.zeros((6, 1)), np.cumsum(rng.uniform(2, 4, (6, 8)), axis=1)], axis=1)
    return panel_of(edges, 1 + rng.poisson(0.3 * np.diff(edges**1.3, axis=1)))


def beside_surpyval(panel: gp4c.PanelCounts) -> dict[str, Any]:
    """Both packages' parameters of a panel: scale and shape, rate at 0 and slope."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "panel.csv"
        panel.to_frame().to_csv(path, index=False)
        run = [str(SURPYVAL), "-W", "ignore", "-c", _PEER, str(path)]
        done = subprocess.run(run, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.splitlines()[-1])
    power, line = gp4c.PowerLaw().fit(panel), gp4c.LogLinear().fit(panel)
    ours = [power.scale_, power.shape_, line.scale_, line.slope_]
    log_rate, slope = found["line"]
    theirs = [*found["power"], float(np.exp(log_rate)), slope]
    differ = np.abs(np.array(ours) / theirs - 1)
    return {"ours": ours, "surpyval": theirs, "version": found["version"], "differ": differ.max()}


# -- intervals and tests ---------------------------------------------------------------------------


def shares_held() -> dict[str, float]:
    """How often 90% intervals of the shape hold it."""
    models: dict[str, Callable[[], gp4c.PowerLaw]] = {
        "frailty and bursts": lambda: gp4c.PowerLaw(effect="gamma", bursts=True),
        "neither": gp4c.PowerLaw,
    }
    held = dict.fromkeys(models, 0)
    for seed in range(N_FLEETS):
        panel = fleet(seed, np.linspace(0, 24, 9), 25, VARIANCE, EXCESS)
        for name, model in models.items():
            low, high = model().fit(panel).interval("shape", LEVEL)
            held[name] += low < SHAPE < high
    return {name: number / N_FLEETS for name, number in held.items()}


#: fleets without a trend: visits, machines, variance of frailties, excess of counts
FLEETS = {
    "20 units, intervals that grow longer, frailty and bursts":
        (24 * np.linspace(0, 1, 9) ** 2, 20, VARIANCE, EXCESS),
    "the same with equal intervals": (np.linspace(0, 24, 9), 20, VARIANCE, EXCESS),
    "5 units": (24 * np.linspace(0, 1, 9) ** 2, 5, VARIANCE, EXCESS),
    "one unit, 25 intervals, bursts": (np.linspace(0, 100, 26), 1, 0.0, EXCESS),
    "20 units, neither frailty nor bursts": (24 * np.linspace(0, 1, 9) ** 2, 20, 0.0, 0.0),
}  # fmt: skip


def rejections(edges: np.ndarray, n: int, variance: float, excess: float) -> dict[str, float]:
    """Share of fleets in which a common trend is found that is not there, by test and form."""
    found = []
    for seed in range(N_LEVEL):
        panel = fleet(seed, edges, n, variance, excess, shape=1.0)
        table = gp4c.trend_test(panel).table.query("question == 'common trend'")
        found.append((table["p_value"] <= ALPHA).to_numpy())
    names = table["test"] + ", " + table["form"]
    return dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))


def check(found: dict[str, Any]) -> None:
    """Raise if a limit is broken."""
    for panel in found["beside SurPyval"]:
        assert panel["differ"] <= TOLERANCE, f"SurPyval differs by {panel['differ']:.1e}"
    error = np.sqrt(LEVEL * (1 - LEVEL) / N_FLEETS)
    held = found["90% intervals of the shape"]["frailty and bursts"]
    assert abs(held - LEVEL) <= 3 * error, f"90% intervals hold {held:.1%}"
    error = np.sqrt(ALPHA * (1 - ALPHA) / N_LEVEL)
    for fleets, shares in found["without a trend"].items():
        for name, share in shares.items():
            if name.endswith("permutation"):
                assert share <= ALPHA + 3 * error, f"{fleets}: {name} rejects {share:.1%}"


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gp4c.exceptions.GP4CWarning)
        panels = [without_zeros(seed) for seed in range(N_PANELS)] if SURPYVAL.exists() else []
        found = {
            **stamp(STANDS_ON),
            "machine": machine(),
            "beside SurPyval": [beside_surpyval(panel) for panel in panels],
            "fleets": N_FLEETS,
            "90% intervals of the shape": shares_held(),
            "fleets without a trend": N_LEVEL,
            "without a trend": {name: rejections(*setting) for name, setting in FLEETS.items()},
        }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({key: found[key] for key in list(found)[4:]}, indent=1))
    if not panels:
        print("SurPyval is not here: `make peers` installs it.")
    check(found)


if __name__ == "__main__":
    main()
