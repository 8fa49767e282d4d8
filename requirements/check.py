"""Every import is declared, every declared dependency is used: part of ``make lint``.

The package may import what it declares for those who install it; tests, benchmarks, examples and
the documentation may also import what is declared for developers. A dependency that is not
imported must be a tool, and the place that calls it is named here and looked at.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: extras that users install; the others are for developers
FOR_USERS = ("all", "app", "arviz", "dask", "files", "word")
#: distributions whose module has another name
MODULES = {
    "cosmic-ray": "cosmic_ray",
    "markdown-it-py": "markdown_it",
    "python-calamine": "python_calamine",
    "python-docx": "docx",
    "scikit-learn": "sklearn",
}
#: modules that are imported only when their own library calls us
BY_INVITATION = {"sklearn", "_typeshed"}
#: tools: the file that calls each, and by which words
TOOLS = {
    "build": ("Makefile", "-m build"),
    "coverage": ("Makefile", "-m coverage"),
    "mypy": ("Makefile", "$(BIN)/mypy"),
    "myst-parser": ("docs/conf.py", '"myst_parser"'),
    "numpydoc": ("docs/conf.py", '"numpydoc"'),
    "openpyxl": ("tests/messy_files.py", ".to_excel("),
    "pandas-stubs": ("pyproject.toml", "[tool.mypy]"),
    "pydata-sphinx-theme": ("docs/conf.py", '"pydata_sphinx_theme"'),
    "pytest-cov": ("Makefile", "--cov"),
    "pytest-xdist": ("Makefile", "-n $(JOBS)"),
    "ruff": ("Makefile", "$(BIN)/ruff"),
    "sphinx": ("Makefile", "-m sphinx"),
    "sphinx-gallery": ("docs/conf.py", '"sphinx_gallery.gen_gallery"'),
    "uv": ("Makefile", "$(BIN)/uv"),
}
#: code for other packages, in environments of their own (make peers)
FOREIGN = ROOT / "benchmarks" / "peer_fits" / "code"
DEVELOPERS_FOLDERS = ("tests", "benchmarks", "examples", "docs", "requirements")


def declared(project):
    """Names of distributions for users and for developers."""
    extras = project["optional-dependencies"]
    users, developers = list(project["dependencies"]), []
    for extra, needs in extras.items():
        (users if extra in FOR_USERS else developers).extend(needs)
    return tuple({name(need) for need in needs} - {"gp4c"} for needs in (users, developers))


def name(requirement):
    """The distribution that a requirement is about."""
    return re.match(r"[A-Za-z0-9._-]+", requirement).group().lower()


def module(distribution):
    """The name under which a distribution is imported."""
    return MODULES.get(distribution, distribution.replace("-", "_"))


def imports(path):
    """First names of the modules that a file imports, plainly or through pytest or importlib."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and _calls_an_import(node):
            yield node.args[0].value.split(".")[0]


def _calls_an_import(node):
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    first = node.args[0] if node.args else None
    return called in ("importorskip", "import_module") and isinstance(
        getattr(first, "value", None), str
    )


def imported(*folders):
    """Foreign modules that the files of some folders import, each with one file that does."""
    files = [
        path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))
        if FOREIGN not in path.parents
    ]  # fmt: skip
    own = {path.stem for path in files} | {path.parent.name for path in files}
    found = {module: path for path in files for module in imports(path)}
    return {m: p for m, p in found.items() if m not in own | set(sys.stdlib_module_names)}


def complaints(project):
    """One sentence for each dependency that is unused or undeclared."""
    users, developers = declared(project)
    ours, theirs = imported("src"), imported(*DEVELOPERS_FOLDERS)
    allowed = {module(d) for d in users} | BY_INVITATION
    for foreign, path in {**theirs, **ours}.items():
        if foreign in ours and foreign not in allowed:
            yield f"{path.relative_to(ROOT)} imports {foreign}, which is not declared for users"
        elif foreign not in allowed | {module(d) for d in developers} | {"gp4c"}:
            yield f"{path.relative_to(ROOT)} imports {foreign}, which is not declared"
    for distribution in sorted(users):
        if module(distribution) not in ours:
            yield f"{distribution} is declared, but src does not import it"
    for distribution in sorted(developers - users):
        if module(distribution) not in theirs and not _is_called(distribution):
            yield f"{distribution} is declared, but nothing imports or calls it"


def _is_called(tool):
    file, words = TOOLS.get(tool, (None, None))
    return file is not None and words in (ROOT / file).read_text(encoding="utf-8")


if __name__ == "__main__":
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    sys.exit("\n".join(complaints(tomllib.loads(text)["project"])) or None)
