"""``gp4c power`` says what the library says, resumes, and names its options in messages."""

import json
import shlex

import pandas as pd
import pytest
from typer.testing import CliRunner

import gp4c
from gp4c.analysis.planning import trial_runs
from gp4c.cli import app as program

TRIAL = "power --rate 0.2 --follow-up 24 --visits 2 --permutations 19 --jobs 1"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(line):
    return CliRunner().invoke(program, shlex.split(line))


def the_plan(ratio=0.5, **options):
    return gp4c.power(
        ratio, rate=0.2, follow_up=24.0, visits=2, n_permutations=19, n_trials=25, **options
    )


def test_it_prints_what_the_library_says():
    done = run(f"{TRIAL} --ratio 0.5 --n-per-arm 10 --trials 25 --time-unit months")
    assert done.exit_code == 0
    assert done.stdout.strip() == str(the_plan(n_per_arm=10, time_unit="months"))


def test_json_has_power_design_and_words():
    done = run(f"{TRIAL} --ratio 0.3 --trials 25 --json")
    found, plan = json.loads(done.stdout), the_plan(0.3)
    assert found["n_per_arm"] == plan.n_per_arm
    assert (found["power"], found["error"]) == (plan.power, plan.error)
    assert found["design"]["rate"] == pytest.approx(0.2)
    assert found["explanation"] == str(plan)
    assert done.stderr == ""


def test_several_sizes_are_lists():
    done = run(f"{TRIAL} --ratio 0.5 --n-per-arm 10 --n-per-arm 20 --trials 25 --json")
    assert json.loads(done.stdout)["n_per_arm"] == [10, 20]


def test_files_are_written_and_finished_trials_are_taken_up(workplace, monkeypatch):
    line = f"{TRIAL} --ratio 0.5 --n-per-arm 10 --trials 25 --out plan"
    first = run(line)
    assert first.exit_code == 0
    names = ["power-trials.json", "power.csv", "power.json", "power.png", "power.txt"]
    assert sorted(p.name for p in (workplace / "plan").iterdir()) == names
    assert pd.read_csv("plan/power.csv")["power"].tolist() == [the_plan(n_per_arm=10).power]
    assert (workplace / "plan" / "power.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(trial_runs, "trial_p_value", None)  # nothing is run again
    assert run(line).stdout == first.stdout


def test_an_interrupted_run_says_how_to_go_on(workplace, monkeypatch):
    real, calls = trial_runs.trial_p_value, []

    def stop(*arguments):
        calls.append(arguments)
        if len(calls) > trial_runs.BATCH:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(trial_runs, "trial_p_value", stop)
    done = run(f"{TRIAL} --ratio 0.5 --n-per-arm 10 --trials 75 --out plan")
    assert done.exit_code == 130
    assert "finished trials are kept in plan/power-trials.json" in done.stderr


def test_a_table_and_a_saved_fit_serve_as_pilots(workplace):
    panel = gp4c.load_dataset("bladder")
    gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel).save("fit.json")
    panel.to_frame().to_csv("visits.csv", index=False)
    how = "power --ratio 0.5 --n-per-arm 10 --trials 25 --permutations 19 --jobs 1 --json"
    rows = [json.loads(run(f"{how} --pilot {p}").stdout)["rows"]
            for p in ("fit.json", "visits.csv", "bladder")]  # fmt: skip
    assert rows[0] == rows[1] == rows[2]


def test_quiet_prints_nothing():
    done = run(f"{TRIAL} --ratio 0.5 --n-per-arm 10 --trials 25 --quiet --out plan")
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--ratio 0.5 --n-per-arm 1", "--n-per-arm must be a whole number from 2"),
        ("--ratio -1 --n-per-arm 10", "--ratio must be a number from 0.001 to 1000; found -1"),
        ("--ratio 0.5 --allocation 0", "--allocation must be a number from 0.01"),
        ("--ratio 0.5 --drop-out 3", "--drop-out must be a number from 0 to 1; found 3"),
        ("--ratio 0.5 --trials 0", "--trials must be a whole number"),
        ("--ratio 1", "give another, or --n-per-arm"),
        ("--ratio 0.5 --pilot nowhere.json", "nowhere.json"),
        ("--ratio 0.5 --jobs 0", "--jobs must not be 0"),
        ("", "Missing option '--ratio'"),
    ],
)
def test_mistakes_end_with_one_sentence_and_code_2(options, words):
    done = run(f"{TRIAL} {options}")
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
