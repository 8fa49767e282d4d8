"""The code that the page hands out: it says what was chosen, and gives the same numbers."""

import shlex
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.app.choices import Analysis, Choices, Grouping, Reading, Source, formula_of, quoted
from gp4c.app.fit_job import FitJob
from gp4c.app.messages import Written
from gp4c.cli import app

RUN = [sys.executable, "-c", "from gp4c.cli import main; main()"]


def write_table(path, seed=3):
    """A small trial in words that need naming: visits by month, totals, two arms."""
    panel, _ = gp4c.simulate_panel(2.0, n_subjects=12, window=(0.0, 6.0), random_state=seed)
    frame = panel.to_frame()
    frame["total"] = frame.groupby("subject")["count"].cumsum()
    frame["the arm"] = np.where(frame["subject"].astype(int) % 2 == 0, "new drug", "placebo")
    frame["size"] = 1.0 + frame["subject"].astype(int) % 5
    frame = frame.rename(columns={"stop": "month", "subject": "patient"})
    frame[["patient", "month", "total", "the arm", "size"]].to_csv(path, index=False, sep=";")


READING = Reading(
    time="month", count="total", cumulative=True, delimiter=";", time_unit="months",
    drop_missing=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """An analysis with everything in it, run as the page runs it."""
    folder = tmp_path_factory.mktemp("app")
    write_table(folder / "my visits.csv")
    source = Source("my visits.csv", str(folder / "my visits.csv"))
    analysis = Analysis(source, READING, Choices(by="the arm", formula="size", level=0.9, seed=2))
    results = folder / "page"
    results.mkdir()
    messages = []
    FitJob(analysis, str(results)).run(messages.append)
    assert isinstance(messages[-1], Written)
    return folder, analysis, messages


def means(path):
    model = gp4c.load_model(path)
    return [model.cumulative(6.0), *model.cumulative_band(6.0)]


def test_the_script_gives_the_same_numbers(done):
    folder, analysis, _ = done
    (folder / "analysis.py").write_text(analysis.script(), encoding="utf-8")
    subprocess.run([sys.executable, "analysis.py"], cwd=folder, check=True, capture_output=True)
    for number, group in enumerate(["new-drug", "placebo"], start=1):
        expected = means(folder / "page" / f"fit-{group}.json")
        assert means(folder / f"fit-{number}.json") == expected
    assert "Comparison of groups" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_command_lines_give_the_same_files(done):
    folder, analysis, _ = done
    for command in analysis.commands():
        words = shlex.split(command)
        assert words[0] == "gp4c"
        subprocess.run([*RUN, *words[1:]], cwd=folder, check=True, capture_output=True)
    for name in ("curves.csv", "effects.csv", "summary.txt"):
        ours = (folder / "page" / name).read_text(encoding="utf-8")
        assert (folder / "results" / name).read_text(encoding="utf-8") == ours
    for group in ("new-drug", "placebo"):
        expected = means(folder / "page" / f"fit-{group}.json")
        assert means(folder / "results" / f"fit-{group}.json") == expected
    ours, theirs = (
        (folder / name / "report.html").read_text(encoding="utf-8") for name in ("page", "results")
    )
    # the pages differ in how they say they were made, and in nothing else
    assert ours.split('id="reproduce"')[0] == theirs.split('id="reproduce"')[0]


def write_fleet(path):
    """Machines with hours run, some retired, on two sites and in three shops."""
    panel, _ = gp4c.simulate_panel(1.5, n_subjects=12, window=(0.0, 6.0), random_state=4)
    frame = panel.to_frame()
    machine = frame["subject"].astype(int)
    frame["hours"] = 10.0 * (frame["stop"] - frame["start"]) * (1 + machine % 3)
    frame["retired"] = np.where(machine % 4 == 0, "yes", "no")
    frame["site"], frame["shop"] = 1 + machine % 2, "shop " + ((machine - 1) // 4).astype(str)
    frame["leaks"] = frame["count"] // 2
    frame["breaks"] = frame["count"] - frame["leaks"]
    frame.drop(columns="exposure", errors="ignore").to_csv(path, index=False)


FLEET = Analysis(
    Source("fleet.csv"), Reading(usage="hours", end="retired", time_unit="months"),
    Choices(
        by="site", effect="none", bursts="no", trend="loglinear",
        grouping=Grouping(test="curve", reference=2, strata="shop"),
    ),
)  # fmt: skip
TYPES = Analysis(
    Source("fleet.csv"), Reading(count=("leaks", "breaks"), usage="hours"),
    Choices(by="site", effect="none", bursts="no"),
)  # fmt: skip


def run_here(command):
    """Run a command line in this process, which has loaded all it needs."""
    done = CliRunner().invoke(app, shlex.split(command)[1:], catch_exceptions=False)
    assert done.exit_code == 0


@pytest.fixture
def on_the_page(tmp_path, monkeypatch):
    """Analyse the fleet as the page does; its files lie in `page`."""
    monkeypatch.chdir(tmp_path)
    write_fleet(tmp_path / "fleet.csv")
    (tmp_path / "page").mkdir()

    def analyse(chosen):
        analysis = Analysis(Source("fleet.csv", "fleet.csv"), chosen.reading, chosen.choices)
        FitJob(analysis, "page").run(lambda message: None)
        return analysis

    return analyse


def test_usage_trend_and_comparison_are_carried_by_the_command_lines(tmp_path, on_the_page):
    analysis = on_the_page(FLEET)
    for command in analysis.commands():
        run_here(command)
    for name in ("curves.csv", "summary.txt"):
        ours = (tmp_path / "page" / name).read_text(encoding="utf-8")
        assert (tmp_path / "results" / name).read_text(encoding="utf-8") == ours
    ours, theirs = (
        (tmp_path / name / "report.html").read_text(encoding="utf-8")
        for name in ("page", "results")
    )
    assert ours.split('id="reproduce"')[0] == theirs.split('id="reproduce"')[0]
    script = analysis.script()
    assert "usage='hours', end='retired'" in script
    assert "gp4c.GP4C(effect=None, bursts=False, trend='loglinear', random_state=0)" in script
    assert "test='curve', reference=2, strata='shop', random_state=0)" in script


def test_types_are_fitted_together_and_compared(tmp_path, on_the_page):
    analysis = on_the_page(TYPES)
    report, fit = analysis.commands()
    run_here(fit)
    ours = (tmp_path / "page" / "curves.csv").read_text(encoding="utf-8")
    assert (tmp_path / "results" / "curves.csv").read_text(encoding="utf-8") == ours
    assert "--by site" in report
    assert "leaks" in (tmp_path / "page" / "types.csv").read_text(encoding="utf-8")
    compile(analysis.script(), "script", "exec")
    assert "gp4c.Report({'all subjects': model}, panel, comparison=found, " in analysis.script()


def test_the_sections_come_in_the_order_of_the_report(done):
    keys = [message.key for message in done[2] if hasattr(message, "key")]
    assert keys[:4] == ["header", "results", "effects", "comparison"]
    figures = next(m.figures for m in done[2] if getattr(m, "key", "") == "results")
    assert set(figures) == {"rate", "cumulative", "cumulative-average"}


def test_what_was_not_chosen_is_not_said():
    analysis = Analysis(Source("visits.csv", "somewhere/0.csv"))
    assert analysis.commands()[0] == "gp4c report visits.csv --out results"
    assert "read_panel('visits.csv')" in analysis.script()


def test_a_data_set_is_loaded_by_its_name():
    analysis = Analysis(Source("bladder"), Reading(), Choices(by="treatment"))
    assert analysis.commands()[1] == "gp4c fit bladder --by treatment --out results"
    assert "gp4c.load_dataset('bladder')" in analysis.script()
    assert analysis.panel().n_subjects == 85


def test_choices_become_arguments_and_options():
    reading = Reading(time="when", origin="first", since_entry=True, drop_missing=True)
    assert reading.arguments() == {
        "time": "when", "since_entry": True, "origin": None, "missing": "drop",
    }  # fmt: skip
    assert reading.options() == [
        "--time", "when", "--since-entry", "--origin", "first", "--drop-missing",
    ]  # fmt: skip
    assert Reading(day_first=False).options() == ["--month-first"]
    assert Reading(day_first=False).arguments() == {"day_first": False}
    assert Reading(origin="2.5").arguments()["origin"] == 2.5
    assert Reading(origin="2024-01-31").arguments()["origin"] == "2024-01-31"


def test_columns_of_fleets_and_types_become_options():
    reading = Reading(count=("leaks", "breaks"), usage="hours run", end="retired", clock="usage")
    assert reading.options() == [
        "--count", "leaks", "--count", "breaks", "--usage", "hours run", "--end", "retired",
        "--clock", "usage",
    ]  # fmt: skip
    assert reading.arguments()["count"] == ("leaks", "breaks")
    assert reading.has_types
    assert Reading(event="kind").has_types
    assert not Reading(count="leaks").has_types


def test_the_model_and_the_comparison_become_options():
    choices = Choices(
        by="arm", effect="none", bursts="yes", trend="auto", season="12",
        grouping=Grouping("any", 2.0, "centre", "block", "clinic"),
    )  # fmt: skip
    assert choices.arguments() == {
        "effect": None, "bursts": True, "trend": "auto", "season": 12.0, "random_state": 0,
    }  # fmt: skip
    fit = ["--effect", "none", "--bursts", "yes", "--trend", "auto", "--season", "12"]
    grouped = ["--test", "any", "--reference", "2.0", "--strata", "centre", "--blocks", "block",
               "--cluster", "clinic"]  # fmt: skip
    assert choices.options() == ["--by", "arm", *grouped, *fit]
    assert choices.options(compares=False) == ["--by", "arm", *fit]
    assert choices.options(compares=False, by=False) == fit


def test_nothing_is_compared_without_groups():
    choices = Choices(grouping=Grouping(strata="centre"))
    assert choices.options() == []
    assert "compare" not in Analysis(Source("bladder"), choices=choices).script()


@pytest.mark.parametrize(
    "word", ["plain.csv", "two words", "it's", 'a "b"', "$HOME", "`x`", "a!b", "100%", "ä;b", ""]
)
def test_words_reach_the_program_as_they_are(word):
    assert shlex.split(f"x {quoted(word)}") == ["x", word]


def test_names_that_are_no_words_stand_in_backticks():
    assert formula_of(["age", "the arm"]) == "age + `the arm`"
    assert formula_of([]) is None


def test_a_name_cannot_end_the_script():
    name = 'x"""\nraise SystemExit(3)\n"""\\'
    compile(Analysis(Source(name, "p")).script(), "script", "exec")
    assert "\nraise" not in Analysis(Source(name, "p")).script()
