"""Files: CSV, gzipped CSV, Parquet; whatever is wrong is said with its line."""

from __future__ import annotations

import contextlib
import gzip
import io

import numpy as np
import pandas as pd
import polars as pl
import pytest

import gp4c
from gp4c.exceptions import PanelDataError

TEXT = "id,from,to,n,arm\n7,0,3,1,x\n7,3,5.5,0,x\n8,1,4,2,y\n"


def read(content: str | bytes, **options) -> gp4c.PanelCounts:
    data = content.encode() if isinstance(content, str) else content
    return gp4c.read_panel(io.BytesIO(data), **options)


def message_of(content: str | bytes, **options) -> str:
    with pytest.raises(PanelDataError) as caught:
        read(content, **options)
    return str(caught.value)


@pytest.fixture
def expected() -> gp4c.PanelCounts:
    return gp4c.PanelCounts.from_frame(
        {
            "subject": [7, 7, 8],
            "start": [0, 3, 1],
            "stop": [3, 5.5, 4],
            "count": [1, 0, 2],
            "arm": ["x", "x", "y"],
        }
    )


# --- what can be read --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (TEXT, {}),
        (TEXT, {"subject": "id", "start": "from", "stop": "to", "count": "n"}),
        (TEXT.rstrip("\n"), {}),
        (TEXT.replace("\n", "\r\n"), {}),
        (TEXT.replace("\n", "\r"), {}),
        (TEXT.replace("\n", "\n\n"), {}),
        ("\n  \n" + TEXT + "\n  \n,,,,\n", {}),
        (b"\xef\xbb\xbf" + TEXT.encode(), {}),
        (TEXT.encode("utf-16"), {}),
        (TEXT.encode("utf-32"), {"encoding": "utf-32"}),
        (TEXT.replace(",", ";"), {"delimiter": ";"}),
        (TEXT.replace(",", "\t"), {"delimiter": "\t"}),
        (TEXT.replace(",", ";").replace(".", ","), {"delimiter": ";", "decimal": ","}),
        ("\n".join(",".join(f'"{c}"' for c in line.split(",")) for line in TEXT.split()), {}),
        (gzip.compress(TEXT.encode(), mtime=0), {}),
        (TEXT.replace("id,from,to,n", "Patient ID,T.START,Tstop,N_events"), {}),
        (TEXT.replace("id,from", "Subject,BEGIN").replace("to,n", "End,Count"), {}),
        (TEXT.replace("\n7", "\nx,7").replace("\n8", "\nx,8").replace("id", ",id", 1), {}),
    ],
)
def test_texts_that_hold_the_same_table(content, options, expected):
    assert read(content, **options) == expected


def test_spaces_around_names_and_numbers_do_not_matter():
    panel = read("id , from, to , n\n1, 0 , 2.5, 3\n")
    assert (panel.subjects.tolist(), panel.stop.tolist(), panel.n_events) == ([1], [2.5], 3)


def test_paths_file_objects_and_names(tmp_path, expected):
    for name, data in [
        ("a.csv", TEXT.encode()),
        ("a.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
        ("a.TSV", TEXT.replace(",", "\t").encode()),
        ("no_suffix", TEXT.encode()),
    ]:
        path = tmp_path / name
        path.write_bytes(data)
        assert gp4c.read_panel(path) == expected
        assert gp4c.read_panel(str(path)) == expected
        with path.open("rb") as file:
            assert gp4c.read_panel(file) == expected
    assert gp4c.read_panel(io.StringIO(TEXT)) == expected


def test_parquet(tmp_path, expected):
    table = pd.read_csv(io.StringIO(TEXT))
    table.index = pd.Index([3, 1, 2])
    for name in ("a.parquet", "named_otherwise"):
        table.to_parquet(tmp_path / name)
        assert gp4c.read_panel(tmp_path / name) == expected


def test_names_that_were_recognised_are_noted():
    assert read(TEXT).notes[0] == (
        "columns recognised by name: 'id' as subject, 'n' as count, 'from' as start, 'to' as stop"
    )
    assert read("subject,start,stop,count\n1,0,1,0\n").notes == ()


def test_an_exposure_column_is_recognised_and_noted():
    panel = read("id,start,stop,n,exposure\n1,0,1,0,2.5\n")
    assert panel.exposure.tolist() == [2.5]
    assert "column 'exposure' is used as exposure" in panel.notes


def test_visits_layout():
    text = "id,month,n,arm\n7,3,1,x\n7,5.5,1,x\n8,4,2,y\n"
    panel = read(text, time="month")
    assert panel.start.tolist() == [0, 3, 0]
    assert panel.count.tolist() == [1, 1, 2]
    totals = read(text, time="month", cumulative=True, origin=-1)
    assert totals.count.tolist() == [1, 0, 2]
    assert totals.start.tolist() == [-1, 3, -1]


def test_labels_stay_as_written():
    text = "id,start,stop,n\n{},0,1,0\n{},0,1,0\n"
    assert read(text.format("007", "7")).subjects.tolist() == ["007", "7"]
    assert read(text.format("10", "-7")).subjects.tolist() == [-7, 10]
    assert read(text.format("1e3", "2")).subjects.tolist() == ["1e3", "2"]
    assert read(text.format('" a"', '"b\nb"')).subjects.tolist() == [" a", "b\nb"]
    assert read(text.format("2024-01-02", "99999999999999999999")).subjects.tolist() == [
        "2024-01-02",
        "99999999999999999999",
    ]


def test_dates_in_text():
    text = "id,start,stop,n\n1,2024-01-01,2024-01-31,0\n1,2024-02-01,2024-03-01,2\n"
    panel = read(text)
    assert panel.start.tolist() == [0, 31]
    assert panel.stop.tolist() == [30, 60]
    assert read(text, origin="2023-12-31").start.tolist() == [1, 32]
    assert read(text, time_unit="weeks", window=("2024-01-01", "2024-03-25")).window == (0, 12)


def test_numbers_are_read_to_the_last_bit():
    values = np.random.default_rng(0).uniform(0, 1, 200)
    rows = [f"{k},{value!r},2,{k % 3}" for k, value in enumerate(values.tolist())]
    text = "\n".join(["id,start,stop,n", *rows])
    assert np.array_equal(read(text).start, values)
    # a cell of text, here in a row that is left out, sends the column through another parser
    assert np.array_equal(read(text + "\n999,?,2,", missing="drop").start, values)


def test_types_that_change_far_into_the_file():
    rows = [f"{k},0,1,0,{k}" for k in range(120_000)]
    rows += ["a,0.25,1,3,b", "b,0,1,,c"]
    panel = read("\n".join(["id,start,stop,n,note", *rows]), missing="drop")
    assert panel.n_subjects == 120_001
    assert panel.where(subject="a").start.tolist() == [0.25]
    assert panel.covariates.loc["a", "note"] == "b"


# --- what cannot -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "the file is empty; it needs a header and at least one row"),
        ("\n\n", {}, "the file is empty"),
        ("id,start,stop,n\n", {}, "the file is empty; it needs a header and at least one row"),
        ("id,start,stop,n\n,,,\n", {}, "the file is empty; every cell is missing"),
        ("id,start\n", {"delimiter": ";"}, "the delimiter seems to be ',': pass delimiter=','"),
        ("counts\n1\n", {}, "the file has a single column 'counts'; is it a table?"),
        (
            "1,0,3,1\n1,3,4,2\n",
            {},
            "the first line must hold column names; found numbers 1, 0, 3, 1 (line 1)",
        ),
        (
            "id,id,start,stop,n\n1,1,0,1,0\n",
            {},
            "column names must differ; 'id' occurs twice (line 1)",
        ),
        (
            "id,unit,start,stop,n\n1,1,0,1,0\n",
            {},
            "the file has 'id' and 'unit': say which is the subject, with subject=...",
        ),
        (
            "who,start,stop,n\n1,0,1,0\n",
            {},
            "the file has no column that looks like the subject; there are 'who'; say which it is "
            "with subject=...",
        ),
        (
            "id,visit,n\n1,3,0\n",
            {},
            "no column that looks like the start or the stop; for a table of visits pass "
            "time='visit', else say which they are with start=..., stop=...",
        ),
        (
            "Kranker,von,bis,Anzahl\n1,0,1,0\n",
            {"start": "von"},
            "the file has no column that looks like the subject or the stop or the count; there "
            "are 'Kranker', 'bis', 'Anzahl'; say which they are with subject=..., stop=..., "
            "count=...",
        ),
        (
            "id,unit,from,to,events,failures\n1,1,0,1,0,0\n",
            {"start": "from"},
            "the file has 'id' and 'unit': say which is the subject, with subject=...\n"
            "the file has 'events' and 'failures': say which is the count, with count=...",
        ),
        (
            "id,month,n\n1,3,0\n",
            {"time": "moth"},
            "no column 'moth' (for time); there are 'id', 'month', 'n'; did you mean 'month'?",
        ),
        (
            "id,start,stop,n\n1,0,1,0\n",
            {"subject": "ID"},
            "no column 'ID' (for subject); there are 'id', 'start', 'stop', 'n'; did you "
            "mean 'id'?",
        ),
        (
            "id,start,stop,n\n1,0,1\n1,1,2,3\n1,2\n",
            {},
            "every row must have 4 cells; found 3 (line 2)\nevery row must have 4 cells; "
            "found 2 (line 4)",
        ),
        (
            "id,start,stop,n\n1,0,5,1,0\n",
            {},
            "every row must have 4 cells; found 5; decimal commas need another delimiter "
            "or quotes (line 2)",
        ),
        (
            'id,start,stop,n\n"1,0,1,1\n2,0,1,1\n',
            {},
            "every row must have 4 cells; found 1 (line 2)",
        ),
        (
            "id;start;stop;n\n1;0,5;1;0\n",
            {"delimiter": ";", "decimal": "."},
            "'start' must be a number or a date; found '0,5'; if that is a decimal comma, "
            "read_panel takes decimal=',' (line 2)",
        ),
        (
            "id;start;stop;n\n1;0,5;1;0\n2;x;1,5;0\n",
            {"delimiter": ";", "decimal": ","},
            "'start' must be a number or a date; found 'x' (line 3)",
        ),
        (
            "id;start;stop;n\n1;0;1.087;0\n2;0,5;955;0\n3;0;1.087,5;0\n",
            {"delimiter": ";", "decimal": ","},
            "'stop' has a point between thousands where decimals are marked by commas; found "
            "'1.087'; write the number without the point (line 2)\n"
            "'stop' has a point between thousands where decimals are marked by commas; found "
            "'1.087,5'; write the number without the point (line 4)",
        ),
        (
            'id,start,stop,n\n1,0,"1,087.5",0\n',
            {},
            "'stop' must be a number or a date; found '1,087.5'; write the number without a mark "
            "between thousands (line 2)",
        ),
        (b"\x00\x01\x02\x03", {}, "the file is not a table: it holds binary data, not text"),
        (
            bytes(range(128, 256)),
            {},
            "the file is not UTF-8 text; byte 0x80 is not allowed (line 1)",
        ),
        (
            "id,start,stop,n\n\x81\xe9,0,1,0\n".encode("latin-1"),
            {},
            "byte 0x81 is not allowed (line 2); if it is text, pass its encoding, such as "
            "encoding='latin-1'",
        ),
        (TEXT, {"encoding": "utf-99"}, "there is no encoding 'utf-99'"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-12], {}, "the file is damaged"),
        (b"\x1f\x8b" + b"nonsense" * 9, {}, "the file is damaged"),
        (b"PAR1" + b"x" * 50, {}, "the file is not a readable Parquet file"),
        (b"PK\x03\x04", {}, "the file is a zip archive; unpack it and name the table inside"),
    ],
)
def test_files_that_are_no_panel(content, options, message):
    assert message in message_of(content, **options)


def test_latin_1_can_be_read_if_asked_for():
    text = "id,start,stop,n\né,0,1,0\n".encode("latin-1")
    assert read(text, encoding="latin-1").subjects.tolist() == ["é"]


def test_rows_are_lines_whatever_the_layout():
    text = '\n\nid,start,stop,n\n\n"a\n\nb",0,1,0\n   \nc,0,1,-1\n,,,\nd,0,x,0\nd,0,1,0.5\n'
    assert message_of(text).splitlines() == [
        "'n' must not be negative; found -1 (line 9)",
        "'stop' must be a number or a date; found 'x' (line 11)",
        "'n' must be a whole number; found 0.5 (line 12)",
    ]
    windows = text.replace("\n", "\r\n")
    assert message_of(windows) == message_of(text)


def test_two_rows_are_two_lines():
    assert message_of("id,start,stop,n\n1,0,2,0\n2,0,2,0\n1,1,3,0\n") == (
        "intervals of one subject must not overlap; subject 1 has (0, 2] and (1, 3] (lines 2 and 4)"
    )


def test_rows_of_parquet_are_positions(tmp_path):
    table = pd.read_csv(io.StringIO(TEXT)).assign(n=[0, 0, -2])
    table.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(PanelDataError, match=r"'n' must not be negative; found -2 \(row 2\)"):
        gp4c.read_panel(tmp_path / "a.parquet")


def test_a_truncated_or_empty_parquet_file(tmp_path):
    path = tmp_path / "a.parquet"
    pd.read_csv(io.StringIO(TEXT)).to_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(PanelDataError, match=r"'a\.parquet' is not a readable Parquet file"):
        gp4c.read_panel(path)
    path.write_bytes(b"id,start\n")
    with pytest.raises(PanelDataError, match="is not a readable Parquet file"):
        gp4c.read_panel(path)
    pd.read_csv(io.StringIO(TEXT)).iloc[:0].to_parquet(path)
    with pytest.raises(PanelDataError, match="is empty"):
        gp4c.read_panel(path)


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "visits.csv").write_text(TEXT)
    with pytest.raises(
        PanelDataError, match=r"there is no file .*vists\.csv.*did you mean .*visits"
    ):
        gp4c.read_panel(tmp_path / "vists.csv")
    with pytest.raises(PanelDataError, match="there is no directory"):
        gp4c.read_panel(tmp_path / "nowhere" / "visits.csv")
    with pytest.raises(PanelDataError, match="is a directory, not a file"):
        gp4c.read_panel(tmp_path)
    with pytest.raises(PanelDataError, match="cannot be read"):
        gp4c.read_panel("a\0b")
    with pytest.raises(PanelDataError, match="to a database or a data frame; found int"):
        gp4c.read_panel(3)


def test_a_data_frame_is_read_as_its_file_is():
    """With the same columns recognised, in every library and in any order of rows."""
    frame = pd.read_csv(io.StringIO(TEXT))
    expected = gp4c.read_panel(io.StringIO(TEXT))
    for data in (frame, frame[::-1], pl.from_pandas(frame), pl.from_pandas(frame).lazy(),
                 frame.to_dict("list")):  # fmt: skip
        panel = gp4c.read_panel(data)
        assert panel == expected
        assert panel.notes == expected.notes
    visits = pd.DataFrame({"id": [1, 1], "date": ["2024-01-31", "2024-03-01"], "n": [0, 2]})
    assert gp4c.read_panel(visits).window == (0.0, 30.0)
    assert gp4c.read_panel(visits.rename(columns={"n": "read"}), count="read").n_events == 2


def test_a_data_frame_has_no_sheet_and_may_be_empty():
    with pytest.raises(PanelDataError, match=r"a data frame takes no sheet=\.\.\."):
        gp4c.read_panel(pd.DataFrame({"id": [1]}), sheet="a")
    with pytest.raises(PanelDataError, match="the table is empty"):
        gp4c.read_panel(pd.DataFrame())


def test_the_name_of_the_file_is_in_the_message(tmp_path):
    (tmp_path / "visits.csv").write_text("")
    with pytest.raises(PanelDataError, match=r"the file 'visits\.csv' is empty"):
        gp4c.read_panel(tmp_path / "visits.csv")


@pytest.mark.parametrize(
    "options", [{"delimiter": ",,"}, {"decimal": ""}, {"delimiter": ",", "decimal": ","}]
)
def test_impossible_marks(options):
    with pytest.raises(ValueError, match=r"delimiter|decimal"):
        read(TEXT, **options)


def test_random_bytes_never_end_in_another_error():
    random = np.random.default_rng(0)
    for size in (1, 10, 100, 1000, 5000):
        for _ in range(20):
            noise = random.integers(1, 256, size, dtype=np.uint8).tobytes()
            ascii_noise = random.integers(1, 128, size, dtype=np.uint8).tobytes()
            for content in (noise, ascii_noise, TEXT.encode() + ascii_noise):
                with contextlib.suppress(PanelDataError):
                    read(content)
