"""What is on the page before anything happens: fields, buttons, places for results."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from htmltools import HTMLDependency
from shiny import ui

from gp4c import __version__
from gp4c.app.page_words import FIELDS

#: layouts of a table
INTERVALS, VISITS = "intervals", "visits"
#: the choice of an origin that is typed in
TYPED = "@typed"
#: roles of columns that are recognised, and the layout that has them (both if None)
_USUAL = {
    "subject": None, "start": INTERVALS, "stop": INTERVALS, "time": VISITS, "count": None,
    "exposure": None,
}  # fmt: skip
#: those that few tables have
_RARE = {"usage": None, "end": None, "event": None}
ROLES = _USUAL | _RARE
_UNITS = ("", "seconds", "minutes", "hours", "days", "weeks", "months", "years")
#: orders of day and month
DATES = {"": "automatic", "day": "day first", "month": "month first"}
#: fields about the file itself, with an example
FORMAT_FIELDS = {
    "delimiter": ";", "decimal": ",", "encoding": "latin-1", "sheet": "visits", "table": "visits",
    "query": "SELECT ...",
}  # fmt: skip
_LEVELS = {"0.8": "80%", "0.9": "90%", "0.95": "95%", "0.99": "99%"}
#: what the permutation test may look for
_TESTS = {
    "level": "more or fewer", "curve": "different curves", "trend": "a trend",
    "any": "any difference",
}  # fmt: skip
_DECIDED = "the data decide"
_EFFECTS = {"auto": _DECIDED, "gamma": "yes", "none": "no"}
_BURSTS = {"auto": _DECIDED, "yes": "yes", "no": "no"}
_TRENDS = {"": "none", "auto": _DECIDED, "loglinear": "log-linear", "power": "power law"}
#: columns that divide subjects within or across groups
DIVISIONS = {"strata": "Strata", "blocks": "Blocks", "cluster": "Centres"}
EXAMPLES = {"bladder": "Bladder tumours", "nausea": "Nausea", "cgd": "Infections in CGD"}


def page() -> ui.Tag:
    """The whole page."""
    return ui.tags.html(
        ui.head_content(
            ui.tags.title("gp4c"),
            ui.tags.meta(name="viewport", content="width=device-width, initial-scale=1"),
            ui.tags.meta(name="color-scheme", content="light dark"),
            ui.tags.link(rel="icon", href="data:,"),
        ),
        *_dependencies(),
        ui.tags.body(*_body()),
        lang="en",
    )


def _body() -> list[ui.Tag]:
    return [
        ui.tags.a("Skip to the results", href="#shown", class_="skip"),
        ui.tags.header(
            ui.tags.h1("Event rates from counts between visits"),
            ui.tags.p(
                "Drop a table, check how it is understood, fit. Nothing leaves this computer.",
                class_="lead",
            ),
            class_="top",
        ),
        ui.tags.main(
            ui.div(_file(), _columns(), _model(), ui.output_ui("downloads"), class_="settings"),
            ui.div(
                ui.output_ui("look"),
                ui.tags.div(id="shown", tabindex="-1", aria_live="off"),
                ui.output_ui("code"),
                class_="results",
            ),
            class_="desk",
        ),
        ui.div(
            ui.tags.p(id="progress", role="status", aria_live="polite"),
            ui.input_action_button("cancel", "Cancel"),
            class_="working",
        ),
        ui.tags.footer(f"gp4c {__version__}. This page is served by your own computer."),
    ]


def _dependencies() -> list[HTMLDependency]:
    """Our style sheets and scripts and Plotly's, as files: the policy allows no others."""
    own = Path(str(files("gp4c.app") / "assets"))
    report = Path(str(files("gp4c.reporting.page") / "assets"))
    plotly = Path(str(files("plotly") / "package_data"))
    return [
        _dependency("plotly", plotly, scripts=("plotly.min.js",)),
        _dependency("gp4c-report", report, scripts=("figures.js",), styles=("report.css",)),
        _dependency("gp4c-app", own, scripts=("app.js",), styles=("app.css",)),
    ]


def _dependency(
    name: str, folder: Path, *, scripts: tuple[str, ...] = (), styles: tuple[str, ...] = ()
) -> HTMLDependency:
    return HTMLDependency(
        name, __version__, source={"subdir": str(folder)},
        script=[{"src": script, "defer": ""} for script in scripts],
        stylesheet=[{"href": style} for style in styles],
    )  # fmt: skip


def _file() -> ui.Tag:
    return step(
        "1", "Your table",
        ui.input_file("file", None, button_label="Choose a file", placeholder="or drop it here"),
        ui.tags.p(
            "One row per subject and interval or visit. No file at hand? Try ",
            *[
                ui.tags.span(
                    ui.input_action_link(f"example_{name}", title),
                    "." if k == len(EXAMPLES) - 1 else ", ",
                )
                for k, (name, title) in enumerate(EXAMPLES.items())
            ],
            class_="hint",
        ),
    )  # fmt: skip


def _columns() -> ui.Tag:
    """How the table is to be understood; shown when there is a file."""
    layouts = {INTERVALS: "interval (from, to)", VISITS: "visit"}
    return step(
        "2", "Columns",
        ui.input_radio_buttons("layout", "A row of the table is an", layouts, inline=True),
        ui.div(*map(_column, _USUAL), class_="fields"),
        _rare_columns(),
        _time_fields(),
        _format_fields(),
        css="needs-file",
    )  # fmt: skip


def _column(role: str) -> ui.Tag:
    """Which column has a role."""
    return _field(
        ui.input_select(f"column_{role}", FIELDS[role], {"": "…"}),
        css="" if ROLES[role] is None else f"only-{ROLES[role]}",
    )


def _rare_columns() -> ui.Tag:
    """Columns of fleets and of several types of events."""
    return ui.tags.details(
        ui.tags.summary("More columns"),
        *map(_column, ("usage", "end")),
        ui.div(
            ui.input_checkbox("by_usage", "Draw curves over usage instead of time"),
            class_="only-usage",
        ),
        _hint("Usage: hours run or km driven in the interval. Rates are then per hour or km."),
        _column("event"),
        ui.div(
            ui.input_checkbox_group("counts", "Or one column of counts for each type", {}),
            class_="adjust",
        ),
    )


def _time_fields() -> ui.Tag:
    units = {unit: unit or "not stated" for unit in _UNITS}
    typed = ui.input_text("origin_typed", "A time or date", placeholder="2024-01-31")
    return ui.tags.details(
        ui.tags.summary("Time and missing counts"),
        _field(ui.input_select("time_unit", "Unit of time", units)),
        _field(ui.input_select("dates", "Dates", DATES)),
        ui.div(
            _field(ui.input_select("origin", "First interval", {"": "from time 0"})),
            _field(typed, css="only-typed"),
            ui.input_checkbox("since_entry", "Count time from each subject's entry"),
            ui.input_checkbox("totals", "Counts are totals since the beginning"),
            class_="only-visits",
        ),
        ui.input_checkbox("drop_missing", "Leave out what is missing"),
    )


def _format_fields() -> ui.Tag:
    return ui.tags.details(
        ui.tags.summary("Format of the file"),
        _hint("Found by itself where a field is empty."),
        *[
            _field(ui.input_text(name, FIELDS[name], placeholder=f"e.g. {example}"))
            for name, example in FORMAT_FIELDS.items()
        ],
    )


def _model() -> ui.Tag:
    return step(
        "3", "Analysis",
        _field(ui.input_select("by", "Compare groups of", {"": "no groups"})),
        ui.div(ui.input_checkbox_group("covariates", "Adjust for", {}), class_="adjust"),
        _group_fields(),
        _model_fields(),
        ui.input_action_button("fit", "Fit", class_="primary"),
        css="needs-data",
    )  # fmt: skip


def _group_fields() -> ui.Tag:
    """How groups are compared; shown when there are groups."""
    divisions = [
        _field(ui.input_select(name, title, {"": "none"})) for name, title in DIVISIONS.items()
    ]
    return ui.tags.details(
        ui.tags.summary("Comparison"),
        _field(ui.input_select("reference", "Compare with", {"": "the first group"})),
        _field(ui.input_select("test", "Test for", _TESTS)),
        *divisions,
        _hint("The test permutes within strata and blocks. Each centre gets a random effect."),
        class_="only-groups",
    )


def _model_fields() -> ui.Tag:
    return ui.tags.details(
        ui.tags.summary("More options"),
        _field(ui.input_text("formula", "Own formula", placeholder="age + log(size)")),
        _field(ui.input_select("trend", "Trend", _TRENDS)),
        _field(ui.input_text("season", "Season", placeholder="e.g. year")),
        _hint("A season is year, week or a period in the unit of time."),
        _field(ui.input_select("effect", "Subjects differ", _EFFECTS)),
        _field(ui.input_select("bursts", "Events in bursts", _BURSTS)),
        _field(ui.input_select("level", "Level of the bands", _LEVELS, selected="0.95")),
        _field(ui.input_numeric("seed", "Seed", 0, min=0, step=1)),
    )


def _hint(text: str) -> ui.Tag:
    return ui.tags.p(text, class_="hint")


def _field(control: ui.Tag, css: str = "") -> ui.Tag:
    """A label with its control."""
    return ui.div(control, class_=f"field {css}".strip())


def step(number: str, heading: str, *content: ui.TagChild, css: str = "") -> ui.Tag:
    """A numbered box of the settings."""
    return ui.tags.section(
        ui.tags.h2(ui.tags.span(number, class_="number", aria_hidden="true"), heading),
        *content,
        class_=f"step {css}".strip(),
        aria_label=heading,
    )
