"""A first look at a table: its columns, what they are taken for, what is wrong, a picture."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gp4c.app.choices import Analysis, Reading, Source
from gp4c.app.messages import Look, Send
from gp4c.app.page_words import on_the_page
from gp4c.exceptions import GP4CError, PanelDataError

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.tables.frames import Table

#: values shown of each column
_EXAMPLES = 3
#: characters shown of a value
_LONGEST = 24
#: more groups than this are more likely a wrong column; as on the command line
_MOST_GROUPS = 12
#: usual names of the times of visits
_VISIT_TIMES = (
    "time", "t", "visit", "visit_time", "visit_date", "date", "day", "days", "week", "weeks",
    "month", "months", "year", "years",
)  # fmt: skip


@dataclass(frozen=True)
class LookJob:
    """Read a table and describe it; a table that breaks a rule is a result, too."""

    source: Source
    reading: Reading | None = None

    def run(self, send: Send) -> None:
        """Send the look at once, and again when the picture is drawn."""
        seen, panel = look(self.source, self.reading)
        send(seen)
        if panel is not None:
            send(_with_picture(seen, panel))


def look(source: Source, reading: Reading | None = None) -> tuple[Look, PanelCounts | None]:
    """Describe a table and the panel that it holds.

    Parameters
    ----------
    source : Source
    reading : Reading, optional
        How the user says the table is to be understood; a guess if absent.

    Raises
    ------
    PanelDataError
        The file is no table at all; rows and columns that break a rule are `problems`.
    """
    seen = Look(reading or Reading())
    if source.path is not None:
        table = _table(source.path, seen.reading)
        understood = _guess(table, seen.reading) if reading is None else reading
        seen = Look(
            understood,
            columns=tuple((name, _examples(table, name)) for name in table.columns),
            n_rows=table.n_rows,
            roles=recognised(table, understood),
        )
    try:
        panel = Analysis(source, seen.reading).panel()
    except GP4CError as error:
        return replace(seen, problems=tuple(on_the_page(str(error)).splitlines())), None
    return _with_panel(seen, panel), panel


def _table(path: str, reading: Reading) -> Table:
    from gp4c.data.tables.readers import read_table

    chosen = reading.arguments()
    how = {name: chosen[name] for name in ("delimiter", "decimal", "encoding") if name in chosen}
    return read_table(path, lambda header: reading.subject, **how)  # type: ignore[arg-type]


def recognised(table: Table, reading: Reading) -> dict[str, str]:
    """The column of each role: the one chosen, else the one with a usual name."""
    from gp4c.data.tables.readers import resolve_columns

    roles = ["subject", "count", "exposure"]
    roles += ["time"] if reading.time is not None else ["start", "stop"]
    found: dict[str, str] = {}
    for role in roles:
        with suppress(PanelDataError):  # no usual name, or no such column
            found |= resolve_columns(table, {role: getattr(reading, role)})[0]
    return found


def _guess(table: Table, reading: Reading) -> Reading:
    """A table with a column of visit times and none of starts or stops is one of visits."""
    if reading.time is not None or {"start", "stop"} & recognised(table, reading).keys():
        return reading
    times = [name for name in table.columns if name.lower() in _VISIT_TIMES]
    return replace(reading, time=times[0]) if len(times) == 1 else reading


def _examples(table: Table, name: str) -> str:
    values = table.columns[name].dropna().unique()[:_EXAMPLES]
    texts = [str(value) for value in values]
    return ", ".join(t if len(t) <= _LONGEST else t[: _LONGEST - 1] + "…" for t in texts)


def _with_panel(seen: Look, panel: PanelCounts) -> Look:
    """Add what only a panel has: its summary and covariates."""
    summary = panel.summary()
    covariates = panel.covariates
    sizes = {str(name): int(covariates[name].nunique()) for name in covariates.columns}
    varying = [str(name) for name in panel.interval_covariates.columns if str(name) not in sizes]
    return replace(
        seen,
        notes=tuple(dict.fromkeys((*panel.notes, *summary.remarks))),
        facts=tuple((label, text) for label, text in summary.texts()),
        groups=tuple(name for name, size in sizes.items() if 2 <= size <= _MOST_GROUPS),
        covariates=(*sizes, *varying),
    )


def _with_picture(seen: Look, panel: PanelCounts) -> Look:
    from gp4c.reporting.page.html_report import panel_png

    return replace(
        seen,
        picture=panel_png(panel),
        alternative=f"One row for each of {panel.n_subjects} subjects; rectangles are intervals "
        "between visits, darker where more events were counted.",
    )
