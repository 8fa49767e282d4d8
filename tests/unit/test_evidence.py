"""What pages quote is in a committed result, and a result knows when its source has changed."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def evidence(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import evidence

    yield evidence
    for name in ("evidence", "provenance", "run"):
        sys.modules.pop(name, None)


@pytest.fixture
def provenance(evidence):
    import provenance

    return provenance


def test_every_figure_that_a_page_quotes_is_in_a_result(evidence):
    known = {result.name: result for result in evidence.results()}
    wrong = [
        f"{quote.page.relative_to(ROOT)} quotes {', '.join(missing)} of {', '.join(quote.names)}"
        for page in evidence.pages()
        for quote in evidence.quotes(page)
        if (missing := quote.unfounded(known))
    ]
    assert wrong == []


def test_a_number_without_a_result_is_found(evidence, tmp_path):
    path = tmp_path / "made_up.json"
    path.write_text(json.dumps({"share": 0.9437, "nats": [-3.14, 0.4], "raw": [7.5] * 100}))
    known = {"made_up": evidence.Result("made_up", path, "none")}
    text = "94.4% of the 95% bands, −3.1 ± 0.4 nats, `7.77` in code; but not 7.5, 94.5% or 0.12."
    quote = evidence.Quote(tmp_path / "page.md", ("made_up",), text)
    assert quote.unfounded(known) == ["7.5", "94.5%", "0.12"]


def test_no_page_has_a_number_of_which_nothing_says_where_it_is_from(evidence):
    loose = [
        f"{page.relative_to(ROOT)}: {number} in {line.strip()[:80]!r}"
        for page in evidence.pages()
        if str(page.relative_to(ROOT)) not in evidence.FREE
        for number, line in evidence.loose_numbers(page)
    ]
    assert loose == []


def test_numbers_in_marks_code_formulas_and_printed_output_are_not_loose(evidence, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "A share of 12.5% and `0.1`, $0.2$, at p = 0.3 or $x = 0.4$ with Python 3.11.\n\n"
        "<!-- figures: speed -->\n0.5\n<!-- end -->\n<!-- sizes -->\n| 0.6 |\n<!-- end -->\n"
        "<!-- tested: tests/unit/test_x.py -->\n0.7\n<!-- end -->\n\n    printed 0.8\n\n"
        "```python\nx = 0.9\n```\n\n$$\ny = 1.1\n$$\n| a table | 1.2 |\n"
    )
    assert [number for number, _ in evidence.loose_numbers(page)] == ["12.5%", "0.3", "1.2"]


def test_pages_that_need_no_result_exist_and_say_why(evidence):
    assert all((ROOT / name).exists() and why.endswith(".") for name, why in evidence.FREE.items())


def test_marks_name_results_programs_and_tests_that_exist(evidence):
    known = {result.name for result in evidence.results()}
    for page in evidence.pages():
        text, name = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
        for path in evidence.TESTED.findall(text):
            assert page.name in (ROOT / path).read_text(encoding="utf-8"), (name, path)
        if evidence.TABLE.search(text):
            assert set(evidence.MADE[name]) <= known


def test_tables_of_guides_say_what_the_results_say(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")
    import guide_tables as made

    for page in (*made.TABLES, made.path_section.PAGE):
        assert made.renewed(page) == page.read_text(encoding="utf-8"), f"{page}: run `make readme`"
    for name in ("guide_tables", "study_tables", "scale_tables", "path_section", "readme_tables"):
        sys.modules.pop(name, None)


def test_every_result_is_made_anew_in_its_turn(evidence):
    minutes = [evidence.MINUTES[result.name] for result in evidence.results()]
    assert minutes == sorted(minutes)
    assert set(evidence.MINUTES) == {result.name for result in evidence.results()}


def test_only_what_is_not_current_is_made_anew(evidence, provenance, monkeypatch, tmp_path):
    commands = []
    stamps = {
        "done": provenance.stamp(("model",), finished=True),
        "cut": provenance.stamp(("model",)),
        "old": {"date": "2026-01-01"},
    }
    for name, made in stamps.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    known = [
        evidence.Result(name, tmp_path / f"{name}.json", f"python {name}.py")
        for name in ("new", "old", "cut", "done")
    ]
    monkeypatch.setattr(evidence, "results", lambda: known)
    monkeypatch.setattr(evidence, "show", lambda: 0)
    monkeypatch.setattr(
        evidence.subprocess, "run", lambda command, **options: commands.append(command[1])
    )
    evidence.renew()
    assert commands == ["new.py", "old.py", "cut.py"]


def test_a_result_whose_run_was_stopped_is_not_current(evidence, provenance, tmp_path):
    path = tmp_path / "one.json"
    result = evidence.Result("one", path, "none")
    assert result.state() == "missing"
    path.write_text(json.dumps(provenance.stamp(("model",))))
    assert result.state() == "unfinished"
    provenance.finish(path)
    assert result.state() == "current"


def test_comments_and_docstrings_do_not_make_a_result_stale(provenance):
    text = '"""Module."""\n\n\ndef f(x):  # why\n    """Say."""\n    # more\n    return "#" + x\n'
    other = (
        '"""Other."""\n\ndef f(x):\n    """Say\n\n    more.\n    """\n    return "#" + x  # new\n'
    )
    assert provenance.code_of(text) == provenance.code_of(other) == 'def f(x):\n    return "#" + x'
    assert provenance.code_of(text.replace("+ x", "+ y")) != provenance.code_of(text)


def test_a_result_is_stale_when_its_source_changes(provenance, monkeypatch, tmp_path):
    (tmp_path / "model").mkdir()
    module = tmp_path / "model" / "a.py"
    module.write_text("x = 1\n")
    monkeypatch.setattr(provenance, "SOURCE", tmp_path)
    made = provenance.stamp(("model",))
    assert provenance.is_current(made)
    module.write_text("x = 1  # one\n")
    assert provenance.is_current(made)
    module.write_text("x = 2\n")
    assert not provenance.is_current(made)
    assert not provenance.is_current({"source": made["source"]})
