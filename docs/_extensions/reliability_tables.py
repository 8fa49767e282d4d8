"""Tables of docs/reliability.md and of its record, from results of campaigns: ``make readme``.

Each stands between two comments of the page; a test compares it with what is made here.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

from readme_tables import renew

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
RECORD = ROOT / "docs" / "reliability_record.md"
TESTS = ROOT / "tests"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def table(header, rows):
    """A Markdown table; the first column is text, the others figures."""
    lines = ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


def fuzz_table(path=TESTS / "fuzz" / "results.json"):
    """Cases of all runs, by what they went through, and what came of them."""
    found = read(path)
    refused = Counter()
    for run in found["runs"]:
        refused.update(run["refused"])
    rows = [
        (name, f"{cases:,}", f"{refused[name]:,}")
        for name, cases in found["cases_by_campaign"].items()
    ]
    rows.append(("**all**", f"**{found['cases']:,}**", f"**{refused.total():,}**"))
    runs, versions = found["runs"], found["runs"][-1]["versions"]
    seeds = ", ".join(str(run["seed"]) for run in runs)
    cpu = sum(run["cpu_seconds"] for run in runs) / 60
    words = (
        f"Seeds {seeds}; {cpu:.1f} minutes of processor time; last on {runs[-1]['date']} with "
        f"Python {versions['python']}, NumPy {versions['numpy']}, SciPy {versions['scipy']}. "
        f"{len(found['fixed'])} findings were fixed, {len(found['open'])} are open."
    )
    parts = [table(("what is tried", "cases", "refused with a sentence"), rows), words]
    for title, key in (("Fixed", "fixed"), ("Open", "open")):
        if found[key]:
            parts.append(f"{title}:\n\n" + "\n".join(f"- {_line(item)}" for item in found[key]))
    return "\n\n".join(parts)


def _line(finding):
    """A finding as one line of text."""
    text = finding if isinstance(finding, str) else ": ".join(str(v) for v in finding.values())
    return " ".join(text.split())


#: what the outcomes of hostile files are called in results, and on the page
_LOADED = {"refused": "refused", "equal": "equal to the original", "loaded": "legal, loaded"}


def trust_table(path=TESTS / "trust" / "results.json"):
    """Kills, interruptions and hostile files of the last campaign; parts not run are left out."""
    found = read(path)
    rows = []
    if steps := found.get("kills at every step of a write"):
        kills = sum(scene["kills"] for scene in steps.values())
        what = "kills, one at every step of writing files"
        rows.append((what, f"{kills:,}", "each file the old one or the new one, whole"))
    if signals := found.get("processes that got a signal"):
        ends = {"kill": "the old files, the new ones or none",
                "interrupt": "one line, no traceback, no partial file"}  # fmt: skip
        for how, end in ends.items():
            times = sum(sum(n.values()) for scene, n in signals.items() if scene.endswith(how))
            rows.append((f"processes that got a signal ({how}) at random", f"{times:,}", end))
    if files := found.get("hostile model files"):
        kinds = Counter()
        for key, number in files.items():
            kinds[key.partition(": ")[2]] += number
        said = ", ".join(f"{kinds[kind]:,} {word}" for kind, word in _LOADED.items() if kinds[kind])
        rows.append(("hostile model files loaded", f"{files['files']:,}", said))
    if tables := found.get("hostile tables"):
        said = ", ".join(
            f"{sum(n for key, n in tables.items() if key.endswith(f': {word}')):,} {text}"
            for word, text in (("refused", "refused in one message"), ("read", "read"))
        )
        what = "damaged, lying and swollen tables of every format, hostile queries"
        rows.append((what, f"{tables['files']:,}", said))
    if page := found.get("the page, ended while it works"):
        what = "`gp4c app` ended during an upload or a fit"
        end = "no process, port or partial file is left; other tabs go on"
        rows.append((what, f"{sum(page.values()):,}", end))
    if power := found.get("power, interrupted and resumed"):
        what = "`gp4c power` stopped and started again"
        rows.append((what, f"{sum(power.values()):,}", "the trials of an undisturbed run"))
    if resumed := found.get("reproduce, interrupted and resumed"):
        what = "`gp4c reproduce` stopped and started again"
        rows.append((what, f"{sum(resumed.values()):,}", "the records of an undisturbed run"))
    note = f"\n\n{found['note']}" if "note" in found else ""
    return table(("what was done", "times", "what was found"), rows) + note


def coverage_table(path=TESTS / "mutation" / "coverage.json"):
    """Statements and branches that the suite runs, by folder."""
    found = read(path)
    folders = sorted(found["folders"].items(), key=lambda item: (item[0] == "all", item[0]))
    rows = [
        (
            f"`{name}`" if name != "all" else "**all of src**",
            f"{c['num_statements']:,}", f"{c['num_branches']:,}",
            f"{c['percent']:.1f}%", f"{c['branch_percent']:.1f}%",
        )
        for name, c in folders
    ]  # fmt: skip
    header = ("folder", "statements", "branches", "statements and branches run", "branches alone")
    return f"{table(header, rows)}\n\n{found['measured']}"


def mutation_table(path=TESTS / "mutation" / "results.json"):
    """Mutants by folder, and what became of them."""
    found = read(path)
    rows = [
        (f"`{name}`" if name != "all" else "**all**", c["mutants"], c["killed"],
         c["survived"], f"{c['kill_rate']:.1%}")
        for name, c in found["folders"].items()
    ]  # fmt: skip
    text = table(("folder", "mutants", "killed", "survived", "kill rate"), rows)
    return f"{text}\n\n{found['note']}" if found.get("note") else text


def survivors_sentence(path=TESTS / "mutation" / "results.json"):
    """What a reader of the survivors decided, and the rate without those that change nothing."""
    found = read(path)
    verdicts = Counter(s["verdict"] for s in found["survivors"])
    listed = ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))
    rate = found["kill_rate_without_equivalent"]
    return f"Of the survivors: {listed}. Without the equivalent ones {rate:.1%} were killed."


def versions_table(path=ROOT / "requirements" / "tested.json"):
    """Environments in which the suite was run."""
    rows = [
        (run["what"], run["python"], run["numpy"], run["scipy"], run["pandas"], run["outcome"])
        for run in read(path)
    ]
    return table(("versions", "Python", "NumPy", "SciPy", "pandas", "outcome"), rows)


def fuzz_row(path=TESTS / "fuzz" / "results.json"):
    found = read(path)
    errors = f"{len(found['fixed'])} errors, fixed; {len(found['open'])} open"
    return ("fuzzing: legal panels and malformed files", f"{found['cases']:,} cases", errors)


def trust_row(path=TESTS / "trust" / "results.json"):
    found = read(path)
    kills = sum(scene["kills"] for scene in found["kills at every step of a write"].values())
    files = found["hostile model files"]["files"]
    return ("kills while files are written; hostile model files", f"{kills:,}; {files:,}",
            "no half file; no code run")  # fmt: skip


def coverage_row(path=TESTS / "mutation" / "coverage.json"):
    found = read(path)["folders"]["all"]
    return ("branches that the suite runs", f"{found['num_branches']:,}",
            f"{found['branch_percent']:.1f}%")  # fmt: skip


def mutation_row(path=TESTS / "mutation" / "results.json"):
    found = read(path)
    killed = f"{found['kill_rate_without_equivalent']:.1%} of those that change an answer"
    return ("wrong changes that a test notices", f"{found['folders']['all']['mutants']:,}", killed)


def campaigns_table():
    """A row for each campaign that has left results."""
    rows = []
    for row in (fuzz_row, trust_row, coverage_row, mutation_row):
        with suppress(FileNotFoundError, KeyError):  # not run yet, or in part
            rows.append(row())
    return table(("what", "how many", "found"), rows)


#: what each page has between its marks
TABLES = {
    PAGE: {"campaigns": campaigns_table},
    RECORD: {
        "fuzz": fuzz_table,
        "trust": trust_table,
        "coverage": coverage_table,
        "mutation": mutation_table,
        "survivors": survivors_sentence,
        "versions": versions_table,
    },
}


def or_pending(make):
    """A table, or a word where its campaign has left no results."""
    try:
        return make()
    except FileNotFoundError:
        return "No results yet."


def renewed(page):
    """A page with its tables made anew."""
    tables = {name: lambda make=make: or_pending(make) for name, make in TABLES[page].items()}
    return renew(page.read_text(encoding="utf-8"), tables)


if __name__ == "__main__":
    for page in TABLES:
        page.write_text(renewed(page), encoding="utf-8")
