"""The page: every section with its figures, what was asked for, and where the numbers are from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gp4c.paper import differences, paper_numbers
from gp4c.paper.sections import Found, Lines, Plan, Section, table
from gp4c.paper.store import digest

#: folder of the figures, relative to the page
IMAGES = Path("images") / "reproduction"
_DPI = 130


def page(
    sections: Sequence[Section], plan: Plan, found: Found, version: str, missing: int = 0
) -> str:
    """Markdown of the whole page; `missing` trials are not there yet."""
    lines = ["# The paper, reproduced", "", *_introduction(plan, found, version, missing)]
    summary = [f"* {line}" for section in sections for line in section.summary]
    if summary:
        lines += ["## In short", "", *summary, ""]
    targets = [target for section in sections for target in section.targets]
    if targets:
        rows = [[t.asked, t.found, "yes" if t.met else "**no**"] for t in targets]
        met = sum(t.met for t in targets)
        lines += [f"## What was asked for: {met} of {len(targets)} hold", ""]
        lines += table(["Asked", "Found", "Holds"], rows)
    for section in sections:
        lines += [f"## {section.title}", "", *section.lines]
    lines += ["## Where the published code and the paper differ", "", *differences.lines()]
    return "\n".join(lines).rstrip() + "\n"


def _introduction(plan: Plan, found: Found, version: str, missing: int) -> Lines:
    short = (
        f"**Preliminary: {plan.trials} trial{'s' if plan.trials > 1 else ''} of each setting, "
        f"where the paper has {paper_numbers.TRIALS}.** "
        if plan.trials < paper_numbers.TRIALS
        else ""
    )
    if missing:
        short += f"**{missing:,} trials are not there yet.** "
    seconds = np.array([record.get("cpu_seconds", np.nan) for record in found.values()])
    total = float(np.nansum(seconds)) / 60
    return [
        "Ding, Lee, Sato and Sugiyama, *Variational inference for Gaussian process with panel "
        "count data*, UAI 2018: its tables and figures, computed with gp4c, beside its own "
        "numbers. This page is written by `gp4c reproduce all`; no number on it is typed by hand "
        "but the paper's own and those of its published program.", "",
        "```text",
        f"gp4c reproduce all --trials {plan.trials} --seed {plan.seed}",
        "```", "",
        f"{short}{len(found):,} cached trials and fits, {total:.0f} minutes of CPU time in all. "
        f"Source version `{version}`. All numbers but times hash to `{digest(found)}`: a second "
        "run with the same seed on the same machine gives the same hash.", "",
    ]  # fmt: skip


def write_page(
    folder: Path,
    name: str,
    sections: Sequence[Section],
    plan: Plan,
    found: Found,
    version: str,
    missing: int = 0,
) -> list[Path]:
    """Write the page and its figures into a folder; return the files."""
    from gp4c.atomic import write_text
    from gp4c.reporting.figures.plot_style import save_figure

    images = folder / IMAGES
    images.mkdir(parents=True, exist_ok=True)
    written = []
    for section in sections:
        for figure, picture in section.pictures.items():
            path = images / f"{figure}.png"
            save_figure(picture.draw, path, size=picture.size, dpi=_DPI)
            written.append(path)
    target = folder / f"{name}.md"
    write_text(target, page(sections, plan, found, version, missing))
    return [target, *written]
