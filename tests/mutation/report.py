"""Figures of the mutation campaign: ``results.json`` from what ``run.py`` tried.

``survivors.json`` holds what a reader said of each survivor, by the change: its module, the line
before and the line after.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
UNREVIEWED = {"verdict": "not reviewed", "reason": ""}


def folder(entry):
    return entry["module"].split("/")[1]


def figures(entries):
    """Mutants, kills and survivors of some folder."""
    outcomes = Counter(entry["outcome"] for entry in entries)
    killed = outcomes["killed"] + outcomes["timeout"]
    return {
        "mutants": len(entries),
        "killed": killed,
        "of which by a time limit": outcomes["timeout"],
        "survived": outcomes["survived"],
        "kill_rate": round(killed / len(entries), 4),
    }


def without_equivalent(total, survivors):
    """Kills among the mutants that are not known to do the same as the original."""
    same = sum(survivor["verdict"] == "equivalent" for survivor in survivors)
    return {
        "equivalent": same,
        "kill_rate_without_equivalent": round(total["killed"] / (total["mutants"] - same), 4),
    }


def change(entry):
    """How a survivor is named in the file of reviews."""
    return f"{entry['module']}: {entry['before']} -> {entry['after']}"


def reviews():
    """What a reader said of survivors."""
    return json.loads((HERE / "survivors.json").read_text(encoding="utf-8"))


def write_reviews(known):
    """Keep what a reader said of survivors."""
    text = json.dumps(known, indent=1, ensure_ascii=False) + "\n"
    (HERE / "survivors.json").write_text(text, encoding="utf-8")


def forget_dead(known, src):
    """Reviews of lines that are still there; the others are of an earlier source."""
    lines = {}
    for name in {change.partition(": ")[0] for change in known}:
        path = src / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines[name] = {line.strip() for line in text.splitlines()}
    return {
        name: verdict
        for name, verdict in known.items()
        if name.partition(": ")[2].partition(" -> ")[0] in lines[name.partition(": ")[0]]
    }


def summary(entries, known, about):
    """The whole file of results; `known` is what a reader said of survivors."""
    folders = sorted({folder(entry) for entry in entries})
    by_folder = {name: [e for e in entries if folder(e) == name] for name in folders}
    survivors = [
        {
            "module": entry["module"],
            "line": entry["line"],
            "before": entry["before"],
            "after": entry["after"],
            **known.get(change(entry), UNREVIEWED),
        }
        for entry in sorted(entries, key=lambda e: (e["module"], e["line"], e["operator"]))
        if entry["outcome"] == "survived"
    ]
    total = figures(entries)
    return {
        **about,
        **without_equivalent(total, survivors),
        "folders": {**{name: figures(found) for name, found in by_folder.items()}, "all": total},
        "modules": dict(sorted(Counter(entry["module"] for entry in entries).items())),
        "survivors": survivors,
    }


def write(entries, about):
    """Put the results beside this file."""
    found = summary(entries, reviews(), about)
    text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    (HERE / "results.json").write_text(text, encoding="utf-8")
    return found
