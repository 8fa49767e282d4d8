"""The page around a report: one file that asks nothing of the network and runs only its own code.

Scripts and style sheets are named by their hashes in the Content-Security-Policy, so that nothing
else on the page can run or dress it up; style attributes are refused altogether. Values travel as a
JSON data block, which is not a script.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np

from gp4c import __version__
from gp4c.reporting.figures.observed_numbers import HEADING
from gp4c.reporting.figures.plot_style import time_label
from gp4c.reporting.page.reader_words import for_readers
from gp4c.reporting.row import FOLD
from gp4c.reporting.words import estimate, percent, point

if TYPE_CHECKING:
    from gp4c.data.summaries.table import Table
    from gp4c.data.timeaxis import TimeAxis
    from gp4c.reporting.figures.curves import Bands, Floats
    from gp4c.reporting.figures.observed_numbers import ObservedNumbers
    from gp4c.reporting.summary import ModelSummary

#: rows of the tables under the figures
_TABLE_ROWS = 11
_WITHOUT_SCRIPT = """<noscript><p class="warn">The curves are drawn by a script that this viewer does not run; the
tables under “Values” hold their numbers.</p></noscript>
"""  # noqa: E501


def page(
    title: str, header: str, sections: Sequence[Section],
    content: Mapping[str, object] | None = None,
) -> str:  # fmt: skip
    """Assemble the report, or a page like it whose figures are pictures.

    Parameters
    ----------
    title : str
        Plain text.
    header : str
        HTML under the title.
    sections : sequence of Section
    content : dict, optional
        Figures and the level shown first, for the script; without them the page has no script.
    """
    style = asset("report.css")
    links = "".join(f'<li><a href="#{s.key}">{escape(s.heading)}</a></li>' for s in sections)
    body = "".join(
        f'<section id="{s.key}" aria-labelledby="{s.key}-h">'
        f'<h2 id="{s.key}-h">{escape(s.heading)}</h2>{s.html}</section>\n'
        for s in sections
    )
    scripts: list[str] = []
    more = end = ""
    if content is not None:
        scripts = [_plotly_script(), asset("figures.js") + asset("report.js")]
        body, more = _WITHOUT_SCRIPT + body, _unused_styles(scripts[0])
        end = f'<script type="application/json" id="figures">{embedded_json(content)}</script>\n'
        end += "".join(f"<script>{script}</script>\n" for script in scripts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(scripts, style)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="gp4c {__version__}">
<meta name="referrer" content="no-referrer">
<title>{escape(title)}</title>
<style>{style}</style>{more}
</head>
<body>
<a class="skip" href="#content">Skip to the results</a>
<header>
<h1>{escape(title)}</h1>
{header}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="content">
{body}</main>
<footer>Made by gp4c {__version__}. This file is complete: it loads nothing from elsewhere.</footer>
{end}</body>
</html>
"""


class Section:
    """A part of the report: a key for links, a heading, HTML."""

    def __init__(self, key: str, heading: str, parts: Iterable[str]) -> None:
        self.key, self.heading, self.html = key, heading, "\n".join(parts)


def asset(name: str) -> str:
    """Text of a file that comes with the package; line ends as in the page, for the hashes."""
    text = (files("gp4c.reporting.page") / "assets" / name).read_text(encoding="utf-8")
    return text.replace("\r\n", "\n")


def embedded_json(value: object) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plotly_script() -> str:
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped, unused-ignore]

    # a browser normalises line ends before it hashes, and ends a script at its end tag
    return str(get_plotlyjs()).replace("\r\n", "\n").replace("</script", "<\\/script")


def _unused_styles(plotly: str) -> str:
    """Empty stand-ins for style sheets (of maps, say) that Plotly adds unless their id is there."""
    ids = re.findall(r'if\(!document\.getElementById\("([0-9a-f]{64})"\)\)', plotly)
    return "".join(f'<style id="{name}"></style>' for name in ids)


def _policy(scripts: Sequence[str], style: str) -> str:
    """Our scripts and our style sheet, by their hashes, and pictures inside the page; no more.

    Plotly adds an empty style sheet (hence the hash of nothing) and fills it rule by rule; that,
    like the properties it sets on elements, is up to its script and not to what the page says.
    """
    allowed = " ".join(_source(script) for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_source(style)} {_source('')}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _source(text: str) -> str:
    return f"'sha256-{_digest(text)}'"


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# -- pieces of HTML: every text is escaped here ---------------------------------------------


def paragraph(text: str, css: str = "") -> str:
    """A paragraph of plain text."""
    name = f' class="{css}"' if css else ""
    return f"<p{name}>{escape(for_readers(text))}</p>"


def warning_box(items: Sequence[str], heading: str = "Beware") -> str:
    """A box of remarks, empty without any."""
    if not items:
        return ""
    lines = "".join(f"<li>{escape(for_readers(item))}</li>" for item in items)
    return f'<div class="warn" role="note"><strong>{escape(heading)}</strong><ul>{lines}</ul></div>'


def table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], numbers: bool = False
) -> str:
    """A table of texts; `numbers` sets all columns but the first flush right."""
    names = [
        f'<th scope="col"{_right(numbers and k > 0)}>{escape(name)}</th>'
        for k, name in enumerate(header)
    ]
    head = f"<thead><tr>{''.join(names)}</tr></thead>" if header else ""
    body = "".join(f"<tr>{_cells(row, numbers)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>{head}'
        f"<tbody>{body}</tbody></table></div>"
    )


def values_table(
    name: str, axis: TimeAxis, times: Floats, values: Floats, bands: Bands, level: float
) -> str:
    """Values of a figure's curve at a few times, with the band of one level."""
    edges = bands.get(level)
    shown = np.unique(np.linspace(0, len(times) - 1, _TABLE_ROWS).astype(int))
    header = [
        time_label(axis, None), "estimate", *([f"{percent(level)} from", "to"] if edges else []),
    ]  # fmt: skip
    rows = [
        [
            axis.date(times[k]) or point(times[k]),
            estimate(values[k]),
            *(estimate(edge[k]) for edge in edges or ()),
        ]
        for k in shown.tolist()
    ]
    return table(name, header, rows, numbers=True)


def observed_table(observed: ObservedNumbers | None) -> str:
    """Numbers of observed subjects, for those who do not see the figure."""
    if observed is None:
        return ""
    rows = [
        [name, *(f"{numbers[k]:,}" for numbers in observed.numbers.values())]
        for k, name in enumerate(observed.names)
    ]
    return table(HEADING.capitalize(), ["time", *observed.numbers], rows, numbers=True)


def group_table(described: Table) -> str:
    """Subjects, events, rates and covariates of the groups."""
    notes = warning_box(described.notes, "Note")
    return table(described.title, described.columns, described.rows, numbers=True) + notes


def summary_table(summary: ModelSummary) -> str:
    """The summary of a model, section by section."""
    parts, section = [], ""
    for row in summary.plain_rows:
        if row.section != section:
            section = row.section
            parts.append(
                f'<tr class="section"><th colspan="2" scope="rowgroup">{escape(section)}</th></tr>'
            )
        parts.append(f"<tr>{_cells([row.quantity, row.text], False)}</tr>")
    folded = table("", (), [[row.quantity, row.text] for row in summary.details])
    fold = f"<details><summary>{FOLD}</summary>{folded}</details>" if summary.details else ""
    return f'<div class="scroll"><table><tbody>{"".join(parts)}</tbody></table></div>{fold}'


def _cells(row: Sequence[str], numbers: bool) -> str:
    first, *others = row
    cells = "".join(f"<td{_right(numbers)}>{escape(for_readers(cell))}</td>" for cell in others)
    return f'<th scope="row">{escape(first)}</th>{cells}'


def _right(wanted: bool) -> str:
    return ' class="number"' if wanted else ""


def plot(key: str, alternative: str, caption: str, values: str = "", small: bool = False) -> str:
    """Place of a figure that the script draws; `caption` is HTML, `alternative` plain text."""
    more = f"<details><summary>Values</summary>{values}</details>" if values else ""
    name = ' class="small"' if small else ""
    return (
        f'<figure{name}><div class="plot" id="{key}" role="img" '
        f'aria-label="{escape(alternative)}"></div><figcaption>{caption}</figcaption>{more}</figure>'
    )


def picture(png: bytes, alternative: str, caption: str) -> str:
    """A picture inside the page; `caption` is plain text."""
    data = base64.b64encode(png).decode()
    return (
        f'<figure><div class="picture"><img alt="{escape(alternative)}" '
        f'src="data:image/png;base64,{data}"></div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def level_switch(levels: Sequence[str], shown: str) -> str:
    """Radio buttons that choose the level of all bands."""
    buttons = "".join(
        f'<label><input type="radio" name="level" value="{level}"'
        f"{' checked' if level == shown else ''}> {100 * float(level):.4g}%</label>"
        for level in levels
    )
    return f'<fieldset class="switch"><legend>Bands hold</legend>{buttons}</fieldset>'
