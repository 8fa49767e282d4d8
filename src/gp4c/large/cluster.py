"""The pass over the rows on a Dask cluster: each partition is summed up where it is.

A partition becomes a few arrays of the size of the node grid, which are added up in a tree; rows
never leave the workers. What a lost worker had is computed again by the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from gp4c.data.tables.batches import RowReader
from gp4c.data.tables.parquet import ParquetSource
from gp4c.data.tables.sources import DaskSource, PanelSource, read_partition
from gp4c.exceptions import MissingExtraError, PanelDataError
from gp4c.large.streaming import Meter, PanelSums, Pass, Say, add_sums, sum_source

if TYPE_CHECKING:
    from distributed import Client

Keys = NDArray[np.uint64]

#: one subject in this many is looked for in other partitions
LOOKED_FOR = 64
#: attempts at a task that fails for other reasons than a lost worker
RETRIES = 2


@dataclass(frozen=True)
class PartSums:
    """Sums of some partitions, and keys of a sample of their subjects; None without rows."""

    sums: PanelSums | None
    keys: Keys


def sum_on_cluster(
    source: PanelSource, client: Client | None, *, effect: str | None, say: Say | None = None
) -> PanelSums:
    """Pass over a source once, on the workers of `client` (or of Dask's current scheduler)."""
    topic = None if client is None or say is None else f"gp4c-rows-{uuid4().hex}"
    tasks = _tasks(source, effect, topic)
    if tasks is None:  # rows that are in this process are summed up here
        return sum_source(source, effect=effect, say=say)
    if say is not None:
        say(f"reading {len(tasks)} partitions on the cluster")
    total = _tree(tasks)
    if client is None:
        found: PartSums = total.compute()
    else:
        with _heard(client, topic, say, source.n_rows):
            running = client.compute(total, retries=RETRIES)  # type: ignore[no-untyped-call]
            found = running.result()
    if found.sums is None:
        raise PanelDataError("the source is empty; it needs at least one row")
    if effect is not None:
        _check_together(found.keys)
    return found.sums


@contextmanager
def _heard(
    client: Client, topic: str | None, say: Say | None, n_rows: int | None
) -> Iterator[None]:
    """Tell what workers report of the rows that they have read."""
    if topic is None or say is None:
        yield
        return
    meter = Meter(say, n_rows)
    client.subscribe_topic(  # type: ignore[no-untyped-call]
        topic, lambda event: meter.add(event[1])
    )
    try:
        yield
    finally:
        client.unsubscribe_topic(topic)  # type: ignore[no-untyped-call]


def _tasks(source: PanelSource, effect: str | None, topic: str | None) -> list[Any] | None:
    """One delayed sum for each partition or file; None if the rows are in this process."""
    if not isinstance(source, DaskSource | ParquetSource):
        return None
    delayed = _delayed()
    window = source.window
    if isinstance(source, DaskSource):
        one = delayed(_sum_frame)
        return [
            one(part, number, source.reader, window, effect, topic)
            for number, part in enumerate(source.parts())
        ]
    one = delayed(_sum_file)
    return [one(source, number, window, effect, topic) for number in range(len(source.files.paths))]


def _delayed() -> Callable[..., Any]:
    try:
        from dask.delayed import delayed
    except ImportError:
        raise MissingExtraError(
            "a cluster needs Dask: install gp4c with the extra [dask]"
        ) from None
    return delayed  # type: ignore[no-any-return]


def _tree(parts: list[Any]) -> Any:
    """Sum delayed parts two by two, in their order."""
    add = _delayed()(add_parts)
    while len(parts) > 1:
        pairs = [add(*parts[i : i + 2]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[2 * len(pairs) :]
    return parts[0]


def add_parts(one: PartSums, two: PartSums) -> PartSums:
    """Sums of two sets of partitions."""
    if one.sums is None or two.sums is None:
        return two if one.sums is None else one
    return PartSums(add_sums(one.sums, two.sums), np.concatenate([one.keys, two.keys]))


def _sum_frame(
    frame: Any, number: int, reader: RowReader, window: tuple[float, float], effect: str | None,
    topic: str | None,
) -> PartSums:  # fmt: skip
    """Sums of one partition of a dask.dataframe."""
    if not len(frame):
        return PartSums(None, np.zeros(0, dtype=np.uint64))
    one_pass = Pass(window)
    one_pass.add(read_partition(reader, frame, number))
    return _finish(one_pass, effect, lambda rows: f"partition {number}", topic)


def _sum_file(
    source: ParquetSource, number: int, window: tuple[float, float], effect: str | None,
    topic: str | None,
) -> PartSums:  # fmt: skip
    """Sums of one Parquet file."""
    one_pass = Pass(window)
    for batch in source.file_batches(number):
        one_pass.add(batch)
    if not one_pass.parts:
        return PartSums(None, np.zeros(0, dtype=np.uint64))
    return _finish(one_pass, effect, lambda rows: source.files.shown(number), topic)


def _finish(
    one_pass: Pass, effect: str | None, locate: Callable[[list[int]], str], topic: str | None
) -> PartSums:
    sums = one_pass.finish(effect, locate)
    if topic is not None:
        from distributed import get_worker

        get_worker().log_event(topic, int(sums.intervals.n_rows))
    spans = sums.spans
    keys = np.zeros(0, dtype=np.uint64) if spans is None else np.unique(spans.key)
    mixed = keys * np.uint64(0x9E3779B97F4A7C15)
    chosen = (mixed >> np.uint64(32)) % np.uint64(LOOKED_FOR) == 0
    return PartSums(without_subjects(sums), keys[chosen])


def without_subjects(sums: PanelSums) -> PanelSums:
    """The sums without what is kept per subject, which stays on the worker."""
    return PanelSums(sums.intervals, sums.subjects, sums.n_subjects)


def _check_together(keys: Keys) -> None:
    """A subject's rows must be in one partition; a sample of the subjects is looked at."""
    different = len(np.unique(keys))
    if different < len(keys):
        share = (len(keys) - different) / different
        raise PanelDataError(
            f"subject effects need all rows of a subject in one partition or file; about "
            f"{share:.0%} of the subjects are in several (frame.shuffle on the subject column "
            "brings them together)"
        )
