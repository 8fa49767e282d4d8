"""Renew the lock files: ``make lock``.

One resolution over everything that is ever installed here, for every supported Python and platform
at once, then one file per purpose that holds what this purpose adds to ``run.lock``. Versions are
pinned, files are named by their hashes, and no address is written: any registry will do.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
#: file -> extras of pyproject.toml; run.lock has what the README uses, and the build backend
PURPOSES = {
    "run": ("app", "files", "word"),
    "dev": ("dev",),
    "docs": ("docs",),
    "browser": ("browser",),
    "mutation": ("mutation",),
    "lock": ("lock",),
}
HEAD = "# Made by `make lock`; pip refuses a file whose hash is not here. Do not edit.\n"


def pyproject():
    """What the package declares."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def resolve(extras, constraints=None):
    """Pinned, hashed requirements of the package with some extras, as text."""
    found = pyproject()
    command = ["uv", "pip", "compile", "pyproject.toml", "-", "--quiet", "--universal"]
    command += ["--python-version", found["project"]["requires-python"].removeprefix(">=")]
    command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
    command += ["--no-strip-extras"]  # else pip looks for the newest of what is needed with extras
    for extra in extras:
        command += ["--extra", extra]
    if constraints is not None:
        command += ["--constraint", str(constraints)]
    done = subprocess.run(
        [sys.executable, "-m", *command],
        input="\n".join(found["build-system"]["requires"]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        sys.exit(f"the lock could not be resolved:\n{done.stderr}")
    return done.stdout


def entries(text):
    """Requirements of a lock file, one string each with its hashes."""
    return re.findall(r"^[a-z0-9](?:.*\\\n)*.*\n", text, flags=re.MULTILINE)


def main():
    """Write every lock file anew."""
    with tempfile.TemporaryDirectory() as folder:
        everything = Path(folder) / "everything.txt"
        everything.write_text(resolve([e for extras in PURPOSES.values() for e in extras]))
        base: set[str] = set()
        for name, extras in PURPOSES.items():
            found = [e for e in entries(resolve(extras, everything)) if e not in base]
            base = base or set(found)
            (HERE / f"{name}.lock").write_text(HEAD + "".join(found), encoding="utf-8")
            print(f"requirements/{name}.lock: {len(found)} packages")


if __name__ == "__main__":
    main()
