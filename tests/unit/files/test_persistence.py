"""Saved models answer every question with the same bits; damaged files say what is wrong."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gp4c
from gp4c.exceptions import ModelFileError
from gp4c.files.persistence import _restore
from problems import visits_panel

PANEL = visits_panel(61, 7, 3, level=3.0, window=(0.0, 24.0), frailty=1.0)
TIMES = np.linspace(0.5, 24.0, 7)
BASE = {"n_inducing": 7, "tol": 1e-3}
MODELS = {
    "paper-bound": gp4c.GP4C(count_term="lemma2", effect=None, hyper="optimize", **BASE),
    "gamma": gp4c.GP4C(count_term="pointwise", effect="gamma", hyper="optimize", **BASE),
    "integrated": gp4c.GP4C(count_term="pointwise", effect="auto", hyper="integrate", **BASE),
    "vem": gp4c.GP4C.paper(n_inducing=6, random_state=3),
    "weights": gp4c.GP4CW(random_state=5, **BASE),
}


@pytest.fixture(scope="module", params=sorted(MODELS))
def pair(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[gp4c.GP4C, gp4c.GP4C]:
    """A fitted model, and itself after a trip through a file."""
    model = MODELS[request.param].fit(PANEL)
    path = tmp_path_factory.mktemp("models") / "fit.json"
    model.save(path)
    return model, gp4c.load_model(path)


def identical(first: Any, second: Any) -> bool:
    """Same type, same structure, same bits."""
    if isinstance(first, float) and isinstance(second, float):  # NumPy's and Python's alike
        return bool(np.array_equal(first, second, equal_nan=True))
    if type(first) is not type(second):
        return False
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(identical, first, second))
    if isinstance(first, dict):
        return identical(list(first.items()), list(second.items()))
    if is_dataclass(first):
        return all(
            identical(getattr(first, f.name), getattr(second, f.name)) for f in fields(first)
        )
    floats = np.asarray(first).dtype.kind == "f"
    return bool(np.array_equal(first, second, equal_nan=floats))


def test_class_and_parameters_come_back(pair: tuple[gp4c.GP4C, gp4c.GP4C]) -> None:
    model, loaded = pair
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert repr(loaded) == repr(model)


def test_every_method_gives_the_same_bits(pair: tuple[gp4c.GP4C, gp4c.GP4C]) -> None:
    model, loaded = pair
    questions = [
        lambda m: m.intensity(TIMES),
        lambda m: m.intensity(30.0, extrapolate=True),
        lambda m: m.cumulative(TIMES),
        lambda m: m.intensity_band(TIMES, 0.8),
        lambda m: m.intensity_band(TIMES[:3], 0.8, kind="simultaneous"),
        lambda m: m.cumulative_band(TIMES, 0.8),
        lambda m: m.sample_intensity(TIMES, 5),
        lambda m: m.expected_counts(0.0, TIMES),
        lambda m: m.score_with_error(PANEL, n_draws=100),
        lambda m: m.score(PANEL, joint=False, constant=True, n_draws=100),
        lambda m: m.score_subjects(PANEL, new_subjects=True, n_draws=100),
        lambda m: m.elbo_gap(),
    ]
    for ask in questions:
        assert identical(ask(model), ask(loaded))


def test_every_fitted_attribute_gives_the_same_bits(pair: tuple[gp4c.GP4C, gp4c.GP4C]) -> None:
    model, loaded = pair
    names = [name for name in vars(model) if name.endswith("_")]
    assert {"objective_", "terms_", "history_", "window_", "effect_"} <= set(names)
    for name in names:
        assert identical(getattr(model, name), getattr(loaded, name)), name


def test_a_file_saved_again_is_the_same_file(
    pair: tuple[gp4c.GP4C, gp4c.GP4C], tmp_path: Path
) -> None:
    for name, model in zip(("one", "two"), pair, strict=True):
        model.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# -- files that are no models --------------------------------------------------------------------


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("document") / "fit.json"
    MODELS["paper-bound"].fit(PANEL).save(path)
    return json.loads(path.read_text())


def load(content: str, tmp_path: Path) -> Any:
    path = tmp_path / "file.json"
    path.write_text(content)
    return gp4c.load_model(path)


def test_a_saved_model_is_strict_json(document: dict[str, Any]) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    # infinite shapes and missing values must not become NaN or Infinity, which are not JSON
    json.loads(json.dumps(document), parse_constant=refuse)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"there is no file .*absent\.json"):
        gp4c.load_model(tmp_path / "absent.json")


@pytest.mark.parametrize("content", ["", "no json {", "\x00\x01"])
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is not a JSON file"):
        load(content, tmp_path)


@pytest.mark.parametrize("content", ["[]", "3", '{"format": "else"}'])
def test_other_json_is_refused(content: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is not a saved gp4c model"):
        load(content, tmp_path)


def test_other_versions_are_named(document: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="format version 99"):
        load(json.dumps({**document, "version": 99}), tmp_path)


@pytest.mark.parametrize("name", ["os.system", "GP4C.paper", "Popen", 3, None, ["GP4C"]])
def test_only_listed_classes_can_be_named(
    name: Any, document: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError):
        load(json.dumps({**document, "class": name}), tmp_path)


@pytest.mark.parametrize("missing", ["class", "parameters", "state"])
def test_damaged_files_are_refused(missing: str, document: dict[str, Any], tmp_path: Path) -> None:
    damaged = {key: value for key, value in document.items() if key != missing}
    with pytest.raises(ModelFileError, match="is damaged"):
        load(json.dumps(damaged), tmp_path)


@pytest.mark.parametrize("origin", ["01.02.2024", "NaT", "none", 3, "2024-01-01; rm"])
def test_a_date_of_time_zero_is_a_date(origin: Any, document: dict[str, Any]) -> None:
    state = [[key, value] for key, value in document["state"]["dict"] if key != "time_origin_"]
    body = {key: document[key] for key in ("class", "parameters")}
    _restore({**body, "state": {"dict": state}})  # a file from before there was one
    _restore({**body, "state": {"dict": [*state, ["time_origin_", "2024-02-01"]]}})
    with pytest.raises(ValueError, match="'time_origin_' is not a date"):
        _restore({**body, "state": {"dict": [*state, ["time_origin_", origin]]}})


def test_unknown_parameters_are_refused(document: dict[str, Any], tmp_path: Path) -> None:
    parameters = {"dict": [["no_such_parameter", 1]]}
    with pytest.raises(ModelFileError, match="is damaged"):
        load(json.dumps({**document, "parameters": parameters}), tmp_path)
