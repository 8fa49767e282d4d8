"""A real scheduler and two worker processes on loopback, started with Dask's own commands."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from large_panels import irregular_frame

import gp4c
from gp4c.exceptions import PanelDataError

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
    return gp4c.GP4C(effect="gamma", hyper="optimize", count_term="pointwise")


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


def test_a_worker_killed_in_mid_fit_changes_nothing(
    cluster: Cluster, client: object, alone: gp4c.GP4C
) -> None:

    def slowly(part: pd.DataFrame) -> pd.DataFrame:
        time.sleep(0.5)
        return part

    source = gp4c.scan_panel(by_subject(8).map_partitions(slowly), window=WINDOW)
    victim = cluster.workers[0]
    killer = threading.Timer(1.2, victim.send_signal, (signal.SIGKILL,))
    killer.start()
    found = model().fit(source, client=client)
    killer.join()
    assert victim.wait(20) == -signal.SIGKILL
    assert len(client.scheduler_info()["workers"]) == 1  # type: ignore[attr-defined]
    assert_same_answer(found, alone)
