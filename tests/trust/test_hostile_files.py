"""No model file, however it was made, runs code, exhausts memory or loads as another model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gp4c
from gp4c.exceptions import ModelFileError
from gp4c.files import persistence
from peaks import traced_peak
from problems import visits_panel

HERE = Path(__file__).parent
PANEL = visits_panel(61, 7, 3, level=3.0, window=(0.0, 24.0), frailty=1.0)


@pytest.fixture(scope="module")
def model() -> Any:
    return gp4c.HomogeneousPoisson(effect="gamma").fit(PANEL)


@pytest.fixture
def saved(model: Any, tmp_path: Path) -> Path:
    model.save(tmp_path / "fit.json")
    return tmp_path / "fit.json"


def test_hostile_files_are_refused_or_equal_within_bounded_memory(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", HERE / "hostile.py", tmp_path, "20261116", "300"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["files"] >= 320
    assert found["values: refused"] > 80
    assert not (tmp_path / "owned").exists()  # what a file's code would have made


def test_a_file_of_the_first_version_says_what_to_do() -> None:
    path = HERE / "model-version-1.json"
    assert json.loads(path.read_text())["version"] == 1
    with pytest.raises(
        ModelFileError, match="format version 1, and this gp4c reads version 3"
    ) as e:
        gp4c.load_model(path)
    assert "fit again" in str(e.value)


def test_a_newer_file_says_so_and_what_to_do(saved: Path) -> None:
    document = {**json.loads(saved.read_text()), "version": 4, "gp4c": "2.5.0"}
    saved.write_text(json.dumps(document))
    with pytest.raises(ModelFileError) as caught:
        gp4c.load_model(saved)
    assert "written by gp4c 2.5.0 in format version 4" in str(caught.value)
    assert "update gp4c" in str(caught.value)


@pytest.mark.parametrize("version", [None, "2", 0, -1, 2.0, True, [2]])
def test_a_version_that_is_none_is_damage(version: Any, saved: Path) -> None:
    saved.write_text(json.dumps({**json.loads(saved.read_text()), "version": version}))
    with pytest.raises(ModelFileError, match="has no format version"):
        gp4c.load_model(saved)


def test_a_changed_number_is_noticed_and_a_changed_layout_is_not(saved: Path) -> None:
    document = json.loads(saved.read_text())
    saved.write_text(json.dumps(document, indent=2, sort_keys=True))
    gp4c.load_model(saved)
    pairs = document["state"]["dict"]
    (rate,) = [pair for pair in pairs if pair[0] == "rate_"]
    rate[1] = float(np.nextafter(rate[1], 1.0))
    saved.write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="check sum"):
        gp4c.load_model(saved)


def test_what_could_not_be_loaded_is_not_saved(model: Any, tmp_path: Path) -> None:
    broken = gp4c.HomogeneousPoisson(effect="gamma").fit(PANEL)
    broken.subject_totals_ = broken.subject_totals_[:-1]
    with pytest.raises(ModelFileError, match="cannot be saved: 'subject_totals_' has 6 values"):
        broken.save(tmp_path / "fit.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/dev/zero", "/", "\0", "x" * 5000])
def test_what_is_no_file_is_refused_at_once(path: str) -> None:
    with pytest.raises(ModelFileError) as caught:
        gp4c.load_model(path)
    assert "\n" not in str(caught.value)


def test_a_pipe_is_read(saved: Path, tmp_path: Path, model: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(saved.read_bytes()))
    writer.start()
    loaded = gp4c.load_model(pipe)
    writer.join()
    assert loaded.rate_ == model.rate_


def test_a_file_larger_than_memory_is_refused_before_it_is_read(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(persistence, "available_memory", lambda: 5_000)
    with pytest.raises(ModelFileError, match=r"needs more memory .* \(5\.0 kB free\)"):
        gp4c.load_model(saved)


def test_the_estimate_of_memory_is_near_the_peak(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    body = {"values": rng.normal(size=300_000).tolist(), "texts": ["abcdef"] * 20_000}
    content = json.dumps(body).encode()
    peak = traced_peak(
        lambda: persistence._digest(persistence._canonical(persistence._parse(content, "file")))
    )
    estimate = persistence._memory_to_parse(content)
    # since Python 3.13 JSON is written into one buffer, no longer as a list of pieces
    assert peak < estimate < (3 if sys.version_info < (3, 13) else 5) * peak
