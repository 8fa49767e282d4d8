"""A file is the old one or the new one, whatever fails, is killed or interrupted in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gp4c import atomic
from gp4c.atomic import replacing, write_text
from gp4c.cli.outputs import write_all

OLD, NEW = "old", "new"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_kill_at_any_step_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    program = Path(__file__).parent / "kill_at_every_step.py"
    done = subprocess.run(
        [sys.executable, program, tmp_path, "97"], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert sum(scene["kills"] for scene in found.values()) > 60
    assert all(scene["kept"] and scene["replaced"] for scene in found.values())


class BrokenDiskError(OSError):
    """The disk is full."""


#: every call of the operating system between the first and the last, by where it is looked up
STEPS = {
    "create": (atomic.os, "open"),
    "write": (Path, "write_text"),
    "permissions": (Path, "chmod"),
    "to the disk": (atomic.os, "fsync"),
    "rename": (Path, "replace"),
}


@pytest.mark.parametrize("failure", [BrokenDiskError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("step", STEPS)
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
    step: str, failure: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "fit.json"
    target.write_text(OLD)
    home, name = STEPS[step]

    def fail(*arguments: object, **options: object) -> None:
        raise failure("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(home, name, fail)
        with pytest.raises(failure):
            write_text(target, NEW)
    assert target.read_text() == OLD
    assert names(tmp_path) == ["fit.json"]


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_of_several_files_none_appears_when_one_fails(failing: int, tmp_path: Path) -> None:
    def writer(index: int):  # type: ignore[no-untyped-def]
        def write(path: Path) -> None:
            path.write_text(NEW)
            if index == failing:
                raise BrokenDiskError("no space left")

        return write

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "0.csv").write_text(OLD)
    for folder in ("out", "fresh/deep"):
        with pytest.raises(BrokenDiskError):
            write_all(tmp_path / folder, {f"{k}.csv": writer(k) for k in range(3)})
    assert names(tmp_path) == ["out"]  # folders that were made for it are gone again
    assert names(tmp_path / "out") == ["0.csv"]
    assert (tmp_path / "out" / "0.csv").read_text() == OLD


def test_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    fsync, replace = os.fsync, Path.replace

    def watched_fsync(handle: int) -> None:
        order.append("folder" if os.path.isdir(f"/proc/self/fd/{handle}") else "file")
        fsync(handle)

    def watched_replace(path: Path, target: Path) -> Path:
        order.append("rename")
        return replace(path, target)

    monkeypatch.setattr(atomic.os, "fsync", watched_fsync)
    monkeypatch.setattr(Path, "replace", watched_replace)
    write_text(tmp_path / "fit.json", NEW)
    assert order == ["file", "rename", "folder"]


def test_permissions_stay_and_links_are_followed(tmp_path: Path) -> None:
    private, link = tmp_path / "private.json", tmp_path / "link.json"
    private.write_text(OLD)
    private.chmod(0o600)
    link.symlink_to(private)
    write_text(link, NEW)
    assert link.is_symlink()
    assert private.read_text() == NEW
    assert private.stat().st_mode & 0o777 == 0o600


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text(NEW)
    write_text(tmp_path / "atomic", NEW)
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_leftovers_of_the_dead_go_and_those_of_the_living_stay(tmp_path: Path) -> None:
    abandoned = tmp_path / ".fit.gp4c-0123456789ab.json"
    abandoned.write_text("part")
    other = tmp_path / ".fit-of-somebody.json"
    other.write_text("theirs")
    with replacing(tmp_path / "fit.json") as living:
        living.write_text(NEW)
        write_text(tmp_path / "fit.json", OLD)  # another writer of the same file
        assert living.exists()
    assert names(tmp_path) == [other.name, "fit.json"]
    assert (tmp_path / "fit.json").read_text() == NEW


def test_a_writer_may_itself_be_atomic(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.json": lambda path: write_text(path, NEW)})
    assert names(tmp_path) == ["a.json"]


def test_long_names_fit(tmp_path: Path) -> None:
    write_text(tmp_path / f"{'n' * 240}.html", NEW)
    assert len(names(tmp_path)) == 1


def test_an_interrupt_waits_for_the_end_of_the_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, before, renamed = Path.replace, signal.getsignal(signal.SIGINT), []

    def interrupted(path: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        renamed.append(target.name)
        return real(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_all(tmp_path, {name: lambda path: path.write_text(NEW) for name in "abc"})
    assert renamed == names(tmp_path) == ["a", "b", "c"]
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_write_too(tmp_path: Path) -> None:
    thread = threading.Thread(target=write_text, args=(tmp_path / "a", NEW))
    thread.start()
    thread.join()
    assert (tmp_path / "a").read_text() == NEW
