"""Between the page and its session: what is clicked becomes a call, what comes is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING

from shiny import App, Inputs, Outputs, reactive, render, ui
from shiny import Session as Connection

from gp4c.app import messages
from gp4c.app.bundles import KINDS
from gp4c.app.choices import (
    FIRST_VISIT,
    Analysis,
    Choices,
    Grouping,
    Reading,
    Source,
    formula_of,
)
from gp4c.app.page import (
    DIVISIONS,
    EXAMPLES,
    FORMAT_FIELDS,
    INTERVALS,
    ROLES,
    TYPED,
    VISITS,
    page,
)
from gp4c.app.parts_of_page import code, downloads, look_at, problem_box
from gp4c.app.session import Session

if TYPE_CHECKING:
    from gp4c.app.messages import Look, Message
    from gp4c.app.worker import Bench

#: seconds that a change of the columns waits for the next one
_PAUSE = 0.15


def application(bench: Bench) -> App:
    """The page as an application; every tab that opens it hires from the bench."""

    def serve_tab(given: Inputs, output: Outputs, connection: Connection) -> None:
        Tab(given, output, connection, Session(bench))

    return App(page(), serve_tab)


class Tab:
    """The callbacks of one tab."""

    def __init__(
        self, given: Inputs, output: Outputs, connection: Connection, session: Session
    ) -> None:
        self._input, self._connection, self._session = given, connection, session
        self._shown: reactive.Value[tuple[str, Look | None, tuple[str, ...]] | None]
        self._shown = reactive.Value(None)
        self._fitted: reactive.Value[Analysis | None] = reactive.Value(None)
        self._task: asyncio.Task[None] | None = None
        self._pause: asyncio.Task[None] | None = None
        self._fitting: asyncio.Task[None] | None = None
        self._columns: tuple[str, ...] = ()
        self._covariates: tuple[tuple[str, ...], ...] = ()
        connection.on_ended(session.close)
        self._serve_inputs()
        self._serve_outputs(output)
        self._serve_downloads(output)

    # -- what the user does -----------------------------------------------------------------

    def _serve_inputs(self) -> None:
        given = self._input

        @reactive.effect
        @reactive.event(given.file)
        def _uploaded() -> None:
            upload = given.file()[0]
            self._open(Source(upload["name"], upload["datapath"]))

        for name in EXAMPLES:
            self._serve_example(name)

        @reactive.effect
        def _understood() -> None:
            reading = self._reading()
            if self._session.asked not in (None, reading):
                self._pause = asyncio.create_task(self._look_again())

        @reactive.effect
        def _groups_chosen() -> None:
            self._offer_references(given.by())

        @reactive.effect
        @reactive.event(given.fit)
        def _asked_to_fit() -> None:
            choices, reading = self._choices(), self._reading()
            self._fitted.set(None)
            self._fitting = self._start(self._fit(choices, reading))

        @reactive.effect
        @reactive.event(given.cancel)
        def _cancelled() -> None:
            self._session.cancel()

    def _serve_example(self, name: str) -> None:
        @reactive.effect
        @reactive.event(self._input[f"example_{name}"])
        def _chosen() -> None:
            self._open(Source(name))

    def _open(self, source: Source) -> None:
        self._fitted.set(None)
        self._start(self._look(lambda: self._session.open(source)))

    def _reading(self) -> Reading:
        """How the fields say that the table is to be understood."""
        given = self._input
        visits = given.layout() == VISITS
        roles = {
            role: given[f"column_{role}"]() or None
            for role, layout in ROLES.items()
            if layout in (None, VISITS if visits else INTERVALS)
        }
        if given.counts():
            roles["count"] = tuple(given.counts())
        origin = given.origin_typed().strip() if given.origin() == TYPED else given.origin()
        return Reading(
            **roles,
            clock="usage" if given.column_usage() and given.by_usage() else None,
            cumulative=visits and given.totals(),
            since_entry=visits and given.since_entry(),
            origin=(origin or None) if visits else None,
            time_unit=given.time_unit() or None,
            day_first=None if not given.dates() else given.dates() == "day",
            drop_missing=given.drop_missing(),
            **{name: given[name]() or None for name in FORMAT_FIELDS},
        )

    def _choices(self) -> Choices:
        given = self._input
        formula = given.formula().strip() or formula_of(list(given.covariates()))
        by, seed = given.by() or None, given.seed()
        return Choices(
            by, formula, float(given.level()), int(seed or 0), given.effect(), given.bursts(),
            given.trend() or None, given.season().strip() or None,
            Grouping() if by is None else self._grouping(by),
        )  # fmt: skip

    def _grouping(self, by: str) -> Grouping:
        """How the fields say that the groups are to be compared."""
        given = self._input
        divisions = {name: given[name]() or None for name in DIVISIONS}
        return Grouping(given.test(), self._values(by).get(given.reference()), **divisions)

    def _values(self, by: str) -> dict[str, str | float]:
        """The groups of a covariate, by what the page calls them."""
        look = self._session.look
        return {} if look is None else {str(value): value for value in look.groups.get(by, ())}

    # -- what the session says --------------------------------------------------------------

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        """Begin something instead of what is going on."""
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.create_task(work)
        return self._task

    async def _look_again(self) -> None:
        """Look as the fields say, when they have settled: some change together.

        Not beside a fit, which it would stop: fields are locked then, and what still comes from
        them is an echo.
        """
        await asyncio.sleep(_PAUSE)
        async with reactive.lock():
            with reactive.isolate():
                reading = self._reading()
        is_fitting = self._fitting is not None and not self._fitting.done()
        if not is_fitting and self._session.asked not in (None, reading):
            self._start(self._understand(reading))

    async def _understand(self, reading: Reading) -> None:
        await self._look(lambda: self._session.understand(reading), is_new=False)

    async def _look(self, begin: Callable[[], Iterator[Message]], is_new: bool = True) -> None:
        await self._tell("clear" if is_new else "stale", busy="reading")

        async def show(message: Message) -> None:
            nonlocal is_new
            source = self._session.source
            name = "" if source is None else source.name
            if isinstance(message, messages.Look):
                async with reactive.lock():
                    self._update_fields(message, is_new)
                    is_new = False  # what follows adds to it, such as the picture
                    self._shown.set((name, message, ()))
                    await reactive.flush()
                await self._tell("looked", columns=bool(message.columns),
                                 ready=not message.problems)  # fmt: skip
            elif isinstance(message, messages.Failed):
                async with reactive.lock():
                    self._shown.set((name, None, message.lines))
                    await reactive.flush()
                is_file = source is not None and source.path is not None
                await self._tell("looked", columns=is_file, ready=False)

        await _follow(begin(), show)

    async def _fit(self, choices: Choices, reading: Reading) -> None:
        """Fit the table as the fields say; a look that they still wait for comes first."""
        if self._session.asked not in (None, reading):
            await self._understand(reading)
        await self._tell("begin", busy="reading the table")

        async def show(message: Message) -> None:
            match message:
                case messages.Progress(text):
                    await self._tell("progress", busy=text)
                case messages.Part(key, heading, html, figures):
                    await self._tell("part", key=key, heading=heading, html=html,
                                     figures=figures, level=f"{choices.level:g}")  # fmt: skip
                case messages.Failed(lines):
                    await self._tell("failed", html=str(problem_box("This did not work", lines)))
                case messages.Stopped():
                    await self._tell("stopped")
                case messages.Written():
                    async with reactive.lock():
                        self._fitted.set(self._session.fitted)
                        await reactive.flush()
                    await self._tell("done")

        await _follow(self._session.fit(choices), show)

    async def _tell(self, kind: str, **content: object) -> None:
        await self._connection.send_custom_message("gp4c", {"kind": kind, **content})

    # -- what is shown ----------------------------------------------------------------------

    def _serve_outputs(self, output: Outputs) -> None:
        @output(id="look")
        @render.ui
        def _look() -> ui.Tag | None:
            shown = self._shown()
            if shown is None:
                return None
            name, look, failed = shown
            if look is None:
                return problem_box(f"{name} cannot be read", failed)
            return look_at(name, look)

        @output(id="downloads")
        @render.ui
        def _downloads() -> ui.Tag | None:
            fitted = self._fitted()
            return None if fitted is None else downloads(self._session.kinds())

        @output(id="code")
        @render.ui
        def _code() -> ui.Tag | None:
            fitted = self._fitted()
            return None if fitted is None else code(fitted)

    def _serve_downloads(self, output: Outputs) -> None:
        for kind in KINDS:
            self._serve_download(output, kind)

    def _serve_download(self, output: Outputs, kind: str) -> None:
        @output(id=f"download_{kind}")
        @render.download_link(filename=lambda: self._session.bundle(kind).name)
        def _content() -> Iterator[bytes]:
            yield self._session.bundle(kind).content()

    def _update_fields(self, look: Look, is_new: bool) -> None:
        """Offer the columns of the table, and show what each is taken for.

        Only what is new is sent: an answer that comes late must not undo the user's next choice.
        """
        columns = tuple(name for name, _ in look.columns)
        if columns and (is_new or columns != self._columns):
            self._update_columns(look)
        covariates = (tuple(look.groups), look.divisions, look.covariates)
        if is_new or (not look.problems and covariates != self._covariates):
            self._update_covariates(look)
            self._covariates = covariates
        self._columns = columns

    def _update_covariates(self, look: Look) -> None:
        self._offer("by", "no groups", tuple(look.groups))
        for name in DIVISIONS:
            self._offer(name, "none", look.divisions)
        with reactive.isolate():
            chosen = list(self._input.covariates())
        kept = [name for name in chosen if name in look.covariates]
        ui.update_checkbox_group("covariates", choices=list(look.covariates), selected=kept)

    def _offer_references(self, by: str) -> None:
        self._offer("reference", "the first group", tuple(self._values(by)))

    def _offer(self, field: str, nothing: str, names: tuple[str, ...]) -> None:
        """Change what can be chosen; the choice stays if it can."""
        with reactive.isolate():
            chosen = self._input[field]()
        choices = {"": nothing, **{name: name for name in names}}
        ui.update_select(field, choices=choices, selected=chosen if chosen in names else "")

    def _update_columns(self, look: Look) -> None:
        reading, columns = look.reading, {name: name for name, _ in look.columns}
        now = VISITS if look.is_visits else INTERVALS
        ui.update_radio_buttons("layout", selected=now)
        for role, layout in ROLES.items():
            automatic = {"": f"{look.roles[role]} (found)" if role in look.roles else "none"}
            chosen = getattr(reading, role) if role != "count" else _single(reading)
            if layout not in (None, now):  # to change the layout is to say which column it is
                automatic, chosen = {}, next(iter(columns))
            ui.update_select(f"column_{role}", choices=automatic | columns, selected=chosen or "")
        origins = {"": "from time 0", FIRST_VISIT: "from the first visit",
                   TYPED: "from a time or date"}  # fmt: skip
        entries = {name: f"from column {name}" for name in columns}
        known = reading.origin in (None, FIRST_VISIT) or reading.origin in columns
        ui.update_select("origin", choices=origins | entries,
                         selected=(reading.origin or "") if known else TYPED)  # fmt: skip
        ui.update_select("time_unit", selected=reading.time_unit or "")
        order = {None: "", True: "day", False: "month"}[reading.day_first]
        ui.update_select("dates", selected=order)
        for box, value in (("since_entry", reading.since_entry), ("totals", reading.cumulative),
                           ("drop_missing", reading.drop_missing),
                           ("by_usage", reading.clock is not None)):  # fmt: skip
            ui.update_checkbox(box, value=value)
        counts = reading.count if isinstance(reading.count, tuple) else ()
        ui.update_checkbox_group("counts", choices=list(columns), selected=list(counts))
        for field in FORMAT_FIELDS:
            ui.update_text(field, value=getattr(reading, field) or "")


async def _follow(found: Iterator[Message], show: Callable[[Message], Awaitable[None]]) -> None:
    """Show messages as they come; another thread waits for them."""
    while (message := await asyncio.to_thread(next, found, None)) is not None:
        await show(message)


def _single(reading: Reading) -> str | None:
    """The one column of counts that was named."""
    return reading.count if isinstance(reading.count, str) else None
