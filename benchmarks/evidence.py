"""Every committed result: how it is made, when it was, whether its source has changed since.

``make evidence`` lists the results and the pages that quote them; ``make evidence-all`` makes the
stale ones anew, quick ones first, and goes on where it was stopped.

A page quotes results between two comments,

    <!-- figures: heldout, judge -->
    ... +3.1 ± 0.4 nats ...
    <!-- end -->

and every decimal number and percentage between them must be in one of the results named. Printed
output that a test compares stands between ``<!-- tested: tests/unit/test_x.py -->`` and the same
end. Elsewhere a page has no such numbers but in code and in formulas, where a number that was
chosen belongs: ``$0.3$``. ``FREE`` lists the pages without this rule.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provenance import is_current
from run import BENCHMARKS

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
#: results that are not made by benchmarks/run.py: where they are, what makes them
CAMPAIGNS = {
    "bladder": ("docs/images/bladder.json", "make pictures"),
    "reproduction": ("experiments/results/trials.json", "python experiments/run.py"),
    "calibration": (
        "benchmarks/results/calibration.json", "python -m benchmarks.calibration --jobs 2"
    ),
    "fuzz": ("tests/fuzz/results.json", "make fuzz"),
    "trust": ("tests/trust/results.json", "make trust"),
    "coverage": ("tests/mutation/coverage.json", "make coverage"),
    "mutation": ("tests/mutation/results.json", "make mutation"),
}  # fmt: skip
#: about how many minutes of a core each takes: quick ones are made anew first
MINUTES = {
    "startup": 1, "simulation": 1, "distinct": 1, "log_quadratic": 1, "count_terms_time": 1,
    "power_totals": 1, "bladder": 1, "classical": 2, "power_check": 2, "speed": 4, "growth": 5,
    "forecast_pit": 5, "scale": 5, "synthetic_a": 5, "shapes": 6, "published_path": 8,
    "event_types": 8, "modulation_fleets": 10, "classes": 12, "mixture": 12, "power_peers": 12,
    "centres": 15, "adjusted_comparison": 15, "permutation_size": 15, "fuzz": 10, "trust": 10,
    "coverage": 30, "judge": 30, "peers": 30, "false_evidence": 30, "heldout": 45,
    "burst_calibration": 60, "covariate_coverage": 15, "reproduction": 100, "mutation": 240,
    "calibration": 600,
}  # fmt: skip
#: pages with tables that a program makes from results; each has a test of its own
MADE = {
    "README.md": ("bladder", "burst_calibration", "permutation_size", "speed"),
    "docs/calibration.md": ("burst_calibration",),
    "docs/calibration_record.md": ("burst_calibration", "calibration"),
    "docs/guide/classes.md": ("classes",),
    "docs/guide/compare.md": ("permutation_size", "power_peers", "adjusted_comparison"),
    "docs/guide/forecast.md": ("forecast_pit",),
    "docs/guide/growth.md": ("growth",),
    "docs/guide/types.md": ("event_types",),
    "docs/guide/power.md": ("power_check",),
    "docs/guide/scale.md": ("scale",),
    "docs/maths_covariates.md": ("covariate_coverage",),
    "docs/peers.md": ("peers",),
    "docs/peers_record.md": ("peers",),
    "docs/reliability.md": ("fuzz", "trust", "coverage", "mutation"),
    "docs/reliability_record.md": ("fuzz", "trust", "coverage", "mutation"),
    "docs/reproduction.md": ("published_path", "reproduction"),
}
#: pages whose numbers need no result, and why
FREE = {
    "docs/calibration_record.md": "A program writes it from the result; its words are of that day.",
    "docs/design_history.md": "Dated history: what was measured on sources that are gone.",
    "docs/reproduction.md": "`gp4c reproduce` writes it from its results; a test compares.",
    "docs/maths.md": "Mathematics: constants of the method, and errors that tests bound.",
    "docs/maths_engine.md": "Mathematics: constants of the search and of the quadrature.",
    "docs/maths_exact.md": "Mathematics: breaks of a quadrature, whose error tests bound.",
    "docs/maths_types.md": "Mathematics: the grid of scores.",
}
#: a longer list is raw data, not figures to quote
MOST_VALUES = 60
#: levels of bands, intervals and tests are chosen, not measured
NOMINAL = {"5%", "20%", "25%", "50%", "75%", "80%", "90%", "95%", "99%", "100%"}

BLOCK = re.compile(r"<!-- figures: ([\w, ]+?) -->\n(.*?)<!-- end -->", re.DOTALL)
#: tables that a program makes
TABLE = re.compile(r"<!-- (?!end )\w+ -->\n.*?<!-- end -->", re.DOTALL)
TESTED = re.compile(r"<!-- tested: (\S+) -->\n.*?<!-- end -->", re.DOTALL)
#: but for limits (`< 0.001`)
QUOTED = re.compile(r"(?<![\w.,])(?<!< )[-−+]?\d[\d,]*(?:\.\d+%?|%)(?![\w.]*\d)")
CODE = re.compile(r"`[^`\n]*`|\]\([^)]*\)|<!--.*?-->|\$[^$]*\$|Python \d\.\d+")
#: blocks of code, indented or not, and displayed formulas
LISTING = re.compile(
    r"^```.*?^```|(?<=\n\n)(?: {4}[^\n]*\n|\n)+|\$\$.*?\$\$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Result:
    """A committed file of figures and the command that makes it."""

    name: str
    path: Path
    command: str

    def content(self) -> dict[str, Any]:
        """What it says; nothing if it has never been made."""
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def state(self) -> str:
        """`current`, `stale`, `unfinished` (it was stopped), or why that cannot be said."""
        found = self.content()
        if not found:
            return "missing"
        if "stands_on" not in found:
            return "stale (no source recorded)"
        if not is_current(found):
            return "stale"
        return "current" if found.get("finished", True) else "unfinished"


def results() -> list[Result]:
    """All results, in the order in which they are made anew."""
    ours = [
        Result(name, RESULTS / f"{name}.json", f"python benchmarks/run.py {name}")
        for name in BENCHMARKS
    ]
    others = [Result(name, ROOT / path, how) for name, (path, how) in CAMPAIGNS.items()]
    return sorted([*ours, *others], key=lambda result: MINUTES[result.name])


# -- what pages quote ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Quote:
    """A part of a page that quotes results."""

    page: Path
    names: tuple[str, ...]
    text: str

    def unfounded(self, known: dict[str, Result]) -> list[str]:
        """Numbers of the text that none of its results has."""
        values = [v for name in self.names for v in _values(known[name].content())]
        return [n for n in quoted_numbers(self.text) if not any(_says(n, v) for v in values)]


def pages() -> list[Path]:
    """Pages that may quote a result."""
    places = (ROOT / "docs").glob("**/*.md")
    built = {"_build", "gallery", "generated"}
    docs = [p for p in places if not built & set(p.relative_to(ROOT).parts)]
    return [ROOT / "README.md", ROOT / "benchmarks" / "README.md", *sorted(docs)]


def quotes(page: Path) -> Iterator[Quote]:
    """The parts of a page that quote results."""
    for names, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        yield Quote(page, tuple(name.strip() for name in names.split(",")), text)


def loose_numbers(page: Path) -> list[tuple[str, str]]:
    """Numbers of a page that no mark says the origin of, each with its line."""
    text = page.read_text(encoding="utf-8")
    for checked in (BLOCK, TABLE, TESTED, LISTING):
        text = checked.sub("\n", text)
    return [(number, line) for line in text.splitlines() for number in quoted_numbers(line)]


def quoted_numbers(text: str) -> list[str]:
    """Decimal numbers and percentages of a text, code and links left out."""
    found = QUOTED.findall(CODE.sub(" ", text))
    return [number for number in found if number.lstrip("+−-") not in NOMINAL]


def _values(found: Any) -> Iterator[float]:
    """All numbers of a result that are not raw data."""
    if isinstance(found, bool):
        return
    if isinstance(found, int | float):
        yield float(found)
    elif isinstance(found, dict):
        for value in found.values():
            yield from _values(value)
    elif isinstance(found, list) and len(found) <= MOST_VALUES:
        for value in found:
            yield from _values(value)


def _says(quoted: str, value: float) -> bool:
    """Whether a quoted number is a value rounded to its digits, as it is or in per cent."""
    plain = quoted.replace(",", "").replace("−", "-").rstrip("%")
    digits = len(plain.partition(".")[2])
    half = 0.5000001 * 10.0**-digits
    target = abs(float(plain))
    return any(abs(abs(value) * scale - target) <= half for scale in (1.0, 100.0))


# -- the list and the renewal --------------------------------------------------------------------


def result_rows() -> list[tuple[str, ...]]:
    """A row for each result."""
    rows = []
    for result in results():
        found = result.content()
        made = (str(found.get("date", "")), str(found.get("source", ""))[:8])
        rows.append((result.name, result.state(), *made, result.command))
    return rows


def page_rows() -> list[tuple[str, ...]]:
    """A row for each page and the results that it quotes."""
    states = {result.name: result.state() for result in results()}
    rows = []
    for page in pages():
        name = str(page.relative_to(ROOT))
        parts = [(quote.names, quoted_numbers(quote.text)) for quote in quotes(page)]
        for names, numbers in parts:
            shown = ", ".join(f"{one} ({states[one]})" for one in names)
            rows.append((name, str(len(numbers)), shown))
        if name in MADE:
            shown = ", ".join(f"{one} ({states[one]})" for one in MADE[name])
            rows.append((name, "tables", shown))
    return rows


def show() -> int:
    """Print both lists; return how many results are not current."""
    print_table(("result", "state", "made", "source", "command"), rows := result_rows())
    print_table(("page", "figures", "of"), page_rows())
    stale = sum(row[1] != "current" for row in rows)
    print(f"{len(rows)} results, {stale} not current.")
    return stale


def print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Columns of text, as wide as they need be."""
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    for row in [head, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    print()


def renew() -> None:
    """Make every result anew that is not current; each goes on where it was stopped."""
    for result in results():
        if result.state() != "current":
            print(f"== {result.name}: {result.command}", flush=True)
            command = result.command.split()
            command[0] = sys.executable if command[0] == "python" else command[0]
            subprocess.run(command, cwd=ROOT, check=False)
    show()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="make stale results anew")
    renew() if parser.parse_args().all else show()
