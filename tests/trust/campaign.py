"""The long campaign: thousands of kills and hostile files, hundreds of interruptions.

``python tests/trust/campaign.py [minutes]`` (the tests run a short part of each); counts go to
results.json beside this file, which docs/reliability.md quotes. A broken promise ends it with an
AssertionError that names the scene.
"""

from __future__ import annotations

import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import app_scenes
import signals

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from provenance import stamp

HERE = Path(__file__).parent
#: seed of delays and mutations
SEED = 20261116
HOSTILE_FILES, HOSTILE_TABLES = 12_000, 4_000
#: what a command says that can be continued
AGAIN = "the same command goes on from there"


def in_a_process(program: str, *arguments: object) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", HERE / program, *map(str, arguments)]
    return json.loads(subprocess.run(command, stdout=-1, check=True, env=environment).stdout)


def signalled(minutes: float, place: Path) -> dict[str, dict[str, int]]:
    """Interrupt and kill all scenes in turn, at random moments, half of them near the end."""
    rng, table = random.Random(SEED), signals.write_table(place / "visits.csv")
    wholes = {name: signals.reference(name, place, table) for name in signals.SCENES}
    found: dict[str, Counter[str]] = {}
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        for name, (whole, seconds) in wholes.items():
            for how in (signals.interrupt, signals.kill):
                shutil.rmtree(place / "out", ignore_errors=True)
                share = rng.uniform(0.0, 1.0) if rng.random() < 0.5 else rng.uniform(0.7, 1.05)
                outcome = how(name, place, table, whole, share * seconds)
                found.setdefault(f"{name}, {how.__name__}", Counter())[outcome] += 1
    return {name: dict(counts) for name, counts in found.items()}


def reproduce(out: Path) -> list[str]:
    """``gp4c reproduce`` with trials that take no time."""
    return [sys.executable, str(HERE / "quick_reproduce.py"), str(out)]


def power(out: Path) -> list[str]:
    """``gp4c power`` with trials of some seconds in all."""
    return [
        *signals.PROGRAM, "power", "--ratio", "0.6", "--rate", "0.5", "--follow-up", "12",
        "--n-per-arm", "40", "--n-per-arm", "60", "--trials", "200", "--out", str(out),
    ]  # fmt: skip


def resumed(
    command: Callable[[Path], list[str]], record: str, said: str, place: Path,
    interruptions: int = 12,
) -> dict[str, Any]:  # fmt: skip
    """Interrupt and kill a command in turn; in the end its record is a whole run's.

    `said` is in the message of a run that was not yet done with its trials.
    """
    rng, began = random.Random(SEED), time.monotonic()
    whole = signals.start(command(place / "whole"), place)
    assert whole.wait() == 0
    seconds, kinds = time.monotonic() - began, Counter[str]()
    for k in range(interruptions):
        number = (signal.SIGINT, signal.SIGKILL)[k % 2]
        code, errors = signals.send(
            command(place / "parts"), place, number, rng.uniform(0.2, 0.6) * seconds
        )
        assert "Traceback" not in errors, errors
        early = not (place / "parts" / record).exists()
        done = "150 of 150 trials" in errors  # only tables and figures are left then
        assert code != 130 or early or done or said in errors, errors
        kinds[f"{number.name}: exit {code}"] += 1
    last = signals.start(command(place / "parts"), place)
    _, errors = last.communicate()
    assert last.returncode == 0, errors
    records = [(place / part / record).read_bytes() for part in ("whole", "parts")]
    assert records[0] == records[1]
    assert len(kinds) > 1, "no run was stopped before its end"
    return dict(kinds)


def app_ended(minutes: float, place: Path, table: bytes) -> dict[str, int]:
    """End the page on screen at every step in every way, and kill what computes for a tab."""
    rng, found = random.Random(SEED), Counter[str]()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end or not found:
        for step in app_scenes.STEPS:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                outcome = app_scenes.ended(step, number, place, table, rng.uniform(0.0, 1.5))
                found[f"{step}, {number.name}: {outcome}"] += 1
        found[f"worker killed: {app_scenes.lost_worker(place, table)}"] += 1
    return dict(found)


def heed_interrupts() -> None:
    """Do not ignore Ctrl-C, as a shell tells what it starts in the background to do."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main(minutes: float) -> None:
    heed_interrupts()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("steps", "files", "tables", "signals", "reproduce", "power", "app"):
            (place / name).mkdir()
        results = {
            **stamp((".",), finished=True),
            "seed": SEED,
            "python": platform.python_version(),
            "kills at every step of a write": in_a_process(
                "kill_at_every_step.py", place / "steps"
            ),
            "hostile model files": in_a_process("hostile.py", place / "files", SEED, HOSTILE_FILES),
            "hostile tables": in_a_process(
                "hostile_tables.py", place / "tables", SEED, HOSTILE_TABLES
            ),
            "processes that got a signal": signalled(minutes, place / "signals"),
            "reproduce, interrupted and resumed": resumed(
                reproduce, "trials.jsonl.gz", AGAIN, place / "reproduce"
            ),
            "power, interrupted and resumed": resumed(
                power, "power-trials.json", AGAIN, place / "power"
            ),
            "the page, ended while it works": app_ended(
                minutes / 2, place / "app", signals.write_table(place / "t.csv").read_bytes()
            ),
        }
    results["minutes"] = round((time.monotonic() - began) / 60, 1)
    text = json.dumps(results, indent=2) + "\n"
    (HERE / "results.json").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
