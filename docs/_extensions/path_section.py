"""The section of docs/reproduction.md on the row b = 1, from ``published_path.json``.

`gp4c reproduce` writes the page; this section stands at its end.
"""

from __future__ import annotations

from readme_tables import RESULTS, ROOT, read

PAGE = ROOT / "docs" / "reproduction.md"
MARK, END = "\n<!-- path -->\n", "<!-- end -->\n"
#: steps of a path, in words
WORDS = {
    "mean_everywhere": "g in every term",
    "relative_jitter": "jitter relative to γ",
    "log_variance": "M-step over ln γ",
    "e_step_lbfgsb": "E-steps by L-BFGS-B",
    "m_step_lbfgsb": "M-steps by L-BFGS-B",
    "m_step_bounds": "bounds on a and γ",
    "stop_after_m": "stop judged after M-steps",
    "relative_jitter and M-step": "jitter relative to γ, M-steps by L-BFGS-B, bounds on a and γ",
}


def rows(summary):
    """A row for each path with b = 1: where it ends, and how."""
    for name, row in summary.items():
        if "0.3" in name:
            continue
        path, _, step = name.partition(", ")
        shown = {"published": "published path", "package": "package's path"}.get(path, path)
        if step and path != "GP4C.paper":
            negated = step.removeprefix("not ")
            shown += f", {'without ' if negated != step else ''}{WORDS[negated]}"
        elif path == "GP4C.paper":
            shown = "`GP4C.paper(b=1.0)`"
        above = row["above_published_median"]
        yield (
            shown, f"{row['length_scale_least']:.1f} to {row['length_scale_most']:.1f}",
            f"{row['mise_median']:.0f} ({row['mise_least']:.0f} to {row['mise_most']:.0f})",
            f"{row['rounds_least']:.0f} to {row['rounds_most']:.0f}",
            f"{above:+.1f}".replace("-", "−"),
        )  # fmt: skip


def section():
    """What the paths end with."""
    found = read(RESULTS / "published_path.json")
    head = (
        "path",
        "length-scale",
        "MISE, median",
        "rounds",
        "objective above the published",
    )
    lines = [head, ("---",) + ("---:",) * 4, *rows(found["summary"])]
    shown = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"""
## The row b = 1: two paths, two ends

For b = 1 the published program ends at length-scales of 2.0 to 2.9 with a MISE near the paper's,
`GP4C.paper(b=1.0)` at long ones with a larger MISE, although both stop by the same rule. So where
they end depends on the path. `benchmarks/published_path.py` writes the published path down anew,
with a switch for every step where ours is another. Here are both paths, and each with single steps
of the other's, on {len(found["trials"])} data sets like Synthetic A:

{shown}

The long length-scale is no better optimum: paths that end there stop with a lower bound than the
published path does. Three steps lead there together: a jitter relative to γ (published: 1e-6
whatever the size of K), M-steps by L-BFGS-B, and bounds on a and γ. With all three, the published
path ends at long length-scales on every data set; with one alone it seldom does. Without any one of
them, the package's path comes near the paper's MISE on most data sets. The other steps hardly
matter. `GP4C.paper` keeps its jitter and its bounds, because they do not depend on the unit of the
data.
"""


def with_section(text):
    """The page of `gp4c reproduce` with this section at its end."""
    return f"{text.partition(MARK)[0]}{MARK}{section()}{END}"
