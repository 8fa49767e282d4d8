"""The README's tables, from committed results: ``python docs/_extensions/readme_tables.py``.

Each stands between two comments of the README; a test compares it with what is made here.
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
BLADDER = ROOT / "docs" / "images" / "bladder.json"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def figure(value, digits=3):
    """A number to a few significant digits, without an exponent."""
    return f"{value:#.{digits}g}".rstrip(".")


def band(row):
    value, low, high = (figure(v) for v in row)
    return f"{value} ({low} to {high})"


def ratio(row):
    value, low, high = row
    return f"{value:.2f} ({low:.2f} to {high:.2f})"


def bladder_table():
    """What the demonstration says of the trial."""
    found = read(BLADDER)
    first, second = found["arms"]
    a, b = (found["by_arm"][arm] for arm in (first, second))
    until, horizon = (f"{found[key]:g}" for key in ("end", "horizon"))
    rows = [
        ("", first, second),
        ("---", "---", "---"),
        ("patients", a["subjects"], b["subjects"]),
        ("tumours counted", a["events"], b["events"]),
        (f"mean number per patient by month {until} (95% band)", band(a["mean"]), band(b["mean"])),
        (f"ratio by month {horizon} (95% band)", "1", ratio(found["ratio"])),
        ("permutation test: more or fewer events?", "", f"p = {found['p_value']:.2f}"),
        ("... other mean numbers on the way?", "", f"p = {found['p_values']['curve']:.3f}"),
        ("... any difference at all?", "", f"p = {found['p_values']['any']:.3f}"),
    ]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)


def alone_sentence():
    """What ignoring the differences between patients would have said."""
    found = read(BLADDER)
    return (
        f"Fitted without subject effects and bursts, the ratio would have come out as "
        f"{ratio(found['ratio_without_effects'])}: far too sure of itself."
    )


def evidence_table():
    """How far it can be trusted, and how fast it is."""
    bands = read(RESULTS / "burst_calibration.json")["summary"]
    test = read(RESULTS / "permutation_size.json")
    speed = read(RESULTS / "speed.json")
    null = [v["level"] for name, v in test["rejected"].items() if name.startswith("null")]
    rows = [
        ("question", "measured"),
        ("---", "---"),
        (
            "How often do 95% bands of the mean number hold the truth? "
            f"({bands['data sets']} simulated data sets with frailty and bursts)",
            f"{bands['all']['sum 0.95'][0]}%",
        ),
        ("... and 95% bands of the rate?", f"{bands['all']['rate 0.95'][0]}%"),
        ("... and 90% intervals of forecasts?", f"{bands['all']['forecast 0.9'][0]}%"),
        (
            f"How often is equality of two groups rejected at {test['nominal']:.0%} although it "
            f"holds? ({len(null)} kinds of data, {test['simulations']:,} trials each)",
            f"{min(null):.1%} to {max(null):.1%}",
        ),
        (
            "How much faster than the paper's algorithm, for its own bound?",
            f"{speed['ratio']['naive']:.0f} times",
        ),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


TABLES = {"bladder": bladder_table, "alone": alone_sentence, "evidence": evidence_table}


def renew(text, tables=TABLES):
    """A page with its tables made anew."""
    for name, make in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        if not (mark and end):
            raise ValueError(f"the page has no place for {name!r}")
        text = f"{before}{mark}{make()}\n{end}{after}"
    return text


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(renew(readme.read_text(encoding="utf-8")), encoding="utf-8")
