"""What a user chose on the page, and the command line and script that it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

from gp4c.plain import number_or_text

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts

#: what an argument of the library may be
Argument: TypeAlias = "str | float | bool | tuple[str, ...] | None"

#: the choice of an origin that stands for each subject's first visit
FIRST_VISIT = "first"
#: what no shell takes for anything else
_PLAIN = re.compile(r"[\w./:=+-]+", re.ASCII)
#: what a shell would obey inside double quotes
_OBEYED = re.compile(r'["$`\\!%]')


@dataclass(frozen=True)
class Source:
    """Where the data are: an uploaded file, or a data set that comes with gp4c.

    Attributes
    ----------
    name : str
        The file's own name, or that of the data set.
    path : str, optional
        Where the upload lies; None for a data set.
    """

    name: str
    path: str | None = None


@dataclass(frozen=True)
class Reading:
    """How a table is to be understood; None and False leave it to :func:`gp4c.read_panel`.

    The fields have the names of the options of the command line. An origin is ``first``, a
    number, a date or a column, as there. Several columns of counts are several types of events.
    """

    subject: str | None = None
    start: str | None = None
    stop: str | None = None
    time: str | None = None
    count: str | tuple[str, ...] | None = None
    event: str | None = None
    exposure: str | None = None
    usage: str | None = None
    end: str | None = None
    clock: str | None = None
    cumulative: bool = False
    since_entry: bool = False
    origin: str | None = None
    time_unit: str | None = None
    day_first: bool | None = None
    drop_missing: bool = False
    sheet: str | None = None
    table: str | None = None
    query: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    @property
    def has_types(self) -> bool:
        """Whether events are of several types."""
        return self.event is not None or isinstance(self.count, tuple)

    def arguments(self) -> dict[str, Argument]:
        """The arguments of :func:`gp4c.read_panel` that are not its defaults."""
        chosen: dict[str, Argument] = self._chosen()
        if chosen.pop("drop_missing", False):
            chosen["missing"] = "drop"
        if self.origin is not None:
            chosen["origin"] = None if self.origin == FIRST_VISIT else number_or_text(self.origin)
        return chosen

    def options(self) -> list[str]:
        """The same for the command line."""
        words: list[str] = []
        for name, value in self._chosen().items():
            if name == "day_first":
                words.append("--day-first" if value else "--month-first")
                continue
            for one in value if isinstance(value, tuple) else (value,):
                words.append("--" + name.replace("_", "-"))
                words += [] if one is True else [str(one)]
        return words

    def _chosen(self) -> dict[str, Argument]:
        defaults = Reading()
        names = [field.name for field in fields(self)]
        return {n: getattr(self, n) for n in names if getattr(self, n) != getattr(defaults, n)}


@dataclass(frozen=True)
class Grouping:
    """How groups are compared; the defaults are those of :func:`gp4c.compare`.

    The fields have the names of its arguments. A reference is the value itself, as the table
    has it.
    """

    test: str = "level"
    reference: str | float | None = None
    strata: str | None = None
    blocks: str | None = None
    cluster: str | None = None

    def arguments(self) -> dict[str, Argument]:
        """The arguments of :func:`gp4c.compare` that are not its defaults."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }

    def options(self) -> list[str]:
        """The same for the command line."""
        return [
            word for name, value in self.arguments().items() for word in (f"--{name}", str(value))
        ]


@dataclass(frozen=True)
class Choices:
    """What to fit: the covariate that makes groups, a formula, the parts of the model."""

    by: str | None = None
    formula: str | None = None
    level: float = 0.95
    seed: int = 0
    effect: str = "auto"
    bursts: str = "auto"
    trend: str | None = None
    season: str | None = None
    grouping: Grouping = Grouping()

    def arguments(self) -> dict[str, Argument]:
        """The arguments of :class:`gp4c.GP4C` that are not its defaults, and the seed."""
        from gp4c.estimators.gp4c import GP4C

        season = None if self.season is None else number_or_text(self.season)
        chosen: dict[str, Argument] = {
            "formula": self.formula,
            "effect": GP4C.effect_options[self.effect],
            "bursts": GP4C.burst_options[self.bursts],
            "trend": self.trend,
            "season": season,
        }
        usual = GP4C().get_params()
        changed = {name: value for name, value in chosen.items() if value != usual[name]}
        return changed | {"random_state": self.seed}

    def options(self, compares: bool = True, by: bool = True) -> list[str]:
        """The choices for the command line; defaults are left out.

        Parameters
        ----------
        compares : bool
            Whether the command compares the groups.
        by : bool
            Whether the command splits the subjects into the groups.
        """
        grouped = self.grouping.options() if compares and self.by is not None else []
        words = ["--by", self.by, *grouped] if by and self.by is not None else []
        for name, value, default in (
            ("--formula", self.formula, None), ("--effect", self.effect, "auto"),
            ("--bursts", self.bursts, "auto"), ("--trend", self.trend, None),
            ("--season", self.season, None), ("--level", f"{self.level:g}", "0.95"),
            ("--seed", str(self.seed), "0"),
        ):  # fmt: skip
            if value is not None and value != default:
                words += [name, value]
        return words


@dataclass(frozen=True)
class Analysis:
    """A source, how it is read and what is fitted."""

    source: Source
    reading: Reading = Reading()
    choices: Choices = Choices()

    def panel(self) -> PanelCounts:
        """Read the data as the command line does."""
        from gp4c.data.datasets.bundled import load_dataset
        from gp4c.data.formulas.covariate_rows import complete_rows
        from gp4c.data.tables.readers import read_panel

        if self.source.path is None:
            return load_dataset(self.source.name)
        # read_panel takes arguments of many types, which the table of choices cannot tell apart
        panel = read_panel(self.source.path, **self.reading.arguments())  # type: ignore[arg-type]
        if self.choices.formula is not None and self.reading.drop_missing:
            panel = complete_rows(panel, self.choices.formula)
        return panel

    def commands(self) -> list[str]:
        """The command lines that do the same: the report, and the fit with its files.

        The fit has no options of a comparison. Types of events are fitted together, to all
        subjects.
        """
        read = [] if self.source.path is None else self.reading.options()
        chosen = {
            "report": self.choices.options(),
            "fit": self.choices.options(compares=False, by=not self.reading.has_types),
        }
        return [
            " ".join(["gp4c", name, *map(quoted, (self.source.name, *read, *words))])
            + " --out results"
            for name, words in chosen.items()
        ]

    def script(self) -> str:
        """The Python script that does the same."""
        drops = self.choices.formula is not None and self.reading.drop_missing
        lines = [
            f'"""The analysis of {_in_docstring(self.source.name)} that gp4c app made."""',
            "",
            "import gp4c",
            *(["from gp4c.data.formulas.covariate_rows import complete_rows"] if drops else []),
            "",
            f"panel = {self._reading_call()}",
            *([f"panel = complete_rows(panel, {self.choices.formula!r})"] if drops else []),
            *self._fitting_lines(),
        ]
        return "\n".join(lines) + "\n"

    def _reading_call(self) -> str:
        if self.source.path is None:
            return call("gp4c.load_dataset", self.source.name)
        return call("gp4c.read_panel", self.source.name, self.reading.arguments())

    def _fitting_lines(self) -> list[str]:
        """From the panel to the summary, the saved models and the report."""
        by, seed, joint = self.choices.by, self.choices.seed, self.reading.has_types
        model = call("gp4c.GP4C", None, self.choices.arguments())
        end = f"level={self.choices.level:g}, seed={seed}).save('report.html')"
        whole = [f"model = {model}.fit(panel)", "print(model.summary())", "model.save('fit.json')"]
        if by is None:
            return [*whole, "gp4c.Report({'all subjects': model}, panel, " + end]
        how = call("", None, self.choices.grouping.arguments() | {"random_state": seed})[1:]
        compared = [f"found = gp4c.compare(panel, {by!r}, {model}, {how}", "print(found)"]
        if joint:
            shown = "gp4c.Report({'all subjects': model}, panel, comparison=found, "
            return [*whole, *compared, shown + end]
        return [
            *compared,
            "for number, model in enumerate(found.models.values(), start=1):",
            "    print(model.summary())",
            "    model.save(f'fit-{number}.json')",
            f"gp4c.Report(found.models, panel, {by!r}, found, " + end,
        ]


def formula_of(covariates: list[str]) -> str | None:
    """Covariates as a formula: names that are no words stand in backticks."""
    names = [name if name.isidentifier() else f"`{name}`" for name in covariates]
    return " + ".join(names) or None


def call(function: str, first: str | None, options: Mapping[str, Argument] | None = None) -> str:
    """A call in Python."""
    words = [] if first is None else [repr(first)]
    words += [f"{name}={value!r}" for name, value in (options or {}).items()]
    return f"{function}({', '.join(words)})"


def quoted(word: str) -> str:
    """A word of a command line: in double quotes, which every shell knows, unless it needs more."""
    if _PLAIN.fullmatch(word):
        return word
    if _OBEYED.search(word):
        import shlex

        return shlex.quote(word)
    return f'"{word}"'


def _in_docstring(name: str) -> str:
    """A file's name where quotes, backslashes or ends of lines would end or change the text."""
    return re.sub(r'["\\\x00-\x1f]', "_", name)
