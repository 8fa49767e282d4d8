"""Saved models: one JSON file, exact numbers, no pickle.

A file holds the format's version, the class, its parameters and its fitted state. Arrays are
written as dtype, shape and values (Python's JSON keeps every bit of a float), frozen result
classes by name from a fixed list: loading a file can build nothing else and runs none of it.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gp4c.atomic import write_text
from gp4c.exceptions import ModelFileError

if TYPE_CHECKING:
    from gp4c.models.base import PanelEstimator

FORMAT = "gp4c-model"
VERSION = 1

#: estimators and result classes that a file may name -> the module that defines them
_ESTIMATORS = {
    "GP4C": "gp4c.models.gp4c",
    "GP4CW": "gp4c.models.gp4c",
    "GP3": "gp4c.models.gp3",
    "LocalEM": "gp4c.models.local_em",
    "NPMPLE": "gp4c.models.step",
    "NPMLE": "gp4c.models.step",
    "NPMPLGF": "gp4c.models.step",
    "HomogeneousPoisson": "gp4c.models.homogeneous",
}
_RESULTS = {
    "Component": "gp4c.inference.posterior",
    "Posterior": "gp4c.inference.posterior",
    "SubjectHistories": "gp4c.inference.forecasting",
    "SampledPosterior": "gp4c.inference.sampled",
    "SamplerReport": "gp4c.inference.mcmc",
    "Bound": "gp4c.inference.variational",
    "CovariateEffects": "gp4c.models.effects",
    "FormulaDesign": "gp4c.data.formulas",
}
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def save_model(model: PanelEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`, whole or not at all."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "class": type(model).__name__,
        "parameters": _encode(model.get_params()),
        "state": _encode(model._state()),
    }
    write_text(path, json.dumps(document, allow_nan=False))


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator that ``model.save`` wrote.

    Parameters
    ----------
    path : path
        The JSON file.

    Returns
    -------
    PanelEstimator
        The same estimator; it gives the same answers to the last bit.
    """
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFileError(f"there is no file {os.fspath(path)!r}") from None
    except OSError as problem:
        raise ModelFileError(f"{os.fspath(path)!r} cannot be read: {problem.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ModelFileError(f"{os.fspath(path)!r} is not a JSON file") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{os.fspath(path)!r} is not a saved gp4c model")
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"{os.fspath(path)!r} has format version {document.get('version')!r}; this gp4c reads "
            f"version {VERSION}: install the gp4c that wrote it, or fit again"
        )
    try:
        return _build(document)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ModelFileError(f"{os.fspath(path)!r} is damaged: {problem}") from None


def _build(document: dict[str, Any]) -> Any:
    cls = _named(document["class"], _ESTIMATORS)
    model = cls(**_decode(document["parameters"]))
    model._set_state(_decode(document["state"]))
    return model


def _named(name: object, homes: dict[str, str]) -> Any:
    if not isinstance(name, str) or name not in homes:
        raise ModelFileError(f"a saved model cannot name {name!r}")
    return getattr(import_module(homes[name]), name)


def _encode(value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return _encode(value.item())
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, np.ndarray):
        dtype = value.dtype.str if value.dtype != object else "object"
        values = [_encode(item) for item in value.ravel().tolist()]
        return {"array": dtype, "shape": list(value.shape), "values": values}
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    return _encode_record(value)


def _encode_record(value: Any) -> Any:
    if isinstance(value, dict):
        return {"dict": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if is_dataclass(value) and type(value).__name__ in _RESULTS:
        content = {f.name: _encode(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"class": type(value).__name__, "fields": content}
    raise ModelFileError(f"a {type(value).__name__} cannot be saved in a model file")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return _NON_FINITE[value["float"]]
    if "tuple" in value:
        return tuple(_decode(item) for item in value["tuple"])
    if "dict" in value:
        return {_decode(key): _decode(item) for key, item in value["dict"]}
    if "array" in value:
        return _decode_array(value)
    cls = _named(value["class"], _RESULTS)
    return cls(**{name: _decode(item) for name, item in value["fields"].items()})


def _decode_array(value: dict[str, Any]) -> Any:
    items, shape = [_decode(item) for item in value["values"]], tuple(value["shape"])
    array = np.empty(len(items), dtype=np.dtype(value["array"]))
    array[:] = items
    return array.reshape(shape)
