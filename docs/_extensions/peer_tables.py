"""The tables of docs/peers.md and of its record, from the committed result: ``make readme``.

They stand between two comments of a page; a test compares them with what is made here.
"""

from __future__ import annotations

from itertools import groupby

from readme_tables import RESULTS, ROOT, figure, read, renew

PAGE = ROOT / "docs" / "peers.md"
RECORD = ROOT / "docs" / "peers_record.md"
LAWS = {"none": "alike", "frailty": "differ", "both": "differ, bursts"}


def table(rows):
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in rows)


def share(value):
    return "" if value is None else f"{value:.0%}"


def with_error(pair, digits=2):
    return "" if pair is None else f"{pair[0]:.{digits}f} ± {pair[1]:.{digits}f}"


def cell_name(row):
    return f"{row['rate']}, {LAWS[row['law']]}, {row['events']:g}"


def summary_table(found):
    """All kinds of panels with waves together."""
    head = ("", "data sets", "gp4c's error of λ over theirs", "... of Λ", "95% bands of λ", "of Λ",
            "nats that gp4c gains", "CPU s", "peak MB", "lines of code")  # fmt: skip
    rows = [head, ["---"] * len(head)]
    for name, row in found["by peer"].items():
        own = name == "gp4c"
        rows.append((
            name, row["trials"],
            "1" if own else with_error(row["rate_error_ratio"]),
            "1" if own else with_error(row["sum_error_ratio"]),
            share(row["rate_coverage"]), share(row["sum_coverage"]),
            "" if own else with_error(row["score_gain"], 1),
            figure(row["cpu"], 2), f"{row['memory']:.0f}", found["peers"][name]["lines"],
        ))  # fmt: skip
    return table(rows)


def cells_table(found, key, show):
    """One measure by kind of panel and peer; empty where a peer does not give it."""
    shown = [name for name in found["by peer"] if any(
        row["peer"] == name and row[key] is not None for row in found["rows"].values())
        and (name != "gp4c" or key != "rate_error_ratio")]  # fmt: skip
    rows = [("rate, subjects, events of each", *shown), ["---"] * (len(shown) + 1)]
    for name, group in groupby(found["rows"].values(), key=cell_name):
        values = {row["peer"]: row[key] for row in group}
        cells = ("" if values.get(peer) is None else show(values[peer]) for peer in shown)
        rows.append((name, *cells))
    return table(rows)


def limits_table(found):
    """What was asked beside mgcv."""
    asked = found["asked"]
    low, high = (f"{bound:.0%}" for bound in asked["coverage"])
    rows = [
        ("subjects, events of each",
         f"error of λ over mgcv's (at most {asked['error ratio']:g})",
         f"95% bands of λ ({low} to {high})",
         f"CPU time over mgcv's (at most {asked['time ratio']:g})"),
        ["---"] * 4,
    ]  # fmt: skip
    for name, row in found["limits"].items():
        law, _, rest = name.partition(", ")
        cells = (with_error(row["error ratio"]), f"{row['coverage']:.1%}",
                 f"{row['time ratio']:.2f}")  # fmt: skip
        met = (row[f"{key} met"] for key in ("error", "coverage", "time"))
        marked = (f"{cell}{'' if ok else ', missed'}" for cell, ok in zip(cells, met, strict=True))
        rows.append((f"{LAWS[law]}, {rest.removesuffix(' events')}", *marked))
    return table(rows)


def losses_list(found):
    """Kinds of panels on which a peer was nearer to the truth, or scored fresh subjects higher."""
    lines = []
    for row in found["rows"].values():
        name = f"* {cell_name(row)}: {row['peer']}"
        ratio, gain = row["rate_error_ratio"], row["score_gain"]
        if row["peer"] == "gp4c":
            continue
        if ratio is not None and ratio[0] > 1:
            lines.append(f"{name} has the smaller error of λ; the ratio is {with_error(ratio)}.")
        if gain is not None and gain[0] < 0:
            lines.append(f"{name} scores fresh subjects higher; gp4c gains {with_error(gain)}.")
    return "\n".join(lines) or "None."


def cheaper_sentence(found):
    """Which peers take less of what can be counted, over all panels with waves."""
    peers = found["by peer"]

    def less(value):
        own = value("gp4c")
        names = [name for name in peers if value(name) < own]
        return ", ".join(names) or "none"

    return (
        f"Less processor time than gp4c: {less(lambda name: peers[name]['cpu'])}. "
        f"Less memory: {less(lambda name: peers[name]['memory'])}. "
        f"Fewer lines of code: {less(lambda name: found['peers'][name]['lines'])}."
    )


def made(found):
    """What the page has of the result."""
    skipped, to_come = ("; ".join(found[key]) or "none" for key in ("skipped", "to come"))
    return f"""
## Figures

All six kinds of panels whose rates wave:

{summary_table(found)}

Not installed, and left out: {skipped}. Not measured yet: {to_come}.

## Where gp4c lost

{losses_list(found)}

{cheaper_sentence(found)}

Beside mgcv, {missed(found)} of {3 * len(found["limits"])} limits of error, coverage and time
were missed.
"""


def missed(found):
    """How many of the limits that were set beside mgcv do not hold."""
    kept = (row[f"{key} met"] for row in found["limits"].values()
            for key in ("error", "coverage", "time"))  # fmt: skip
    return sum(not met for met in kept)


def record(found):
    """What the record has of the result."""
    versions = ", ".join(
        f"{name.partition(',')[0]} {peer['version']}"
        for name, peer in found["peers"].items() if peer["version"] is not None
    )  # fmt: skip
    return f"""
Versions: `{versions}`.

## What was asked beside mgcv

{limits_table(found)}

## Errors by kind of panel

gp4c's integrated squared error of λ over that of the package, on the panels that both saw:

{cells_table(found, "rate_error_ratio", with_error)}

## Coverage by kind of panel

Share of times at which the 95% band of λ holds the truth:

{cells_table(found, "rate_coverage", share)}
"""


#: what each page has between its marks
TABLES = {PAGE: made, RECORD: record}


def renewed(page):
    """A page with its tables made anew."""
    make = TABLES[page]
    text = page.read_text(encoding="utf-8")
    return renew(text, {"figures: peers": lambda: make(read(RESULTS / "peers.json"))})


if __name__ == "__main__":
    for page in TABLES:
        page.write_text(renewed(page), encoding="utf-8")
