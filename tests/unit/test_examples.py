"""The gallery: every example runs, and draws what its page shows."""

import runpy
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

from gp4c.exceptions import OverdispersionWarning

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(path, tmp_path, monkeypatch, capsys):
    mpl.use("agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        # some show what goes wrong without subject effects
        warnings.simplefilter("ignore", OverdispersionWarning)
        runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        assert all(axes.has_data() for axes in figure.axes)
    plt.close("all")
    assert not list(tmp_path.iterdir())  # an example leaves nothing behind


def test_an_example_has_a_title_and_a_story():
    assert len(EXAMPLES) >= 7
    for path in EXAMPLES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0] == '"""'
        assert set(lines[2]) == {"="}
        assert len(lines[1]) == len(lines[2])
        assert sum(line == "# %%" for line in lines) >= 1


def test_the_demonstration_tells_the_whole_story(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES[0].parent / "demo.py"), run_name="__main__")
    said = capsys.readouterr().out
    for words in ("Panel of 85 subjects", "thiotepa has", "events in (53, 65] months, all 47"):
        assert words in said
    left = {path.name for path in (tmp_path / "gp4c-demo").iterdir()}
    pictures = {"panel.png", "arms.png", "ratio.png"}
    assert left == {*pictures, "report.html", "fit-placebo.json", "fit-thiotepa.json"}
    for name in pictures:
        assert (tmp_path / "gp4c-demo" / name).read_bytes().startswith(b"\x89PNG")
    assert "gp4c-demo/report.html" in said
