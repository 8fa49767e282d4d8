"""Parquet and Feather files, read by pyarrow."""

from __future__ import annotations

import io
from typing import Any

from gp4c.data.tables.formats.content import PER_CELL, PER_ROW, TableFile, check_room
from gp4c.data.tables.formats.file_format import Choice, FileFormat, LabelColumn
from gp4c.data.tables.frames import Table, table_of
from gp4c.exceptions import PanelDataError


class ParquetFile(FileFormat):
    """A Parquet file."""

    title = "a Parquet file"
    extensions = (".parquet", ".pq")
    magic = (b"PAR1",)

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """Read all columns."""
        import pyarrow as pa
        from pyarrow import parquet

        try:
            _check_parquet_room(parquet.ParquetFile(io.BytesIO(file.data)).metadata, file.shown)
            content = parquet.read_table(io.BytesIO(file.data))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(file, "Parquet", error) from None
        return _table(file, content)


class FeatherFile(FileFormat):
    """A Feather file (Arrow IPC), of version 2 or 1."""

    title = "a Feather file"
    extensions = (".feather", ".arrow", ".ipc")
    magic = (b"ARROW1", b"FEA1")

    def read(self, file: TableFile, choice: Choice, label_column: LabelColumn) -> Table:
        """Read a batch at a time, since compressed ones may stand for more than there is room."""
        import pyarrow as pa
        from pyarrow import feather

        try:
            if not file.head.startswith(b"ARROW1"):
                return _table(file, feather.read_table(io.BytesIO(file.data)))
            content = pa.ipc.open_file(pa.BufferReader(file.data))
            batches, size = [], 0
            for k in range(content.num_record_batches):
                batches.append(content.get_batch(k))
                size += batches[-1].nbytes + PER_ROW * batches[-1].num_rows
                check_room(file.shown, 2 * size)
            return _table(file, pa.Table.from_batches(batches, content.schema))
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(file, "Feather", error) from None


def _table(file: TableFile, content: Any) -> Table:
    """Columns of an Arrow table; index columns that pandas stored without a name are left out."""
    kept = [name for name in content.column_names if not name.startswith("__index_level_")]
    if not content.num_rows:
        raise PanelDataError(f"{file.shown} is empty; it needs at least one row")
    table = table_of(content.select(kept))
    return Table(table.columns, table.n_rows, table.locate, file.shown)


def _unreadable(file: TableFile, kind: str, error: BaseException) -> PanelDataError:
    reason = str(error).splitlines()[0].rstrip(".")
    return PanelDataError(f"{file.shown} is not a readable {kind} file: {reason}")


def _check_parquet_room(metadata: Any, source: str) -> None:
    """Repeated values take next to no room in the file, but they do in memory."""
    groups = (metadata.row_group(k) for k in range(metadata.num_row_groups))
    unpacked = 2 * sum(max(group.total_byte_size, 0) for group in groups)
    cells = metadata.num_rows * metadata.num_columns
    check_room(source, PER_ROW * metadata.num_rows + PER_CELL * cells + unpacked)
