"""Every example in the README and the documentation runs as printed."""

import importlib.util
import json
import re
import shlex
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app
from gp4c.exceptions import OverdispersionWarning

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
]
#: the file that the examples call visits.csv
VISITS = "id,from,to,n,arm\n1,0,3,2,a\n1,3,9,0,a\n2,1,7,1,b\n3,0,6,4,b\n"


def blocks(path, language):
    """Fenced blocks of one language with the line they begin at."""
    text = path.read_text(encoding="utf-8")
    pattern = rf"^```{language}\n(.*?)^```$"
    for match in re.finditer(pattern, text, flags=re.DOTALL | re.MULTILINE):
        yield text[: match.start(1)].count("\n"), match.group(1)


def having(language):
    return [path for path in DOCUMENTS if any(blocks(path, language))]


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the file of the examples, and no display."""
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(VISITS)
    yield tmp_path
    import matplotlib.pyplot as plt

    plt.close("all")


def test_the_examples_are_found():
    assert ROOT / "README.md" in having("python")
    assert ROOT / "README.md" in having("console")
    assert len(having("python")) >= 4


def shown(path):
    """Lines that a document says are printed: indented, after a block of code or "prints"."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"^(?:```|prints)\n\n((?:    .*\n)+)", text, flags=re.MULTILINE)
    return [line[4:].rstrip() for block in found for line in block.splitlines()]


def test_the_outputs_are_found():
    guide = ROOT / "docs" / "guide"
    lines = [len(shown(guide / f"{name}.md")) for name in ("compare", "covariates", "forecast")]
    assert lines == [8, 11, 6]


@pytest.mark.parametrize("path", having("python"), ids=lambda p: p.name)
def test_python_examples_run(path, workplace, capsys):
    if "import arviz" in path.read_text(encoding="utf-8"):
        pytest.importorskip("arviz")
    namespace = {"__name__": "__main__"}
    with warnings.catch_warnings():
        # a document may show what goes wrong without subject effects
        warnings.simplefilter("ignore", OverdispersionWarning)
        for line, code in blocks(path, "python"):
            # blank lines in front keep the line numbers of the document in a traceback
            exec(compile("\n" * line + code, str(path), "exec"), namespace)
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in shown(path) if line not in printed] == [], "\n".join(printed)


@pytest.mark.parametrize("path", having("console"), ids=lambda p: p.name)
def test_commands_run(path, workplace):
    for _, block in blocks(path, "console"):
        for line in block.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "gp4c"
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            assert done.output.strip()


def test_the_readme_says_what_the_results_say():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert extension("readme_tables").renew(text) == text, "run `make readme`"


def test_the_readme_says_what_its_own_example_finds():
    # to what a reader of a table would notice: 5% of figures whose bands are ten times as wide
    found = gp4c.compare(gp4c.load_dataset("bladder"), by="treatment")
    said = json.loads((ROOT / "docs" / "images" / "bladder.json").read_text(encoding="utf-8"))
    for arm, numbers in said["by_arm"].items():
        model = found.models[arm]
        now = [model.cumulative(53.0), *model.cumulative_band(53.0)]
        assert_allclose(now, numbers["mean"], rtol=0.05, err_msg="run `make pictures`")
    how = {"curve": "cumulative"}
    now = [found.ratio(43.0, **how), *found.ratio_band(43.0, **how)]
    assert_allclose(now, said["ratio"], rtol=0.05, err_msg="run `make pictures`")
    assert found.p_value == said["p_value"]


def test_the_readme_names_only_files_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def quoted(page):
    """What a page has in code quotes: paths, and names of functions, classes and attributes."""
    return re.findall(r"`([\w./]+)`", page.read_text(encoding="utf-8"))


ABOUT_THE_CODE = [
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("architecture", "classical", "notation")),
    *sorted((ROOT / "docs").glob("maths*.md")),
]


@pytest.mark.parametrize("page", ABOUT_THE_CODE, ids=lambda page: page.name)
def test_pages_about_the_code_name_only_files_that_exist(page):
    named = {name for name in quoted(page) if "/" in name or name.endswith((".py", ".md"))}
    named.discard("docs/_build/html/index.html")  # made by `make docs`
    at_home = {name for name in named if (ROOT / name).exists() or (ROOT / "docs" / name).exists()}
    missing = [name for name in named - at_home if not any((ROOT / "src").rglob(name))]
    assert missing == []


@pytest.mark.parametrize("page", ABOUT_THE_CODE[1:4:2], ids=lambda page: page.name)
def test_tables_of_formulas_and_symbols_name_only_what_the_code_has(page):
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    words = set(re.findall(r"\w+", code))
    named = [name for name in quoted(page) if "/" not in name and not name.endswith((".py", ".md"))]
    assert len(named) > 10
    assert [name for name in named if not words.issuperset(name.strip(".").split("."))] == []


# -- the page of benchmarks ---------------------------------------------------------------------

RESULTS = ROOT / "benchmarks" / "results"


def extension(name):
    """A module that makes pages of the site."""
    place = ROOT / "docs" / "_extensions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def benchmark_page():
    return extension("benchmark_page")


def test_every_result_is_on_the_page_of_benchmarks(benchmark_page):
    text = benchmark_page.benchmark_page(RESULTS)
    shown = {path.stem for path in RESULTS.glob("*.json")} - set(benchmark_page.ELSEWHERE)
    assert text.count("\n## ") == len(shown)
    found = json.loads((RESULTS / "classical.json").read_text(encoding="utf-8"))
    for seconds in found["skin_full_seconds"].values():
        assert f"| {benchmark_page.number(seconds)} |" in text


@pytest.mark.parametrize(
    "name",
    ["startup", "speed", "synthetic_a", "classical", "distinct", "forecast_pit", "power_check"],
)
def test_arranged_results_have_the_form_that_the_page_expects(benchmark_page, name):
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    assert any("| --- |" in part for part in benchmark_page.SECTIONS[name][1](found))


def test_results_of_any_form_are_shown(benchmark_page, tmp_path):
    made_up = {"limit": 3, "machine": {"cores": 2}, "runs": {"a | b": {"seconds": 0.5, "x": None}}}
    (tmp_path / "some_thing.json").write_text(json.dumps(made_up))
    text = benchmark_page.benchmark_page(tmp_path)
    assert "## Some thing" in text
    assert r"| runs, a \| b | 0.5 |  |" in text
    assert "cores" not in text
