"""The command line as its users meet it: output, files, exit codes, no tracebacks."""

import inspect
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.cli import app as program
from gp4c.cli import guard, main, outputs
from gp4c.cli.program import COMMANDS

VISITS = "id,from,to,n,arm\n1,0,3,2,a\n1,3,9,0,a\n2,1,7,1,b\n3,0,6,4,b\n"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(VISITS)
    return tmp_path


def run(line, **options):
    return CliRunner().invoke(program, shlex.split(line), **options)


def number_after(name, text):
    return float(re.search(rf"{name}\s+([\d.,]+)", text).group(1).replace(",", ""))


# -- describe -----------------------------------------------------------------------------------


def test_describe_says_what_the_library_says():
    done = run("describe visits.csv --subject id --start from --stop to --count n")
    assert done.exit_code == 0
    panel = gp4c.read_panel("visits.csv", subject="id", start="from", stop="to", count="n")
    assert done.stdout.strip() == str(panel.summary()).strip()
    assert number_after("subjects", done.stdout) == 3
    assert number_after("events", done.stdout) == 7


def test_describe_writes_picture_and_summary(workplace):
    done = run("describe visits.csv --out results/deep")
    assert done.exit_code == 0
    folder = workplace / "results" / "deep"
    assert sorted(p.name for p in folder.iterdir()) == ["panel.png", "summary.csv"]
    assert (folder / "panel.png").read_bytes().startswith(b"\x89PNG")
    table = pd.read_csv(folder / "summary.csv").set_index("quantity")
    assert int(table.loc["events", "value"]) == 7
    assert "wrote results/deep/panel.png" in done.stderr


def test_tables_for_spreadsheets_hold_no_formulas(workplace):
    (workplace / "v.csv").write_text("id,from,to,n,=1+1\n1,0,3,2,a\n")
    assert run("describe v.csv --out results").exit_code == 0
    table = pd.read_csv(workplace / "results" / "summary.csv").set_index("quantity")
    assert table.loc["covariates", "value"] == "'=1+1"
    assert run("simulate 0.5 --subjects 2 --out made").exit_code == 0
    again = pd.read_csv(workplace / "made" / "panel.csv")
    assert again.dtypes["count"].kind == "i"  # numbers stay numbers


def test_describe_reads_visits_cumulative_counts_and_exposure(workplace):
    (workplace / "v.csv").write_text("unit,week,found,hours\na,2,1,8\na,5,4,8\nb,3,0,2\n")
    done = run("describe v.csv --subject unit --time week --count found --cumulative")
    assert number_after("events", done.stdout) == 4
    done = run(
        "describe v.csv --subject unit --time week --count found --exposure hours --time-unit weeks"
    )
    assert number_after("exposure", done.stdout) == 8 * 2 + 8 * 3 + 2 * 3
    assert number_after("events", done.stdout) == 5
    assert "weeks" in done.stdout


def test_a_spreadsheet_from_another_country(workplace):
    # semicolons, decimal commas, accents in an old encoding, dates of inspections
    rows = "Pumpe;Datum;Ausfälle;Last\nA;2024-01-01;0;1,5\nA;2024-03-01;2;1,5\nB;2024-02-01;1;0,5\n"
    (workplace / "p.csv").write_bytes(rows.encode("latin-1"))
    line = "describe p.csv --subject Pumpe --time Datum --count Ausfälle"
    refused = run(line)
    assert refused.exit_code == 2
    # what was found at a visit that only starts the observation belongs to no interval
    assert "subject B has 1 event at 2024-02-01: pass --origin a date or --origin 'column of " in (
        refused.stderr
    )
    line += " --origin 2023-12-31 --exposure Last --time-unit days"
    for more in ("", " --encoding latin-1 --delimiter ';' --decimal ,"):
        done = run(line + more)
        assert done.exit_code == 0, done.output
        assert number_after("exposure", done.stdout) == 1.5 * (1 + 60) + 0.5 * 32
        found = "cells are separated by semicolons; decimals are marked by commas; the text is not"
        assert (found in " ".join(done.stdout.split())) == (more == "")


def test_dates_of_another_country_are_explained(workplace):
    (workplace / "p.csv").write_text("id,from,to,n\n1,01/02/2024,05/04/2024,1\n")
    said = run("describe p.csv").stderr
    assert "'01/02/2024' is 1 February 2024 with the day first and 2 January 2024 with the" in said
    assert "pass --day-first or --month-first (line 2)" in said
    for flag, days in (("--day-first", 64), ("--month-first", 123)):
        assert number_after("time observed", run(f"describe p.csv {flag}").stdout) == days
    # dots are day, month, year in every country that uses them
    (workplace / "p.csv").write_text("id,from,to,n\n1,01.02.2024,3.4.2024,1\n")
    done = run("describe p.csv --window 1.2.2024 1.5.2024")
    assert "dates were converted to days since 2024-02-01" in done.stdout
    assert "2024-02-01 to 2024-05-01 (days 0 to 90)" in done.stdout
    assert number_after("time observed", done.stdout) == 62


def test_time_since_entry(workplace):
    rows = "id,date,n a,05.01.2024,0 a,15.01.2024,2 a,04.02.2024,1 b,01.03.2024,0 b,31.03.2024,4"
    (workplace / "v.csv").write_text(rows.replace(" ", "\n"))
    line = "describe v.csv"
    assert "Note: each subject is observed from its first visit on" in run(line).stdout
    done = run(f"{line} --since-entry")
    assert done.exit_code == 0, done.stderr
    assert "(0, 30)" in done.stdout
    assert "Note: time is counted from each subject's first visit in days" in done.stdout
    assert number_after("late entries", done.stdout) == 0
    refused = run("fit v.csv v.csv --since-entry")
    assert "--since-entry needs one file that fits in memory" in " ".join(refused.stderr.split())


def test_origin_may_be_a_number_or_a_column(workplace):
    (workplace / "v.csv").write_text("id,week,n,entry\na,5,1,2\nb,6,0,3\n")
    line = "describe v.csv --time week"
    assert number_after("time observed", run(f"{line} --origin 1").stdout) == 9
    assert number_after("time observed", run(f"{line} --origin entry").stdout) == 6


def test_describe_takes_a_data_set_and_standard_input():
    assert number_after("subjects", run("describe bladder").stdout) == 85
    assert "(0, 60)" in run("describe bladder --window 0 60").stdout
    assert number_after("subjects", run("describe -", input=VISITS).stdout) == 3


def test_a_file_comes_before_a_data_set_of_the_same_name(workplace):
    (workplace / "bladder").write_text(VISITS)
    assert number_after("subjects", run("describe bladder").stdout) == 3


def test_missing_counts_can_be_left_out(workplace):
    (workplace / "m.csv").write_text("id,from,to,n\n1,0,3,2\n1,3,9,\n")
    assert run("describe m.csv").exit_code == 2
    done = run("describe m.csv --drop-missing")
    assert done.exit_code == 0
    assert number_after("intervals", done.stdout) == 1


# -- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("describe nothing.csv", "there is no file 'nothing.csv'"),
        ("describe blader", "did you mean the data set 'bladder'?"),
        ("describe visits.csv --count nn", "no column 'nn'"),
        ("describe bladder --count n", "takes no --count"),
        ("describe visits.csv --window 5 1", "window"),
        ("simulate sqare_wave", "there is no intensity 'sqare_wave'"),
        ("simulate 1 --frailty -2", "must be positive"),
        ("simulate 1 --bursts -1", "bursts must be φ"),
        ("simulate 1 --rate-ratio 0", "--rate-ratio must be positive"),
        ("simulate 1 --window 5 5", "window"),
        ("simulate visits.csv", "no column 'time'"),
        ("describe visits.csv --out visits.csv", "visits.csv: File exists"),
        ("describe visits.csv --out visits.csv/deep", "Not a directory"),
    ],
)
def test_mistakes_end_with_one_line_and_exit_code_2(line, message, workplace):
    before = sorted(workplace.iterdir())
    done = run(line)
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stderr.startswith("gp4c: ")
    assert "Traceback" not in done.output
    assert sorted(workplace.iterdir()) == before


def test_several_problems_have_a_line_each(workplace):
    (workplace / "bad.csv").write_text("id,from,to,n\n1,0,3,-2\n1,9,3,1\n2,0,x,1\n")
    done = run("describe bad.csv --out results")
    assert done.exit_code == 2
    assert 2 <= len(done.stderr.strip().splitlines()) <= 6
    assert not (workplace / "results").exists()


def test_columns_that_are_not_recognised_are_named_at_once(workplace):
    (workplace / "g.csv").write_text("Patient,von,bis,Anzahl\n1,0,3,2\n")
    assert run("describe g.csv").stderr == (
        "gp4c: the file 'g.csv' has no column that looks like the start or the stop or the count; "
        "there are 'von', 'bis', 'Anzahl'; say which they are with --start ..., --stop ..., "
        "--count ... (in a table of visits --time ... in place of start and stop)\n"
    )
    (workplace / "g.csv").write_text("Patient,Datum,visit,Anzahl\n1,0,3,2\n")
    assert run("describe g.csv").stderr.endswith(
        "for a table of visits pass --time 'visit', else say which they are with --start ..., "
        "--stop ..., --count ...\n"
    )


@pytest.mark.parametrize(
    "line", ["describe", "simulate --subjects 0", "describe bladder --order x"]
)
def test_wrong_usage_exits_with_2(line):
    done = run(line)
    assert done.exit_code == 2
    assert "Usage" in done.stderr


@pytest.mark.parametrize(
    "program", [[Path(sys.executable).with_name("gp4c")], [sys.executable, "-m", "gp4c"]]
)
def test_the_real_program_prints_no_traceback(workplace, program):
    done = subprocess.run(
        [*program, "describe", "nothing.csv"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "gp4c: there is no file 'nothing.csv'\n"


def test_ctrl_c_exits_with_130(monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("gp4c.data.datasets.bundled.load_dataset", interrupted)
    assert run("datasets").exit_code == 130
    monkeypatch.setattr("gp4c.cli.program.app", interrupted)
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert end.value.code == 130


def test_our_warnings_are_one_line(capsys):
    @guard.guarded
    def command():
        import warnings

        warnings.warn("too few rounds", gp4c.exceptions.ConvergenceWarning, stacklevel=1)

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        command()
    assert capsys.readouterr().err == "gp4c: warning: too few rounds\n"


def test_an_unforeseen_error_is_not_hidden():
    @guard.guarded
    def command():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        command()


# -- files --------------------------------------------------------------------------------------


def test_all_files_appear_or_none(tmp_path):
    def fails(path):
        path.write_text("half")
        raise OSError(28, "No space left on device", str(path))

    folder = tmp_path / "new" / "results"
    with pytest.raises(OSError, match="No space"):
        outputs.write_all(folder, {"a.txt": lambda p: p.write_text("whole"), "b.txt": fails})
    assert not (tmp_path / "new").exists()


def test_a_failed_run_keeps_the_files_of_the_last(tmp_path):
    def fails(path):
        raise KeyboardInterrupt

    outputs.write_all(tmp_path, {"a.txt": lambda p: p.write_text("old")})
    with pytest.raises(KeyboardInterrupt):
        outputs.write_all(tmp_path, {"a.txt": lambda p: p.write_text("new"), "b.txt": fails})
    assert (tmp_path / "a.txt").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "visits.csv"]


# -- simulate and datasets ----------------------------------------------------------------------


def test_simulate_prints_a_panel_that_can_be_read_back():
    first, again = (
        run("simulate square_wave --subjects 4 --seed 3"),
        run("simulate --subjects 4 --seed 3"),
    )
    assert first.exit_code == 0
    assert first.stdout == again.stdout
    done = run("describe -", input=first.stdout)
    panel, _ = gp4c.simulate_panel("square_wave", n_subjects=4, random_state=3)
    assert number_after("events", done.stdout) == panel.n_events


def test_simulate_bursts():
    done = run("simulate 0.5 --subjects 4 --bursts 3 --seed 3")
    panel, _ = gp4c.simulate_panel(0.5, n_subjects=4, bursts=3.0, random_state=3)
    assert number_after("events", run("describe -", input=done.stdout).stdout) == panel.n_events


def test_simulate_writes_panel_and_events(workplace):
    done = run(
        "simulate 0.5 --subjects 6 --intervals 3 --visits fixed --dropout 0.01 --frailty 2 "
        "--rate-ratio 0.5 --window 0 30 --out sim"
    )
    assert done.exit_code == 0
    assert done.stdout == ""
    panel = pd.read_csv(workplace / "sim" / "panel.csv")
    events = pd.read_csv(workplace / "sim" / "events.csv")
    assert panel["count"].sum() == events["time"].notna().sum()
    assert set(events["subject"]) == set(panel["subject"]) == set(range(1, 7))
    assert panel.drop_duplicates("subject")["group"].tolist() == list("ABABAB")


def test_simulate_takes_a_table_of_rates(workplace):
    (workplace / "rate.csv").write_text("time,rate\n0,0\n20,0\n20.001,5\n60,5\n")
    run("simulate rate.csv --subjects 9 --out sim")
    events = pd.read_csv(workplace / "sim" / "events.csv")
    times = events["time"].dropna()
    assert len(times) > 0
    assert np.all(times > 20)


def test_datasets_are_listed_within_80_columns():
    done = run("datasets", env={"COLUMNS": "80"})
    assert done.exit_code == 0
    for name in gp4c.list_datasets():
        assert name in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())
    assert re.search(r"bladder\s+85\s+920\s+402\s+0 to 53 months", done.stdout)


# -- help ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.__name__)
def test_every_command_has_help_with_an_example_that_runs(command, workplace, monkeypatch):
    # the page would wait for Ctrl-C; tests/unit/app/test_serving.py and tests/browser open it
    monkeypatch.setattr("gp4c.app.serving.serve", lambda port, ready: None)
    (workplace / "results").mkdir()  # what the fit of another example would have left
    fitted = gp4c.HomogeneousPoisson().fit(gp4c.read_panel("visits.csv"))
    fitted.save("results/fit.json")
    examples = re.findall(r"Example: gp4c (.+)", command.__doc__)
    if any("adjusted/" in example for example in examples):
        (workplace / "adjusted").mkdir()
        fast = {"hyper": "optimize", "effect": None, "bursts": False}
        adjusted = gp4c.GP4C(formula="treatment", **fast).fit(gp4c.load_dataset("bladder"))
        adjusted.save("adjusted/fit.json")
    if any("fleet/" in example for example in examples):
        (workplace / "fleet").mkdir()
        fleet = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
        fleet.save("fleet/fit.json")
    assert [run(example).exit_code for example in examples] == [0] * len(examples) != []
    usage = run(f"{command.__name__} --help")
    assert usage.exit_code == 0
    assert "Example: gp4c" in usage.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.__name__)
def test_paragraphs_of_a_help_keep_their_lines_on_a_terminal(command):
    # ends of lines are kept, so that a longer one leaves a word alone on the next
    for paragraph in inspect.cleandoc(command.__doc__).split("\n\n"):
        lines = paragraph.splitlines()
        assert len(lines) == 1 or max(map(len, lines)) <= 78


def test_help_and_version():
    assert all(command.__name__ in run("--help").stdout for command in COMMANDS)
    assert run("-h").stdout == run("--help").stdout
    said = run("--version").stdout
    assert re.fullmatch(rf"gp4c {re.escape(gp4c.__version__)}( \(commit [0-9a-f]{{12}}\))?\n", said)
