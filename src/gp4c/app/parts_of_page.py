"""Pieces of the page that depend on the data: a look at the table, the downloads, the code."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from shiny import ui

from gp4c.app.choices import Analysis
from gp4c.app.messages import Look
from gp4c.app.page import step
from gp4c.app.page_words import FIELDS

#: facts of a panel that say most; the others are folded away
_FIRST_FACTS = ("subjects", "intervals", "events", "window", "time unit", "rate")


def problem_box(heading: str, lines: tuple[str, ...]) -> ui.Tag:
    """What is wrong, in sentences."""
    first, *more = lines
    items = ui.tags.ul(*[ui.tags.li(line) for line in lines]) if more else ui.tags.p(first)
    return ui.div(ui.tags.strong(heading), items, class_="warn problem", role="alert")


def look_at(name: str, look: Look) -> ui.Tag:
    """The table as it is understood: problems first, then the picture, then the columns."""
    size = f"{look.n_rows:,} rows, {len(look.columns)} columns" if look.columns else "a data set"
    parts: list[ui.Tag | None] = [
        ui.tags.h2(ui.tags.span(name, class_="file-name"), ui.tags.small(size)),
        problem_box("The table cannot be read like this", look.problems) if look.problems else None,
        _notes(look.notes),
        _facts(look),
        _picture(look),
        _columns(look),
    ]
    return ui.tags.section(*parts, class_="look", aria_label="The table")


def _notes(notes: tuple[str, ...]) -> ui.Tag | None:
    if not notes:
        return None
    return ui.tags.ul(*[ui.tags.li(note) for note in notes], class_="notes")


def _facts(look: Look) -> ui.Tag | None:
    if not look.facts:
        return None
    first = [(label, text) for label, text in look.facts if label in _FIRST_FACTS]
    others = [(label, text) for label, text in look.facts if label not in _FIRST_FACTS]
    rows = [ui.tags.tr(ui.tags.th(a, scope="row"), ui.tags.td(b)) for a, b in others]
    return ui.div(
        ui.tags.dl(
            *[ui.div(ui.tags.dt(a), ui.tags.dd(b)) for a, b in first], class_="facts"
        ),
        ui.tags.details(
            ui.tags.summary("More about the data"),
            ui.div(ui.tags.table(ui.tags.tbody(*rows)), class_="scroll"),
        ),
    )  # fmt: skip


def _picture(look: Look) -> ui.Tag | None:
    if not look.picture:
        return None
    source = "data:image/png;base64," + base64.b64encode(look.picture).decode()
    return ui.tags.figure(
        ui.div(ui.tags.img(src=source, alt=look.alternative, id="panel-picture"), class_="picture"),
        ui.tags.figcaption(
            "One row per subject, one rectangle per interval between visits; darker means more "
            "events, grey none, white not observed."
        ),
    )


def _columns(look: Look) -> ui.Tag | None:
    if not look.columns:
        return None
    counts = look.reading.count if isinstance(look.reading.count, tuple) else ()
    taken = dict.fromkeys(counts, FIELDS["count"])
    taken |= {name: FIELDS[role] for role, name in look.roles.items()}
    rows = [
        ui.tags.tr(
            ui.tags.th(name, scope="row"), ui.tags.td(taken.get(name, "")), ui.tags.td(values)
        )
        for name, values in look.columns
    ]
    head = ui.tags.tr(*[ui.tags.th(t, scope="col") for t in ("column", "taken for", "values")])
    return ui.tags.details(
        ui.tags.summary("Columns of the file"),
        ui.div(ui.tags.table(ui.tags.thead(head), ui.tags.tbody(*rows)), class_="scroll"),
        open="" if look.problems else None,
    )


def downloads(kinds: Mapping[str, str]) -> ui.Tag:
    """Links to the files, by kind of download with its words."""
    links = [ui.download_link(f"download_{kind}", text) for kind, text in kinds.items()]
    items = ui.tags.ul(*[ui.tags.li(link) for link in links], class_="downloads")
    return step("4", "Take it with you", items)


def code(analysis: Analysis) -> ui.Tag:
    """The commands and the script that do the same."""
    return ui.tags.section(
        ui.tags.h2("The same in code"),
        ui.tags.p("Run in the folder of the file, these give the same numbers."),
        ui.tags.h3("Command line"),
        _code("commands", "\n".join(analysis.commands())),
        ui.tags.h3("Python"),
        _code("script", analysis.script()),
        id="code-section",
        aria_label="The same in code",
    )


def _code(name: str, text: str) -> ui.Tag:
    return ui.div(
        ui.tags.button("Copy", type="button", class_="quiet copy", data_copies=f"code-{name}"),
        ui.tags.pre(text, id=f"code-{name}", tabindex="0"),
        class_="code",
    )
