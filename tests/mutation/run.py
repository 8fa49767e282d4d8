"""Do the tests notice when the source is wrong? ``make mutation``, after ``make coverage``.

Each sampled mutant meets the tests that run its line, until one fails. What has been tried is kept
in ``.mutation.jsonl``, so that an interrupted run goes on where it stopped; ``results.json``
has the figures and every survivor, with what ``survivors.json`` says about it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from mutants import Mutant, modules_below, mutated_source, sample
from nursery import KILLED, SURVIVED, TIMEOUT, Mutated, attempt, preload
from selection import Selection

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SRC = ROOT / "src"
STATE = ROOT / ".mutation.jsonl"
FOLDERS = ("gp4c/inference", "gp4c/models")
#: seconds of tests per mutant: a first round for all, a second for those that survive it
ROUNDS = (8.0, 60.0)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=700, help="mutants, about")
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument(
        "--modules", nargs="*", help="only modules whose path contains one of these"
    )
    parser.add_argument("--part", default="1/1", help="share of the mutants, such as 1/2 and 2/2")
    return parser.parse_args()


def key(mutant: Mutant) -> str:
    return f"{mutant.module} {mutant.operator} {mutant.occurrence}"


def tried() -> dict[str, dict[str, object]]:
    """Outcomes of an earlier run."""
    if not STATE.exists():
        return {}
    lines = STATE.read_text(encoding="utf-8").splitlines()
    return {entry["key"]: entry for entry in map(json.loads, lines)}


def judge(mutant: Mutant, selection: Selection) -> dict[str, object]:
    """Outcome for one mutant: more tests only if fewer have not killed it."""
    source = mutated_source(SRC, mutant)
    finder = Mutated(mutant.name, SRC / mutant.module, source)
    outcome, test, before, began = SURVIVED, "", [], time.monotonic()
    for limit in ROUNDS:
        tests = selection.tests(mutant.module, mutant.statement, limit)
        new = [test for test in tests if test not in set(before)]
        if not new:
            break
        outcome, test = attempt(finder, new, ROOT, limit=3 * limit + 15)
        before = tests
        if outcome != SURVIVED:
            break
    return {
        "key": key(mutant),
        **asdict(mutant),
        "outcome": outcome,
        "killed_by": test,
        "tests": len(before),
        "seconds": round(time.monotonic() - began, 1),
        **change(mutant, source),
    }


def change(mutant: Mutant, source: str) -> dict[str, str]:
    """The line before and after."""
    before = (SRC / mutant.module).read_text(encoding="utf-8").splitlines()
    after = source.splitlines()
    places = [i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b]
    place = places[0] if places else min(len(before), len(after)) - 1
    return {"before": before[place].strip(), "after": after[place].strip()}


def main() -> None:
    chosen = options()
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    selection = Selection(ROOT)
    preload()
    mutants = sample(SRC, modules_below(SRC, FOLDERS), chosen.number, chosen.seed)
    if chosen.modules:
        mutants = [m for m in mutants if any(part in m.module for part in chosen.modules)]
    done = tried()
    place, parts = map(int, chosen.part.split("/"))
    waiting = [m for m in mutants if key(m) not in done][place - 1 :: parts]
    print(f"{len(mutants)} mutants, {len(waiting)} to try")
    for number, mutant in enumerate(waiting, start=1):
        entry = judge(mutant, selection)
        with STATE.open("a", encoding="utf-8") as state:
            state.write(json.dumps(entry) + "\n")
        said = f"{entry['outcome']} after {entry['seconds']} s"
        print(f"{number}/{len(waiting)} {key(mutant)}: {said}", flush=True)
    outcomes = Counter(str(entry["outcome"]) for entry in tried().values())
    print({name: outcomes[name] for name in (KILLED, TIMEOUT, SURVIVED)})


if __name__ == "__main__":
    main()
