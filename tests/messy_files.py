# ruff: noqa: E501
"""Messy files as people send them, and what must come of each: a panel, or advice.

``python tests/messy_files.py FOLDER`` writes them all and prints what is read or said.
Every file holds the same six visits unless its line says otherwise, so that a file that is read is
read right if it gives the same panel.
"""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

#: visits of three patients: whole and broken doses, codes with leading zeros, umlauts
VISITS = pd.DataFrame(
    {
        "id": ["001", "001", "001", "002", "002", "003"],
        "date": [dt.date(2024, m, d) for m, d in ((1, 15), (2, 20), (4, 30), (1, 31), (3, 1), (2, 28))],
        "n": [0, 2, 1, 0, 3, 0],
        "dose": [0.5, 0.5, 0.5, 1.25, 1.25, 2.0],
        "site": ["Köln", "Köln", "Köln", "Genève", "Genève", "Lyon"],
    }
)  # fmt: skip
#: the last patient has no second visit and is left out; events between visits of the others
START, STOP, COUNT = [0, 36, 16], [36, 106, 46], [2, 1, 3]

INTERVALS = pd.DataFrame({"id": [1, 1, 2], "from": [0, 3, 1], "to": [3, 9.5, 7], "n": [2, 0, 1]})


@dataclass(frozen=True)
class Messy:
    """A file: how it is written, how it is read, and what must come of it."""

    name: str
    write: Callable[[Path], object]
    options: dict[str, Any] = field(default_factory=dict)
    #: parts of the message if the file must be refused
    advice: tuple[str, ...] = ()
    #: what the notes must say
    said: tuple[str, ...] = ()
    #: start, stop and count of the panel
    rows: tuple[list[float], list[float], list[int]] = (START, STOP, COUNT)


def dated(form: str, **options: Any) -> Callable[[Path], object]:
    """The visits as CSV with dates in another form."""

    def write(path: Path) -> None:
        VISITS.assign(date=[d.strftime(form) for d in VISITS["date"]]).to_csv(
            path, index=False, **options
        )

    return write


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], object]:
    """A file of text, written by hand."""
    return lambda path: path.write_bytes(content.encode(encoding))


def data(content: bytes) -> Callable[[Path], object]:
    """A file of bytes."""
    return lambda path: path.write_bytes(content)


def csv(**options: Any) -> Callable[[Path], object]:
    """The visits as pandas writes them."""
    return lambda path: VISITS.to_csv(path, index=False, **options)


def _lines(joint: str = ",") -> str:
    return VISITS.to_csv(index=False, sep=joint)


def _write_r_table(path: Path) -> None:
    lines = ['"id" "date" "n" "dose" "site"']
    for k, row in enumerate(VISITS.itertuples(index=False), start=1):
        lines.append(f'"{k}" "{row.id}" {row.date} {row.n} {row.dose} "{row.site}"')
    path.write_text("\n".join(lines) + "\n")


def _write_book(path: Path, **sheets: pd.DataFrame) -> None:
    with pd.ExcelWriter(path) as book:
        for name, frame in sheets.items():
            frame.to_excel(book, sheet_name=name, index=False)


def _write_titled_book(path: Path) -> None:
    with pd.ExcelWriter(path) as book:
        VISITS.to_excel(book, index=False, startrow=4, startcol=1, sheet_name="Export")
        book.sheets["Export"]["B2"] = "Study XY-12, visits"
        book.sheets["Export"]["B3"] = "exported 3 May 2024"


def _write_sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    VISITS.assign(date=VISITS["date"].astype(str)).to_sql("visits", connection, index=False)
    connection.execute("CREATE TABLE audit (who TEXT)")
    connection.commit()
    connection.close()


def _write_duckdb(path: Path) -> None:
    import duckdb

    visits = VISITS
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE visits AS SELECT * FROM visits")
    assert len(visits)


def _write_jsonl(path: Path) -> None:
    rows = VISITS.assign(date=VISITS["date"].astype(str)).to_dict("records")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write_json(path: Path) -> None:
    rows = VISITS.assign(date=VISITS["date"].astype(str)).to_dict("records")
    path.write_text(json.dumps(rows, indent=1))


def _sav(path: Path) -> None:
    import pyreadstat

    pyreadstat.write_sav(VISITS, path)


def _dta(path: Path) -> None:
    import pyreadstat

    pyreadstat.write_dta(VISITS, path)


def _xpt(path: Path) -> None:
    import pyreadstat

    pyreadstat.write_xport(VISITS, path, file_format_version=8)


MANIFEST = (
    '<?xml version="1.0"?><manifest:manifest '
    'xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry '
    'manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/>'
    "</manifest:manifest>"
)


def _write_ods(path: Path) -> None:
    """A workbook of LibreOffice with one sheet, blanks repeated to its end."""
    rows = []
    for cells in [list(VISITS.columns), *VISITS.astype(str).values.tolist()]:
        tags = "".join(
            f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p>'
            "</table:table-cell>"
            for cell in cells
        )
        rows.append(
            f'<table:table-row>{tags}<table:table-cell table:number-columns-repeated="16379"/>'
            "</table:table-row>"
        )
    rows.append(
        '<table:table-row table:number-rows-repeated="1048569"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row>'
    )
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0"?><office:document-content {spaces}><office:body>'
        f'<office:spreadsheet><table:table table:name="Visits">{"".join(rows)}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", MANIFEST)


def _write_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("visits.csv", _lines())


def _write_bomb(path: Path) -> None:
    """A workbook whose two cells span a whole sheet: 17 thousand million cells."""
    plain = io.BytesIO()
    pd.DataFrame({"id": [1], "n": [0]}).to_excel(plain, index=False)
    sheet = (
        '<?xml version="1.0"?><worksheet '
        'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        '<row r="1"><c r="A1"><v>1</v></c></row>'
        '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>'
    )
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, sheet if "sheet1.xml" in name else old.read(name))


DAY, MONTH = {"day_first": True}, {"day_first": False}
#: dates that no row tells the order of
OPEN = "id,date,n\n1,01/02/2024,0\n1,05/03/2024,2\n"

CORPUS = [
    # --- delimiters, decimals, encodings ---------------------------------------------------------
    Messy("plain.csv", csv()),
    Messy("semicolon.csv", csv(sep=";"), said=("semicolons",)),
    Messy("german.csv", csv(sep=";", decimal=",", encoding="cp1252"), said=("semicolons", "commas", "Windows-1252")),
    Messy("french_latin1.csv", csv(sep=";", decimal=",", encoding="latin-1"), said=("Windows-1252",)),
    Messy("tabs.txt", csv(sep="\t"), said=("tabs",)),
    Messy("tabs_named_csv.csv", csv(sep="\t", decimal=","), said=("tabs", "commas")),
    Messy("bars.txt", csv(sep="|"), said=("vertical bars",)),
    Messy("utf8_bom.csv", csv(encoding="utf-8-sig")),
    Messy("excel_unicode_text.txt", csv(sep="\t", encoding="utf-16"), said=("UTF-16",)),
    Messy("utf16_without_mark.csv", csv(encoding="utf-16-le"), said=("UTF-16-LE",)),
    Messy("utf32.csv", csv(encoding="utf-32"), said=("UTF-32",)),
    Messy("quoted_decimal_commas.csv", csv(decimal=",", quoting=1), said=("commas",)),
    Messy("all_quoted.csv", csv(quoting=1)),
    Messy("windows_lines.csv", csv(lineterminator="\r\n")),
    Messy("old_mac_lines.csv", csv(lineterminator="\r")),
    Messy("packed.csv.gz", lambda path: path.write_bytes(gzip.compress(_lines().encode()))),
    Messy("tsv_named_xls.xls", csv(sep="\t"), said=("tabs",)),
    Messy("aligned_by_spaces.txt", lambda path: path.write_text(VISITS.to_string(index=False) + "\n"), said=("spaces",)),
    Messy("r_write_table.txt", _write_r_table, said=("spaces",)),
    Messy("row_names.csv", lambda path: VISITS.to_csv(path), said=("without a name",)),
    # --- headers, blanks, remarks ------------------------------------------------------------------
    Messy("blank_lines.csv", text("\n\n" + _lines().replace("\n", "\n\n"))),
    Messy("blank_rows_of_commas.csv", text(_lines() + ",,,,\n,,,,\n")),
    Messy("title_above.csv", text("Study XY-12, visits\nexported 3 May 2024\n\n" + _lines()), said=("above the header",)),
    Messy("title_with_semicolons.csv", text("Visits;;;;\n" + _lines(";")), said=("above the header",)),
    Messy("spaces_around.csv", text(_lines().replace(",", " , "))),
    Messy("shouting_names.csv", text(_lines().replace("id,date,n,", "PATIENT_ID,Visit Date,N_EVENTS,"))),
    Messy("no_header.csv", text(_lines().split("\n", 1)[1].replace("00", "")), advice=("has no column that looks like the subject",)),
    Messy("numbers_no_header.csv", text("1,0,3,2\n1,3,9,0\n"), advice=("the first line must hold column names",)),
    Messy("name_twice.csv", text("id,date,n,n\n1,2024-01-01,0,1\n"), advice=("'n' occurs twice",)),
    Messy("ragged.csv", text(_lines().replace(",Köln", "", 1)), advice=("every row must have 5 cells; found 4 (line 2)",)),
    Messy("comma_decimals_unquoted.csv", text("id,from,to,n\n1,0,3,2\n1,3,9,5,0\n1,9,5,12,5,1\n"), advice=("every row must have 4 cells", "decimal commas need another delimiter")),
    Messy("thousands.csv", text('id,from,to,n\n1,0,"1,200",2\n1,"1,200","2,400",0\n'), advice=("'1,200'", "thousands")),
    Messy("unit_row.csv", text("id,from,to,n\n,(months),(months),\n1,0,3,2\n"), advice=("found '(months)'", "line 2")),
    Messy("total_row.csv", text(INTERVALS.to_csv(index=False) + "Total,,,3\n"), advice=("'from' must be a number or a date; the cell is missing", "line 5")),
    Messy("only_header.csv", text("id,date,n\n"), advice=("is empty; it needs a header and at least one row",)),
    Messy("empty.csv", text(""), advice=("is empty",)),
    # --- dates ---------------------------------------------------------------------------------------
    Messy("sas_date9.csv", dated("%d%b%Y")),
    Messy("sas_upper.csv", text(_lines().replace("2024-01-15", "15JAN2024").replace("2024-02-20", "20FEB2024").replace("2024-04-30", "30APR2024").replace("2024-01-31", "31JAN2024").replace("2024-03-01", "01MAR2024").replace("2024-02-28", "28FEB2024"))),
    Messy("sas_datetime.csv", dated("%d%b%Y:00:00:00")),
    Messy("day_slash.csv", dated("%d/%m/%Y"), said=("day/month/year",)),
    Messy("month_slash.csv", dated("%m/%d/%Y"), said=("month/day/year",)),
    Messy("day_dash.csv", dated("%d-%m-%Y"), said=("day/month/year",)),
    Messy("dots.csv", dated("%d.%m.%Y")),
    Messy("compact.csv", dated("%Y%m%d")),
    Messy("excel_short.csv", dated("%d-%b-%y"), said=("two digits",)),
    Messy("american_words.csv", dated("%B %d, %Y", sep=";"), said=("semicolons",)),
    Messy("iso_with_time.csv", dated("%Y-%m-%dT00:00:00")),
    Messy("american_time.csv", dated("%m/%d/%Y 12:00 AM"), said=("month/day/year",)),
    Messy("year_first_slashes.csv", dated("%Y/%m/%d")),
    Messy("open_order.csv", text(OPEN), advice=("'01/02/2024' is 1 February 2024 with the day first and 2 January 2024 with the month first", "day_first=True")),
    Messy("open_order_day.csv", text(OPEN), DAY, rows=([0], [33], [2])),
    Messy("open_order_month.csv", text(OPEN), MONTH, rows=([0], [122], [2])),
    Messy("both_orders.csv", text("id,date,n\n1,31/01/2024,0\n1,02/28/2024,2\n"), advice=("'31/01/2024' in 'date' has the day first", "lines 2 and 3")),
    Messy("impossible_day.csv", text(_lines().replace("2024-04-30", "2024-02-30")), advice=("'2024-02-30'", "line 4")),
    Messy("excel_day_numbers.csv", text("id,date,n\n1,45292,0\n1,45320,2\n"), advice=("'date' must hold dates; 45292 is a number of days: 2024-01-01 as Excel counts", "origin=None", "line 2")),
    Messy("sas_day_numbers.csv", text("id,VISDT,n\n1,23376,0\n1,23404,2\n"), advice=("23376 is a number of days", "2024-01-01 as SAS and Stata do")),
    Messy("day_numbers_from_first.csv", text("id,date,n\n1,45292,0\n1,45320,2\n"), {"origin": None}, rows=([45292], [45320], [2])),
    Messy("hours_of_a_meter.csv", text("id,time,n\n1,45292,1\n1,45320,2\n"), rows=([0, 45292], [45292, 45320], [1, 2])),
    # --- visits ----------------------------------------------------------------------------------------
    Messy("shuffled.csv", lambda path: VISITS.iloc[[4, 0, 5, 2, 1, 3]].to_csv(path, index=False)),
    Messy("first_visit_with_events.csv", text(_lines().replace("2024-01-31,0", "2024-01-31,4")), advice=("subject 002 has 4 events at 2024-01-31", "origin=a date", "origin='column of entry dates'", "line 5")),
    Messy("entry_column.csv", text("id,date,n,enrolled\n1,2024-02-01,4,2024-01-01\n"), advice=("origin='enrolled'",)),
    Messy("entry_column_used.csv", text("id,date,n,enrolled\n1,2024-02-01,4,2024-01-01\n"), {"origin": "enrolled"}, rows=([0], [31], [4])),
    Messy("duplicate_visit.csv", text(_lines() + "002,2024-03-01,3,1.25,Genève\n"), advice=("duplicate rows must be left out; subject 002 has a visit at 2024-03-01 with count 3 twice", "lines 6 and 8")),
    Messy("duplicate_interval.csv", text("id,from,to,n\n1,01FEB2024,20FEB2024,1\n1,01FEB2024,20FEB2024,1\n"), advice=("duplicate rows must be left out; subject 1 has (2024-02-01, 2024-02-20] with count 1 twice", "lines 2 and 3")),
    Messy("rounded_end.csv", text("id,from,to,n\n1,0,60.00000000000002,1\n"), {"window": (0, 60)}, rows=([0], [60], [1])),
    # --- other kinds of files ------------------------------------------------------------------------------
    Messy("book.xlsx", lambda path: _write_book(path, Visits=VISITS)),
    Messy("titled.xlsx", _write_titled_book, said=("2 rows above the header",)),
    Messy("two_sheets.xlsx", lambda path: _write_book(path, Visits=VISITS, Codes=VISITS.head(2)), advice=("has 2 sheets, 'Visits', 'Codes': say which with sheet=...",)),
    Messy("sheet_named.xlsx", lambda path: _write_book(path, Codes=VISITS.head(2), Visits=VISITS), {"sheet": "Visits"}),
    Messy("libreoffice.ods", _write_ods),
    Messy("xlsx_named_csv.csv", lambda path: path.write_bytes(_bytes_of_book())),
    Messy("visits.sav", _sav),
    Messy("visits.dta", _dta),
    Messy("visits.xpt", _xpt),
    Messy("visits.feather", lambda path: VISITS.to_feather(path)),
    Messy("visits.parquet", lambda path: VISITS.to_parquet(path)),
    Messy("visits.jsonl", _write_jsonl),
    Messy("visits.json", _write_json),
    Messy("visits.duckdb", _write_duckdb),
    Messy("two_tables.sqlite", _write_sqlite, advice=("has 2 tables, 'audit', 'visits': say which with table=...",)),
    Messy("query.sqlite", _write_sqlite, {"query": "SELECT * FROM visits WHERE id < '003'"}),
    Messy("hostile.sqlite", _write_sqlite, {"query": "DELETE FROM visits"}, advice=("query must be a single SELECT statement",)),
    # --- what holds no table --------------------------------------------------------------------------------
    Messy("html_named_xls.xls", text("<html><table><tr><td>id</td></tr></table></html>"), advice=("is a web page (HTML)", "save the table as .xlsx or CSV")),
    Messy("saved.rds", data(gzip.compress(b"X\n\0\0\0\2" + bytes(50))), advice=("is a file of R objects", "write.csv")),
    Messy("printed.pdf", data(b"%PDF-1.7\n" + bytes(50)), advice=("is a PDF document",)),
    Messy("scan.png", data(b"\x89PNG\r\n\x1a\n" + bytes(50)), advice=("is a picture",)),
    Messy("packed.zip", _write_zip, advice=("is a zip archive; unpack it",)),
    Messy("bomb.xlsx", _write_bomb, advice=("would take about",)),
    Messy("cut_off.xlsx", lambda path: path.write_bytes(_bytes_of_book()[:-900]), advice=("zip archive",)),
    Messy("binary.dat", data(bytes(range(256)) * 4), advice=("it holds binary data, not text",)),
    Messy("code_page_437.csv", data(_lines().encode("cp437")), advice=("pass its encoding",)),
    Messy("code_page_437_said.csv", data(_lines().encode("cp437")), {"encoding": "cp437"}),
]  # fmt: skip


def _bytes_of_book() -> bytes:
    book = io.BytesIO()
    VISITS.to_excel(book, index=False)
    return book.getvalue()


def verdict(messy: Messy, folder: Path) -> str:
    """What is wrong with what comes of a file; "" if it is read right or refused with advice."""
    import gp4c
    from gp4c.exceptions import GP4CError

    path = folder / messy.name
    path.unlink(missing_ok=True)
    messy.write(path)
    try:
        panel = gp4c.read_panel(path, **messy.options)
    except GP4CError as error:
        lacking = [part for part in messy.advice if part not in str(error)]
        return f"refused: {error}" if lacking or not messy.advice else ""
    if messy.advice:
        return "read, but should be refused"
    found = (panel.start.tolist(), panel.stop.tolist(), panel.count.tolist())
    if found != messy.rows:
        return f"read wrong: {found}"
    notes = " ".join(panel.notes)
    lacking = [part for part in messy.said if part not in notes]
    return f"not said: {lacking} in {notes}" if lacking else ""


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for one in CORPUS:
        found = verdict(one, place)
        wrong += bool(found)
        print(f"{one.name:32} {found or ('refused with advice' if one.advice else 'read right')}")
    print(f"{len(CORPUS) - wrong} of {len(CORPUS)} as they should be")
