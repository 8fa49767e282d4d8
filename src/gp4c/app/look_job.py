"""A first look at a table: its columns, what they are taken for, what is wrong, a picture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gp4c.app.choices import Analysis, Reading, Source
from gp4c.app.messages import Look, Send
from gp4c.app.page_words import on_the_page
from gp4c.exceptions import GP4CWarning

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.tables.readers import TableRecognition

#: values shown of each column
_EXAMPLES = 3
#: characters shown of a value
_LONGEST = 24
#: more groups than this are more likely a wrong column; as on the command line
_MOST_GROUPS = 12
#: more strata or centres than this are more likely a wrong column; as :func:`gp4c.compare` has it
_MOST_DIVISIONS = 200
#: problems shown one by one
_MOST_PROBLEMS = 12


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
        How the user says the table is to be understood; recognised if absent.

    Raises
    ------
    PanelDataError
        The file is no table at all; rows and columns that break a rule are `problems`.
    """
    from gp4c.data.tables.readers import recognise_table

    understood = reading or Reading()
    if source.path is None:
        panel = Analysis(source).panel()
        return _with_panel(Look(understood), panel), panel
    with warnings.catch_warnings(record=True) as doubts:
        warnings.simplefilter("always", GP4CWarning)
        # the options are of many types, which the table of choices cannot tell apart
        found = recognise_table(source.path, **understood.arguments())  # type: ignore[arg-type]
    said = [on_the_page(str(one.message)) for one in doubts if one.category is GP4CWarning]
    seen = Look(
        understood,
        columns=tuple((name, _examples(found, name)) for name in found.columns),
        n_rows=found.n_rows,
        roles=found.names | ({"event": understood.event} if understood.event else {}),
        is_visits=found.is_visits,
        problems=_some(found.problems),
        notes=tuple(dict.fromkeys((*found.notes, *said))),
    )
    return (seen, None) if found.panel is None else (_with_panel(seen, found.panel), found.panel)


def _some(problems: Sequence[object]) -> tuple[str, ...]:
    """The first problems in sentences, and how many there are besides."""
    lines = [on_the_page(str(problem)) for problem in problems[:_MOST_PROBLEMS]]
    more = len(problems) - len(lines)
    return (*lines, *([f"and {more:,} more"] if more else []))


def _examples(found: TableRecognition, name: str) -> str:
    """What a column is called at length, if the file says so, and its first values."""
    values = found.preview[name].dropna().unique()[:_EXAMPLES]
    texts = [*([found.titles[name]] if name in found.titles else []), *map(str, values)]
    return ", ".join(t if len(t) <= _LONGEST else t[: _LONGEST - 1] + "…" for t in texts)


def _with_panel(seen: Look, panel: PanelCounts) -> Look:
    """Add what only a panel has: its summary and covariates."""
    from gp4c.data.ordering import natural_key

    summary = panel.summary()
    covariates = panel.covariates
    values = {str(name): covariates[name].dropna().unique().tolist() for name in covariates.columns}
    sizes = {name: len(found) for name, found in values.items()}
    varying = [str(name) for name in panel.interval_covariates.columns if str(name) not in sizes]
    return replace(
        seen,
        notes=tuple(dict.fromkeys((*panel.notes, *seen.notes, *summary.remarks))),
        facts=tuple((label, text) for label, text in summary.texts()),
        groups={
            name: tuple(sorted(values[name], key=natural_key))
            for name, size in sizes.items()
            if 2 <= size <= _MOST_GROUPS
        },
        divisions=tuple(name for name, size in sizes.items() if 2 <= size <= _MOST_DIVISIONS),
        covariates=(*sizes, *varying),
    )


def _with_picture(seen: Look, panel: PanelCounts) -> Look:
    """Add the picture; none where types of events were counted in different intervals."""
    from gp4c.data.types.typed_panel import TypedPanel, together
    from gp4c.reporting.page.html_report import panel_png

    drawn = together(panel) if isinstance(panel, TypedPanel) else panel
    if drawn is None:
        return seen
    return replace(
        seen,
        picture=panel_png(drawn),
        alternative=f"One row for each of {panel.n_subjects} subjects; rectangles are intervals "
        "between visits, darker where more events were counted.",
    )
