"""The study's tables as Markdown, put between two marks of ``docs/calibration_record.md``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.calibration.measure import LEVELS
from benchmarks.calibration.summary import FEW

PAGE = Path(__file__).parents[2] / "docs" / "calibration_record.md"
#: five expected ranks in each of 20 bins: below that the χ² test means nothing
ENOUGH_FOR_RANKS = 100
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"

ARM_TITLES = {
    "default": "`GP4C()`, the default",
    "default_on_compared": "`GP4C()` on the data sets of the two below",
    "known": "hyper-parameters known",
    "optimize": '`GP4C(hyper="optimize", effect=None)`',
    "paper": "`GP4C.paper(0.3)`",
}
REGIME_TITLES = {
    "n_events": "events in all",
    "length_scale": "length-scale / window",
    "variation": "sd of f / mean of f",
}
RANK_TITLES = {f"lambda_{i}": f"λ, middle of fifth {i}" for i in range(1, 6)} | {"Lambda_T": "Λ(T)"}
SET_TITLES = {"synthetic_a": "A", "synthetic_b": "B", "synthetic_c": "C"}


def percent(pair: Sequence[float]) -> str:
    """Share and its Monte-Carlo error in points."""
    return f"{100 * pair[0]:.1f} ± {100 * pair[1]:.1f}"


def plain(pair: Sequence[float], digits: int = 2) -> str:
    """Value and its Monte-Carlo error."""
    return f"{pair[0]:.{digits}f} ± {pair[1]:.{digits}f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown table: first column to the left, the others to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def coverage_section(title: str, arms: dict[str, Any]) -> list[str]:
    """Coverage of all arms of one study."""
    head = ["Estimator", "Data sets", "Nominal", "λ, pointwise", "λ, simultaneous", "Λ, pointwise",
            "width"]  # fmt: skip
    rows = []
    for arm in ARM_TITLES:
        if arm not in arms:
            continue
        for level in LEVELS:
            row, first = arms[arm][str(level)], level == LEVELS[0]
            rows.append(
                [
                    ARM_TITLES[arm] if first else "",
                    str(arms[arm]["data_sets"]) if first else "",
                    f"{100 * level:.0f}",
                    *(percent(row[kind]) for kind in ("pointwise", "simultaneous", "cumulative")),
                    plain(arms[arm]["relative_width_0.75"]) if level == 0.75 else "",
                ]
            )
    note = "“Width”: of the pointwise 75% band of λ, relative to the mean of the true rate."
    return [f"### {title}", "", note, "", *table(head, rows)]


def fifths_section(arm: dict[str, Any]) -> list[str]:
    """Coverage of the default by fifth of the window."""
    head = ["Nominal", *(f"fifth {i}" for i in range(1, 6))]
    rows = [[f"{100 * x:.0f}", *(percent(p) for p in arm[str(x)]["fifths"])] for x in LEVELS]
    return ["### The default by fifth of the window, prior study", "", *table(head, rows)]


def regimes_section(regimes: list[dict[str, Any]]) -> list[str]:
    """Coverage of the default by kind of data."""
    head = ["Data", "Data sets", *(f"{100 * x:.0f}" for x in LEVELS), "truth below", "truth above"]
    rows = []
    for row in regimes:
        upper = "" if row["to"] > 1e8 else f"{row['to']:g}"
        rows.append(
            [
                f"{REGIME_TITLES[row['regime']]} {row['from']:g}–{upper}",
                str(row["data_sets"]),
                *(percent(row[str(x)]) for x in LEVELS),
                percent(row["below"]),
                percent(row["above"]),
            ]
        )
    note = "“Below” and “above”: share of times with the truth outside the 75% band (nominal 12.5)."
    return ["### The default by kind of data, prior study", "", note, "", *table(head, rows)]


def ranks_section(ranks: dict[str, Any]) -> list[str]:
    """Simulation-based calibration, and the power of its tests."""
    head = ["Quantity", "χ², 19 df", "p", "KS", "p", "shift", "spread", "outside 95%"]
    rows = [
        [
            RANK_TITLES[name], f"{row['chi_square']:.1f}", f"{row['chi_square_p']:.3f}",
            f"{row['ks']:.3f}", f"{row['ks_p']:.3f}", plain(row["shift"]), plain(row["narrow"]),
            percent(row["outside_0.95"]),
        ]
        for name, row in ranks["quantities"].items()
    ]  # fmt: skip
    power = [
        [name, f"{100 * row['chi_square']:.0f}", f"{100 * row['ks']:.0f}"]
        for name, row in ranks["power"].items()
    ]
    n = ranks["data_sets"]
    return [
        f"### Ranks of the truth among posterior draws, {n} data sets", "",
        *table(head, rows),
        f"Smallest p times number of tests (Bonferroni): {ranks['smallest_p_times_tests']:.3f}.",
        "", f"Power at 5% of one test with {n} data sets, in percent:", "",
        *table(["Posterior's error", "χ²", "KS"], power),
    ]  # fmt: skip


def spread_section(spread: dict[str, Any]) -> list[str]:
    """Spread of normal scores of the truth over all times."""
    names = {"all": "all", "few events": f"fewer than {FEW} events", "others": "the others"}
    rows = [
        [ARM_TITLES[arm] if name == "all" else "", names[name], str(n), plain([root, error], 3)]
        for arm, groups in spread.items()
        for name, (n, root, error) in groups.items()
    ]
    note = "Root mean square of Φ⁻¹(rank) of λ over 60 times; 1 if right, above 1 if too narrow."
    head = ["Estimator", "Data", "Data sets", "spread"]
    return ["### Spread of the truth in the posterior of λ", "", note, "", *table(head, rows)]


def synthetic_section(sets: dict[str, Any]) -> list[str]:
    """Paired comparison on the paper's synthetic sets."""
    head = ["Set", "Trials", "MISE, default: median (max)", "MISE, b = 0.3: median (max)",
            "MISE difference", "L_test difference", "CPU s, default / b = 0.3"]  # fmt: skip
    rows = [
        [
            SET_TITLES[name], str(row["trials"]),
            f"{row['default_mise_median']:.2f} ({row['default_mise_max']:.2f})",
            f"{row['lemma2_mise_median']:.2f} ({row['lemma2_mise_max']:.2f})",
            plain(row["mise_difference"]), plain(row["l_test_difference"]),
            f"{row['default_seconds_median']:.1f} / {row['lemma2_seconds_median']:.1f}",
        ]
        for name, row in sets.items()
    ]  # fmt: skip
    note = "Differences are default minus b = 0.3 on the same trial: mean and standard error."
    return ["### The paper's synthetic sets", "", note, "", *table(head, rows)]


def render(found: dict[str, Any]) -> str:
    """All tables there are results for."""
    lines: list[str] = []
    if "prior" in found:
        lines += coverage_section("Prior study: coverage in percent", found["prior"])
        lines += fifths_section(found["prior"]["default"])
        lines += regimes_section(found["regimes"])
        if found["ranks"]["data_sets"] >= ENOUGH_FOR_RANKS:
            lines += ranks_section(found["ranks"])
            lines += spread_section(found["spread"])
    if "setting" in found:
        title = "The paper's setting of Synthetic B and C: coverage in percent"
        lines += coverage_section(title, found["setting"])
    if found.get("synthetic"):
        lines += synthetic_section(found["synthetic"])
    return "\n".join(lines)


def update(found: dict[str, Any], page: Path = PAGE) -> None:
    """Replace the tables of the page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{render(found)}\n{END}{after}", encoding="utf-8")
