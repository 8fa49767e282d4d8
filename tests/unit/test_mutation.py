"""The tools of the mutation campaign: which changes, which tests, what counts as noticed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "mutation"


@pytest.fixture(autouse=True)
def tools(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    yield
    for name in ("mutants", "nursery", "report", "selection", "coverage_figures"):
        sys.modules.pop(name, None)


@pytest.fixture
def src(tmp_path):
    text = (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import ast\n\n\n"
        "def f(a: int | None, *more, b=2):\n    if a is None:\n        return -1\n"
        "    return max(\n        a * b,\n        *more,\n    )\n"
    )
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "m.py").write_text(text)
    return tmp_path


def test_only_code_that_runs_is_changed(src):
    pytest.importorskip("cosmic_ray")
    import mutants

    found = mutants.mutants_of(src, "pkg/m.py")
    lines = {m.line for m in found}
    assert lines == {7, 8, 9, 11}  # neither the annotation nor TYPE_CHECKING nor the stars
    for mutant in found:
        text = mutants.mutated_source(src, mutant)
        compile(text, "m.py", "exec")
        assert "*more, b" in text
    (product,) = {m.statement for m in found if m.line == 11}
    assert product == (10, 13)
    assert {m.statement for m in found if m.line == 7} == {(7, 13)}


def test_a_sample_is_the_same_for_the_same_seed(src):
    pytest.importorskip("cosmic_ray")
    import mutants

    one, two, three = (mutants.sample(src, ["pkg/m.py"], 6, seed) for seed in (1, 1, 2))
    assert one == two != three
    assert len(one) == len(set(one)) == 6


def test_a_changed_module_is_noticed_and_an_unchanged_one_is_not(src, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pkg").symlink_to(src / "pkg")
    (tmp_path / "test_m.py").write_text(
        "def test_f():\n    from pkg.m import f\n    assert f(2, 1) == 4\n"
    )
    script = (
        "import json, sys\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(HERE)!r})\n"
        "from nursery import Mutated, attempt\n"
        "root, path = Path(sys.argv[1]), Path(sys.argv[1]) / 'src/pkg/m.py'\n"
        "text = path.read_text()\n"
        "changes = [('', '', 60), ('a * b', 'a + b + 1', 60), ('a * b', '((', 60),\n"
        "           ('return max(', 'while True: pass\\n    return max(', 2)]\n"
        "print(json.dumps([attempt(Mutated('pkg.m', path, text.replace(old, new)),\n"
        "    ['test_m.py::test_f'], root, limit) for old, new, limit in changes]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [
        ["survived", ""],
        ["killed", "test_m.py::test_f"],
        ["killed", "test_m.py::test_f"],
        ["timeout", ""],
    ]


def test_figures_count_timeouts_as_kills_and_name_what_was_not_reviewed():
    import report

    entry = {
        "module": "gp4c/estimators/a.py",
        "line": 3,
        "operator": "x",
        "before": "a",
        "after": "b",
    }
    outcomes = ("killed", "timeout", "survived", "killed")
    entries = [{**entry, "outcome": outcome} for outcome in outcomes]
    found = report.summary(entries, {}, {"seed": 1})
    assert found["folders"]["estimators"] == found["folders"]["all"]
    assert found["folders"]["all"]["kill_rate"] == 0.75
    assert [s["verdict"] for s in found["survivors"]] == ["not reviewed"]
    reviews = {"gp4c/estimators/a.py: a -> b": {"verdict": "equivalent", "reason": "same"}}
    reviewed = report.summary(entries, reviews, {})
    assert reviewed["survivors"][0]["reason"] == "same"
    # three of four were killed, and the fourth is no mutant
    assert (found["equivalent"], found["kill_rate_without_equivalent"]) == (0, 0.75)
    assert (reviewed["equivalent"], reviewed["kill_rate_without_equivalent"]) == (1, 1.0)


def test_reviews_of_lines_that_are_gone_are_forgotten(src):
    import report

    here, gone, moved = (
        "pkg/m.py: return -1 -> return +1",
        "pkg/m.py: return -3 -> return +3",
        "pkg/n.py: return -1 -> return +1",
    )
    known = {name: {"verdict": "equivalent", "reason": "same"} for name in (here, gone, moved)}
    assert list(report.forget_dead(known, src)) == [here]


def test_coverage_is_counted_by_folder():
    import coverage_figures

    counts = {"num_statements": 8, "covered_lines": 7, "num_branches": 2, "covered_branches": 1}
    files = {name: {"summary": counts} for name in ("src/gp4c/a.py", "src/gp4c/data/b.py")}
    found = coverage_figures.figures({"files": files})
    assert list(found) == ["all", "data", "top"]
    assert found["all"]["percent"] == 80.0
    assert found["data"]["branch_percent"] == 50.0


def test_tests_are_chosen_by_the_lines_they_run_and_new_ones_by_themselves(tmp_path):
    import selection

    CoverageData = pytest.importorskip("coverage").CoverageData

    def ran(path, tests):
        data = CoverageData(str(tmp_path / path))
        for test, lines in tests.items():
            data.set_context(f"{test}|run")
            data.add_lines({"/src/pkg/m.py": lines})
        data.write()

    cases = {"a.py::slow": 8.0, "a.py::quick": 0.1, "test_m.py::own": 2.0, "b.py::other": 0.2}
    rows = "".join(
        f'<testcase file="{f}" name="{n}" time="{seconds}"/>'
        for (f, _, n), seconds in ((case.partition("::"), s) for case, s in cases.items())
    )
    (tmp_path / ".coverage.xml").write_text(f"<testsuite>{rows}</testsuite>")
    ran(".coverage", {"a.py::slow": [3], "a.py::quick": [3], "test_m.py::own": [3],
                      "b.py::other": [9]})  # fmt: skip
    found = selection.Selection(tmp_path)
    assert found.tests("pkg/m.py", (2, 4), 5.0) == ["test_m.py::own", "a.py::quick"]
    assert found.tests("pkg/m.py", (2, 4), 50.0)[-1] == "a.py::slow"
    assert found.added("pkg/m.py", (2, 4), 5.0) == []
    ran(".coverage_added", {"n.py::here": [3], "n.py::there": [7]})
    again = selection.Selection(tmp_path, busy=4.0)
    assert again.added("pkg/m.py", (2, 4), 5.0) == ["n.py::here", "n.py::there"]
    assert again.tests("pkg/m.py", (2, 4), 5.0)[-1] == "a.py::slow"  # two seconds when quiet
