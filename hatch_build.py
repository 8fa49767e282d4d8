"""Put the commit that a wheel or an sdist was built from into it, for ``gp4c --version``."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: where the commit is, in an sdist and below the packages of a wheel
FILE = "gp4c/commit.txt"


class CommitHook(BuildHookInterface):
    """Adds one file; an sdist that was unpacked elsewhere has it already."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it packs."""
        commit = self._commit()
        if not commit or version == "editable":
            return
        self._folder = tempfile.TemporaryDirectory()
        source = Path(self._folder.name, "commit.txt")
        source.write_text(commit + "\n", encoding="utf-8")
        target = FILE if self.target_name == "wheel" else f"src/{FILE}"
        build_data["force_include"][str(source)] = target

    def _commit(self) -> str:
        root = Path(self.root)
        if not (root / ".git").exists():  # unpacked from an sdist, or not under version control
            return ""
        command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip()
