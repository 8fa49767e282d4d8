"""Which gp4c this is: version, and the commit where it is known."""

from __future__ import annotations

from pathlib import Path

from gp4c import __version__

_PACKAGE = Path(__file__).parents[2]


def version_text() -> str:
    """``gp4c 0.2.0``, or ``gp4c 0.2.0 (commit 1a2b3c4d5e6f)``."""
    commit = built_from() or checked_out(_PACKAGE.parents[1])
    return f"gp4c {__version__} (commit {commit})" if commit else f"gp4c {__version__}"


def built_from() -> str:
    """The commit that a wheel or an sdist was built from; empty in a working copy."""
    file = _PACKAGE / "commit.txt"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else ""


def checked_out(root: Path) -> str:
    """The commit of a working copy of the project; empty if the folder is none."""
    if not ((root / ".git").exists() and (root / "src" / "gp4c").is_dir()):
        return ""
    import subprocess

    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
