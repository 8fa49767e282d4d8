"""The same data give the same panel, whatever kind of file they come in."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import json
import sqlite3
import zipfile

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest
from pyarrow import feather

import gp4c
from gp4c.analysis.groups.panel_test import PanelTest
from gp4c.exceptions import MissingExtraError, NotEnoughMemoryError, PanelDataError
from sas_files import write_sas7bdat

#: dates, whole and broken numbers, codes with leading zeros, gaps in covariates, letters
FRAME = pd.DataFrame(
    {
        "id": [7, 7, 8, 8, 8],
        "date": [dt.date(2024, 1, d) for d in (3, 20, 1, 9, 30)],
        "n": [0, 2, 0, 1, 0],
        "hours": [1.0, 1.5, 1.0, 2.0, 0.25],
        "site": ["007", "007", "012", "012", "012"],
        "arm": ["Ä", "Ä", "b", "b", "b"],
        "age": [50.5, 50.5, np.nan, np.nan, np.nan],
    }
)
OPTIONS = {"exposure": "hours"}


def _sqlite(path, frame=FRAME, name="visits"):
    with sqlite3.connect(path) as connection:
        frame.assign(date=frame["date"].astype(str)).to_sql(name, connection, index=False)
    connection.close()


def _duckdb(path, name="visits"):
    frame = FRAME
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
    assert len(frame)


def _json_lines(path):
    rows = FRAME.assign(date=FRAME["date"].astype(str)).to_dict("records")
    lines = (json.dumps({k: v for k, v in row.items() if v == v}) for row in rows)
    path.write_text("\n".join(lines) + "\n")


WRITERS = {
    "visits.csv": lambda path: FRAME.to_csv(path, index=False),
    "semicolon.csv": lambda path: FRAME.to_csv(path, index=False, sep=";", decimal=","),
    "latin.csv": lambda path: FRAME.to_csv(path, index=False, sep=";", encoding="latin-1"),
    "utf16.txt": lambda path: FRAME.to_csv(path, index=False, sep="\t", encoding="utf-16"),
    "visits.csv.gz": lambda path: FRAME.to_csv(path, index=False),
    "visits.xlsx": lambda path: FRAME.to_excel(path, index=False),
    "title.xlsx": lambda path: FRAME.to_excel(path, index=False, startrow=3, startcol=1),
    "visits.parquet": lambda path: FRAME.to_parquet(path),
    "visits.feather": lambda path: feather.write_feather(pa.Table.from_pandas(FRAME), path),
    "old.feather": lambda path: pl.from_pandas(FRAME).write_ipc(path, compression="zstd"),
    "visits.sav": lambda path: pyreadstat.write_sav(FRAME, path),
    "visits.zsav": lambda path: pyreadstat.write_sav(FRAME, path, compress=True),
    "visits.dta": lambda path: pyreadstat.write_dta(FRAME, path),
    "visits.xpt": lambda path: pyreadstat.write_xport(FRAME, path),
    "visits.sas7bdat": lambda path: write_sas7bdat(FRAME, path),
    "visits.jsonl": _json_lines,
    "visits.duckdb": _duckdb,
    "visits.sqlite": _sqlite,
}


@pytest.fixture(scope="module")
def expected() -> gp4c.PanelCounts:
    return gp4c.PanelCounts.from_visits(FRAME, subject="id", time="date", count="n", **OPTIONS)


def message_of(source, **options) -> str:
    with pytest.raises(PanelDataError) as caught:
        gp4c.read_panel(source, **options)
    return str(caught.value)


def same(one: gp4c.PanelCounts, two: gp4c.PanelCounts) -> bool:
    left, right = one.to_frame(), two.to_frame()
    pd.testing.assert_frame_equal(left, right, check_dtype=False)
    return one.subjects.tolist() == two.subjects.tolist() and one.time_origin == two.time_origin


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_panel(name, tmp_path, expected):
    path = tmp_path / name
    WRITERS[name](path)
    panel = gp4c.read_panel(path, **OPTIONS)
    assert same(panel, expected)
    # the content tells the kind, not the name; streams and packed files are read alike
    path.rename(tmp_path / "nameless")
    data = (tmp_path / "nameless").read_bytes()
    assert gp4c.read_panel(tmp_path / "nameless", **OPTIONS) == panel
    packed = data if data.startswith(b"\x1f\x8b") else gzip.compress(data)
    assert gp4c.read_panel(io.BytesIO(packed), **OPTIONS) == panel
    # codes keep their zeros
    assert set(panel.covariates["site"]) == {"007", "012"}


@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, dict, pd.DataFrame])
def test_every_kind_of_frame_gives_the_same_panel(make, expected):
    names = {"subject": "id", "time": "date", "count": "n"}
    assert same(gp4c.PanelCounts.from_visits(make(FRAME), **names, **OPTIONS), expected)


@pytest.mark.parametrize("connect", [sqlite3.connect, duckdb.connect])
def test_any_connection_gives_the_same_panel(connect, tmp_path, expected):
    path = tmp_path / "db"
    (_sqlite if connect is sqlite3.connect else _duckdb)(path)
    connection = connect(str(path))
    query = "SELECT * FROM visits ORDER BY n DESC; -- in any order"
    assert same(gp4c.read_panel(connection, query=query, **OPTIONS), expected)
    with pytest.raises(PanelDataError, match="a connection needs query"):
        gp4c.read_panel(connection)
    with pytest.raises(PanelDataError, match=r"the result of the query cannot be read: .*nothing"):
        gp4c.read_panel(connection, query="SELECT * FROM nothing")
    connection.close()


# --- sheets and tables --------------------------------------------------------------------------


def test_sheets_are_chosen_by_name(tmp_path, expected):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        FRAME.to_excel(book, sheet_name="Visits", index=False)
        FRAME.head(2).to_excel(book, sheet_name="Old", index=False)
        pd.DataFrame().to_excel(book, sheet_name="Empty")
    assert message_of(path) == (
        "the file 'book.xlsx' has 2 sheets, 'Visits', 'Old': say which with sheet=..."
    )
    assert same(gp4c.read_panel(path, sheet="Visits", **OPTIONS), expected)
    assert gp4c.read_panel(path, sheet="Old").n_subjects == 1
    assert "has no sheet 'visit'; there are 'Visits', 'Old', 'Empty'; did you mean 'Visits'?" in (
        message_of(path, sheet="visit")
    )
    assert "sheet 'Empty' of the file 'book.xlsx' is empty" in message_of(path, sheet="Empty")
    assert "is a workbook (Excel, OpenDocument), which takes no table=..." in (
        message_of(path, table="Visits")
    )


def test_one_sheet_that_holds_something_needs_no_name(tmp_path, expected):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame().to_excel(book, sheet_name="Cover")
        FRAME.to_excel(book, sheet_name="Visits", index=False)
        FRAME.to_excel(book, sheet_name="Hidden", index=False)
        book.sheets["Hidden"].sheet_state = "hidden"
    panel = gp4c.read_panel(path, **OPTIONS)
    assert same(panel, expected)
    assert "sheet 'Visits' is read; 2 other sheets empty or hidden" in panel.notes


def test_rows_of_a_sheet_are_named_as_the_spreadsheet_names_them(tmp_path):
    path = tmp_path / "book.xlsx"
    FRAME.assign(n=[0, 2, 0, -1, 0]).to_excel(path, index=False, startrow=2)
    assert message_of(path) == "'n' must not be negative; found -1 (row 7 of the sheet)"


@pytest.mark.parametrize(("name", "write"), [("a.db", _sqlite), ("a.duckdb", _duckdb)])
def test_tables_are_chosen_by_name(name, write, tmp_path, expected):
    path = tmp_path / name
    write(path)
    write(path, name="old")
    assert "has 2 tables, 'old', 'visits': say which with table=..." in message_of(path)
    assert same(gp4c.read_panel(path, table="visits", **OPTIONS), expected)
    query = "WITH v AS (SELECT * FROM visits WHERE id = 7) SELECT id, date, n FROM v"
    assert gp4c.read_panel(path, query=query).subjects.tolist() == [7]
    assert "has no table 'visit'; there are 'old', 'visits'" in message_of(path, table="visit")
    assert "say table=... or query=..., not both" in message_of(path, table="old", query=query)
    wrong = "SELECT id, date, -1 AS n FROM visits"
    assert "found -1 (row 1 of the result)" in message_of(path, query=wrong)
    assert "is empty; it needs at least one row" in message_of(path, query=query + " WHERE id = 9")


HOSTILE = [
    "DROP TABLE visits",
    "SELECT 1; DROP TABLE visits",
    "DELETE FROM visits",
    "INSERT INTO visits SELECT * FROM visits",
    "UPDATE visits SET n = 9",
    "WITH x AS (SELECT 1) DELETE FROM visits",
    "WITH x AS (SELECT 1) UPDATE visits SET n = 9",
    "ATTACH '{other}' AS other",
    "PRAGMA writable_schema = 1",
    "CREATE TABLE stolen AS SELECT * FROM visits",
    "COPY visits TO '{other}'",
    "EXPORT DATABASE '{other}'",
    "VACUUM INTO '{other}'",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT load_extension('{other}')",
    "FROM visits SELECT * INTO OUTFILE '{other}'",
    "INSTALL httpfs",
    "SET enable_external_access = true",
]


@pytest.mark.parametrize(("name", "write"), [("a.db", _sqlite), ("a.duckdb", _duckdb)])
def test_a_hostile_query_neither_writes_nor_reads_elsewhere(name, write, tmp_path):
    path, other, secret = tmp_path / name, tmp_path / "other", tmp_path / "secret.csv"
    write(path)
    secret.write_text("id,date,n\n1,2024-01-01,0\n1,2024-02-01,5\n")
    before = path.read_bytes()
    for query in HOSTILE:
        message_of(path, query=query.format(other=other, secret=secret))
        assert not other.exists(), query
        assert path.read_bytes() == before, query
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([name, "secret.csv"])


# --- labels and missing codes ---------------------------------------------------------------------


def test_labels_of_values_and_codes_of_missing_cells_are_kept(tmp_path):
    frame = pd.DataFrame(
        {"id": [1, 1, 2, 2], "month": [0, 3, 0, 4], "n": [0, 2, 0, 99], "arm": [1, 1, 2, 2]}
    )
    path = tmp_path / "coded.sav"
    labels = {"arm": {1: "placebo", 2: "drug"}, "n": {99: "not done"}}
    pyreadstat.write_sav(
        frame, path, missing_ranges={"n": [99]}, column_labels={"n": "Number of new tumours"},
        variable_value_labels=labels,
    )  # fmt: skip
    panel = gp4c.read_panel(path, missing="drop")
    assert panel.covariates["arm"].tolist() == ["placebo"]
    assert "'n': 1 cell missing by a code: 99 (not done) once" in panel.notes
    assert "the cell is missing; missing='drop' leaves it out (observation 4)" in message_of(path)
    found = gp4c.data.tables.readers.recognise_table(path)
    assert found.titles == {"n": "Number of new tumours"}
    path = tmp_path / "coded.dta"
    frame["n"] = [0, 2, 0, "d"]
    pyreadstat.write_dta(frame, path, missing_user_values={"n": ["d"]})
    panel = gp4c.read_panel(path, missing="drop")
    assert panel.n_events == 2
    assert "'n': 1 cell missing by a code: .d once" in panel.notes


@pytest.mark.parametrize("write", [pyreadstat.write_sav, pyreadstat.write_dta])
def test_labelled_values_keep_the_order_of_their_codes(write, tmp_path):
    # by their letters, "high" would be the reference and "Lille" would come before "Lyon"
    code = np.tile([2, 3, 1], 8)
    dose, site = {1: "placebo", 2: "low", 3: "high"}, {1: "Paris", 2: "Lyon", 3: "Lille"}
    start = np.repeat([0.0, 3.0], 12)
    frame = pd.DataFrame(
        {"id": range(24), "start": start, "stop": start + 3, "n": [4, 2, 6] * 8, "arm": code}
    ).assign(site=code)
    path = tmp_path / "coded"
    write(frame, path, variable_value_labels={"arm": dose, "site": site})
    panel = gp4c.read_panel(path)
    table = panel.table(by="arm").to_frame()
    assert list(table.columns)[2:5] == ["placebo", "low", "high"]
    sites = ["site: Paris", "site: Lyon", "site: Lille"]
    assert list(table["quantity"].unique())[-3:] == sites
    test = PanelTest.of(panel, "arm", test="trend", n_permutations=99)
    assert test.groups.levels == ["placebo", "low", "high"]
    assert test.scores.tolist() == [0, 1, 2]
    model = gp4c.LogLinear(formula="site").fit(panel)
    assert model.effects_["covariate"].tolist() == ["site[Lyon]", "site[Lille]"]
    assert panel.where(arm="low").n_events == 32


@pytest.mark.parametrize(
    "shown", ["%td", "%tdDD/NN/CCYY", "%-9dnn/dd/YY", "DATE9", "WORDDATE18", "MONYY7"]
)
def test_days_of_stata_and_sas_are_dates_however_they_are_shown(shown, tmp_path):
    days = [(day - dt.date(1960, 1, 1)).days for day in FRAME["date"]]
    sas = {"xpt": pyreadstat.write_xport, "sas7bdat": write_sas7bdat}
    for ending, write in {"dta": pyreadstat.write_dta}.items() if shown[0] == "%" else sas.items():
        path = tmp_path / f"days.{ending}"
        write(FRAME.assign(date=np.array(days, float)), path, variable_format={"date": shown})
        assert gp4c.read_panel(path, **OPTIONS).time_origin == pd.Timestamp("2024-01-01")


# --- what cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in WRITERS if not n.endswith((".csv", ".gz", ".txt"))])
def test_a_file_that_is_cut_off_or_spoilt_is_refused_or_read(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for share in (0.02, 0.3, 0.6, 0.95):
        path.write_bytes(whole[: int(share * len(whole))])
        _refused_or_read(path)
    for _ in range(6):
        spoilt = np.frombuffer(whole, dtype=np.uint8).copy()
        where = random.integers(16, len(spoilt), 12)
        spoilt[where] = random.integers(0, 256, 12)
        path.write_bytes(spoilt.tobytes())
        _refused_or_read(path)


def _refused_or_read(path):
    with contextlib.suppress(PanelDataError, NotEnoughMemoryError):
        gp4c.read_panel(path, **OPTIONS)


@pytest.mark.parametrize(
    ("module", "name"),
    [("python_calamine", "visits.xlsx"), ("pyreadstat", "visits.dta"), ("duckdb", "visits.duckdb")],
)
def test_a_package_that_is_not_there_is_named_with_its_extra(module, name, tmp_path, monkeypatch):
    path = tmp_path / name
    WRITERS[name](path)
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError, match=r"cannot be read without .* 'gp4c\[files\]'"):
        gp4c.read_panel(path)


def test_a_choice_is_said_to_be_for_files_that_can_be_read(tmp_path):
    path = tmp_path / "visits.csv"
    WRITERS["visits.csv"](path)
    assert message_of(path, query="SELECT 1").endswith(
        "takes no query=...; that is for an SQLite database or a DuckDB database"
    )


@pytest.mark.parametrize("name", ["visits.sqlite", "visits.duckdb"])
def test_a_table_that_a_query_misspells_is_refused_with_the_names_there_are(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    assert message_of(path, query="SELECT * FROM visit").endswith("; there are 'visits'")


def test_a_workbook_that_lost_bytes_in_the_middle_is_refused(tmp_path):
    path = tmp_path / "visits.xlsx"
    WRITERS[path.name](path)
    whole = path.read_bytes()
    path.write_bytes(whole[:500] + whole[504:])
    assert "is damaged" in message_of(path)


def test_a_portable_file_of_spss_is_read(tmp_path):
    table = FRAME[["id", "n"]].assign(month=[1.0, 3.0, 1.0, 2.0, 4.0])
    pyreadstat.write_por(table, tmp_path / "visits.por")
    panel = gp4c.read_panel(tmp_path / "visits.por", subject="ID", time="MONTH", count="N")
    assert panel.n_events == 3
    assert "takes no encoding" in message_of(tmp_path / "visits.por", encoding="latin-1")


def test_a_workbook_that_unpacks_to_far_more_than_its_size_is_refused():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
        archive.writestr("xl/worksheets/sheet1.xml", b"<row/>" * 10_000_000)
    packed.seek(0)
    assert "unpacks to more than 100 times its size" in message_of(packed)


def test_headers_that_promise_more_rows_than_there_are(tmp_path):
    frame = pd.DataFrame({"id": [1.0], "from": [0.0], "to": [1.0], "n": [1.0]})
    path = tmp_path / "a.dta"
    pyreadstat.write_dta(frame, path)
    data = path.read_bytes()
    place = data.find(b"<N>") + 3
    path.write_bytes(data[:place] + (2**40).to_bytes(8, "little") + data[place + 8 :])
    with pytest.raises((PanelDataError, NotEnoughMemoryError)):
        gp4c.read_panel(path)


def test_a_spoilt_transport_file_whose_column_has_no_name_is_refused(tmp_path):
    path = tmp_path / "visits.xpt"
    pyreadstat.write_xport(FRAME, path)
    path.write_bytes(path.read_bytes().replace(b"hours   ", bytes(8)))
    with pytest.raises(PanelDataError, match="a column has no name"):
        gp4c.read_panel(path)
