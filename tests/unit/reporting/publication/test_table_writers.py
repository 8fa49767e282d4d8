"""One table in five formats: the same texts in each, whatever the labels, and Word opens it."""

import csv
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c.data.summaries.table import Table
from gp4c.exceptions import MissingExtraError, PanelDataError
from gp4c.reporting.publication import WRITERS
from gp4c.reporting.publication.latex_writer import latex
from gp4c.reporting.publication.table_writer import TableWriter

HOSTILE = r"""\ { } $ & # ^ _ ~ % < > | " ` ' [x] * -- --- <script>alert(1)</script> **b** =1+1"""
ROWS = (
    ("Ratios",),
    (HOSTILE, "0.63", "0.20 to 1.29"),
    ("[option]", "−1.0", "∞"),
    ("two\nlines\x1b[31m", "–", "< 0.0001"),
)


@pytest.fixture
def table():
    numbers = pd.DataFrame({"name": [HOSTILE, "=cmd()"], "value": [1 / 3, np.pi]})
    return Table(
        f"Title {HOSTILE}", ("", "estimate", "interval"), ROWS, (f"Note {HOSTILE}.",),
        f"Caption {HOSTILE}.", numbers,
    )  # fmt: skip


def squeezed(text):
    return " ".join(text.split())


def cells_of_html(html):
    """Rows of the first table as the browser would show them."""

    class Reader(HTMLParser):
        rows, words, tags = [], None, []

        def handle_starttag(self, tag, attrs):
            self.tags.append(tag)
            if tag == "tr":
                self.rows.append([])
            if tag in ("td", "th"):
                self.words = ""

        def handle_endtag(self, tag):
            if tag in ("td", "th"):
                self.rows[-1].append(self.words)
                self.words = None

        def handle_data(self, data):
            if self.words is not None:
                self.words += data

    reader = Reader()
    reader.rows, reader.tags = [], []
    reader.feed(html)
    return reader.rows, set(reader.tags)


def shown(row):
    """A row as every format shows it: control characters written out, in one line."""
    return [squeezed(cell.replace("\x1b", r"\x1b")) for cell in row]


def test_html_has_the_texts_and_no_tags_of_theirs(table):
    rows, tags = cells_of_html(table.to_html())
    assert rows[0] == list(table.columns)
    assert [list(map(squeezed, row)) for row in rows[1:]] == list(map(shown, ROWS))
    assert "script" not in tags
    assert rows == cells_of_html(table._repr_html_())[0]


def test_markdown_is_read_as_the_same_table(table):
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    rows, tags = cells_of_html(parser.render(table.to_markdown()))
    plain = [*ROWS[0], "", ""]
    assert rows[1:] == [plain, *map(shown, ROWS[1:])]
    assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "p", "strong"}


def test_latex_obeys_nothing_in_the_texts(table):
    text = table.to_latex()
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    body = text.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(body) == len(ROWS)
    for line in body[1:]:
        assert len(re.findall(r"(?<!\\)&", line)) == 2
        assert line.endswith(r" \\")
    # after the end of a row LaTeX would take a bracket or a star for an option
    assert not any(line.startswith(("[", "*")) for line in body)
    bare = re.sub(r"\\[a-zA-Z]+(\{\})?|\\[{}$&#_%]|\{[*\[\]]\}|-\{\}", "", latex(HOSTILE))
    assert not set(bare) & set("\\{}$&#^_~%<>|\"`'[]*")
    assert "--" not in bare


def test_a_long_table_breaks_over_pages():
    rows = tuple((f"unit {k}", "1") for k in range(60))
    text = Table("Units", ("unit", "events"), rows).to_latex()
    assert text.count(r"\begin{longtable}") == 1
    assert text.count(r"\endhead") == 1
    assert text.count(r"\\") == 60 + 3  # rows, the head twice, the caption


def test_word_opens_the_table_with_caption_and_notes(table, tmp_path):
    docx = pytest.importorskip("docx")
    path = tmp_path / "table.docx"
    table.save(path)
    document = docx.Document(path)
    (grid,) = document.tables
    assert [cell.text for cell in grid.rows[0].cells] == list(table.columns)
    assert {cell.text for cell in grid.rows[1].cells} == {"Ratios"}  # merged over all columns
    for row, line in zip(ROWS[1:], grid.rows[2:], strict=True):
        assert [squeezed(cell.text) for cell in line.cells] == shown(row)
    caption, note = document.paragraphs[0], document.paragraphs[-1]
    assert caption.style.name == "Caption"
    assert "SEQ Table" in caption._p.xml  # Word numbers it
    assert squeezed(caption.text).endswith(squeezed(f"Title {HOSTILE}. Caption {HOSTILE}."))
    assert squeezed(note.text) == squeezed(table.notes[0])


def test_columns_of_word_have_room_for_words_and_intervals(tmp_path):
    docx = pytest.importorskip("docx")
    label = "a label of many words that may well be broken where the line ends, as it is long"
    rows = ((label, "0.0823 to 0.155", "x"), ("short", "1.00", "a-word-of-twenty-let"))
    Table("T", ("covariate", "95% interval", "p"), rows).save(tmp_path / "table.docx")
    (grid,) = docx.Document(tmp_path / "table.docx").tables
    widths = [column.width for column in grid.columns]
    assert [cell.width for cell in grid.rows[1].cells] == widths
    assert widths[1] / sum(widths) >= len("0.0823 to 0.155") / 72
    assert widths[2] / sum(widths) >= len("a-word-of-twenty-let") / 72
    assert widths[0] > widths[2] > widths[1]


def test_word_files_are_the_same_each_time(table):
    pytest.importorskip("docx")
    assert WRITERS[".docx"].content(table) == WRITERS[".docx"].content(table)


def test_csv_keeps_every_digit_and_runs_nothing(table, tmp_path):
    table.save(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert head == ["name", "value"]
    assert [float(row[1]) for row in rows] == [1 / 3, np.pi]
    assert [row[0] for row in rows] == [HOSTILE, "'=cmd()"]


def test_every_format_says_the_same_numbers(tmp_path):
    docx = pytest.importorskip("docx")
    table = gp4c.load_dataset("bladder").table(by="treatment")
    for suffix in WRITERS:
        table.save(tmp_path / f"table{suffix}")
    rows = [list(row) for row in table.rows]
    assert cells_of_html((tmp_path / "table.html").read_text())[0][1:] == rows
    grid = docx.Document(tmp_path / "table.docx").tables[0]
    assert [[cell.text for cell in row.cells] for row in grid.rows][1:] == rows
    tex, markdown = (tmp_path / "table.tex").read_text(), (tmp_path / "table.md").read_text()
    for row in table.rows:
        assert " & ".join(map(latex, row)) in tex
        assert all(cell.replace("_", r"\_") in markdown for cell in row)


def test_an_unknown_suffix_lists_the_known_ones(table, tmp_path):
    with pytest.raises(PanelDataError, match=r"\.csv, \.docx, \.html, \.md, \.tex; found"):
        table.save(tmp_path / "table.pdf")
    assert list(tmp_path.iterdir()) == []


def test_without_python_docx_one_sentence_says_what_to_install(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'gp4c\[word\]'"):
        table.save(tmp_path / "table.docx")
    assert list(tmp_path.iterdir()) == []


def test_a_format_joins_by_being_defined(table, tmp_path, monkeypatch):
    monkeypatch.delitem(WRITERS, ".tsv", raising=False)

    class Tabs(TableWriter):
        suffix = ".tsv"

        def text(self, table):
            return "\t".join(table.columns)

    table.save(tmp_path / "table.tsv")
    assert (tmp_path / "table.tsv").read_text() == "\testimate\tinterval"
    del WRITERS[".tsv"]


def test_columns_of_numbers_stand_flush_right():
    rows = (("a", "1.2", "x to y"), ("Heading",), ("b", "–", "1 to 2"))
    table = Table("T", ("", "n", "words"), rows)
    assert [table.is_numeric(k) for k in range(3)] == [False, True, False]
    lines = str(table).splitlines()
    assert lines[1:] == [
        "         n  words", "    a  1.2  x to y", "  Heading", "    b    –  1 to 2",
    ]  # fmt: skip


def test_a_table_without_numbers_gives_its_texts_as_a_frame():
    frame = Table("T", ("", "n"), (("Heading",), ("a", "1"))).to_frame()
    assert frame.to_numpy().tolist() == [["Heading", ""], ["a", "1"]]
