"""Panels that are read in parts: Parquet files beyond memory, streams of frames, Dask frames."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import numpy as np

from gp4c.data.checks import check_choice, check_window, shown_number
from gp4c.data.tables.batches import RowBatch, RowReader
from gp4c.data.tables.frames import Table, frame_rows
from gp4c.data.tables.recognition import resolve_columns
from gp4c.data.timeaxis import TimeAxis, as_moment, known_unit
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    import pandas as pd
    from dask.delayed import Delayed
    from narwhals.typing import IntoDataFrame, IntoFrame

    from gp4c.data.panel import PanelCounts
    from gp4c.data.tables.frames import IntoTable
    from gp4c.data.timeaxis import Moment, Window

#: rows read at once
BATCH_ROWS = 1 << 20


class PanelSource:
    """A panel that is not in memory: its rows come in batches, as often as they are needed.

    Made by :func:`gp4c.scan_panel`; ``fit`` of :class:`gp4c.GP4C` and :class:`gp4c.GP4CW` takes it
    in place of a panel.

    Attributes
    ----------
    window : (float, float)
        Given, or from the data: from the statistics of Parquet files where they have them, else
        by a pass over the data.
    time_unit : str or None
    n_rows : int or None
        None where it is not known before the rows are read.
    """

    #: rates are per unit of time
    usage: str | None = None

    def __init__(
        self, reader: RowReader, window: Window | None = None, notes: tuple[str, ...] = ()
    ) -> None:
        self.reader, self.notes = reader, notes
        origin = None if reader.origin is None else as_moment(reader.origin)
        unit = reader.time_unit if origin is None else known_unit(reader.time_unit or "days")
        self.time_unit = unit
        self.time_origin: pd.Timestamp | np.datetime64 | None = origin
        self._given = TimeAxis(unit, origin).window(window)

    def batches(self) -> Iterator[RowBatch]:
        """Read all rows once, a batch at a time.

        :meta private:
        """
        raise NotImplementedError

    @property
    def n_rows(self) -> int | None:
        """Number of rows, if it is known before they are read."""
        return None

    def locate(self, rows: Sequence[int]) -> str:
        """Name rows by their numbers in the whole source.

        :meta private:
        """
        return frame_rows(rows)

    @cached_property
    def window(self) -> tuple[float, float]:
        """Where the intensity is defined."""
        if self._given is not None:
            return check_window(self._given, self._given[0], self._given[1])
        return self._find_window()

    def _find_window(self) -> tuple[float, float]:
        low, high = np.inf, -np.inf
        for batch in self.batches():
            low, high = min(low, float(batch.start.min())), max(high, float(batch.stop.max()))
        if not low < high:
            raise PanelDataError("the source is empty; it needs at least one row")
        return low, high

    def __repr__(self) -> str:
        said = ", ".join(f"{role}={name!r}" for role, name in self.reader.names.items())
        return f"<{type(self).__name__}: {said}>"


#: files, one or several
Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
#: tables that are read in parts: files, a frame of dask, frames or a function that gives them
Source: TypeAlias = "Paths | IntoFrame | Iterable[IntoTable] | Callable[[], Iterable[IntoTable]]"


class FrameSource(PanelSource):
    """Frames one after the other; positions are counted through all of them."""

    def __init__(
        self,
        frames: Callable[[], Iterator[IntoTable]],
        reader: RowReader,
        window: Window | None,
        **options: Any,
    ) -> None:
        super().__init__(reader, window, **options)
        self._frames = frames

    def batches(self) -> Iterator[RowBatch]:
        """Read each frame.

        :meta private:
        """
        first = 0
        for number, frame in enumerate(self._frames()):
            size = (
                len(cast("Sized", frame[next(iter(frame))]))
                if isinstance(frame, Mapping)
                else len(cast("Sized", frame))
            )
            if size:
                yield self.reader.read_frame(frame, _in_frame(number), first)
            first += size


def _in_frame(number: int) -> Callable[[Sequence[int]], str]:
    return lambda rows: f"{frame_rows(rows)} of frame {number}"


class ArraySource(PanelSource):
    """A panel in memory, a slice at a time."""

    def __init__(self, panel: PanelCounts) -> None:
        names = {role: role for role in ("subject", "start", "stop", "count", "exposure")}
        super().__init__(RowReader(names, panel.time_unit), panel.window)
        self.panel, self.time_origin = panel, panel.time_origin

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.panel.n_intervals

    def batches(self) -> Iterator[RowBatch]:
        """Read slices of the arrays.

        :meta private:
        """
        p = self.panel
        for i in range(0, p.n_intervals, BATCH_ROWS):
            part = slice(i, i + BATCH_ROWS)
            key = p.subject_index[part].astype(np.int64).view(np.uint64)
            count = p.count[part].astype(np.float64)
            yield RowBatch(key, {}, p.start[part], p.stop[part], count, p.exposure[part], i)


class DaskSource(PanelSource):
    """A dask.dataframe; its partitions are read where they are."""

    def __init__(
        self, frame: Any, reader: RowReader, window: Window | None, **options: Any
    ) -> None:
        super().__init__(reader, window, **options)
        self.frame = frame[reader.columns]

    def parts(self) -> list[Delayed]:
        """Delayed pandas frames."""
        found: list[Delayed] = self.frame.to_delayed()
        return found

    def batches(self) -> Iterator[RowBatch]:
        """Bring the partitions here, one after the other.

        :meta private:
        """
        first = 0
        for number, part in enumerate(self.parts()):
            frame: pd.DataFrame = part.compute()  # type: ignore[no-untyped-call]
            if len(frame):
                yield read_partition(self.reader, frame, number, first)
                first += len(frame)

    def _find_window(self) -> tuple[float, float]:
        from dask.base import compute

        names = self.reader.names
        ends: Any = self.frame[names["start"]].min(), self.frame[names["stop"]].max()
        low, high = compute(*ends)  # type: ignore[no-untyped-call]
        return float(low), float(high)


def read_partition(reader: RowReader, frame: IntoTable, number: int, first: int = 0) -> RowBatch:
    """Read one partition of a dask.dataframe; rows are named by their position in it."""

    def locate(rows: Sequence[int]) -> str:
        return f"{frame_rows(rows)} of partition {number}"

    return reader.read_frame(frame, locate, first)


def scan_panel(
    source: Source,
    *,
    subject: str | None = None,
    start: str | None = None,
    stop: str | None = None,
    count: str | None = None,
    exposure: str | None = None,
    window: Window | None = None,
    time_unit: str | None = None,
    origin: Moment | None = None,
    missing: str = "error",
    batch_rows: int = BATCH_ROWS,
) -> PanelSource:
    """Open a table of intervals that need not fit in memory, without reading its rows.

    Parameters
    ----------
    source : path, glob, list of paths, dask.dataframe, iterable or callable
        Parquet files: one, a folder of them, a pattern such as ``"visits/*.parquet"``, or a list;
        local or at any address that pyarrow's file systems read (``s3://...``). A
        ``dask.dataframe`` with rows of intervals. A list of frames; a function without arguments
        that returns an iterator of frames; or an iterator, which can be read only once and
        therefore needs `window`.
    subject, start, stop, count, exposure : str, optional
        Names of the columns; usual names are recognised as in :func:`gp4c.read_panel`.
    window : pair of times, optional
        Must contain every interval; default (smallest start, largest stop).
    time_unit, origin, missing
        As in :meth:`PanelCounts.from_frame`. Times given as dates need `origin`.
    batch_rows : int
        Rows of a Parquet file held in memory at once.

    Returns
    -------
    PanelSource
        For ``fit``; other columns are not read.

    Examples
    --------
    >>> import gp4c
    >>> part = {"id": [7, 7, 8], "from": [0, 3, 0], "to": [3, 5, 4], "n": [1, 0, 2]}
    >>> gp4c.scan_panel([part]).window
    (0.0, 5.0)
    """
    given = {"subject": subject, "start": start, "stop": stop, "count": count}
    given["exposure"] = exposure
    check_choice("missing", missing, ("error", "drop"))

    def reader(header: list[str], name: str) -> tuple[RowReader, tuple[str, ...]]:
        table = Table(dict.fromkeys(header), 0, source=name)  # type: ignore[arg-type]
        names, notes = resolve_columns(table, given)
        return RowReader(names, time_unit, origin, missing), notes

    if isinstance(source, str | os.PathLike) or _is_paths(source):
        from gp4c.data.tables.parquet import ParquetSource, parquet_files

        files = parquet_files(source)
        how, notes = reader(files.header(), files.shown(0))
        return ParquetSource(files, how, window, batch_rows=batch_rows, notes=notes)
    if _is_dask(source):
        how, notes = reader([str(name) for name in source.columns], "the dask frame")
        return DaskSource(source, how, window, notes=notes)
    return _frames(source, reader, window)


def _frames(source: Any, reader: Any, window: Window | None) -> FrameSource:
    """Frames from a list, a function that makes an iterator, or an iterator."""
    if callable(source):
        again: Callable[[], Iterator[IntoTable]] = lambda: iter(source())  # noqa: E731
        first = next(again(), None)
    elif isinstance(source, Iterator):
        if window is None:
            raise PanelDataError(
                "an iterator of frames can be read only once, so its window must be given: "
                "window=(t0, t1)"
            )
        first = next(source, None)
        again = _once(source, first)
    elif isinstance(source, Iterable) and not hasattr(source, "columns"):
        frames = list(source)
        first = frames[0] if frames else None
        again = lambda: iter(frames)  # noqa: E731
    else:
        raise PanelDataError(
            "scan_panel takes a path, a dask.dataframe or several frames; found "
            f"{type(source).__name__} (PanelCounts.from_frame takes one dataframe)"
        )
    if first is None:
        raise PanelDataError("there is no frame; the source needs at least one row")
    how, notes = reader([str(name) for name in _header(first)], "the first frame")
    return FrameSource(again, how, window, notes=notes)


def _header(frame: Any) -> list[Any]:
    return list(getattr(frame, "column_names", None) or getattr(frame, "columns", frame))


def _once(rest: Iterator[IntoTable], first: IntoTable | None) -> Callable[[], Iterator[IntoTable]]:
    """An iterator whose head was looked at, for one use."""
    frames: list[Iterator[IntoTable]] = [chain([] if first is None else [first], rest)]

    def take() -> Iterator[IntoTable]:
        if not frames:
            raise PanelDataError("this iterator of frames has been read already; make a new one")
        return frames.pop()

    return take


def _is_paths(source: object) -> TypeGuard[Paths]:
    """Whether something is a list of paths, not of frames."""
    if not isinstance(source, list | tuple) or not source:
        return False
    return all(isinstance(item, str | os.PathLike) for item in source)


def _is_dask(source: object) -> TypeGuard[IntoDataFrame]:
    return type(source).__module__.split(".")[0].startswith("dask")


def check_inside(batch: RowBatch, window: tuple[float, float]) -> None:
    """Every interval must lie in the window."""
    low, high = float(batch.start.min()), float(batch.stop.max())
    if low < window[0] or high > window[1]:
        raise PanelDataError(
            f"the window must contain every interval; found ({shown_number(window[0])}, "
            f"{shown_number(window[1])}) while the data reach from {shown_number(low)} to "
            f"{shown_number(high)}"
        )
