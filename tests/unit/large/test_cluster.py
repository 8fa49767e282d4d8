"""A real scheduler and two worker processes on loopback, started with Dask's own commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from large_panels import irregular_frame

import gp4c
from gp4c.analysis.permutation import permutation_test, subject_scores
from gp4c.cli.options.large_tables import on_cluster
from gp4c.estimators.large_data.summed_fit import fit_large
from gp4c.exceptions import PanelDataError
from gp4c.large.cluster import sum_on_cluster
from gp4c.paper.running import run_tasks
from gp4c.paper.store import Store, Task, without_times

dask_frame = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WINDOW = (0.0, 60.0)
#: the same sums in another order, and what the optimiser makes of that
SAME_ANSWER = 1e-8


class Cluster:
    """A scheduler and its workers as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.log = (folder / "log.txt").open("w")
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--dashboard-address", "127.0.0.1:0", "--scheduler-file", str(self.file),
        )  # fmt: skip
        self.workers = [self.add_worker() for _ in range(2)]

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            stdout=self.log, stderr=self.log, env={**os.environ, **threads},
        )  # fmt: skip

    def add_worker(self) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", "--scheduler-file", str(self.file), "--host", "127.0.0.1", "--nthreads",
            "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.file.parent),
            "--death-timeout", "60",
        )  # fmt: skip

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.terminate()
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[object]:
    deadline = time.monotonic() + 60
    while not cluster.file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    with distributed.Client(scheduler_file=str(cluster.file), timeout=60) as connected:
        connected.wait_for_workers(2, timeout=60)
        yield connected


def model() -> gp4c.GP4C:
    return gp4c.GP4C(effect="gamma")


def frame() -> pd.DataFrame:
    return irregular_frame(2_400, frailty=1.0, gaps=True)


@pytest.fixture(scope="module")
def alone() -> gp4c.GP4C:
    """The fit of one process."""
    return model().fit(gp4c.scan_panel([frame()], window=WINDOW))


def by_subject(n_parts: int) -> object:
    """Partitions that keep subjects together."""
    rows = frame()
    cuts = np.array_split(np.arange(2_400), n_parts)
    parts = [rows[rows["subject"].isin(cut)] for cut in cuts]
    divisions = [*(int(cut[0]) for cut in cuts), 2_399]
    made = dask_frame.from_pandas(
        pd.concat(parts).set_index("subject", drop=False), sort=True, chunksize=10**9
    )
    made = made.repartition(divisions=divisions)
    return made.reset_index(drop=True)


def assert_same_answer(found: gp4c.GP4C, alone: gp4c.GP4C) -> None:
    times = np.linspace(*WINDOW, 30)
    assert found.objective_ == pytest.approx(alone.objective_, rel=SAME_ANSWER)
    np.testing.assert_allclose(found.intensity(times), alone.intensity(times), rtol=1e-6)
    assert found.frailty_shape_ == pytest.approx(alone.frailty_shape_, rel=1e-6)
    assert found.data_summary_ == pytest.approx(alone.data_summary_)


def test_a_dask_frame_gives_the_answer_of_one_process(client: object, alone: gp4c.GP4C) -> None:
    source = gp4c.scan_panel(by_subject(7), window=WINDOW)
    assert_same_answer(model().fit(source, client=client), alone)


def test_files_are_read_by_the_workers(client: object, alone: gp4c.GP4C, tmp_path: Path) -> None:
    rows = frame()
    for number in range(4):
        part = rows[rows["subject"] % 4 == number]
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    source = gp4c.scan_panel(tmp_path, window=WINDOW)
    assert_same_answer(model().fit(source, client=client), alone)


def test_subjects_in_several_partitions_are_noticed(client: object) -> None:
    mixed = frame().sample(frac=1.0, random_state=0)
    source = gp4c.scan_panel(
        dask_frame.from_pandas(mixed, npartitions=4, sort=False), window=WINDOW
    )
    with pytest.raises(PanelDataError, match="all rows of a subject in one partition"):
        model().fit(source, client=client)


def test_a_bad_row_on_a_worker_is_named_here(client: object) -> None:
    rows = frame()
    rows.loc[17, "count"] = -3
    source = gp4c.scan_panel(dask_frame.from_pandas(rows, npartitions=1), window=WINDOW)
    with pytest.raises(PanelDataError, match=r"found -3 \(row 17 of partition 0\)"):
        model().fit(source, client=client)


# -- the command line ------------------------------------------------------------------------


def test_the_command_line_fits_on_the_workers(client: object, tmp_path: Path) -> None:
    rows = irregular_frame(1_200)
    for number in range(3):
        part = rows[rows["subject"] % 3 == number]
        part.to_parquet(tmp_path / f"{number}.parquet", index=False)
    address = client.scheduler.address  # type: ignore[attr-defined]
    files = [str(tmp_path / f"{number}.parquet") for number in range(3)]  # as a shell gives them
    program = [sys.executable, "-c", "from gp4c.cli import main; main()"]
    command = [*program, "fit", *files, "--effect", "none"]
    before = tasks_done(client)
    done = subprocess.run(
        [*command, "--scheduler", address, "--out", str(tmp_path / "out")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert tasks_done(client) > before
    here = gp4c.GP4C(effect=None, random_state=0).fit(gp4c.scan_panel(files))
    there = gp4c.load_model(tmp_path / "out" / "fit.json")
    assert there.objective_ == pytest.approx(here.objective_, rel=SAME_ANSWER)
    times = np.linspace(*there.window_, 30)
    np.testing.assert_allclose(there.intensity(times), here.intensity(times), rtol=1e-6)


def test_rows_are_told_as_workers_read_them(client: object) -> None:
    told: list[str] = []
    source = gp4c.scan_panel(by_subject(3), window=WINDOW)
    sum_on_cluster(source, client, effect=None, say=told.append)
    assert told[0] == "reading 3 partitions on the cluster"
    deadline = time.monotonic() + 20
    while len(told) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert told[-1].startswith(f"reading: {len(frame()):,} rows, ")


# -- what goes through joblib ----------------------------------------------------------------


def tasks_done(client: object) -> int:
    """Steps of tasks that the scheduler has seen."""
    return client.run_on_scheduler(  # type: ignore[attr-defined,no-any-return]
        lambda dask_scheduler: dask_scheduler.transition_counter
    )


@pytest.mark.parametrize("what", ["cross-validation", "bootstrap", "permutations"])
def test_joblib_runs_on_the_workers_with_the_same_answer(client: object, what: str) -> None:
    panel = gp4c.load_dataset("bladder")

    def answer() -> object:
        if what == "cross-validation":
            models = {"constant": gp4c.HomogeneousPoisson(effect="gamma"), "curve": model()}
            return gp4c.cross_validate(models, panel, n_splits=2).to_numpy()
        if what == "bootstrap":
            fitted = gp4c.NPMLE().fit(panel).bootstrap(n=8, random_state=0)
            return np.concatenate([draws.ravel() for draws in fitted.bootstrap_.values()])
        scores = subject_scores(
            panel.start, panel.stop, panel.count.astype(float), panel.exposure,
            panel.subject_index, panel.n_subjects,
        )  # fmt: skip
        groups = np.arange(panel.n_subjects) % 3
        rng = np.random.default_rng(0)
        found = permutation_test(scores, groups, n_permutations=499, rng=rng)
        return found.statistic, found.p_value

    here, before = answer(), tasks_done(client)
    with joblib.parallel_config(backend="dask"):
        there = answer()
    assert tasks_done(client) > before
    np.testing.assert_allclose(there, here, rtol=1e-12)


def test_trials_of_the_paper_run_on_the_workers(client: object, tmp_path: Path) -> None:
    tasks = [
        Task.of("inducing", trial=trial, seed=5, numbers=[8], names=["b=0.3"]) for trial in range(2)
    ]
    here, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    assert run_tasks(tasks, here, jobs=1) == []
    with on_cluster(client.scheduler.address):  # type: ignore[attr-defined]
        assert run_tasks(tasks, there) == []
    records = [list(store.found(tasks).values()) for store in (here, there)]
    assert len(records[1]) == 2
    assert without_times(records[0]) == without_times(records[1])  # bit for bit


def test_a_worker_killed_in_mid_fit_changes_nothing(
    cluster: Cluster, client: object, alone: gp4c.GP4C
) -> None:

    def slowly(part: pd.DataFrame) -> pd.DataFrame:
        time.sleep(0.5)
        return part

    victim, told = cluster.workers[0], []

    def kill_when_reading(text: str) -> None:
        told.append(text)
        if text.startswith("reading:") and victim.poll() is None:
            victim.send_signal(signal.SIGKILL)

    source = gp4c.scan_panel(by_subject(8).map_partitions(slowly), window=WINDOW)
    found = model()
    fit_large(found, source, client=client, say=kill_when_reading)
    assert victim.wait(20) == -signal.SIGKILL
    read_before = int(told[1].split()[1].replace(",", ""))  # "reading: 1,500 rows, ..."
    assert read_before < len(frame()) / 2
    deadline = time.monotonic() + 20  # the client is told of workers now and then
    while len(client.scheduler_info()["workers"]) != 1 and time.monotonic() < deadline:  # type: ignore[attr-defined]
        time.sleep(0.1)
    assert len(client.scheduler_info()["workers"]) == 1  # type: ignore[attr-defined]
    assert_same_answer(found, alone)
