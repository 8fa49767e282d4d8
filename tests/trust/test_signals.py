"""Ctrl-C and kills reach real processes; campaign.py sends hundreds more."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
import signals

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals to process groups")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return signals.write_table(tmp_path_factory.mktemp("table") / "visits.csv")


def test_ctrl_c_is_one_line_and_leaves_no_part_of_a_result(table: Path, tmp_path: Path) -> None:
    whole, seconds = signals.reference("bootstrap", tmp_path, table)
    outcomes = []
    for share in (0.3, 0.7):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        outcomes.append(signals.interrupt("bootstrap", tmp_path, table, whole, share * seconds))
    assert "interrupted" in outcomes


def test_a_kill_leaves_old_files_or_new_ones_and_nothing_in_the_way(
    table: Path, tmp_path: Path
) -> None:
    whole, seconds = signals.reference("describe", tmp_path, table)
    outcomes = [
        signals.kill("describe", tmp_path, table, whole, share * seconds) for share in (0.5, 0.8)
    ]
    assert any(outcome.startswith("killed") for outcome in outcomes)
    again, _ = signals.reference("describe", tmp_path, table)
    assert again == whole
    assert not list((tmp_path / "out").rglob(".*"))  # leftovers of the killed are gone


def test_ctrl_c_before_anything_is_imported(tmp_path: Path) -> None:
    # the handler is there before the first import of the command line
    code = (
        "import sys, signal\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gp4c.cli.program': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from gp4c.cli import main\n"
        "main()\n"
    )
    run = signals.start([signals.PROGRAM[0], "-c", code, "--help"], tmp_path)
    output, errors = run.communicate(timeout=60)
    assert (run.returncode, output, errors) == (130, "", "gp4c: interrupted\n")


def test_ctrl_c_between_the_arguments_and_the_command(tmp_path: Path) -> None:
    code = (
        "import signal, typer\n"
        "from gp4c.cli import main\n"
        "from gp4c.cli import program\n"
        "invoke = typer.core.TyperGroup.invoke\n"
        "def interrupted(*args): signal.raise_signal(signal.SIGINT)\n"
        "typer.core.TyperGroup.invoke = interrupted\n"
        "main()\n"
    )
    run = signals.start([signals.PROGRAM[0], "-c", code, "datasets"], tmp_path)
    _, errors = run.communicate(timeout=60)
    assert (run.returncode, errors) == (130, "gp4c: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
