"""Room for reading a model: told from the file, and unknown on some systems."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gp4c
from gp4c.files import persistence
from peaks import traced_peak
from problems import visits_panel

CONTENTS = {
    "numbers": [1.5] * 20_000,
    "small numbers": list(range(20_000)),
    "lists": [[1] for _ in range(10_000)],
    "names": {f"name {k}": f"value {k}" for k in range(10_000)},
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_reading_takes_no_more_than_was_foreseen(content: Any) -> None:
    text = json.dumps(content, separators=(",", ":")).encode()
    peak = traced_peak(lambda: json.loads(text))
    assert peak < persistence._memory_to_parse(text) < 10 * peak


def test_where_the_free_memory_is_not_known_models_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = gp4c.NPMLE().fit(visits_panel(3))
    model.save(tmp_path / "fit.json")
    for room in (None, 10**9):
        monkeypatch.setattr(persistence, "available_memory", lambda room=room: room)
        read = gp4c.load_model(tmp_path / "fit.json")
        assert read.cumulative(0.5) == model.cumulative(0.5)


def test_a_copy_of_a_model_leaves_the_data_behind() -> None:
    many = visits_panel(4, 200, 5, level=3.0)
    model = gp4c.GP4C(effect=None, hyper="optimize", count_term="pointwise", n_inducing=6).fit(many)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.elbo_, copy.elbo_gap()) == (model.elbo_, model.elbo_gap())
    assert not {"_bound_with", "_fitted_to"} & set(vars(copy))
    assert {"_bound_with", "_fitted_to"} <= set(vars(model))
    np.testing.assert_array_equal(copy.intensity([0.2, 0.7]), model.intensity([0.2, 0.7]))
