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
from pathlib import Path
from typing import Any

import signals

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from provenance import stamp

HERE = Path(__file__).parent
#: seed of delays and mutations
SEED = 20261116
HOSTILE_FILES = 12_000


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


def resumed(place: Path, interruptions: int = 12) -> dict[str, Any]:
    """Interrupt and kill ``gp4c reproduce`` in turn; in the end its numbers are a whole run's."""

    def command(out: Path) -> list[str]:
        return [sys.executable, str(HERE / "quick_reproduce.py"), str(out)]

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
        done = "150 of 150 trials" in errors  # only tables and figures are left then
        assert code != 130 or done or "the same command goes on from there" in errors, errors
        kinds[f"{number.name}: exit {code}"] += 1
    last = signals.start(command(place / "parts"), place)
    _, errors = last.communicate()
    assert last.returncode == 0, errors
    packed = [(place / part / "trials.jsonl.gz").read_bytes() for part in ("whole", "parts")]
    assert packed[0] == packed[1]
    assert len(kinds) > 1, "no run was stopped before its end"
    return dict(kinds)


def heed_interrupts() -> None:
    """Do not ignore Ctrl-C, as a shell tells what it starts in the background to do."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main(minutes: float) -> None:
    heed_interrupts()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name in ("steps", "files", "signals", "resumed"):
            (place / name).mkdir()
        results = {
            **stamp((".",), finished=True),
            "seed": SEED,
            "python": platform.python_version(),
            "kills at every step of a write": in_a_process(
                "kill_at_every_step.py", place / "steps"
            ),
            "hostile model files": in_a_process("hostile.py", place / "files", SEED, HOSTILE_FILES),
            "processes that got a signal": signalled(minutes, place / "signals"),
            "reproduce, interrupted and resumed": resumed(place / "resumed"),
        }
    results["minutes"] = round((time.monotonic() - began) / 60, 1)
    text = json.dumps(results, indent=2) + "\n"
    (HERE / "results.json").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
