"""``make bench`` runs every benchmark there is."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


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
