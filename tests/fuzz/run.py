"""Run the fuzz campaigns for a while: ``make fuzz``, or ``python -m fuzz.run`` in tests/.

Every batch has a seed of its own, made from --seed and the number of the round, so that the same
call tries the same cases as far as its time reaches. A failing batch stops, is written to the
folder of findings, and the campaign goes on with the next batch.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import hypothesis
import numpy as np
import scipy
from hypothesis import HealthCheck, Phase, given, seed, settings

import gp4c

from .campaigns import CAMPAIGNS, Campaign

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from provenance import is_current, stamp

#: what the results stand on: the whole package
STANDS_ON = (".",)


class TooSlow(BaseException):
    """A case that took longer than its limit; not an Exception, so that nothing catches it."""


@dataclass
class Tally:
    """What became of the cases of one campaign."""

    cases: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    seeds: list[int] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


def run_batch(campaign: Campaign, number: int, tally: Tally, shrink: bool = False) -> str | None:
    """Try one batch of cases; the story of a finding, or None."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]

    @seed(number)
    @settings(
        max_examples=campaign.batch,
        database=None,
        deadline=None,
        derandomize=False,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(campaign.strategy)
    def cases(case: Any) -> None:
        began = time.process_time()
        try:
            accepted = _limited(lambda: campaign.property(case), campaign.limit)
        finally:
            spent = time.process_time() - began
            tally.cases += 1
            tally.slowest = max(tally.slowest, round(spent, 2))
        tally.refused += accepted is False

    tally.seeds.append(number)
    began = time.process_time()
    try:
        cases()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        return _story(problem)
    finally:
        tally.seconds = round(tally.seconds + time.process_time() - began, 1)
    return None


def _limited(work: Callable[[], Any], seconds: int) -> Any:
    """Do some work, or raise TooSlow after so many seconds of processor time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"no answer after {seconds} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return work()
    except TooSlow as slow:
        raise AssertionError(str(slow)) from None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _story(problem: BaseException) -> str:
    notes = "\n".join(getattr(problem, "__notes__", []))
    trace = "".join(traceback.format_exception(problem, limit=-12))
    return f"{trace}\n{notes}"


def run(
    names: list[str], minutes: float, base: int, folder: Path, shrink: bool
) -> Iterator[dict[str, Tally]]:
    """Go round the campaigns until the time is over; yields the tallies after every batch."""
    tallies = {name: Tally() for name in names}
    end = time.monotonic() + 60.0 * minutes
    for number in itertools.count(base * 100_000):
        for name in names:
            if time.monotonic() >= end:
                return
            story = run_batch(CAMPAIGNS[name], number, tallies[name], shrink)
            if story is not None:
                headline = _headline(story)
                tallies[name].findings.append(f"seed {number}: {headline}")
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{_file_name(name)}-{number}.txt").write_text(story, encoding="utf-8")
                print(f"FINDING {name} seed {number}: {headline}", flush=True)
            yield tallies
        done = sum(t.cases for t in tallies.values())
        print(f"round {number - base * 100_000 + 1}: {done} cases", flush=True)


def _headline(story: str) -> str:
    lines = [line for line in story.splitlines() if line and not line.startswith(" ")]
    named = [line for line in lines if ":" in line and not line.startswith("Traceback")]
    return (named or lines or ["?"])[0][:300]


def _file_name(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)


def one_run(tallies: dict[str, Tally], base: int, minutes: float) -> dict[str, Any]:
    """What one call tried, with what, and what it found."""
    tried = {name: t for name, t in tallies.items() if t.cases}
    return {
        "seed": base,
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "minutes": minutes,
        "versions": {
            "gp4c": gp4c.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "hypothesis": hypothesis.__version__,
        },
        "cases": {name: t.cases for name, t in tried.items()},
        "refused": {name: t.refused for name, t in tried.items() if t.refused},
        "last_seed": {name: max(t.seeds) for name, t in tried.items()},
        "slowest_case": {name: t.slowest for name, t in tried.items()},
        "cpu_seconds": round(sum(t.seconds for t in tried.values()), 1),
        "findings": [f"{name}, {text}" for name, t in tried.items() for text in t.findings],
    }


def write_results(path: Path, run: dict[str, Any]) -> None:
    """Add a run to the file of results, in place of an earlier one with the same seed.

    Runs of an earlier source are dropped; what they found stays.
    """
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    before = known["runs"] if is_current(known) else []
    runs = [other for other in before if other["seed"] != run["seed"]] + [run]
    totals: dict[str, int] = {}
    for each in runs:
        for name, cases in each["cases"].items():
            totals[name] = totals.get(name, 0) + cases
    content = {
        **stamp(STANDS_ON, finished=True),
        "cases": sum(totals.values()),
        "cases_by_campaign": totals,
        "fixed": known.get("fixed", []),
        "open": known.get("open", []),
        "runs": runs,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def main() -> int:
    """Parse the command line, run, write the results; 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="campaigns whose names contain this text")
    parser.add_argument("--out", type=Path, help="where to write the results")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--shrink", action="store_true", help="look for the smallest example")
    given_options = parser.parse_args()
    names = [name for name in CAMPAIGNS if given_options.only in name]
    tallies: dict[str, Tally] = {}
    for tallies in run(
        names, given_options.minutes, given_options.seed, given_options.findings,
        given_options.shrink,
    ):  # fmt: skip
        if given_options.out is not None:
            found = one_run(tallies, given_options.seed, given_options.minutes)
            write_results(given_options.out, found)
    for name, tally in tallies.items():
        print(f"{tally.cases:7d} cases  {tally.seconds:7.1f} s  {name}")
    return int(any(t.findings for t in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
