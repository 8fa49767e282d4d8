"""Files of a result as downloads: single files, or several in one archive."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

from gp4c.app.fit_job import COMMANDS, REPORT, SCRIPT, WORD

#: kind of download -> words for the link
KINDS = {
    "report": "Report (HTML page)",
    "word": "Report (Word)",
    "tables": "Tables",
    "figures": "Figures",
    "model": "Fitted model",
    "script": "Python script",
    "commands": "Command line",
    "everything": "Everything (zip)",
}
_SINGLE = {"report": REPORT, "word": WORD, "script": SCRIPT, "commands": COMMANDS}
_FIGURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Bundle:
    """One download: its name and the files in it."""

    name: str
    files: tuple[Path, ...]

    def content(self) -> bytes:
        """The file itself, or an archive of several."""
        if len(self.files) == 1:
            return self.files[0].read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in self.files:
                archive.write(file, file.name)
        return buffer.getvalue()


def bundle(kind: str, folder: Path, files: tuple[str, ...]) -> Bundle:
    """The files of one kind of download."""
    chosen = tuple(folder / name for name in files if _is_of(kind, name))
    name = chosen[0].name if len(chosen) == 1 else f"gp4c-{kind}.zip"
    return Bundle(name, chosen)


def kinds_in(files: tuple[str, ...]) -> dict[str, str]:
    """The kinds of downloads that there are files for, with their words."""
    return {kind: words for kind, words in KINDS.items() if any(_is_of(kind, f) for f in files)}


def _is_of(kind: str, name: str) -> bool:
    if kind == "everything":
        return True
    if kind in _SINGLE:
        return name == _SINGLE[kind]
    suffix = Path(name).suffix
    is_model = suffix == ".json" and name.startswith("fit")
    if kind == "model":
        return is_model
    if kind == "figures":
        return suffix in _FIGURES
    return not is_model and suffix not in _FIGURES and name not in _SINGLE.values()
