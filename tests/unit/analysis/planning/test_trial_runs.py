"""Trials that are kept: an interrupted run goes on, and workers change nothing."""

import json

import joblib
import pytest
from trial_designs import design

from gp4c.analysis.planning import trial_runs
from gp4c.analysis.planning.trial_runs import BATCH, TrialRecords, run_trials
from gp4c.exceptions import PanelDataError

PLAN = design(visits=2, n_permutations=19)


def run(records=None, n_trials=3 * BATCH, progress=lambda done, total, text: None, seed=0):
    return run_trials(
        PLAN, 8, 0.5, n_trials=n_trials, seed=seed, records=records or TrialRecords(),
        progress=progress,
    )  # fmt: skip


def counted(monkeypatch):
    """Numbers of the trials that are run from now on."""
    numbers, real = [], trial_runs.relabellings_above

    def count(*arguments):
        numbers.append(arguments[-1])
        return real(*arguments)

    monkeypatch.setattr(trial_runs, "relabellings_above", count)
    return numbers


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "trials.json"

    def stop(done, total, text):
        if done == 2 * BATCH:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(TrialRecords(path), progress=stop)
    numbers = counted(monkeypatch)
    assert run(TrialRecords(path)) == run()
    assert numbers[:BATCH] == list(range(2 * BATCH, 3 * BATCH))
    assert len(numbers) == BATCH + 3 * BATCH  # those that were missing, and all without a file


def test_more_trials_take_up_those_there_are(tmp_path, monkeypatch):
    path = tmp_path / "trials.json"
    few = run(TrialRecords(path), n_trials=BATCH - 1)
    numbers = counted(monkeypatch)
    many = run(TrialRecords(path), n_trials=2 * BATCH)
    assert many[: BATCH - 1] == few
    assert min(numbers) == BATCH
    assert run(TrialRecords(path), n_trials=BATCH - 1) == few


def test_trials_of_another_design_or_seed_are_not_taken(tmp_path, monkeypatch):
    path = tmp_path / "trials.json"
    run(TrialRecords(path), n_trials=BATCH)
    numbers = counted(monkeypatch)
    run(TrialRecords(path), n_trials=BATCH, seed=1)
    assert len(numbers) == BATCH


def test_workers_change_nothing():
    alone = run()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert run() == alone


def test_progress_ends_with_all_trials():
    told = []
    run(n_trials=BATCH + 5, progress=lambda *update: told.append(update))
    assert [update[0] for update in told] == [0, BATCH, BATCH + 5]
    assert told[-1] == (BATCH + 5, BATCH + 5, "8 per arm, ratio 0.5")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "another"}', '{"format": "gp4c power trials 1", "trials": 3}']
)
def test_a_file_of_somebody_else_is_left_alone(tmp_path, text):
    path = tmp_path / "trials.json"
    path.write_text(text)
    with pytest.raises(PanelDataError, match="not a file of trials by gp4c power"):
        TrialRecords(path)
    assert path.read_text() == text


def test_a_batch_that_is_cut_is_run_again(tmp_path, monkeypatch):
    path = tmp_path / "trials.json"
    whole = run(TrialRecords(path), n_trials=BATCH)
    content = json.loads(path.read_text())
    (key,) = content["trials"]
    content["trials"][key]["0"] = whole[:3]
    path.write_text(json.dumps(content))
    numbers = counted(monkeypatch)
    assert run(TrialRecords(path), n_trials=BATCH) == whole
    assert len(numbers) == BATCH
