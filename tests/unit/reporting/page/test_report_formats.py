"""The report in Word and PDF says what the page says; what cannot be made is said at once."""

import re
import shutil
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.exceptions import MissingExtraError, PanelDataError
from gp4c.reporting.page import pdf_report
from gp4c.reporting.page.drawn_figures import draw_figure
from gp4c.reporting.page.page_reader import blocks_of

docx = pytest.importorskip("docx")


@pytest.fixture(scope="module")
def report(visits):
    groups = {g: visits.where(arm=g) for g in ("a", "b")}
    models = {g: gp4c.HomogeneousPoisson().fit(part) for g, part in groups.items()}
    return gp4c.Report(models, visits, "arm", title="Trial <b>&</b> error", command="gp4c report x")


def words(html):
    """Texts of a page without what is folded away or for the screen only."""
    for tag in ("details", "fieldset"):
        html = re.sub(f"<{tag}.*?</{tag}>", "", html, flags=re.DOTALL)
    return html


def test_groups_may_be_numbers(report):
    """A column of 0 and 1 makes such groups, and `Comparison.models` names them so."""
    frame = report.panel.to_frame().assign(arm=lambda f: (f["arm"] == "b").astype(int))
    panel = gp4c.PanelCounts.from_frame(frame)
    numbered = gp4c.Report(dict(enumerate(report.models.values())), panel, "arm")
    lines = [block.text for block in blocks_of(numbered.header(), "95%")]
    for number, model in enumerate(report.models.values()):
        start = f"arm: {number}: {model.cumulative(12.0):#.3g} events per subject by 12 "
        assert any(line.startswith(start) for line in lines)
    values = next(numbered.sections()).html
    assert "<caption>0</caption>" in values
    assert "<caption>1</caption>" in values


def test_word_has_every_table_figure_and_sentence_of_the_page(report, tmp_path):
    report.save(tmp_path / "report.docx")
    document = docx.Document(tmp_path / "report.docx")
    html = words("".join(section.html for section in report.sections()))
    assert len(document.tables) == html.count("<table>")
    assert len(document.inline_shapes) == len(report.figures) + html.count("<img ")
    said = "\n".join(p.text for p in document.paragraphs)
    assert document.paragraphs[0].text == "Trial <b>&</b> error"
    for model in report.models.values():
        assert gp4c.HomogeneousPoisson.method_text in said
        assert f"{model.cumulative(12.0):#.3g} events per subject by 12 months" in said
    cells = {c.text for t in document.tables for row in t.rows for c in row.cells}
    for row in report.panel.table("arm").rows:
        assert set(row) <= cells
    assert {row.text for s in report.summaries.values() for row in s.rows} <= cells


def test_figures_on_paper_have_the_numbers_of_the_page(report):
    import matplotlib.pyplot as plt

    list(report.sections())
    for values in report.figures.values():
        ax = draw_figure(values, "0.95", plt.figure().subplots())
        if values["kind"] == "curves":
            for line, series in zip(ax.lines, values["series"], strict=False):
                np.testing.assert_array_equal(line.get_ydata(), series["y"])
        else:
            heights = [bar.get_height() for bar in ax.patches]
            np.testing.assert_allclose(heights, values["y"])
        plt.close(ax.figure)


def test_a_page_is_read_as_blocks():
    html = (
        "<h3>A &amp; b</h3><p>with <span data-level></span> bands</p>"
        "<details><p>folded</p></details><ul><li>one</li></ul>"
        '<div class="card"><div class="name">x</div><div class="figure">2.0</div><div>events</div>'
        '<div class="range">band 1 to 3</div></div>'
        "<table><caption>T</caption><thead><tr><th>h</th><th>n</th></tr></thead><tbody>"
        "<tr><th colspan=2>part</th></tr><tr><td>a</td><td>1</td></tr></tbody></table>"
        '<figure><div class="plot" id="rate"></div><figcaption>C</figcaption></figure>'
    )
    found = [(b.kind, b.text) for b in blocks_of(html, "95%")]
    assert found == [
        ("subheading", "A & b"), ("paragraph", "with 95% bands"), ("item", "one"),
        ("paragraph", "x: 2.0 events, band 1 to 3"), ("table", "T"), ("plot", "rate"),
        ("caption", "C"),
    ]  # fmt: skip
    table = blocks_of(html, "95%")[4]
    assert (table.head, table.rows) == (["h", "n"], [["part"], ["a", "1"]])


def test_an_unknown_format_lists_the_known_ones(report, tmp_path):
    with pytest.raises(PanelDataError, match="'html', 'docx' or 'pdf'; found 'odt'"):
        report.save(tmp_path / "report.odt")
    assert list(tmp_path.iterdir()) == []


def test_without_a_browser_one_sentence_says_what_to_do(report, tmp_path, monkeypatch):
    monkeypatch.setattr(pdf_report.shutil, "which", lambda name: None)
    with pytest.raises(MissingExtraError, match="open the HTML report in any browser and print"):
        report.save(tmp_path / "report.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no browser to print with")
def test_a_browser_prints_the_page():
    printed = pdf_report.page_pdf("<!doctype html><title>t</title><p>hello</p>")
    assert printed.startswith(b"%PDF")
    assert printed.rstrip().endswith(b"%%EOF")


def test_the_command_writes_what_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(line):
        return CliRunner().invoke(program, ["report", "bladder", "--model", "hpp", *line.split()])

    done = run("--bootstrap 0 --format html,docx --out both")
    assert done.exit_code == 0, done.output
    assert {p.name for p in (tmp_path / "both").iterdir()} == {"report.html", "report.docx"}
    done = run("--format html --out x.docx")
    assert done.exit_code == 2
    assert "needs a folder" in " ".join(done.output.replace("│", " ").split())
    done = run("--out trial.doc")
    assert (done.exit_code, (tmp_path / "trial.doc").exists()) == (2, False)
    assert "is written as .html, .docx or .pdf" in " ".join(done.output.replace("│", " ").split())
    monkeypatch.setitem(sys.modules, "docx", None)
    done = run("--out x.docx")
    assert (done.exit_code, (tmp_path / "x.docx").exists()) == (2, False)
    assert "gp4c[word]" in done.output


def test_methods_come_in_two_lengths(visits):
    model = gp4c.HomogeneousPoisson().fit(visits)
    full, short = model.methods_text(), model.methods_text("short")
    assert full.startswith(model.method_text)
    assert short.startswith(f"Estimates are from HomogeneousPoisson in gp4c {gp4c.__version__}:")
    with pytest.raises(PanelDataError, match="'full' or 'short'; found 'long'"):
        model.methods_text("long")


def test_the_citation_is_two_entries_of_bibtex():
    text = gp4c.citation()
    assert re.findall(r"^@(\w+)\{(\w+),$", text, flags=re.MULTILINE) == [
        ("inproceedings", "ding2018gp4c"), ("software", "gp4c"),
    ]  # fmt: skip
    assert text.count("{") == text.count("}")
    assert f"version = {{{gp4c.__version__}}}" in text
    assert CliRunner().invoke(program, ["cite"]).stdout == text + "\n"
