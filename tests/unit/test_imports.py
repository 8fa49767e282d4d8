"""Who may import whom, and what must not be loaded just to start."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import gp4c

PACKAGE = Path(gp4c.__file__).parent
#: a folder may import from itself and from those before it; the command line from all
ORDER = (
    "data", "model", "posterior", "inference", "large", "files", "estimators", "classical",
    "analysis", "reporting", "paper", "app", "cli",
)  # fmt: skip
#: modules at the top of the package that every folder may use
OPEN_TO_ALL = {"exceptions", "atomic", "memory", "plain", "threads", "parts"}
#: too slow to load before they are needed
HEAVY = {
    "dask",
    "duckdb",
    "formulaic",
    "joblib",
    "matplotlib",
    "pandas",
    "plotly",
    "polars",
    "pyarrow",
    "scipy",
    "shiny",
    "sklearn",
    "uvicorn",
}


def imported_modules(path):
    """Absolute names of everything a file imports, at any depth."""
    package = ("gp4c", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *filter(None, [node.module])))
            yield module
            # "from gp4c import data" names a folder, "from gp4c.data import panel" a module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def forbidden(path):
    """Imports of one file that go against the order of folders."""
    folder = path.relative_to(PACKAGE).parts[0]
    allowed = set(ORDER[: ORDER.index(folder) + 1]) | OPEN_TO_ALL
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] == "gp4c" and len(parts) > 1 and parts[1] != "__version__":
            is_folder = (PACKAGE / parts[1]).is_dir() or (PACKAGE / f"{parts[1]}.py").is_file()
            if not is_folder or parts[1] not in allowed:
                yield module


def modules_loaded_by(code):
    """Top-level modules in memory after running code in a fresh interpreter."""
    script = (
        f"import sys\n{code}\nprint('LOADED', *sorted({{m.split('.')[0] for m in sys.modules}}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split("LOADED", 1)[1].split())


def files_in_folders():
    found = [p for p in PACKAGE.rglob("*.py") if p.parent != PACKAGE]
    assert {p.relative_to(PACKAGE).parts[0] for p in found} == set(ORDER)
    return sorted(found)


@pytest.mark.parametrize("path", files_in_folders(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    assert list(forbidden(path)) == []


def test_the_name_of_a_module_occurs_once():
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if path.stem != "__init__")
    assert [name for name, times in names.items() if times > 1] == []


def test_a_folder_has_about_a_dozen_entries():
    folders = {path.parent for path in files_in_folders()}
    entries = {
        str(folder.relative_to(PACKAGE)): len([e for e in folder.iterdir() if e.name[0] != "_"])
        for folder in folders
    }
    assert {name: number for name, number in entries.items() if number > 14} == {}


def test_the_check_of_directions_sees_every_form_of_import(monkeypatch, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("estimators", "data", "analysis", "inference"):
        (tmp_path / name).mkdir()
    (tmp_path / "exceptions.py").touch()
    (folder / "bad.py").write_text(
        "import gp4c.estimators.base\n"
        "from gp4c import analysis\n"
        "from ..inference import bound\n"
        "from gp4c.data.panel import PanelCounts\n"
        "from gp4c.exceptions import GP4CError\n"
        "def late():\n    from gp4c.estimators import gp4c\n"
    )
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    found = set(forbidden(folder / "bad.py"))
    assert {"gp4c.estimators.base", "gp4c.analysis", "gp4c.inference", "gp4c.estimators"} <= found
    assert not any(".data" in module or ".exceptions" in module for module in found)


def test_importing_the_package_loads_nothing_heavy():
    assert modules_loaded_by("import gp4c") & (HEAVY | {"numpy", "typer", "rich"}) == set()


def test_listing_the_package_loads_nothing_heavy():
    assert modules_loaded_by("import gp4c; dir(gp4c)") & (HEAVY | {"numpy"}) == set()


@pytest.mark.parametrize("argument", ["--help", "--version", "describe --help", "simulate --help"])
def test_help_loads_nothing_heavy(argument):
    code = (
        f"sys.argv = ['gp4c', *{argument.split()!r}]\n"
        "from gp4c.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    assert modules_loaded_by(code) & (HEAVY | {"numpy"}) == set()


def test_containers_do_without_plots_and_learners():
    code = "import gp4c; gp4c.simulate_panel(1.0, n_subjects=2)"
    assert modules_loaded_by(code) & {"matplotlib", "sklearn", "polars", "scipy"} == set()
