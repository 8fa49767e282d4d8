"""The peers: what a user would pick instead of gp4c, and how many trials each can afford."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = Path(__file__).parent / "code"
#: below this line of a peer's code stands what only the comparison needs
MARKER = "-- for the comparison --"


@dataclass(frozen=True)
class Peer:
    """A package, the file with the code that a user would write, and the packages it needs."""

    name: str
    file: str
    package: str
    #: what it is given: counts between visits, or the exact times of events
    reads: str = "panel"
    #: as many trials of each cell
    trials: int = 20
    #: the environment that has its package
    home: str = ".venv-peers"

    @property
    def code(self) -> Path:
        """Where its code is."""
        return CODE / self.file

    @property
    def lines(self) -> int:
        """Lines of code that a user would write; blank lines, comments and docstrings aside."""
        text = self.code.read_text(encoding="utf-8").partition(MARKER)[0]
        lines = [line.strip() for line in text.splitlines()]
        return sum(bool(line) and not line.startswith(("#", '"""')) for line in lines)

    def program(self) -> str | None:
        """The program that runs its code, or None if there is none here."""
        if self.code.suffix == ".R":
            return shutil.which("Rscript")
        if self.package == "gp4c":
            return sys.executable
        own = ROOT / self.home / "bin" / "python"
        return str(own) if own.exists() else None

    def version(self) -> str | None:
        """Version of its package, or None if it is not here."""
        program = self.program()
        return None if program is None else _version(program, self.package)


@cache
def _version(program: str, package: str) -> str | None:
    """What a program says of a package; None if it does not have it."""
    if Path(program).name == "Rscript":
        ask = f"cat(as.character(packageVersion('{package}')))"
    else:
        ask = f"from importlib.metadata import version; print(version('{package}'))"
    flag = "-e" if "Rscript" in program else "-c"
    done = subprocess.run([program, flag, ask], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


OURS = "gp4c"
#: in the order in which they run: quick ones first
PEERS = (
    Peer(OURS, "gp4c_default.py", "gp4c"),
    Peer("mgcv", "mgcv.R", "mgcv"),
    Peer("statsmodels", "statsmodels_splines.py", "statsmodels"),
    Peer("SurPyval MCF", "surpyval_mcf.py", "surpyval"),
    Peer("SurPyval Crow-AMSAA", "surpyval_crow.py", "surpyval"),
    Peer("glmmTMB", "glmmtmb.R", "glmmTMB", trials=10),
    Peer("gp4c GP3, exact times", "gp3_exact.py", "gp4c", "events", 5),
    Peer("GPflow, exact times", "gpflow_exact.py", "gpflow", "events", 5, ".venv-peers-gpflow"),
    Peer("NumPyro HSGP", "numpyro_hsgp.py", "numpyro", "panel", 3),
)
