"""``make bench`` runs every benchmark there is."""

import ast
import json
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield
    sys.modules.pop("provenance", None)


def defines_main(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)


def test_every_benchmark_is_listed():
    there = {p.stem for p in FOLDER.glob("*.py") if p.stem != "run" and defines_main(p)}
    listed = runpy.run_path(str(FOLDER / "run.py"))["BENCHMARKS"]
    assert sorted(listed) == sorted(there)


def test_every_benchmark_runs_without_arguments():
    for name in runpy.run_path(str(FOLDER / "run.py"))["BENCHMARKS"]:
        tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
        (main,) = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "main"]
        assert len(main.args.args) == len(main.args.defaults), f"{name}.main needs arguments"


def test_only_a_run_that_ends_marks_its_result_as_finished(monkeypatch, tmp_path):
    run = runpy.run_path(str(FOLDER / "run.py"))["run"]
    run.__globals__["RESULTS"] = tmp_path
    monkeypatch.syspath_prepend(tmp_path)
    code = (
        "from pathlib import Path\n\n\ndef main():\n"
        "    Path({!r}).write_text('{{\"finished\": false}}')\n    {}\n"
    )
    for name, end in {
        "ends": "pass",
        "misses": "assert False",
        "stopped": "raise OSError(5)",
    }.items():
        path = str(tmp_path / f"{name}.json")
        (tmp_path / f"{name}.py").write_text(code.format(path, end))
        monkeypatch.delitem(sys.modules, name, raising=False)
    run(("ends", "misses"))
    with pytest.raises(OSError, match="5"):
        run(("stopped",))
    said = {path.stem: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    finished = {name: found["finished"] for name, found in said.items()}
    assert finished == {"ends": True, "misses": True, "stopped": False}


def test_an_unknown_benchmark_is_refused(capsys):
    main = runpy.run_path(str(FOLDER / "run.py"))["main"]
    assert main(["sped"]) == 2
    assert "no benchmark sped; there are startup" in capsys.readouterr().out


@pytest.mark.parametrize("breaks", [False, True])
def test_a_broken_limit_is_reported(breaks, monkeypatch, tmp_path, capsys):
    (tmp_path / "made_up.py").write_text(f"def main():\n    assert not {breaks}, 'too slow'\n")
    monkeypatch.syspath_prepend(tmp_path)
    run = runpy.run_path(str(FOLDER / "run.py"))["run"]
    monkeypatch.delitem(sys.modules, "made_up", raising=False)
    assert run(("made_up",)) == int(breaks)
    assert ("BROKEN: too slow" in capsys.readouterr().out) is breaks
