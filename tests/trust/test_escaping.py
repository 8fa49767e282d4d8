"""Text from the data is shown, never obeyed: by terminals, spreadsheets, pictures and pages."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app
from gp4c.plain import printable
from gp4c.reporting.csv_tables import to_csv
from gp4c.reporting.figures.curves import curves_of
from gp4c.reporting.figures.panel_picture import save_panel_picture
from gp4c.reporting.figures.plot_style import save_plot
from gp4c.reporting.figures.plots import plot_groups
from gp4c.reporting.page.html_report import Report

#: names that mean something to a terminal, to rich, to Matplotlib, to a page, to a spreadsheet
HOSTILE = {
    "terminal": "\x1b[31mred\x1b[0m\x1b]0;title\x07\x9b2J",
    "rich": "[red]b[/red][link=file:///etc]x[/link]",
    "mathtext": r"$\frac{",
    "mathtext, even": r"$x$ \$ $\undefined{",
    "script": "</script><img src=x onerror=alert(1)>",
    "formula": "=cmd|'/c calc'!A1",
    "direction": "\u202eevil\u2066",
    "underscore": "_hidden",
    "lines": "a\nb",
    "other scripts": "治療 🧪",
    "long": "x" * 5000,
}
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def hostile_panel(text: str) -> gp4c.PanelCounts:
    panel, _ = gp4c.simulate_panel(0.4, window=(0, 20), n_subjects=6, n_intervals=3, random_state=3)
    frame = panel.to_frame()
    frame[text] = [f"{text}{'ab'[k % 2]}" for k in panel.subject_index]
    frame["subject"] = [f"{text}{label}" for label in frame["subject"]]
    return gp4c.PanelCounts.from_frame(frame, time_unit=text)


@pytest.fixture(params=HOSTILE.values(), ids=HOSTILE, scope="module")
def named(request: Any) -> tuple[str, gp4c.PanelCounts]:
    return request.param, hostile_panel(request.param)


# -- terminals -------------------------------------------------------------------------------------


def test_control_characters_are_written_out() -> None:
    assert printable("a\x1b[31m\x9b\u202e\ud800\x00b\tc\nd") == (
        "a\\x1b[31m\\x9b\\u202e\\ud800\\x00b\tc\nd"
    )
    assert printable("naïve 治療 🧪 µ") == "naïve 治療 🧪 µ"


def test_what_python_prints_has_no_commands_for_a_terminal(named: Any) -> None:
    _, panel = named
    model = gp4c.HomogeneousPoisson(effect="gamma").fit(panel)
    forecast = model.forecast(20, 22, subjects="all")
    for shown in (panel.summary(), model.summary(), forecast):
        text = str(shown)
        assert not COMMANDS.search(text)
        text.encode("utf-8")
        assert repr(shown) == text


def test_a_comparison_prints_no_commands_for_a_terminal() -> None:
    from gp4c.analysis.compare_groups import compare

    name = HOSTILE["terminal"]
    quick = gp4c.GP4C(effect=None, count_term="lemma2", hyper="optimize", n_inducing=4, tol=0.1)
    found = compare(hostile_panel(name), name, quick, n_permutations=9)
    assert not COMMANDS.search(str(found))
    assert "\\x1b" in str(found)


@pytest.mark.parametrize("kind", ["terminal", "rich", "direction"])
def test_the_command_line_prints_names_as_they_are_written(kind: str, tmp_path: Path) -> None:
    name = HOSTILE[kind]
    table = tmp_path / "visits.csv"
    table.write_text(to_csv(hostile_panel(name).to_frame()), encoding="utf-8")
    lines = [
        ["describe", table, "--time-unit", name],
        ["fit", table, "--by", name, "--model", "hpp", "--time-unit", name],
        ["fit", table, "--by", f"{name}?"],
        ["fit", f"{table}{name}"],
        ["fit", table, "--model", name],
        ["predict", f"{table}{name}"],
    ]
    for line in lines:
        done = CliRunner().invoke(app, [str(word) for word in line])
        assert done.exit_code in (0, 2), done.output
        assert not COMMANDS.search(done.stdout), line
        assert "Traceback" not in done.output
        assert "\x1b[31mred" not in done.stderr, line


# -- spreadsheets ----------------------------------------------------------------------------------

STARTS = ["=1+1", "+1 a", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''-x", "'quoted"]


def test_no_cell_of_a_table_is_a_formula_and_numbers_stay(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"=name": STARTS, "n": [-k for k in range(len(STARTS))]})
    frame["text"] = "-5.5"
    text = to_csv(frame)
    (tmp_path / "table.csv").write_text(text, newline="")
    read = pd.read_csv(tmp_path / "table.csv", dtype=str)
    assert list(read.columns) == ["'=name", "n", "text"]
    assert all(cell[0] not in "=+-@\t\r\n＝" for cell in read["'=name"])
    assert read["n"].tolist() == [str(-k) for k in range(len(STARTS))]
    assert set(read["text"]) == {"-5.5"}


def test_reading_our_own_table_restores_every_label(tmp_path: Path) -> None:
    panel, _ = gp4c.simulate_panel(
        0.4, window=(0, 20), n_subjects=len(STARTS), n_intervals=2, random_state=1
    )
    frame = panel.to_frame()
    frame["subject"] = [STARTS[k] for k in panel.subject_index]
    frame["@arm"] = [STARTS[k][::-1] + STARTS[k] for k in panel.subject_index]
    frame["-group"] = [STARTS[k % 2] for k in panel.subject_index]
    (tmp_path / "panel.csv").write_text(to_csv(frame), encoding="utf-8", newline="")
    found = gp4c.read_panel(tmp_path / "panel.csv")
    expected = gp4c.PanelCounts.from_frame(frame)
    kept = {label.strip() for label in map(str, found.subjects)}
    assert kept == {label.strip() for label in STARTS}
    assert set(found.covariates.columns) == {"@arm", "-group"}
    assert set(found.covariates["-group"]) == set(expected.covariates["-group"])


def test_a_table_of_somebody_else_is_read_as_it_is(tmp_path: Path) -> None:
    rows = ["id,start,stop,count", "=a,0,1,1", "'=a,0,1,2", "'b,0,1,0"]
    (tmp_path / "panel.csv").write_text("\n".join(rows) + "\n")
    found = gp4c.read_panel(tmp_path / "panel.csv")
    assert set(found.subjects) == {"=a", "'=a", "'b"}


# -- pictures --------------------------------------------------------------------------------------


def test_pictures_show_names_and_obey_none(named: Any, tmp_path: Path) -> None:
    text, panel = named
    model = gp4c.HomogeneousPoisson().fit(panel)
    curves = {f"{text}{k}": curves_of(model) for k in "ab"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_panel_picture(panel, tmp_path / "panel.png", dpi=40)
        save_plot(
            lambda ax: plot_groups(curves, ax, what="cumulative", title=text),
            tmp_path / "groups.svg",
        )
    for path in tmp_path.glob("*.svg"):
        ElementTree.parse(path)  # well-formed, whatever the names
    axes = Figure().subplots()
    plot_groups(curves, axes, what="cumulative", title=text)
    assert len(axes.get_legend().get_texts()) == 2  # also names that begin with an underscore


# -- pages -----------------------------------------------------------------------------------------


def test_pages_show_names_and_run_none(named: Any) -> None:
    text, panel = named
    model = gp4c.HomogeneousPoisson().fit(panel)
    groups = {name: model for name in panel.covariates[text].unique()}
    html = Report(groups, panel, text, title=text, command=text).html()
    pieces = [panel._repr_html_(), panel.summary()._repr_html_(), model._repr_html_()]
    forecast = model.forecast(20, 22, subjects=list(model.subjects_))
    for page in (html, *pieces, forecast._repr_html_()):
        assert "<img src=x" not in page
        assert "onerror=alert(1)>" not in page
    assert len(re.findall(r"<script[ >]", html)) == 3
    html.encode("utf-8", "surrogatepass")
