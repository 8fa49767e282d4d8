"""Do the tests notice when the source is wrong? ``make mutation``, after ``make coverage``.

Each sampled mutant meets the tests that run its line, until one fails. What has been tried is kept
in ``.mutation.jsonl``, so that an interrupted run goes on where it stopped; ``results.json``
has the figures and every survivor, with what ``survivors.json`` says about it. After tests were
written for survivors, ``--again`` tries those that are left once more, the new tests first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from itertools import pairwise
from math import inf
from pathlib import Path

import report
from mutants import Mutant, modules_below, mutated_source, sample
from nursery import SURVIVED, UNREADABLE, Mutated, attempt, preload
from selection import Selection

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from provenance import stamp

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SRC = ROOT / "src"
STATE = ROOT / ".mutation.jsonl"
FOLDERS = tuple(
    f"gp4c/{name}"
    for name in ("model", "posterior", "inference", "large", "files", "estimators", "classical")
)
#: seconds of tests per mutant: a first round for all, a second for those that survive it
ROUNDS = (3.0, 15.0)
Entry = dict[str, object]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=440, help="mutants, about")
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument(
        "--modules", nargs="*", help="only modules whose path contains one of these"
    )
    parser.add_argument("--part", default="1/1", help="share of the mutants, such as 1/2 and 2/2")
    parser.add_argument("--reverse", action="store_true", help="begin at the end, beside another")
    parser.add_argument(
        "--busy", type=float, default=1.0, help="how many times slower the coverage run was"
    )
    parser.add_argument("--rounds", type=int, default=len(ROUNDS), help="1: the short one alone")
    parser.add_argument("--again", action="store_true", help="survivors once more, new tests first")
    return parser.parse_args()


def key(mutant: Mutant) -> str:
    return f"{mutant.module} {mutant.operator} {mutant.occurrence}"


def tried() -> dict[str, Entry]:
    """Outcomes of an earlier run."""
    if not STATE.exists():
        return {}
    lines = STATE.read_text(encoding="utf-8").splitlines()
    return {entry["key"]: entry for entry in map(json.loads, lines)}


def judge(mutant: Mutant, selection: Selection, limit: float, before: float) -> Entry:
    """Outcome of the tests that fit into a limit, but not into the one before."""
    tests = selection.tests(mutant.module, mutant.statement, limit)
    earlier = set(selection.tests(mutant.module, mutant.statement, before)) if before else set()
    return tried_on(mutant, [test for test in tests if test not in earlier], limit, len(tests))


def tried_on(mutant: Mutant, tests: list[str], limit: float, reached: int) -> Entry:
    """Outcome of some tests; `reached` counts those of earlier rounds too."""
    source = mutated_source(SRC, mutant)
    finder = Mutated(mutant.name, SRC / mutant.module, source)
    began = time.monotonic()
    outcome, test = attempt(finder, tests, ROOT, 3 * limit + 15) if tests else (SURVIVED, "")
    if test == UNREADABLE and attempt(None, tests, ROOT, 3 * limit + 15)[0] != SURVIVED:
        raise SystemExit(f"{tests} fail although nothing was changed")
    return {
        "key": key(mutant),
        **asdict(mutant),
        "outcome": outcome,
        "killed_by": test,
        "limit": limit,
        "tests": reached,
        "seconds": round(time.monotonic() - began, 1),
        **change(mutant, source),
    }


def wants_more(done: Entry, limit: float) -> bool:
    """Whether a survivor has a longer round before it; those known to be equivalent have not."""
    known = report.reviews().get(report.change(done), {})
    survived = done["outcome"] == SURVIVED and float(str(done["limit"])) < limit
    return survived and known.get("verdict") != "equivalent"


def try_again(mutants: list[Mutant], selection: Selection) -> None:
    """Survivors meet the tests that were added since the coverage run."""
    for mutant in mutants:
        done, limit = tried().get(key(mutant)), ROUNDS[-1]
        new = selection.added(mutant.module, mutant.statement, limit)
        if done and new and wants_more(done, inf):
            again = tried_on(mutant, new, limit, int(str(done["tests"])) + len(new))
            record(again | {"limit": done["limit"]})


def check_the_killers(entries: list[Entry]) -> None:
    """Tests that fail without any change would kill everything."""
    tests = sorted({str(entry["killed_by"]) for entry in entries} - {"", UNREADABLE})
    outcome, test = attempt(None, tests, ROOT, limit=1800)
    if outcome != SURVIVED:
        raise SystemExit(f"{test or 'a test'} fails although nothing was changed")


def record(entry: Entry) -> None:
    """Keep an outcome, and say it."""
    with STATE.open("a", encoding="utf-8") as state:
        state.write(json.dumps(entry) + "\n")
    print(f"{entry['key']}: {entry['outcome']} after {entry['seconds']} s", flush=True)


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
    selection = Selection(ROOT, chosen.busy)
    preload()
    mutants = sample(SRC, modules_below(SRC, FOLDERS), chosen.number, chosen.seed)
    if chosen.modules:
        mutants = [m for m in mutants if any(part in m.module for part in chosen.modules)]
    place, parts = map(int, chosen.part.split("/"))
    mutants = mutants[place - 1 :: parts]
    mutants = mutants[:: -1 if chosen.reverse else 1]
    print(f"{len(mutants)} mutants", flush=True)
    for before, limit in pairwise((0.0, *ROUNDS[: chosen.rounds])):
        for mutant in mutants:
            done = tried().get(key(mutant))
            if done is None or wants_more(done, limit):
                record(judge(mutant, selection, limit, before if done else 0.0))
    if chosen.again:
        try_again(mutants, selection)
    if chosen.rounds < len(ROUNDS):
        return
    check_the_killers(list(tried().values()))
    about = {
        **stamp(tuple(name.removeprefix("gp4c/") for name in FOLDERS), chosen.modules is None),
        "complete": chosen.modules is None,
        "note": "",
        "seed": chosen.seed,
        "seconds_of_tests_per_mutant": ROUNDS[-1],
    }
    report.write_reviews(report.forget_dead(report.reviews(), SRC))
    found = report.write(list(tried().values()), about)
    print(json.dumps(found["folders"]["all"]))


if __name__ == "__main__":
    main()
