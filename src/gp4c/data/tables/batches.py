"""Part of a large table as arrays: checked at the speed of reading, with the usual messages.

Rows that are plain numbers and obey every rule pass a few vectorised tests. Anything else goes
through :func:`gp4c.data.tables.assembly.build_panel.fields_from_intervals`, which knows all formats
and words all errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import LARGEST_EXACT, LARGEST_SIZE, SMALLEST_SIZE
from gp4c.data.subjects import FloatArray
from gp4c.data.tables.assembly.build_panel import fields_from_intervals
from gp4c.data.tables.frames import Table, frame_rows, table_of
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pyarrow as pa

    from gp4c.data.subjects import LabelArray
    from gp4c.data.tables.frames import IntoTable

Keys = NDArray[np.uint64]
Locate = Callable[[Sequence[int]], str]


@dataclass(frozen=True)
class RowBatch:
    """Rows that obey every rule but those between batches.

    Attributes
    ----------
    key : (n,) uint64
        Of the subject: a whole-number label itself, or a hash of the label.
    labels : dict
        Label of each key that is a hash.
    start, stop, count, exposure : (n,) float64
    first_row : int
        Number of the first row in the whole source.
    """

    key: Keys
    labels: dict[int, Any]
    start: FloatArray
    stop: FloatArray
    count: FloatArray
    exposure: FloatArray
    first_row: int

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True)
class RowReader:
    """How to read a batch: columns by role, and the options of ``PanelCounts.from_frame``."""

    names: dict[str, str]
    time_unit: str | None = None
    origin: Any = None
    missing: str = "error"

    @property
    def columns(self) -> list[str]:
        """Columns that are needed."""
        return list(self.names.values())

    def read(self, batch: pa.Table, locate: Locate = frame_rows, first_row: int = 0) -> RowBatch:
        """Check a batch and take its arrays.

        Parameters
        ----------
        batch : pyarrow.Table
        locate : callable
            Names rows of the batch by their positions in it.
        first_row : int
            Number of its first row.
        """
        return self._plain(batch, first_row) or self._checked(batch, locate, first_row)

    def read_frame(
        self, frame: IntoTable, locate: Locate = frame_rows, first_row: int = 0
    ) -> RowBatch:
        """Read a dataframe of any kind, or a dict of arrays."""
        import pyarrow as pa

        table = table_of(frame)
        for role, name in self.names.items():
            table.column(name, role)
        kept = {name: table.columns[name] for name in self.columns}
        try:
            arrow = pa.table({name: pa.Array.from_pandas(v) for name, v in kept.items()})
            plain = self._plain(arrow, first_row)
        except pa.ArrowException:  # cells of unlike types
            plain = None
        return plain or self._checked(Table(kept, table.n_rows), locate, first_row)

    def _plain(self, batch: pa.Table, first_row: int) -> RowBatch | None:
        """The arrays if all cells are plain numbers that obey the rules; None if not."""
        roles = [role for role in self.names if role != "subject"]
        numbers = {role: _numbers(batch.column(self.names[role])) for role in roles}
        keyed = _label_keys(batch.column(self.names["subject"]))
        start, stop, count = (numbers[role] for role in ("start", "stop", "count"))
        if keyed is None or start is None or stop is None or count is None or not len(start):
            return None
        exposure = numbers["exposure"] if "exposure" in numbers else np.ones(len(start))
        if exposure is None or not _obeys(start, stop, count, exposure):
            return None
        key, labels = keyed
        return RowBatch(key, labels, start, stop, count, exposure, first_row)

    def _checked(self, batch: pa.Table | Table, locate: Locate, first_row: int) -> RowBatch:
        """The arrays by way of the rules' own code, which says what is wrong."""
        table = batch if isinstance(batch, Table) else table_of(batch.select(self.columns))
        fields = fields_from_intervals(
            Table(table.columns, table.n_rows, locate),
            names={role: name for role, name in self.names.items() if role != "exposure"},
            exposure=self.names.get("exposure"),
            window=None,
            time_unit=self.time_unit,
            origin=self.origin,
            missing=self.missing,
        )
        if fields["time_origin"] is not None and self.origin is None:
            raise PanelDataError(
                "times given as dates need origin=... (the date that time 0 stands for) in data "
                "that are read in parts"
            )
        weight, keys = fields["exposure"], label_keys(fields["subjects"])
        labels = {} if fields["subjects"].dtype.kind == "i" else _by_key(keys, fields["subjects"])
        return RowBatch(
            keys[fields["subject_index"]],
            labels,
            fields["start"],
            fields["stop"],
            fields["count"].astype(np.float64),
            np.ones(len(fields["start"])) if weight is None else weight,
            first_row,
        )


def _numbers(column: Any) -> FloatArray | None:
    """A column of whole or floating numbers without missing cells as floats."""
    import pyarrow as pa

    kind = column.type
    if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    return np.asarray(column.to_numpy().astype(np.float64, copy=False))


def _obeys(start: FloatArray, stop: FloatArray, count: FloatArray, exposure: FloatArray) -> bool:
    """Whether all rows obey the rules that concern one row."""
    return bool(
        (start >= -LARGEST_SIZE).all()
        and (stop <= LARGEST_SIZE).all()
        and (stop > start).all()
        and (count >= 0).all()
        and (count <= LARGEST_EXACT).all()
        and (np.floor(count) == count).all()
        and (exposure >= SMALLEST_SIZE).all()
        and (exposure <= LARGEST_SIZE).all()
    )


def _label_keys(column: Any) -> tuple[Keys, dict[int, Any]] | None:
    """Keys of a column of whole numbers or texts; None for anything else."""
    import pyarrow as pa

    if column.null_count:
        return None
    if pa.types.is_integer(column.type):
        return column.to_numpy().astype(np.int64, copy=False).view(np.uint64), {}
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    coded = column.combine_chunks().dictionary_encode()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
    labels = coded.dictionary.to_numpy(zero_copy_only=False)
    keys = label_keys(labels)
    return keys[coded.indices.to_numpy(zero_copy_only=False)], _by_key(keys, labels)


def label_keys(labels: LabelArray) -> Keys:
    """64-bit keys of labels: whole numbers as they are, others hashed."""
    import pandas as pd

    if labels.dtype.kind in "iu":
        return labels.astype(np.int64).view(np.uint64)
    if labels.dtype.kind == "f":
        return np.asarray(pd.util.hash_array(labels), dtype=np.uint64)
    text = [label if isinstance(label, str) else f"{type(label)}{label}" for label in labels]
    return np.asarray(pd.util.hash_array(np.array(text, dtype=object), categorize=False), np.uint64)


def _by_key(keys: Keys, labels: LabelArray) -> dict[int, Any]:
    return dict(zip(keys.tolist(), labels.tolist(), strict=True))
