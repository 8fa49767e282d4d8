"""Data sets as SAS keeps them (.sas7bdat), which pyreadstat reads but offers no function to write.

The C library inside it, ReadStat, can write them; it is called directly here.
"""

from __future__ import annotations

import ctypes
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd

#: types of variables, as ReadStat numbers them
_STRING, _DOUBLE = 0, 5
_SINK = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
#: function -> types of its arguments
_FUNCTIONS = {
    "writer_init": (),
    "set_data_writer": (_POINTER, _SINK),
    "add_variable": (_POINTER, _TEXT, ctypes.c_int, ctypes.c_size_t),
    "variable_set_format": (_POINTER, _TEXT),
    "begin_writing_sas7bdat": (_POINTER, _POINTER, ctypes.c_long),
    "begin_row": (_POINTER,),
    "insert_double_value": (_POINTER, _POINTER, ctypes.c_double),
    "insert_string_value": (_POINTER, _POINTER, _TEXT),
    "end_row": (_POINTER,),
    "end_writing": (_POINTER,),
    "writer_free": (_POINTER,),
}
#: what functions give that do not give an error code
_GIVES = {
    "writer_init": _POINTER, "add_variable": _POINTER, "variable_set_format": None,
    "writer_free": None,
}  # fmt: skip


def write_sas7bdat(
    frame: pd.DataFrame, path: Path, variable_format: Mapping[str, str] | None = None
) -> None:
    """Write a frame as pyreadstat writes other files: columns of texts, numbers or dates.

    Raises
    ------
    ImportError, OSError, AttributeError
        ReadStat cannot be reached on this platform.
    """
    call, chunks = _library(), []

    def sink(data: int, size: int, _: object) -> int:
        chunks.append(ctypes.string_at(data, size))
        return size

    keep = _SINK(sink)  # as long as the library may call it
    writer = call("writer_init")
    call("set_data_writer", writer, keep)
    columns = {str(name): _cells(frame[name]) for name in frame}
    variables = {name: _declared(call, writer, name, cells) for name, cells in columns.items()}
    dates = {str(name): "DATE9" for name in frame if isinstance(frame[name].iloc[0], dt.date)}
    for name, shown in {**dates, **(variable_format or {})}.items():
        call("variable_set_format", variables[name], shown.encode())
    call("begin_writing_sas7bdat", writer, None, len(frame))
    for row in range(len(frame)):
        call("begin_row", writer)
        for name, cells in columns.items():
            kind = "string" if isinstance(cells[row], bytes) else "double"
            call(f"insert_{kind}_value", writer, variables[name], cells[row])
        call("end_row", writer)
    call("end_writing", writer)
    call("writer_free", writer)
    path.write_bytes(b"".join(chunks))


def _cells(column: pd.Series) -> list[bytes] | list[float]:
    """Texts as bytes; everything else as numbers, dates as days since 1960, gaps as NaN."""
    values = column.tolist()
    if isinstance(values[0], str):
        return [value.encode() for value in values]
    if isinstance(values[0], dt.date):
        return [float((value - dt.date(1960, 1, 1)).days) for value in values]
    return [float(value) for value in values]


def _declared(
    call: Callable[..., int], writer: int, name: str, cells: Sequence[bytes | float]
) -> int:
    texts = [cell for cell in cells if isinstance(cell, bytes)]
    kind, width = (_STRING, max(map(len, texts))) if texts else (_DOUBLE, 8)
    return call("add_variable", writer, name.encode(), kind, width)


def _library() -> Callable[..., int]:
    """A function that calls one of ReadStat by its name."""
    import pyreadstat._readstat_writer as compiled

    library = ctypes.CDLL(compiled.__file__)

    def call(name: str, *arguments: object) -> int:
        function = getattr(library, f"readstat_{name}")
        function.argtypes = _FUNCTIONS[name]
        function.restype = _GIVES.get(name, ctypes.c_int)
        found = function(*arguments)
        if found and name not in _GIVES:
            raise OSError(f"ReadStat: error {found} in {name}")
        return found

    return call
