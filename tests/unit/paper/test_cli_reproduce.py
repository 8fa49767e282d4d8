"""The command: exit codes, one line for what went wrong, files."""

import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from gp4c.cli import app
from gp4c.paper import studies


def call(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


def test_what_needs_no_trials(tmp_path):
    done = call("fig-bound", "table2", "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert "2 of 2 hold" in done.stdout
    text = (tmp_path / "fig-bound-table2.md").read_text(encoding="utf-8")
    assert "0.3061" in text
    assert (tmp_path / "images" / "reproduction" / "fig-bound.png").is_file()


def test_the_page_also_goes_into_the_docs(tmp_path):
    done = call("table2", "--out", tmp_path / "out", "--docs", tmp_path / "docs", "--quiet")
    assert done.exit_code == 0
    assert done.output == ""
    pages = [tmp_path / folder / "table2.md" for folder in ("out", "docs")]
    assert pages[0].read_bytes() == pages[1].read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table9"], "table9"),
        (["table2", "--trials", "0"], "trials"),
        (["table2", "--jobs", "0"], "--jobs"),
        (["table2", "--source", "abc"], "--report-only"),
    ],
)
def test_mistakes_exit_with_2(arguments, words, tmp_path):
    done = call(*arguments, "--out", tmp_path)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.output


def test_a_report_without_trials_says_so_in_one_line(tmp_path):
    done = call("table1", "--report-only", "--out", tmp_path)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "no finished trials" in done.stderr
    assert list(tmp_path.iterdir()) == []


def fake_study(monkeypatch, error_at=None, error=None):
    """Replace all studies by made-up records; raise at one trial."""
    import made_up

    from gp4c.paper.store import Task

    def study(name):
        def run(**settings):
            if settings.get("trial") == error_at:
                raise error
            return made_up.record_of(Task.of(name, **settings))

        return run

    monkeypatch.setattr(studies, "study", study)


def test_an_interrupted_run_exits_with_130_and_resumes(tmp_path, monkeypatch):
    common = ["fig-subjects", "--jobs", "1", "--trials", "4", "--out", tmp_path]
    fake_study(monkeypatch, 2, KeyboardInterrupt())
    done = call(*common)
    assert done.exit_code == 130
    last = done.stderr.splitlines()[-1]
    assert "interrupted; 2 of 4 trials are kept" in last
    # what is there can be shown
    done = call(*common, "--report-only")
    assert done.exit_code == 0
    assert "2 trials are not there yet" in done.stderr
    text = (tmp_path / "fig-subjects.md").read_text(encoding="utf-8")
    assert "Synthetic A, 2 trials" in text
    assert "**2 trials are not there yet.**" in text
    fake_study(monkeypatch)
    done = call(*common)
    assert done.exit_code == 0
    assert "2 of 4 trials" in done.stderr
    page = (tmp_path / "fig-subjects.md").read_bytes()
    packed = ["--report-only", "--cache", tmp_path / "trials.jsonl.gz", "--out", tmp_path / "new"]
    assert call(*common, *packed).exit_code == 0
    assert (tmp_path / "new" / "fig-subjects.md").read_bytes() == page
    assert call(*common, "--cache", tmp_path / "trials.jsonl.gz").exit_code == 2  # cannot run
    assert "Synthetic A, 4 trials" in (tmp_path / "fig-subjects.md").read_text(encoding="utf-8")


def test_a_failed_trial_exits_with_1_and_the_rest_is_shown(tmp_path, monkeypatch):
    fake_study(monkeypatch, 1, ValueError("bad draw"))
    done = call("fig-subjects", "--jobs", "1", "--trials", "3", "--out", tmp_path)
    assert done.exit_code == 1
    assert "subjects trial 1: ValueError: bad draw" in done.stderr
    assert "2 trials" in (tmp_path / "fig-subjects.md").read_text(encoding="utf-8")


def test_other_versions_are_named_and_can_be_shown(tmp_path, monkeypatch):
    fake_study(monkeypatch)
    common = ["fig-subjects", "--jobs", "1", "--trials", "2", "--out", tmp_path]
    assert call(*common).exit_code == 0
    (folder,) = (tmp_path / "cache").iterdir()
    for path in folder.iterdir():
        path.write_text(path.read_text().replace(folder.name, "older"))
    folder.rename(tmp_path / "cache" / "older")
    done = call(*common, "--report-only")
    assert done.exit_code == 2
    assert "older (2 records)" in done.stderr
    done = call(*common, "--report-only", "--source", "older")
    assert done.exit_code == 0
    assert "`older`" in (tmp_path / "fig-subjects.md").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="sends a signal to a process group")
def test_ctrl_c_on_a_run_in_processes(tmp_path):
    command = [sys.executable, "-c", "from gp4c.cli import main; main()", "reproduce",
               "table3", "--trials", "99", "--jobs", "2", "--out", str(tmp_path)]  # fmt: skip
    run = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    limit = time.monotonic() + 120
    while not list(tmp_path.glob("cache/*/[!.]*.json")) and time.monotonic() < limit:
        time.sleep(0.05)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does: to all processes
    _, errors = run.communicate(timeout=60)
    assert run.returncode == 130, errors
    assert "interrupted;" in errors.splitlines()[-1]
    assert "Traceback" not in errors
    assert list(tmp_path.glob("cache/*/[!.]*.json"))
    assert not list(tmp_path.glob("cache/*/.*"))  # no half-written file
