"""The page on screen is ended while it works: nothing is left, and other tabs go on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

pytest.importorskip("websockets")

import app_scenes
import signals

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals to processes")


@pytest.fixture
def table(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return signals.write_table(tmp_path_factory.mktemp("table") / "visits.csv").read_bytes()


@pytest.mark.parametrize(
    ("step", "number"),
    [("fitting", signal.SIGINT), ("uploading", signal.SIGTERM), ("fitting", signal.SIGKILL)],
)
def test_an_ended_page_leaves_port_processes_and_files_free(
    step: str, number: signal.Signals, tmp_path: Path, table: bytes
) -> None:
    assert app_scenes.ended(step, number, tmp_path, table).startswith("ended")


def test_a_tab_whose_process_dies_says_so_and_another_goes_on(tmp_path: Path, table: bytes) -> None:
    assert app_scenes.lost_worker(tmp_path, table) == "the other tab went on"
