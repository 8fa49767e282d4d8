"""Saved models: one JSON file, exact numbers, no pickle.

A file holds the format's version, the class, its parameters and its fitted state, and a check sum
of these. Arrays are written as dtype, shape and values (Python's JSON keeps every bit of a float),
frozen result classes by name from a fixed list. Loading trusts nothing: memory is estimated before
the text is parsed, no name in the file is looked up outside the registry of estimators and the list
of :mod:`gp4c.files.saved_schema`, every value is checked for its kind and size, none of it is run.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import stat
import warnings
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from gp4c.atomic import write_text
from gp4c.exceptions import GP4CError, ModelFileError
from gp4c.files.kinds import problem_with, short
from gp4c.files.saved_schema import FIELDS, RESULTS
from gp4c.memory import available_memory, in_words
from gp4c.parts import estimator_by_class, load_parts

if TYPE_CHECKING:
    from gp4c.parts import PanelEstimator

FORMAT = "gp4c-model"
#: 1 had no check sum, 2 had mixtures of Gaussians as the default's posterior
VERSION = 3
_NON_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
#: kinds of arrays, and what their values are in JSON; besides them there are texts and objects
_TYPES: dict[str, set[type]] = {"<f8": {float, int}, "<i8": {int}, "|b1": {bool}}
#: arrays of at least so many numbers that 32 bits hold exactly are written as base64
_PACKED = 64
#: longest integer in a file: 64 bits, with some room
_LONGEST_INTEGER = 40
#: bytes in memory per byte of text, per bracket and per comma, while a file is read
_PER_BYTE, _PER_BRACKET, _PER_VALUE = 4, 200, 120
#: what reading a file can run into; all of it means that the file is not what we wrote
_DAMAGE = (
    ArithmeticError, AssertionError, AttributeError, GP4CError, KeyError, IndexError,
    RecursionError, TypeError, ValueError,
)  # fmt: skip


def save_model(model: PanelEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to `path`, whole or not at all."""
    from gp4c import __version__

    body = {
        "class": type(model).__name__,
        "parameters": _encode(model.get_params()),
        "state": _encode(model._state()),
    }
    try:
        _restore(body)
    except _DAMAGE as problem:
        raise ModelFileError(f"this model cannot be saved: {_reason(problem)}") from problem
    content = _canonical(body)  # of which numbers are most, so that it is written out only once
    head = {
        "format": FORMAT, "version": VERSION, "gp4c": __version__, "sha256": _digest(content)
    }  # fmt: skip
    write_text(path, f"{json.dumps(head)[:-1]}, {content[1:]}")


def load_model(path: str | os.PathLike[str]) -> PanelEstimator:
    """Read a fitted estimator that ``model.save`` wrote.

    Parameters
    ----------
    path : path
        The JSON file.

    Returns
    -------
    PanelEstimator
        The same estimator; it gives the same answers to the last bit.

    Raises
    ------
    ModelFileError
        The file is missing, not a saved model, of a newer format, damaged, or too large for the
        memory that there is. A file from somebody else can be opened safely: it cannot run code.

    Examples
    --------
    >>> import gp4c
    >>> model = gp4c.HomogeneousPoisson(effect="gamma").fit(gp4c.load_dataset("bladder"))
    >>> model.save("fit.json")  # doctest: +SKIP
    >>> gp4c.load_model("fit.json").rate_ == model.rate_  # doctest: +SKIP
    True
    """
    name = repr(os.fspath(path))
    if "\0" in os.fsdecode(path):
        raise ModelFileError(f"there is no file {name}")
    document = _parse(_read(path, name), name)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not a saved gp4c model")
    _check_version(document, name)
    try:
        _check_digest(document)
        model = _restore(document)
        _probe(model)
    except _DAMAGE as problem:
        raise ModelFileError(f"{name} is damaged: {_reason(problem)}") from None
    except MemoryError:
        _refuse_size(name)
    return model


# -- from the disk to JSON -------------------------------------------------------------------------


def _read(path: str | os.PathLike[str], name: str) -> bytes:
    """Content of a file; endless (a device) and huge ones are refused before they fill memory."""
    room = available_memory()
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISFIFO(status.st_mode):
                raise ModelFileError(f"{name} is not a file")
            if room is not None and status.st_size * _PER_BYTE > room:
                _refuse_size(name)
            content = file.read(-1 if room is None else room // _PER_BYTE + 1)
    except FileNotFoundError:
        raise ModelFileError(f"there is no file {name}") from None
    except OSError as problem:
        raise ModelFileError(f"{name} cannot be read: {problem.strerror}") from None
    except MemoryError:
        _refuse_size(name)
    if room is not None and _memory_to_parse(content) > room:
        _refuse_size(name)
    return content


def _memory_to_parse(content: bytes) -> int:
    containers = content.count(b"[") + content.count(b"{") + content.count(b'"') // 2
    values = content.count(b",")
    return len(content) * _PER_BYTE + containers * _PER_BRACKET + values * _PER_VALUE


def _refuse_size(name: str) -> NoReturn:
    room = available_memory()
    there = "there is" if room is None else f"there is ({in_words(room)} free)"
    raise ModelFileError(
        f"{name} needs more memory to read than {there}; a saved model is rarely this large: is it "
        "the right file?"
    )


def _parse(content: bytes, name: str) -> Any:
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_int=_integer,
            parse_constant=_refuse_constant,
            object_pairs_hook=_without_repeats,
        )
    except (ValueError, RecursionError):
        raise ModelFileError(f"{name} is not a JSON file") from None
    except MemoryError:
        _refuse_size(name)


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise ValueError("an integer is too long")
    return int(text)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _check_version(document: dict[str, Any], name: str) -> None:
    """Say what to do with a file of another version: only the present one is read."""
    version, writer = document.get("version"), document.get("gp4c")
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{name} is damaged: it has no format version")
    if version == VERSION:
        return
    by = f"gp4c {writer}" if isinstance(writer, str) and len(writer) < 20 else "another gp4c"
    remedy = "update gp4c, or fit again with this one"
    if version < VERSION:
        remedy = "fit again with this gp4c, or read it with the one that wrote it"
    raise ModelFileError(
        f"{name} was written by {by} in format version {short(version)}, and this gp4c reads "
        f"version {VERSION} only: {remedy}"
    )


def _check_digest(document: dict[str, Any]) -> None:
    expected = document.get("sha256")
    body = {key: document[key] for key in ("class", "parameters", "state")}
    if expected != _digest(_canonical(body)):
        raise ValueError("its check sum does not fit its content, which was changed after saving")


def _canonical(body: dict[str, Any]) -> str:
    """What a file says in one form, however the file is laid out."""
    return json.dumps(body, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _reason(problem: BaseException) -> str:
    """What is wrong, in part of a sentence."""
    if isinstance(problem, KeyError):
        return f"{short(problem.args[0] if problem.args else None)} is missing"
    if isinstance(problem, RecursionError):
        return "its content is nested too deeply"
    return str(problem).split("\n")[0][:200] or type(problem).__name__


# -- from JSON to a model --------------------------------------------------------------------------


def _restore(body: dict[str, Any]) -> PanelEstimator:
    """Build the estimator that a document describes."""
    cls = _estimator(body["class"])
    parameters, state = _decode(body["parameters"]), _decode(body["state"])
    if not isinstance(parameters, dict) or not isinstance(state, dict):
        raise TypeError("its parameters or its state are no named values")
    wrong = problem_with(state, cls.checks_of(state))
    if wrong:
        raise ValueError(wrong)
    model = cls(**parameters)
    model._check_parameters()
    model._set_state(state)
    return model


def _estimator(name: object) -> type[PanelEstimator]:
    """The class of a saved model; other packages are asked if this one does not know it."""
    found = estimator_by_class(name)
    if found is None and load_parts():
        found = estimator_by_class(name)
    if found is None:
        raise ModelFileError(f"a saved model cannot name {short(name)}")
    return found


def _probe(model: PanelEstimator) -> None:
    """Ask a loaded model a question: parts that do not fit together fail here, not later."""
    end = model.window_[1]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = [float(model.cumulative(end))]
        if model.n_bootstraps_:
            values += map(float, model.cumulative_band(end))
    if not np.all(np.isfinite(values)):
        raise ValueError("its curve is not finite")


def _named(name: object, homes: dict[str, str]) -> Any:
    if not isinstance(name, str) or name not in homes:
        raise ModelFileError(f"a saved model cannot name {short(name)}")
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
        return _encode_array(value)
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if isinstance(value, list):
        return [_encode(item) for item in value]
    return _encode_record(value)


def _encode_array(value: Any) -> dict[str, Any]:
    kind = {"O": "object", "U": "str"}.get(value.dtype.kind)
    if kind is None:
        wide = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|b1"}.get(value.dtype.kind)
        if wide is None:
            raise ModelFileError(f"an array of {value.dtype} cannot be saved in a model file")
        kind, value = wide, value.astype(wide)
    if kind == "<f8" and value.size >= _PACKED and _fits_32_bits(value):
        packed = base64.b64encode(value.astype("<f4").tobytes()).decode()
        return {"array": "<f4", "shape": list(value.shape), "base64": packed}
    values = value.ravel().tolist()
    plain = kind in ("<i8", "|b1") or (kind == "<f8" and bool(np.isfinite(value).all()))
    items = values if plain else [_encode(item) for item in values]
    return {"array": kind, "shape": list(value.shape), "values": items}


def _fits_32_bits(value: Any) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.array_equal(value.astype(np.float32).astype(np.float64), value))


def _encode_record(value: Any) -> Any:
    if isinstance(value, dict):
        return {"dict": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if is_dataclass(value) and type(value).__name__ in RESULTS:
        content = {f.name: _encode(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"class": type(value).__name__, "fields": content}
    raise ModelFileError(f"a {type(value).__name__} cannot be saved in a model file")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is too large")
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return _NON_FINITE[value["float"]]
    if "tuple" in value:
        return tuple(_decode(_list(value["tuple"])))
    if "dict" in value:
        return _without_repeats([(_text(k), _decode(v)) for k, v in _list(value["dict"])])
    if "array" in value:
        return _decode_array(value)
    cls = _named(value["class"], RESULTS)
    content = {name: _decode(item) for name, item in value["fields"].items()}
    wrong = problem_with(content, FIELDS[cls.__name__])
    if wrong:
        raise ValueError(f"in {cls.__name__}, {wrong}")
    return cls(**content)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("what should be a list is none")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):  # numbers could be chosen to make a dictionary slow
        raise TypeError("what should be a name is no text")
    return value


def _decode_array(value: dict[str, Any]) -> Any:
    if value["array"] == "<f4":
        return _unpacked(value)
    kind, values, shape = value["array"], _list(value["values"]), tuple(_list(value["shape"]))
    if kind not in _TYPES and kind != "object" and not str(kind).startswith(("str", "<U")):
        raise ValueError(f"an array cannot be of {short(kind)}")
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != len(values):
        raise ValueError(f"an array of shape {short(shape)} has {len(values)} values")
    items = values if _are_plain(values, kind) else [_decode(item) for item in values]
    if kind == "object":
        array = np.empty(len(items), dtype=object)
        array[:] = items
    else:
        array = np.array(items, dtype=kind if kind in _TYPES else np.str_)
    return array.reshape(shape)


def _unpacked(value: dict[str, Any]) -> Any:
    """An array of 32-bit numbers from base64."""
    shape, text = tuple(_list(value["shape"])), value["base64"]
    if not isinstance(text, str):
        raise TypeError("packed numbers are no text")
    numbers = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4")
    if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) != len(numbers):
        raise ValueError(f"an array of shape {short(shape)} has {len(numbers)} values")
    return numbers.astype(np.float64).reshape(shape)


def _are_plain(values: list[Any], kind: str) -> bool:
    """Whether all values are numbers or texts as the array wants them; None other gets in."""
    types = set(map(type, values))
    allowed = _TYPES.get(kind, {str})
    if types <= allowed:
        return kind != "<f8" or all(map(math.isfinite, values))
    if kind == "object" or (kind == "<f8" and types <= {float, int, dict}):
        return False
    raise TypeError(f"an array of {short(kind)} holds other values")
