"""gp4c beside what a user would pick instead, on the same panels.

Peers are mgcv, glmmTMB, statsmodels, SurPyval, a NumPyro model by NUTS, and vbpp on the exact
times of events. Each runs the code that its user would write (`peer_fits/code`), in a process of
its own. Measured are integrated squared errors of the rate λ and the mean number Λ, coverage of
95% bands, the log-likelihood of 50 fresh subjects, processor time, peak memory and lines of code.

``make peers`` sets the peers up in an environment of their own and runs this. A peer that is not
there is skipped, and the result says so. A run that was stopped goes on where it was.
``python benchmarks/peers.py --trials 2`` takes fewer trials of each kind.

Where subjects differ, mgcv and glmmTMB give the rate of a typical subject, and e^{s²/2} times that
is the mean over subjects, s² the variance of the effects. The nearer to the truth counts, trial by
trial: the peer has the benefit of the doubt.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pandas as pd
from peer_fits import summary
from peer_fits.panels import CELLS, Cell, simulate
from peer_fits.processes import run
from peer_fits.roster import OURS, PEERS, Peer
from provenance import ENGINE, is_current, stamp
from speed import machine

RESULTS = Path(__file__).parent / "results" / "peers.json"
TRIALS = RESULTS.with_name("peers_trials.csv")
STANDS_ON = (*ENGINE, "data/simulate")
#: trials that share a process
BATCH = 5
#: asked for beside mgcv where rates wave: squared error at most this share of mgcv's, coverage of
#: 95% bands between these, and no more time
REFERENCE, MOST_ERROR, COVERAGE = "mgcv", 0.5, (0.92, 0.98)


def known() -> pd.DataFrame:
    """Trials of an earlier run of the same source."""
    current = RESULTS.exists() and is_current(json.loads(RESULTS.read_text()))
    if current and TRIALS.exists():
        return pd.read_csv(TRIALS)
    return pd.DataFrame(columns=list(summary.COLUMNS))


def measure(trials: pd.DataFrame, peer: Peer, cell: Cell, numbers: range) -> pd.DataFrame:
    """The trials with those of a peer, a cell and some numbers that are not there yet."""
    there = summary.of_cell(trials, cell)
    done = set(there.loc[there["peer"] == peer.name, "trial"])
    missing = [number for number in numbers if number not in done]
    if not missing:
        return trials
    found = run(peer, [simulate(cell, number) for number in missing])
    rows = [
        {**cell._asdict(), "trial": number, "peer": peer.name, **row}
        for number, row in zip(missing, found, strict=True)
    ]
    new = pd.DataFrame(rows)[list(summary.COLUMNS)]
    return pd.concat([trials, new], ignore_index=True) if len(trials) else new


def document(trials: pd.DataFrame) -> dict[str, Any]:
    """What is written."""
    each = {
        peer.name: {"version": peer.version(), "lines": peer.lines, "reads": peer.reads}
        for peer in PEERS
    }
    return {
        **stamp(STANDS_ON),
        "machine": machine(),
        "peers": each,
        "skipped": [name for name, about in each.items() if about["version"] is None],
        "to come": [
            name
            for name, about in each.items()
            if about["version"] is not None and name not in set(trials["peer"])
        ],
        "by peer": summary.by_peer(trials),
        "asked": {"error ratio": MOST_ERROR, "coverage": COVERAGE, "time ratio": 1.0},
        "limits": limits(trials),
        "rows": summary.rows(trials),
    }


def limits(trials: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """What was asked of gp4c beside mgcv, and what was found in each cell with waves."""
    asked: dict[str, dict[str, Any]] = {}
    for cell in CELLS:
        part = summary.of_cell(trials, cell)
        if cell.rate != "wavy" or not {OURS, REFERENCE} <= set(part["peer"]):
            continue
        other = summary.figures(part, REFERENCE)
        error, coverage = other["rate_error_ratio"], summary.figures(part, OURS)["rate_coverage"]
        asked[f"{cell.law}, {cell.events:g} events"] = {
            "error ratio": error,
            "error met": error is not None and error[0] <= MOST_ERROR,
            "coverage": coverage,
            "coverage met": COVERAGE[0] <= coverage <= COVERAGE[1],
            "time ratio": other["cpu_ratio"],
            "time met": other["cpu_ratio"] <= 1,
        }
    return asked


def shown(peer: Peer, cell: Cell, trials: pd.DataFrame) -> str:
    """One line."""
    row = summary.figures(summary.of_cell(trials, cell), peer.name)
    values = " ".join(
        f"{name} {row[name]:.3g}" for name in summary.MEASURES if row[name] is not None
    )
    name = f"{cell.rate:<7} {cell.law:<7} {cell.events:>3g} | {peer.name:<22}"
    return f"{name} {row['trials']:>2} | {values}"


def main(most: int = max(peer.trials for peer in PEERS)) -> None:
    trials = known()
    here = [peer for peer in PEERS if peer.version() is not None]
    for peer in PEERS:
        if peer not in here:
            print(f"skipped: {peer.name} ({peer.package} is not here)")
    for quick in (True, False):
        for first in range(0, most, BATCH):
            for peer in (one for one in here if (one.trials > BATCH) is quick):
                numbers = range(first, min(first + BATCH, peer.trials, most))
                for cell in CELLS:
                    before = len(trials)
                    trials = measure(trials, peer, cell, numbers)
                    if len(trials) > before:
                        print(shown(peer, cell, trials), flush=True)
                        trials.to_csv(TRIALS, index=False, float_format="%.6g")
                        RESULTS.write_text(json.dumps(document(trials), indent=1) + "\n")
    found = limits(trials)
    missed = {
        name: sum(not row[f"{name} met"] for row in found.values())
        for name in ("error", "coverage", "time")
    }
    assert not any(missed.values()), f"beside mgcv, missed in {len(found)} cells: {missed}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=max(peer.trials for peer in PEERS))
    main(parser.parse_args().trials)
