"""How much memory this process may still take: of the machine, its container and its limits."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: controller in /proc/self/cgroup -> folder, and names of limit, use, details and the part of the
#: use that can be given back: control groups of version 2 (no controller's name) and 1
_GROUPS = {
    "": ("", "memory.max", "memory.current", "memory.stat", "inactive_file"),
    "memory": (
        "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat",
        "total_inactive_file",
    ),
}  # fmt: skip
_GROUP_FOLDER = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_MACHINE = Path("/proc/meminfo")
_PROCESS = Path("/proc/self/statm")


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping or being killed; None if nothing tells."""
    known = [n for n in (_of_machine(), _of_container(), _of_process()) if n is not None]
    return max(0, min(known)) if known else None


def in_words(size: float) -> str:
    """A number of bytes for people: ``3.2 GB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:,.{0 if size >= 10 * scale else 1}f} {unit}"
    return f"{size:.0f} bytes"


def _of_machine() -> int | None:
    """What the kernel would give, caches included; elsewhere all that there is."""
    found = _numbers(_MACHINE, ":").get("MemAvailable")
    if found is not None:
        return found * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _of_container() -> int | None:
    """What is left of the limits of the control groups that this process is in."""
    left = []
    for line in _text(_MEMBERSHIP).splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        names = next((_GROUPS[c] for c in controllers.split(",") if c in _GROUPS), None)
        if names is None:
            continue
        base, limit, used, details, cache = names
        group = _GROUP_FOLDER / base / path.lstrip("/")
        for folder in (group, *group.parents):  # a limit holds for all groups inside
            most, now = _number(folder / limit), _number(folder / used)
            if most is not None and now is not None:
                left.append(most - now + _numbers(folder / details).get(cache, 0))
    return min(left, default=None)


def _of_process() -> int | None:
    """What is left of the address space that ``ulimit -v`` allows."""
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    pages = _text(_PROCESS).split()
    return limit - (int(pages[0]) * os.sysconf("SC_PAGE_SIZE") if pages else 0)


def _numbers(path: Path, mark: str = "") -> dict[str, int]:
    """First two words of each line, the second being a number."""
    rows = (line.replace(mark, "", 1).split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
