"""Install what a make target needs into this Python: ``python requirements/install.py dev``.

The versions of the lock file, each checked against its hash, then the package itself, editable and
without asking the registry. Where the locked files are not to be had (a Python or a platform newer
than the lock) the newest versions are taken instead, and that is said; a file whose hash is wrong
is never taken. ``GP4C_LOCKED=no`` asks for the newest versions outright.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
#: packages that have no wheel: cosmic-ray's report writer
SOURCE_ONLY = ("yattag",)

#: extras that the README uses
RUN = "app,files,word"


def pip(*arguments):
    """Run pip; what it says on stderr comes back and is shown."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    sys.stderr.write(done.stderr)
    return done


def install_locked(name):
    """Whether the locked versions went in; the wrong hash ends everything."""
    lock = HERE / f"{name}.lock"
    print(f"Installing the packages of {lock.name}: a minute or a few", flush=True)
    wheels = ("--only-binary=:all:", *(f"--no-binary={name}" for name in SOURCE_ONLY))
    done = pip("--require-hashes", *wheels, "-r", str(lock))
    if "DO NOT MATCH THE HASHES" in done.stderr:
        sys.exit(f"A package is not the file that {lock.name} names; nothing was installed.")
    return done.returncode == 0


def main(name):
    """Install for one purpose: the name of a lock file, or of an extra."""
    if os.environ.get("GP4C_LOCKED") != "no":
        if install_locked(name):
            if name == "run":
                sys.exit(pip("--no-deps", "--no-build-isolation", "--editable", ".").returncode)
            return
        print(f"{name}.lock does not fit this Python; installing the newest versions instead.")
    extras = RUN if name == "run" else name
    sys.exit(pip("--editable", f".[{extras}]").returncode)


if __name__ == "__main__":
    main(sys.argv[1])
