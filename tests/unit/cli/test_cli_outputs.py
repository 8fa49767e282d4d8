"""``--tables`` and the options of figures: all that was asked for, or nothing."""

import shlex
import sys

import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.reporting.publication.latex_writer import latex

VISITS = "id,from,to,n,arm\n1,0,3,2,a\n1,3,9,0,a\n2,1,7,1,b\n3,0,6,4,b\n4,0,5,0,a\n5,2,9,3,b\n"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(VISITS)
    return tmp_path


def run(line):
    return CliRunner().invoke(program, shlex.split(line))


def names(folder):
    return {path.name for path in folder.iterdir()}


def test_fit_writes_tables_and_figures_as_asked(workplace):
    done = run(
        "fit visits.csv --model hpp --bootstrap 0 --out results --tables tex,csv "
        "--figures png,pdf --figure-size 4x3 --font-size 7"
    )
    assert done.exit_code == 0, done.output
    tables = {f"table-{what}.{end}" for what in ("estimates", "curve") for end in ("tex", "csv")}
    plots = {f"{what}.{end}" for what in ("intensity", "cumulative") for end in ("png", "pdf")}
    others = {"fit.json", "curves.csv", "summary.txt", "summary.json"}
    assert names(workplace / "results") == tables | plots | others
    assert imread("results/intensity.png").shape[:2] == (600, 800)  # 200 dots per inch
    assert (workplace / "results/intensity.pdf").read_bytes().startswith(b"%PDF")
    table = gp4c.load_model("results/fit.json").table()
    assert (workplace / "results/table-estimates.tex").read_text() == table.to_latex()


def test_groups_have_one_table(workplace):
    done = run("fit visits.csv --model hpp --bootstrap 0 --by arm --out results --tables md")
    assert done.exit_code == 0, done.output
    head = (workplace / "results/table-estimates.md").read_text().splitlines()[2]
    assert head == "|  | a | b |"


def test_describe_writes_the_first_table_for_word(workplace):
    docx = pytest.importorskip("docx")
    done = run("describe visits.csv --by arm --out results --tables docx --figures svg")
    assert done.exit_code == 0, done.output
    assert names(workplace / "results") == {
        "panel.svg", "summary.csv", "table.csv", "table-data.docx",
    }  # fmt: skip
    grid = docx.Document("results/table-data.docx").tables[0]
    rows = [tuple(cell.text for cell in row.cells) for row in grid.rows]
    table = gp4c.read_panel("visits.csv").table(by="arm")
    assert rows == [table.columns, *table.rows]


def test_forecast_backtest_and_power_have_tables(workplace):
    run("fit visits.csv --model hpp --bootstrap 0 --out fit")
    done = run("forecast fit/fit.json --to 12 --subjects all --out f --tables tex --figures svg")
    assert done.exit_code == 0, done.output
    assert names(workplace / "f") == {"forecast.csv", "forecast.svg", "table-forecast.tex"}
    found = gp4c.load_model("fit/fit.json").forecast(9, 12, "all", random_state=0)
    assert latex(found.table().rows[0][-1]) in (workplace / "f/table-forecast.tex").read_text()
    done = run("backtest visits.csv --model hpp --horizon 3 --origins 1 --out b --tables html")
    assert done.exit_code == 0, done.output
    assert "table-backtest.html" in names(workplace / "b")
    done = run(
        "power --ratio 0.5 --rate 0.3 --n-per-arm 10 --follow-up 9 --trials 5 --out p --tables md"
    )
    assert done.exit_code == 0, done.output
    assert "table-power.md" in names(workplace / "p")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--tables docx,xls --out r", "--tables takes docx, tex, html, md, csv; found 'xls'"),
        ("--figures bmp --out r", "--figures takes png, svg, pdf; found 'bmp'"),
        ("--figure-size 6 --out r", "such as 6x4; found '6'"),
        ("--figure-size 0x4 --out r", "such as 6x4; found '0x4'"),
        ("--tables tex", "--tables goes with --out DIR"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is_fitted(workplace, options, said):
    done = run(f"fit visits.csv {options}")
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())
    assert names(workplace) == {"visits.csv"}


def test_without_python_docx_one_line_says_so(workplace, monkeypatch):
    monkeypatch.setitem(sys.modules, "docx", None)
    done = run("fit visits.csv --tables docx --out results")
    assert done.exit_code == 2
    assert "pip install 'gp4c[word]'" in done.output
    assert names(workplace) == {"visits.csv"}
