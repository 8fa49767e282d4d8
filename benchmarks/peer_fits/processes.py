"""A peer's code in a process of its own: its curves, processor time and peak memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from .panels import TIMES, Trial, nearer, plug_in_score
from .roster import ROOT, Peer

HERE = Path(__file__).parent
#: one thread for everybody
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def run(peer: Peer, trials: list[Trial]) -> list[dict[str, float]]:
    """What a peer makes of some trials, all in one process."""
    program = peer.program()
    if program is None:
        raise RuntimeError(f"{peer.name} is not here.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pd.DataFrame({"t": TIMES}).to_csv(folder / "times.csv", index=False)
        for number, trial in enumerate(trials):
            trial.save(folder, number)
        driver = HERE / f"drive{peer.code.suffix}"
        command = [program, str(driver), str(peer.code), name, peer.reads]
        subprocess.run(command, check=True, env=_environment(peer))
        return [_read(folder, number, trial) for number, trial in enumerate(trials)]


def _environment(peer: Peer) -> dict[str, str]:
    """One thread; the package's source for its own code alone."""
    own = {"PYTHONPATH": str(ROOT / "src")} if peer.package == "gp4c" else {"PYTHONPATH": ""}
    return {**os.environ, **ONE_THREAD, **own}


def _read(folder: Path, number: int, trial: Trial) -> dict[str, float]:
    """Judge what a driver wrote about one trial."""
    about = pd.read_csv(folder / f"about{number:04d}.csv").iloc[0].to_dict()
    curve = pd.read_csv(folder / f"curve{number:04d}.csv")
    spread = float(about.get("spread", 0.0))
    found = nearer({name: curve[name].to_numpy() for name in curve}, spread, trial.rate)
    score = about.get("score", np.nan)
    expected = folder / f"expected{number:04d}.csv"
    if expected.exists():
        fresh = trial.fresh.to_frame()
        at = pd.read_csv(expected)["expected"].to_numpy()
        score = plug_in_score(fresh, at, about["family"], about.get("dispersion", 0.0), spread)
    return {**found, "score": score, "cpu": about["cpu"], "memory": about["memory"]}
