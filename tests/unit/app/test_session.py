"""One tab: looking, fitting, stopping; in a process that can really be stopped."""

import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import gp4c
from gp4c.app.bundles import KINDS, kinds_in
from gp4c.app.choices import Analysis, Choices, Reading, Source
from gp4c.app.fit_job import write_files
from gp4c.app.look_job import look
from gp4c.app.messages import Failed, Look, Part, Progress, Stopped, Written
from gp4c.app.page_words import on_the_page
from gp4c.app.session import Session
from gp4c.app.worker import Bench
from gp4c.exceptions import PanelDataError

ROWS = ("1,0,2,1,a,1", "1,2,5,0,a,2", "2,0,4,2,b,1", "3,0,3,0,b,2", "4,0,5,1,a,1")
INTERVALS = "\n".join(["id,from,to,n,arm,dose", *ROWS]) + "\n"
VISITS = "patient,month,count\n1,2,1\n1,5,0\n2,4,2\n"


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return Source(path.name, str(path))


@dataclass(frozen=True)
class Sleep:
    """A job that takes longer than anybody waits."""

    def run(self, send):
        send(Progress("asleep"))
        time.sleep(600)


@dataclass(frozen=True)
class Stumble:
    """A job with a mistake of ours."""

    def run(self, send):
        raise KeyError("a mistake")


@dataclass(frozen=True)
class Die:
    """A process that the system kills, as it does when memory runs out."""

    def run(self, send):
        import os
        import signal

        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def bench():
    bench = Bench()
    yield bench
    bench.close()


@pytest.fixture
def session(bench):
    session = Session(bench)
    yield session
    session.close()


# -- looking ---------------------------------------------------------------------------------


def test_columns_are_recognised_and_offered(tmp_path):
    seen, panel = look(written(tmp_path / "trial.csv", INTERVALS))
    assert seen.problems == ()
    assert seen.roles == {"subject": "id", "start": "from", "stop": "to", "count": "n"}
    assert seen.columns[0] == ("id", "1, 2, 3")
    assert seen.n_rows == 5
    assert seen.groups == {"arm": ("a", "b")}
    assert seen.divisions == ("arm",)
    assert seen.covariates == ("arm", "dose")  # dose varies within a subject
    assert panel.n_events == 4
    assert dict(seen.facts)["subjects"] == "4"


def test_a_table_of_visits_is_seen_to_be_one(tmp_path):
    seen, panel = look(written(tmp_path / "visits.csv", VISITS))
    assert seen.is_visits
    assert seen.reading == Reading()
    assert seen.roles == {"subject": "patient", "time": "month", "count": "count"}
    assert panel.n_intervals == 3


def test_what_the_user_says_counts(tmp_path):
    seen, _ = look(written(tmp_path / "visits.csv", VISITS), Reading(start="month"))
    assert not seen.is_visits
    assert "“Interval ends”" in seen.problems[0]


def test_usage_end_of_service_and_types_are_roles(tmp_path):
    cells = [(k, t, kind) for k in range(3) for t in (1, 4) for kind in "ab"]
    rows = [f"{k},{t},1,{10 * t},{'no' if k else 'yes'},{kind}" for k, t, kind in cells]
    text = "\n".join(["id,month,n,hours,retired,kind", *rows]) + "\n"
    source = written(tmp_path / "fleet.csv", text)
    reading = Reading(usage="hours", end="retired", event="kind")
    seen, panel = look(source, reading)
    assert seen.problems == ()
    assert {"usage": "hours", "end": "retired", "event": "kind"}.items() <= seen.roles.items()
    assert panel.event_types == ("a", "b")
    assert "kind" not in seen.covariates
    (missing,) = look(written(tmp_path / "gap.csv", text.replace("1,4,1,40,no,b\n", "")), reading)[
        0
    ].problems
    assert "or tick “Leave out what is missing”" in missing


def test_hours_taken_for_exposure_are_doubted_on_the_page(tmp_path):
    rows = [f"{k},{a},{b},1,{8 * (b - a)}" for k in range(6) for a, b in ((0, 1), (1, 4), (4, 9))]
    source = written(tmp_path / "hours.csv", "\n".join(["id,from,to,n,hours", *rows]) + "\n")
    seen, _ = look(source, Reading(exposure="hours"))
    assert "“Usage” under More columns" in seen.notes[-1]
    assert look(source, Reading(usage="hours"))[0].notes[-1] != seen.notes[-1]


def test_problems_are_named_by_row(tmp_path):
    text = INTERVALS.replace("2,0,4,2", "2,0,4,-2").replace("3,0,3,0", "3,3,3,0")
    seen, panel = look(written(tmp_path / "broken.csv", text))
    assert panel is None
    assert [line.split("(line ")[1] for line in seen.problems] == ["4)", "5)"]
    assert seen.columns[3] == ("n", "1, 0, -2")  # the columns can still be corrected


def test_what_is_no_table_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\x00\x01\x02" * 99)
    with pytest.raises(PanelDataError):
        look(Source("x.csv", str(tmp_path / "x.csv")))


def test_messages_speak_of_the_page():
    said = on_the_page("no column; pass time='month', else say with start=..., stop=...")
    assert said.endswith(
        "pass “Visit time” 'month', else say with “Interval starts”, “Interval ends”"
    )


# -- the process -----------------------------------------------------------------------------


def test_a_table_is_read_fitted_and_written(session, tmp_path):
    found = list(session.open(written(tmp_path / "trial.csv", INTERVALS)))
    assert [type(message) for message in found] == [Look, Look]
    assert found[1].picture.startswith(b"\x89PNG")
    messages = list(session.fit(Choices()))
    assert isinstance(messages[0], Progress)
    assert {"header", "results", "models"} <= {m.key for m in messages if isinstance(m, Part)}
    assert isinstance(messages[-1], Written)
    assert session.fitted.source.name == "trial.csv"
    model = session.bundle("model")
    assert model.name == "fit.json"
    (tmp_path / "fit.json").write_bytes(model.content())
    assert gp4c.load_model(tmp_path / "fit.json").cumulative(5.0) > 0
    everything = session.bundle("everything")
    assert everything.name == "gp4c-everything.zip"
    assert everything.content()[:2] == b"PK"
    parts = [f for k in ("report", "word", "tables", "figures", "model", "script", "commands")
             for f in session.bundle(k).files]  # fmt: skip
    assert sorted(parts) == sorted(everything.files)
    assert list(session.kinds()) == list(KINDS)
    written_tables = {file.name for file in session.bundle("tables").files}
    assert {"table-data.docx", "table-estimates.docx", "table-curve.tex"} <= written_tables
    assert session.bundle("word").name == "report.docx"


def test_what_was_not_written_is_not_offered():
    kinds = kinds_in(("report.html", "fit.json", "curves.csv", "table-data.tex", "analysis.py"))
    assert list(kinds) == ["report", "tables", "model", "script", "everything"]


def test_without_python_docx_there_is_no_word_file(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "docx", None)
    panel = gp4c.load_dataset("bladder")
    model = gp4c.HomogeneousPoisson(effect="gamma", bursts=True).fit(panel)
    report = gp4c.Report({"all subjects": model}, panel)
    names = write_files(Analysis(Source("bladder")), report, "<html>", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    assert "table-data.tex" in names
    assert [name for name in names if name.endswith(".docx")] == []


def test_a_running_job_is_really_stopped(session):
    messages = session._run(Sleep())
    assert next(messages) == Progress("asleep")
    process = session._worker._process
    began = time.monotonic()
    threading.Timer(0.2, session.cancel).start()
    assert list(messages) == [Stopped()]
    assert time.monotonic() - began < 5
    # the session's thread waits for the same process, so that one look may come too early
    while process.is_alive() and time.monotonic() - began < 10:
        time.sleep(0.05)
    assert not process.is_alive()


def test_the_session_goes_on_after_a_stop(session, tmp_path):
    next(session._run(Sleep()))
    source = written(tmp_path / "trial.csv", INTERVALS)
    assert isinstance(next(session.open(source)), Look)  # the newest wins


def test_mistakes_and_deaths_are_sentences(session, tmp_path):
    (stumbled,) = session._run(Stumble())
    assert isinstance(stumbled, Failed)
    assert "KeyError" in stumbled.lines[0]
    (died,) = session._run(Die())
    assert "memory" in died.lines[0]
    (refused,) = session.open(Source("none.csv", str(tmp_path / "none.csv")))
    assert isinstance(refused, Failed)
    assert session.look is None
    assert isinstance(next(session.fit(Choices())), Failed)


def test_an_upload_has_its_own_name_within_its_folder(session, tmp_path):
    for name in ("a/b.csv", "..", "x" * 300 + ".csv", "C:\\t.csv", "nul\0.csv"):
        (tmp_path / "0.csv").write_text("subject\n", encoding="utf-8")
        (refused,) = session.open(Source(name, str(tmp_path / "0.csv")))
        path = Path(session.source.path)
        assert session.source.name == name
        assert path.parent.parent == Path(session._room.name)
        assert path.is_file()
        assert repr(path.name) in refused.lines[0]


def test_sessions_do_not_know_of_each_other(bench, session, tmp_path):
    other = Session(bench)
    list(session.open(written(tmp_path / "one.csv", INTERVALS)))
    list(other.open(written(tmp_path / "two.csv", VISITS)))
    assert session.source.name == "one.csv"
    assert other.look.is_visits
    assert not session.look.is_visits
    room = other._room.name
    other.close()
    assert session._worker.is_alive
    assert not Path(room).exists()
