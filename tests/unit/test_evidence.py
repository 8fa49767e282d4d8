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


def test_every_plus_minus_is_in_a_quote(evidence):
    """An error stands beside measurements only, so whoever writes one says where it is from."""
    made = {"calibration_record.md", "reproduction.md", "design_history.md"}
    loose = [
        f"{page.relative_to(ROOT)}: {line.strip()[:80]}"
        for page in evidence.pages()
        if page.name not in made
        for line in evidence.BLOCK.sub("", page.read_text(encoding="utf-8")).splitlines()
        if " ± " in line and evidence.quoted_numbers(line.partition(" ± ")[0][-8:])
    ]
    assert loose == []


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
