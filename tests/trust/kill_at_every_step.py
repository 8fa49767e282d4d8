"""Write files in children that kill themselves at every single step; report what is left as JSON.

Run as a program, with a folder and optionally a stride: by test_atomic.py at every so many steps,
by campaign.py at every one. A child counts the calls and returns of every function (also
those in C, such as open, write, fsync and rename) and sends itself SIGKILL at the k-th; k runs
until a child comes through.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from gp4c.atomic import replacing_all, write_text
from gp4c.cli.outputs import write_all

OLD, NEW = "old content\n" * 50, "new content\n" * 5000


def die_at(step: int) -> None:
    seen = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal seen
        seen += 1
        if seen == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def one_file(folder: Path) -> None:
    write_text(folder / "fit.json", NEW)


def several_files(folder: Path) -> None:
    write_all(folder, {name: lambda path: path.write_text(NEW) for name in ("a.csv", "b.json")})


def large_file(folder: Path) -> None:
    """Written in many parts, as by a plotting library."""
    with replacing_all([folder / "plot.svg"]) as (path,), path.open("w") as file:
        for line in NEW.splitlines(keepends=True)[:200]:
            file.write(line)
            file.flush()


SCENES: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "one": (one_file, ("fit.json",), NEW),
    "several": (several_files, ("a.csv", "b.json"), NEW),
    "large": (large_file, ("plot.svg",), "new content\n" * 200),
}


def campaign(scene: str, folder: Path, old: str | None, stride: int) -> dict[str, int]:
    """Kill at every step; every file must be the old one or the new one, whole."""
    write, names, new = SCENES[scene]
    kills = kept = replaced = leftovers = 0
    for step in itertools.count(1, stride):
        for name in names:
            (folder / name).unlink(missing_ok=True)
            if old is not None:
                (folder / name).write_text(old)
        child = os.fork()
        if child == 0:
            die_at(step)
            write(folder)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        for name in names:
            path = folder / name
            found = path.read_text() if path.exists() else None
            assert found in (old, new), (scene, step, name, found and len(found))
            kept, replaced = kept + (found == old), replaced + (found == new)
        leftovers = max(leftovers, sum(path.name not in names for path in folder.iterdir()))
        if os.waitstatus_to_exitcode(status) == 0:
            break
        kills += 1
    write(folder)
    left = sorted(path.name for path in folder.iterdir())
    assert left == sorted(names), left  # the next write removes what the killed ones left
    return {"kills": kills, "kept": kept, "replaced": replaced, "most_leftovers": leftovers}


if __name__ == "__main__":
    place, stride = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    results = {}
    for name, old in itertools.product(SCENES, (None, OLD)):
        folder = place / f"{name}-{old is None}"
        folder.mkdir()
        results[f"{name}, {'no file' if old is None else 'a file'} before"] = campaign(
            name, folder, old, stride
        )
    print(json.dumps(results))
