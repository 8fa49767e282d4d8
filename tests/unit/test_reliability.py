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


def test_the_pages_say_what_the_results_say(tables):
    for page in tables.TABLES:
        assert tables.renewed(page) == page.read_text(encoding="utf-8"), "run `make readme`"


def test_a_campaign_without_results_is_said_to_be_missing(tables, tmp_path):
    assert tables.or_pending(lambda: tables.fuzz_table(tmp_path / "none.json")) == "No results yet."


def test_runs_of_the_fuzz_campaign_add_up(tables, tmp_path):
    versions = {"python": "3.11.7", "numpy": "2.4.6", "scipy": "1.17.1"}
    runs = [
        {"seed": seed, "date": "2026-11-16", "versions": versions, "cpu_seconds": 90.0,
         "refused": {"files": 7}} for seed in (0, 1)
    ]  # fmt: skip
    found = {"cases": 3000, "cases_by_campaign": {"files": 2000, "panels": 1000}, "runs": runs,
             "fixed": ["a crash\non bytes"], "open": []}  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(found))
    text = tables.fuzz_table(tmp_path / "r.json")
    assert "| files | 2,000 | 14 |" in text
    assert "| **all** | **3,000** | **14** |" in text
    assert "Seeds 0, 1; 3.0 minutes" in text
    assert "1 findings were fixed, 0 are open." in text
    assert "- a crash on bytes" in text


def test_kills_and_hostile_files_are_counted(tables, tmp_path):
    found = {
        "kills at every step of a write": {"a": {"kills": 30}, "b": {"kills": 12}},
        "hostile model files": {"files": 9, "bytes: refused": 4, "values: refused": 3,
                                "values: equal": 2},
        "processes that got a signal": {"save, kill": {"old": 5, "new": 1},
                                        "save, interrupt": {"old": 2}},
        "reproduce, interrupted and resumed": {"SIGINT: exit 130": 2},
        "power, interrupted and resumed": {"SIGKILL: exit -9": 4},
        "hostile tables": {"files": 8, "crafted: refused": 2, "damaged csv: read": 5,
                           "damaged sav: refused": 1},
        "the page, ended while it works": {"fitting, SIGINT: ended": 6, "worker killed: on": 1},
    }  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(found))
    text = tables.trust_table(tmp_path / "r.json")
    assert "| 42 |" in text
    assert "| 9 | 7 refused, 2 equal to the original |" in text
    assert "(kill) at random | 6 |" in text
    assert "(interrupt) at random | 2 |" in text
    assert "reproduce` stopped and started again | 2 |" in text
    assert "power` stopped and started again | 4 |" in text
    assert "| 8 | 3 refused in one message, 5 read |" in text
    assert "during an upload or a fit | 7 |" in text
    del found["processes that got a signal"]
    (tmp_path / "r.json").write_text(json.dumps({**found, "note": "In part."}))
    text = tables.trust_table(tmp_path / "r.json")
    assert "signal" not in text
    assert text.endswith("In part.")


def test_at_least_95_percent_of_the_branches_are_run():
    found = results("mutation", "coverage.json")["folders"]["all"]
    assert found["percent"] >= 95
    assert found["branch_percent"] >= 95
    reached = found["covered_lines"] + found["covered_branches"]
    assert found["percent"] == round(
        100 * reached / (found["num_statements"] + found["num_branches"]), 2
    )


def finished_campaign():
    found = results("mutation", "results.json")
    if not found["complete"]:
        pytest.skip(f"the mutation campaign is not complete: {found['note']}")
    return found


def test_enough_mutants_were_tried_and_killed():
    found = finished_campaign()
    total = found["folders"]["all"]
    assert total["mutants"] >= 500
    assert total["killed"] >= 0.85 * total["mutants"]
    assert total["killed"] + total["survived"] == total["mutants"]
    assert len(found["survivors"]) == total["survived"]


def test_every_survivor_was_looked_at():
    found = finished_campaign()
    assert [s for s in found["survivors"] if s["verdict"] == "not reviewed"] == []
    assert all(s["reason"] for s in found["survivors"])
