"""Lock files hold what is declared; the check of dependencies sees what is wrong."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "requirements"


def script(name):
    """One of the scripts beside the lock files."""
    spec = importlib.util.spec_from_file_location(f"requirements_{name}", PLACE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lock, check, install = script("lock"), script("check"), script("install")
PROJECT = lock.pyproject()["project"]
EXTRAS = PROJECT["optional-dependencies"]


def locked(purpose):
    """Requirements of a lock file with their hashes, and those of run.lock that it builds on."""
    names = dict.fromkeys(("run", purpose))
    texts = [(PLACE / f"{name}.lock").read_text(encoding="utf-8") for name in names]
    return [entry for text in texts for entry in lock.entries(text)]


def requirement(entry):
    return Requirement(entry.split("\\\n")[0].split(" --hash")[0].strip())


def needs(purpose):
    """What pyproject.toml declares for a purpose, extras of extras included."""
    waiting = [*PROJECT["dependencies"], *(n for e in lock.PURPOSES[purpose] for n in EXTRAS[e])]
    while waiting:
        need = Requirement(waiting.pop())
        if need.name == "gp4c":
            waiting += [n for extra in need.extras for n in EXTRAS[extra]]
        else:
            yield need


def missing(needs, pins, python):
    """Needs that no pin of a lock file satisfies on a version of Python."""
    here = {"python_full_version": f"{python}.5", "python_version": python}
    found = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(here)]
    for need in needs:
        versions = [str(pin.specifier)[2:] for pin in found if pin.name == need.name.lower()]
        if not any(need.specifier.contains(version) for version in versions):
            yield need.name


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("purpose", lock.PURPOSES)
def test_every_declared_dependency_is_locked(purpose, python):
    pins = [requirement(entry) for entry in locked(purpose)]
    assert list(missing(needs(purpose), pins, python)) == [], "run `make lock`"


def test_a_dependency_that_is_not_locked_is_noticed():
    pins = [Requirement("numpy==2.4.6"), Requirement("scipy==1.17.1; python_version < '3.12'")]
    wanted = [Requirement("numpy>=3"), Requirement("scipy>=1.12"), Requirement("pandas>=2")]
    assert list(missing(wanted, pins, "3.11")) == ["numpy", "pandas"]
    assert list(missing(wanted, pins, "3.12")) == ["numpy", "scipy", "pandas"]


def test_every_extra_is_locked():
    everything = {need.name for purpose in lock.PURPOSES for need in needs(purpose)}
    declared = {Requirement(need).name for extra in EXTRAS.values() for need in extra}
    assert declared - everything == {"gp4c"}


@pytest.mark.parametrize("purpose", lock.PURPOSES)
def test_locked_packages_are_pinned_and_hashed_and_no_address_is_named(purpose):
    text = (PLACE / f"{purpose}.lock").read_text(encoding="utf-8")
    assert "://" not in text
    assert "index" not in text.lower()
    assert text == lock.HEAD + "".join(lock.entries(text))
    for entry in lock.entries(text):
        assert re.fullmatch(r"==[^*,<>]+", str(requirement(entry).specifier))
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry)


def test_no_package_is_locked_twice_for_one_python():
    for purpose in lock.PURPOSES:
        for python in ("3.11", "3.12", "3.13"):
            here = {"python_full_version": f"{python}.7", "python_version": python}
            found = [requirement(entry) for entry in locked(purpose)]
            names = [r.name for r in found if r.marker is None or r.marker.evaluate(here)]
            assert len(names) == len(set(names))


# -- unused and undeclared ----------------------------------------------------------------------


def test_every_import_is_declared_and_every_dependency_used():
    assert list(check.complaints(PROJECT)) == []


def test_unused_and_undeclared_dependencies_are_named():
    wrong = dict(PROJECT)
    wrong["dependencies"] = [n for n in PROJECT["dependencies"] if "scipy" not in n] + ["left-pad"]
    wrong["optional-dependencies"] = {**EXTRAS, "dev": [*EXTRAS["dev"], "black"]}
    found = sorted(check.complaints(wrong))
    assert found[0] == "black is declared, but nothing imports or calls it"
    assert found[1] == "left-pad is declared, but src does not import it"
    assert re.fullmatch(r"src/gp4c/.*\.py imports scipy, which is not declared for users", found[2])
    assert len(found) == 3


# -- installing ---------------------------------------------------------------------------------


@pytest.fixture
def pips(monkeypatch):
    """Calls of pip, which says what a test wants it to say."""
    calls, answers = [], []

    def run(command, **_):
        calls.append(command[5:])
        code, said = answers.pop(0) if answers else (0, "")
        return subprocess.CompletedProcess(command, code, stderr=said)

    monkeypatch.delenv("GP4C_LOCKED", raising=False)
    monkeypatch.setattr(install.subprocess, "run", run)
    return calls, answers


def test_locked_files_are_checked_against_their_hashes(pips):
    install.main("dev")
    assert [call[:2] for call in pips[0]] == [["--require-hashes", "--only-binary=:all:"]]


def test_the_package_itself_is_installed_without_the_registry(pips):
    with pytest.raises(SystemExit, match="0"):
        install.main("run")
    assert pips[0][-1] == ["--no-deps", "--no-build-isolation", "--editable", "."]


def test_a_wrong_hash_is_never_installed(pips):
    pips[1].append((1, "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE"))
    with pytest.raises(SystemExit, match=r"not the file that dev\.lock names"):
        install.main("dev")
    assert len(pips[0]) == 1


def test_where_the_lock_does_not_fit_the_newest_versions_are_taken(pips, capsys):
    pips[1].append((1, "ERROR: No matching distribution found for numpy==2.4.6"))
    with pytest.raises(SystemExit, match="0"):
        install.main("dev")
    assert pips[0][-1] == ["--editable", ".[dev]"]
    assert "installing the newest versions instead" in capsys.readouterr().out


def test_the_newest_versions_can_be_asked_for(pips, monkeypatch):
    monkeypatch.setenv("GP4C_LOCKED", "no")
    with pytest.raises(SystemExit, match="0"):
        install.main("run")
    assert pips[0] == [["--editable", ".[app,files,word]"]]


def test_the_scripts_need_nothing_but_python():
    # they run before anything is installed
    code = "import runpy, sys; runpy.run_path(sys.argv[1])"
    for name in ("lock", "install", "check"):
        command = [sys.executable, "-S", "-c", code, str(PLACE / f"{name}.py")]
        subprocess.run(command, check=True, timeout=60)
