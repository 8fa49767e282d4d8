"""Files of SAS, SPSS and Stata, read by pyreadstat: labels and codes of missing values are kept."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gp4c.data.checks import plural
from gp4c.data.tables.formats.content import PER_CELL, PER_ROW, TableFile, check_room
from gp4c.data.tables.formats.file_format import Choice, FileFormat, LabelColumn, missing_package
from gp4c.data.tables.formats.grid import column_of
from gp4c.data.tables.frames import Table
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd

    from gp4c.data.tables.columns import Column

#: codes of one column that are counted in its note
_CODES = 6


class StatisticalFile(FileFormat):
    """A file of one of the statistical systems; subclasses say which."""

    takes: ClassVar[tuple[str, ...]] = ("encoding",)
    #: function of pyreadstat, and whether it tells codes of missing values
    reader = ""
    tells_codes = True
    #: formats of days and of moments that pyreadstat does not take for dates by itself
    day_formats = ""
    moment_formats = ""

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """Read all columns; first the header alone, which says how many cells are to come."""
        about = self._parsed(file, choice, metadataonly=True)[1]
        rows, names = about.number_rows or 0, about.column_names
        if not all(isinstance(name, str) for name in names):  # spoilt: the library says NaN
            raise PanelDataError(
                f"{file.shown} is not readable as {self.title}: a column has no name"
            )
        check_room(file.shown, PER_ROW * rows + 4 * PER_CELL * rows * len(names))
        options: dict[str, Any] = {"user_missing": True} if self.tells_codes else {}
        options |= self._dates_among(about.original_variable_types.values())
        frame, about = self._parsed(file, choice, **options)
        if not len(frame):
            raise PanelDataError(f"{file.shown} is empty; it needs at least one row")
        columns, notes = {}, []
        for name in frame.columns:
            labels = about.variable_value_labels.get(name, {})
            ranges = about.missing_ranges.get(name, [])
            columns[name], codes = _without_codes(frame[name], ranges)
            notes += _code_note(name, codes, labels)
        return Table(
            columns, len(frame), _observations, file.shown, tuple(notes),
            titles={k: v for k, v in about.column_names_to_labels.items() if v},
            value_labels={k: v for k, v in about.variable_value_labels.items() if k in columns},
        )  # fmt: skip

    def _dates_among(self, formats: Iterable[str | None]) -> dict[str, list[str]]:
        """Which formats of a file are dates beyond those that pyreadstat knows."""
        shown = sorted({one for one in formats if one})
        patterns = {
            "extra_date_formats": self.day_formats,
            "extra_datetime_formats": self.moment_formats,
        }
        return {
            option: found
            for option, pattern in patterns.items()
            if pattern and (found := [one for one in shown if re.fullmatch(pattern, one)])
        }

    def _parsed(self, file: TableFile, choice: Choice, **options: Any) -> tuple[Any, Any]:
        try:
            import pyreadstat
        except ImportError:
            raise missing_package(self.title, "pyreadstat") from None
        read = getattr(pyreadstat, self.reader)
        try:
            if "encoding" in self.takes:
                options["encoding"] = choice.encoding
            parsed: tuple[Any, Any] = read(io.BytesIO(file.data), **options)
        except MemoryError:
            raise
        except Exception as error:  # a spoilt file can upset the library in any way
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise PanelDataError(
                f"{file.shown} is not readable as {self.title}: {reason}"
            ) from None
        return parsed


#: days that SAS writes in words, in other languages, or as month and year alone
_SAS_DAYS = r"(WORDDAT[EX]|NLDATE[A-Z]*|EURDF(DD|DE|DN|WDX)|MONYY|YYMON|JULIAN)[\d.]*"
_SAS_MOMENTS = r"(NLDATM[A-Z]*|EURDFDT)[\d.]*"


class SasDataSet(StatisticalFile):
    """A data set of SAS, as SAS keeps it."""

    title = "a SAS data set"
    extensions = (".sas7bdat",)
    magic = (bytes(12) + bytes.fromhex("c2ea8160b31411cfbd92080009c7318c181f1011"),)
    reader = "read_sas7bdat"
    day_formats = _SAS_DAYS
    moment_formats = _SAS_MOMENTS


class SasTransport(StatisticalFile):
    """A SAS transport file, as authorities ask for."""

    title = "a SAS transport file"
    extensions = (".xpt", ".xport")
    magic = (b"HEADER RECORD*******LIB",)
    reader = "read_xport"
    tells_codes = False
    day_formats = _SAS_DAYS
    moment_formats = _SAS_MOMENTS


class SpssFile(StatisticalFile):
    """A data file of SPSS, compressed or not."""

    title = "an SPSS file"
    extensions = (".sav", ".zsav")
    magic = (b"$FL2", b"$FL3")
    reader = "read_sav"


class SpssPortable(StatisticalFile):
    """A portable file of SPSS."""

    title = "a portable SPSS file"
    extensions = (".por",)
    takes = ()
    reader = "read_por"
    tells_codes = False


class StataFile(StatisticalFile):
    """A data set of Stata, version 8 or newer."""

    title = "a Stata file"
    extensions = (".dta",)
    magic = (b"<stata_dta>",)
    reader = "read_dta"
    day_formats = r"%-?\d*(td|d).*"  # whatever follows says how Stata shows the day
    moment_formats = r"%-?\d*t[cC](?!HH:MM(:SS)?$).*"


def _observations(rows: Sequence[int]) -> str:
    """Name rows as these systems count them, from 1."""
    numbers = " and ".join(str(row + 1) for row in rows)
    return f"observation{'s' * (len(rows) > 1)} {numbers}"


def _without_codes(
    column: pd.Series[Any], ranges: Sequence[Mapping[str, Any]]
) -> tuple[Column, Counter[str]]:
    """A column with its missing cells missing, and how often each code stood for one.

    SAS and Stata have letters among numbers; SPSS declares numbers (or texts) as missing.
    """
    cells = column.tolist()
    texts = any(isinstance(cell, str) and len(cell) != 1 for cell in cells)
    numbers = any(isinstance(cell, int | float) and cell == cell for cell in cells)
    codes: Counter[str] = Counter()
    values: list[Any] = []
    for cell in cells:
        is_letter = numbers and not texts and isinstance(cell, str) and cell != ""
        declared = any(_within(cell, each) for each in ranges)
        if is_letter or declared:
            codes[f".{cell.lower()}" if is_letter else _shown(cell)] += 1
        empty = cell is None or cell != cell or is_letter or declared
        values.append(None if empty else cell)
    return column_of(values), codes


def _within(cell: Any, span: Mapping[str, Any]) -> bool:
    """Whether SPSS declares a value as missing."""
    try:
        return bool(span["lo"] <= cell <= span["hi"])
    except TypeError:
        return False


def _shown(cell: Any) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _code_note(name: str, codes: Counter[str], labels: Mapping[Any, str]) -> list[str]:
    """Say which codes of missing values a column has."""
    if not codes:
        return []
    meaning = {_shown(code): label for code, label in labels.items()}
    meaning |= {f".{code.lower()}": label for code, label in meaning.items() if len(code) == 1}
    parts = [
        f"{code} ({meaning[code]}) {number} times" if code in meaning else f"{code} {number} times"
        for code, number in codes.most_common(_CODES)
    ]
    total = plural(sum(codes.values()), "cell")
    return [f"{name!r}: {total} missing by a code: {', '.join(parts)}".replace(" 1 times", " once")]
