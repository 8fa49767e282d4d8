"""The page about reliability says what the campaigns found, and reaches what was asked of them."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs" / "_extensions")
    import reliability_tables

    yield reliability_tables
    for name in ("reliability_tables", "readme_tables"):
        sys.modules.pop(name, None)


def results(*place):
    path = TESTS.joinpath(*place)
    if not path.exists():
        pytest.skip(f"{path.name} is made by a campaign")
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_page_says_what_the_results_say(tables):
    text = tables.PAGE.read_text(encoding="utf-8")
    assert tables.renewed(text) == text, "run `make readme`"


def test_a_campaign_without_results_is_said_to_be_missing(tables, tmp_path):
    assert tables.or_pending(lambda: tables.fuzz_table(tmp_path / "none.json")) == "No results yet."


def test_at_least_95_percent_of_the_branches_are_run():
    found = results("mutation", "coverage.json")["all"]
    assert found["percent"] >= 95
    assert found["branch_percent"] >= 95
    reached = found["covered_lines"] + found["covered_branches"]
    assert found["percent"] == round(
        100 * reached / (found["num_statements"] + found["num_branches"]), 2
    )


def test_enough_mutants_were_tried_and_killed():
    found = results("mutation", "results.json")
    total = found["folders"]["all"]
    assert total["mutants"] >= 500
    assert total["killed"] >= 0.85 * total["mutants"]
    assert total["killed"] + total["survived"] == total["mutants"]
    assert len(found["survivors"]) == total["survived"]


def test_every_survivor_was_looked_at():
    found = results("mutation", "results.json")
    assert [s for s in found["survivors"] if s["verdict"] == "not reviewed"] == []
    assert all(s["reason"] for s in found["survivors"])
