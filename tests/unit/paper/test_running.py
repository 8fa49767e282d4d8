"""Runs: only what is missing, kept as it comes, resumable, robust against what goes wrong."""

from concurrent.futures.process import BrokenProcessPool

import joblib
import pytest

from gp4c.paper import running, studies
from gp4c.paper.running import Interrupted, ReproductionError, run_tasks
from gp4c.paper.store import Store, Task, without_times

TASKS = [Task.of("fake", trial=trial, set=name) for name in "AB" for trial in range(3)]
#: a real study that takes a quarter of a second
SMALL = {"numbers": [8], "names": ["GP3", "b=0.3"]}


class Fake:
    """A study that counts its trials and fails as told."""

    def __init__(self, monkeypatch, fail=lambda call, settings: None):
        self.seen = []
        self.fail = fail
        monkeypatch.setattr(studies, "study", lambda name: self)

    def __call__(self, **settings):
        self.seen.append(settings)
        error = self.fail(len(self.seen), settings)
        if error is not None:
            raise error
        return {"value": settings["trial"] + 0.5}


def test_every_trial_is_kept_and_run_once(tmp_path, monkeypatch):
    fake, store, told = Fake(monkeypatch), Store(tmp_path), []
    failed = run_tasks([*TASKS, *TASKS], store, jobs=1, progress=lambda *args: told.append(args))
    assert failed == []
    assert len(fake.seen) == len(TASKS)
    assert {t: r["value"] for t, r in store.found(TASKS).items()} == {
        t: t.settings["trial"] + 0.5 for t in TASKS
    }
    assert [done for done, _, _ in told] == list(range(len(TASKS) + 1))
    assert {total for _, total, _ in told} == {len(TASKS)}
    run_tasks(TASKS, store, jobs=1)
    assert len(fake.seen) == len(TASKS)


def test_trials_with_small_numbers_come_first(tmp_path, monkeypatch):
    fake = Fake(monkeypatch)
    run_tasks(TASKS, Store(tmp_path), jobs=1)
    assert [s["trial"] for s in fake.seen] == [0, 0, 1, 1, 2, 2]


def test_an_interrupted_run_resumes(tmp_path, monkeypatch):
    store = Store(tmp_path)
    Fake(monkeypatch, lambda call, _: KeyboardInterrupt() if call == 4 else None)
    with pytest.raises(Interrupted) as stop:
        run_tasks(TASKS, store, jobs=1)
    assert (stop.value.done, stop.value.total) == (3, len(TASKS))
    assert len(store.found(TASKS)) == 3
    again = Fake(monkeypatch)
    run_tasks(TASKS, store, jobs=1)
    assert len(again.seen) == len(TASKS) - 3
    assert len(store.found(TASKS)) == len(TASKS)


def test_a_failed_trial_is_told_and_tried_again(tmp_path, monkeypatch):
    store = Store(tmp_path)
    Fake(monkeypatch, lambda _, s: ValueError("bad draw") if s["trial"] == 1 else None)
    failed = run_tasks(TASKS, store, jobs=1)
    assert {outcome.task for outcome in failed} == {t for t in TASKS if t.settings["trial"] == 1}
    assert {outcome.error for outcome in failed} == {"ValueError: bad draw"}
    assert len(store.found(TASKS)) == 4
    again = Fake(monkeypatch)
    assert run_tasks(TASKS, store, jobs=1) == []
    assert len(again.seen) == 2


def test_dead_workers_are_replaced(tmp_path, monkeypatch):
    Fake(monkeypatch)
    deaths = iter([True, False, True])
    real = joblib.Parallel

    class Mortal(real):
        def __call__(self, iterable):
            for count, outcome in enumerate(super().__call__(iterable)):
                if count == 2 and next(deaths, False):
                    raise BrokenProcessPool("killed")
                yield outcome

    monkeypatch.setattr(joblib, "Parallel", Mortal)
    store = Store(tmp_path)
    assert run_tasks(TASKS, store, jobs=1) == []
    assert len(store.found(TASKS)) == len(TASKS)


def test_workers_that_die_at_once_end_the_run(tmp_path, monkeypatch):
    class Dead:
        def __init__(self, **options):
            pass

        def __call__(self, iterable):
            raise BrokenProcessPool("killed")

    monkeypatch.setattr(joblib, "Parallel", Dead)
    with pytest.raises(ReproductionError, match="died 3 times"):
        run_tasks(TASKS, Store(tmp_path), jobs=1)


def test_a_source_that_changes_during_the_run_ends_it(tmp_path, monkeypatch):
    Fake(monkeypatch)
    store = Store(tmp_path)
    monkeypatch.setattr(running, "source_version", lambda: "changed")
    with pytest.raises(ReproductionError, match="source changed"):
        run_tasks(TASKS, store, jobs=1)
    assert store.found(TASKS) == {}


def test_processes_give_the_same_bits_as_this_one(tmp_path):
    tasks = [Task.of("inducing", trial=trial, seed=5, **SMALL) for trial in range(2)]
    alone, many = Store(tmp_path / "a"), Store(tmp_path / "b")
    assert run_tasks(tasks, alone, jobs=1) == run_tasks(tasks, many, jobs=2) == []
    assert without_times(list(alone.found(tasks).values())) == without_times(
        list(many.found(tasks).values())
    )


def test_any_backend_of_joblib_runs_them(tmp_path):
    tasks = [Task.of("inducing", trial=0, seed=5, **SMALL)]
    with joblib.parallel_config("threading", n_jobs=2):
        assert run_tasks(tasks, Store(tmp_path)) == []
    assert len(Store(tmp_path).found(tasks)) == 1
