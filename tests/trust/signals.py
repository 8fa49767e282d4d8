"""Real processes that are interrupted (SIGINT) or killed (SIGKILL), and what must hold after it.

test_signals.py runs a few of these scenes, campaign.py hundreds.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import gp4c

PROGRAM = [sys.executable, "-c", "from gp4c.cli import main; main()"]
#: seconds after which a process that got a signal must have ended
PATIENCE = 60.0
OLD = b"what was here before"


@dataclass(frozen=True)
class Scene:
    """A command, its files in {out}, and the seconds that it takes (measured by `reference`)."""

    arguments: tuple[str, ...]

    def command(self, out: Path, table: Path) -> list[str]:
        return [*PROGRAM, *(a.format(out=out, table=table) for a in self.arguments)]


SCENES = {
    "fit": Scene(("fit", "{table}", "--effect", "gamma", "--out", "{out}")),
    "bootstrap": Scene(
        ("fit", "{table}", "--model", "npmle", "--bootstrap", "400", "--out", "{out}")
    ),
    "compare": Scene(
        ("compare", "{table}", "--by", "arm", "--effect", "none", "--permutations", "99999",
         "--out", "{out}")
    ),
    "backtest": Scene(
        ("backtest", "{table}", "--model", "hpp", "--horizon", "4", "--origins", "3",
         "--out", "{out}")
    ),
    "report": Scene(("report", "{table}", "--model", "hpp", "--out", "{out}")),
    "describe": Scene(("describe", "{table}", "--out", "{out}")),
}  # fmt: skip


def write_table(path: Path) -> Path:
    """A small panel with two arms."""
    panel, _ = gp4c.simulate_panel(
        0.3, window=(0, 20), n_subjects=12, n_intervals=4, random_state=3
    )
    frame = panel.to_frame()
    frame["arm"] = ["ab"[k % 2] for k in panel.subject_index]
    frame.to_csv(path, index=False)
    return path


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MPLCONFIGDIR": str(folder)}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
        start_new_session=True, env=environment,
    )  # fmt: skip


def files_in(folder: Path) -> dict[str, bytes]:
    """Content of all files that are results: hidden leftovers are not."""
    paths = (p for p in folder.rglob("*") if p.is_file()) if folder.exists() else ()
    return {str(p.relative_to(folder)): p.read_bytes() for p in paths if not p.name.startswith(".")}


def reference(name: str, place: Path, table: Path) -> tuple[dict[str, bytes], float]:
    """Files of an undisturbed run, and its seconds."""
    shutil.rmtree(place / "out", ignore_errors=True)  # of another scene
    began = time.monotonic()
    run = start(SCENES[name].command(place / "out", table), place)
    _, errors = run.communicate(timeout=300)
    assert run.returncode == 0, errors
    return files_in(place / "out"), time.monotonic() - began


def send(command: list[str], folder: Path, number: signal.Signals, delay: float) -> tuple[int, str]:
    """Start a command and send a signal to its process group after a while."""
    run = start(command, folder)
    try:
        run.wait(delay)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, number)
    _, errors = run.communicate(timeout=PATIENCE)
    return run.returncode, errors


def interrupt(name: str, place: Path, table: Path, whole: dict[str, bytes], delay: float) -> str:
    """Ctrl-C: code 130, one line, and no file or (when it came too late) all of them."""
    out = place / "out"
    code, errors = send(SCENES[name].command(out, table), place, signal.SIGINT, delay)
    found = files_in(out)
    # Python's own start or end, whose message, if there is one, is not ours
    interrupted = code == -signal.SIGINT or (code == 1 and "KeyboardInterrupt" in errors)
    if interrupted and ", in main" not in errors:
        assert found in ({}, whole), sorted(found)
        return "after its end" if found else "before the program began"
    assert "Traceback" not in errors, errors
    assert "Exception ignored" not in errors, errors
    if code == 0:
        assert found == whole
        return "too late"
    assert code == 130, (code, errors)
    assert errors.splitlines()[-1] == "gp4c: interrupted", errors
    assert found in ({}, whole), sorted(found)
    assert found or not out.exists()
    return "interrupted"


def kill(name: str, place: Path, table: Path, whole: dict[str, bytes], delay: float) -> str:
    """SIGKILL: every file is the old one or the new one; the next run finds nothing in its way."""
    out = place / "out"
    out.mkdir(exist_ok=True)
    for file in whole:
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        (out / file).write_bytes(OLD)
    code, errors = send(SCENES[name].command(out, table), place, signal.SIGKILL, delay)
    found = files_in(out)
    assert found.keys() == whole.keys()
    for file, content in found.items():
        assert content in (OLD, whole[file]), (file, len(content))
    replaced = sum(content != OLD for content in found.values())
    if code == 0:
        assert replaced == len(whole), errors
        return "too late"
    assert code == -signal.SIGKILL, (code, errors)
    left = any(p.name.startswith(".") for p in out.rglob("*"))
    return "killed, some files new" if replaced else f"killed{', leftovers' if left else ''}"
