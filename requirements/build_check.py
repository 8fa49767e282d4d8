"""Build wheel and sdist, install each where nothing else is, and use it: ``make build-check``.

The wheel is installed with what it needs; the sdist then replaces it. Both must say their version
and commit, fit a data set that comes with them, and have types that a strict checker reads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSUMER = ROOT / "tests" / "consumer_view" / "consumer.py"
#: what a wheel must hold besides code
DATA = ("gp4c/py.typed", "gp4c/commit.txt", "gp4c/data/datasets/bladder.csv",
        "gp4c/reporting/page/assets/report.css")  # fmt: skip


def run(*command: object, cwd: Path) -> str:
    """Run a command far from the sources; its output, or the end of this program."""
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=plain, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def check_installed(home: Path, work: Path, commit: str) -> None:
    """Use an installed gp4c as its users do."""
    said = run(home / "gp4c", "--version", cwd=work).strip()
    if not said.endswith(f"(commit {commit})"):
        sys.exit(f"gp4c --version says {said!r}, without the commit {commit}")
    out = work / "results"
    run(home / "gp4c", "fit", "bladder", "--model", "hpp", "--bootstrap", "0", "--quiet",
        "--out", out, "--tables", "tex,html", cwd=work)  # fmt: skip
    run(home / "gp4c", "report", out / "fit.json", "--quiet", "--out", out, cwd=work)
    run(home / "python", "-c", "import gp4c; gp4c.GP4C().fit(gp4c.load_dataset('nausea'))",
        cwd=work)  # fmt: skip
    print(f"{said}: fits, writes tables and a report")


def main() -> None:
    """Build, install, use, check types."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "build", "--outdir", work / "dist", ROOT, cwd=work)
        (wheel,), (sdist,) = (list((work / "dist").glob(end)) for end in ("*.whl", "*.tar.gz"))
        missing = set(DATA) - set(zipfile.ZipFile(wheel).namelist())
        if missing:
            sys.exit(f"{wheel.name} lacks {', '.join(sorted(missing))}")
        commit = run("git", "rev-parse", "--short=12", "HEAD", cwd=ROOT).strip()
        venv.create(work / "home", with_pip=True)
        home = work / "home" / ("Scripts" if os.name == "nt" else "bin")
        for file, options in ((wheel, ()), (sdist, ("--force-reinstall", "--no-deps"))):
            run(home / "python", "-m", "pip", "install", "--quiet", *options, file, cwd=work)
            check_installed(home, work, commit)
        run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", work / "mypy",
            "--python-executable", home / "python", CONSUMER, cwd=work)  # fmt: skip
        print("mypy --strict reads the types of the installed package")


if __name__ == "__main__":
    main()
