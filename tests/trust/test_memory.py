"""What a fit would take is known before it starts, within a factor of two of what it takes."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gp4c
from gp4c import memory
from gp4c.data.tables.formats import content
from gp4c.estimators.large_data import footprint
from gp4c.estimators.large_data.footprint import expected_peak
from gp4c.exceptions import GP4CError, NotEnoughMemoryError
from peaks import traced_peak

POINTWISE: dict[str, Any] = {"count_term": "pointwise", "hyper": "optimize"}


def panel(n_subjects: int, n_intervals: int) -> gp4c.PanelCounts:
    made, _ = gp4c.simulate_panel(
        "square_wave", window=(0, 60), n_subjects=n_subjects, n_intervals=n_intervals,
        random_state=0,
    )  # fmt: skip
    return made


@pytest.mark.parametrize(
    ("model", "size"),
    [
        (gp4c.NPMLE(), (150, 10)),
        (gp4c.NPMPLGF(max_iter=2), (100, 10)),
        (gp4c.LocalEM(bandwidth="cv", n_splits=3), (150, 10)),
        (gp4c.GP4C(count_term="lemma2", hyper="optimize", effect=None), (200, 10)),
        (gp4c.GP4C(effect="gamma", **POINTWISE), (150, 10)),
        (gp4c.GP4C(effect=None, hyper="optimize", tol=1e-2), (40, 10)),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::gp4c.exceptions.GP4CWarning")
def test_the_estimate_is_near_the_measured_peak(model: Any, size: tuple[int, int]) -> None:
    model.fit(panel(5, 3))  # imports and caches are not the fit's
    data = panel(*size)
    peak = traced_peak(lambda: model.fit(data))
    assert peak / 2 < expected_peak(model, data) < peak * 2


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (gp4c.GP4C(), "n_inducing="),
        (gp4c.GP4CW(), "n_inducing="),
        (gp4c.LocalEM(), "visit times"),
        (gp4c.NPMLE(), "visit times"),
        (gp4c.NPMPLGF(), "visit times"),
        (gp4c.NPMPLE(), "gp4c.scan_panel"),
        (gp4c.HomogeneousPoisson(), "gp4c.scan_panel"),
    ],
    ids=repr,
)
def test_a_fit_that_cannot_be_is_refused_before_it_starts(
    model: Any, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footprint, "available_memory", lambda: 2_000_000)
    with pytest.raises(NotEnoughMemoryError) as caught:
        model.fit(panel(5, 3))
    assert "2.0 MB are free" in str(caught.value)
    assert remedy in str(caught.value)
    assert isinstance(caught.value, GP4CError)
    assert isinstance(caught.value, MemoryError)
    assert not hasattr(model, "window_")


def test_the_command_line_says_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from typer.testing import CliRunner

    from gp4c.cli import app

    monkeypatch.setattr(footprint, "available_memory", lambda: 2_000_000)
    done = CliRunner().invoke(app, ["fit", "bladder"])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "would take about" in done.stderr


def test_nothing_is_refused_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "available_memory", lambda: None)
    assert gp4c.HomogeneousPoisson().fit(panel(5, 3)).rate_ > 0


# -- tables ----------------------------------------------------------------------------------------

TABLE = b"id,start,stop,count\n" + b"7,0,3,1\n" * 1000


def parquet(n_rows: int) -> bytes:
    """A file of a few kilobytes, however many equal rows it has."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = {
        name: np.full(n_rows, value) for name, value in zip(NAMES, (7, 0, 3, 1), strict=True)
    }
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


NAMES = ("id", "start", "stop", "count")


@pytest.mark.parametrize(
    ("data", "needed"),
    [
        (TABLE, "about 172 kB"),  # 4 for each byte, 140 for each row
        (gzip.compress(b"x" * 10**7), "more than 40 MB"),
        (gzip.compress(gzip.compress(TABLE)[:-8] + bytes(10**7)), "more than 40 MB"),
        (gzip.compress(b"x" * 10**6) * 10, "more than 40 MB"),  # members are counted together
        (parquet(100_000), "about"),
        (gzip.compress(parquet(100_000)), "about"),
    ],
    ids=["csv", "bomb", "nested", "members", "parquet", "packed parquet"],
)
def test_a_table_that_cannot_be_read_is_refused(
    data: bytes, needed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large"
    path.write_bytes(data)
    monkeypatch.setattr(content, "available_memory", lambda: 170_000)
    for source in (path, io.BytesIO(data)):
        with pytest.raises(NotEnoughMemoryError) as caught:
            gp4c.read_panel(source)
        said = str(caught.value)
        assert f"would take {needed}" in said
        assert "170 kB are free" in said
        assert "gp4c.scan_panel reads in parts" in said


def test_an_endless_stream_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "available_memory", lambda: 10**8)
    with open("/dev/zero", "rb") as zeros, pytest.raises(NotEnoughMemoryError, match="more than"):
        gp4c.read_panel(zeros)


def test_what_no_limit_foresaw_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise MemoryError

    monkeypatch.setattr(content, "available_memory", lambda: None)
    with pytest.raises(NotEnoughMemoryError, match="the file would take more than 0 bytes of"):
        gp4c.read_panel(Full())


def test_tables_are_read_where_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    one = b"id,start,stop,count\n7,0,3,1\n"
    read = [gp4c.read_panel(io.BytesIO(data)) for data in (one, gzip.compress(one), parquet(1))]
    monkeypatch.setattr(content, "available_memory", lambda: None)
    for data, expected in zip((one, gzip.compress(one), parquet(1)), read, strict=True):
        assert gp4c.read_panel(io.BytesIO(data)) == expected


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_reading_takes_is_known(kind: str, tmp_path: Path) -> None:
    """In a process of its own, the peak of which the system measures; memory of Arrow included."""
    n = 60_000
    frame = pd.DataFrame({"id": np.repeat(np.arange(n), 5), "start": np.tile(range(5), n)})
    frame["stop"], frame["count"] = frame["start"] + 1, frame["id"] % 3
    paths = [tmp_path / f"{name}.{kind}" for name in ("small", "large")]
    for path, part in zip(paths, (frame[:50], frame), strict=True):
        (part.to_csv if kind == "csv" else part.to_parquet)(path, index=False)
    code = """
import sys
import gp4c
from gp4c.data.tables.formats import arrow_files, delimited
def peak():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return 1024 * int(line.split()[1])
small, large = sys.argv[1:]
told = []
gp4c.read_panel(small)
for reader in (arrow_files, delimited):
    reader.check_room = lambda source, needed: told.append(needed)
before = peak()
gp4c.read_panel(large)
print(told[-1] / (peak() - before))
"""
    command = [sys.executable, "-c", code, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert 0.5 < float(done.stdout) < 2


# -- what is available -----------------------------------------------------------------------------


def system(
    folder: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], membership: str
) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "membership").write_text(membership)
    monkeypatch.setattr(memory, "_MACHINE", folder / "meminfo")
    monkeypatch.setattr(memory, "_GROUP_FOLDER", folder / "cgroup")
    monkeypatch.setattr(memory, "_MEMBERSHIP", folder / "membership")


def test_the_machine_tells_what_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = "MemTotal: 100 kB\nMemAvailable:   64 kB\n"
    system(tmp_path, monkeypatch, {"meminfo": meminfo}, "")
    assert memory.available_memory() == 64 * 1024


@pytest.mark.parametrize("inside", ["", "/slurm/job7/step"])
def test_the_tightest_control_group_counts(
    inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "meminfo": "MemAvailable: 999999 kB\n",
        "cgroup/memory.max": "max\n",
        "cgroup/slurm/memory.max": "9000\n",
        "cgroup/slurm/memory.current": "1000\n",
        "cgroup/slurm/job7/memory.max": "5000\n",
        "cgroup/slurm/job7/memory.current": "4500\n",
        "cgroup/slurm/job7/memory.stat": "anon 4000\ninactive_file 300\n",
    }
    system(tmp_path, monkeypatch, files, f"0::{inside}\n")
    assert memory.available_memory() == (800 if inside else 999999 * 1024)


def test_control_groups_of_the_first_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "meminfo": "MemAvailable: 999999 kB\n",
        "cgroup/memory/a/memory.limit_in_bytes": "5000\n",
        "cgroup/memory/a/memory.usage_in_bytes": "1000\n",
    }
    system(tmp_path, monkeypatch, files, "4:cpu:/b\n3:memory:/a\n0::/\n")
    assert memory.available_memory() == 4000


def test_the_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: (10**15, 10**15))
    used = 10**15 - memory._of_process()
    assert 10**7 < used < 10**13  # this process's own address space


def test_sizes_in_words() -> None:
    assert [memory.in_words(n) for n in (12, 3_400, 25_000_000, 1.26e9)] == [
        "12 bytes", "3.4 kB", "25 MB", "1.3 GB",
    ]  # fmt: skip
