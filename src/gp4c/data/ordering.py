"""Orders of rows, labels and subjects."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gp4c.data.subjects import FloatArray, IndexArray, LabelArray

if TYPE_CHECKING:
    from gp4c.data.tables.columns import Column

#: from this many rows on, detours through ranks or hashes pay
LARGE = 100_000


def pair_order(first: NDArray[np.generic], second: NDArray[np.generic]) -> IndexArray:
    """Permutation that sorts by the first key, then the second; equal pairs in any order.

    For many rows this takes NumPy's vectorised plain sorts and radix sorts of ranks, which is two
    to three times as fast as ``np.lexsort``. Integer keys must not be negative.
    """
    if not LARGE < len(first) < 2**31:
        return np.lexsort((second, first))
    if first.dtype.kind == "f":
        order = np.argsort(first)
        ordered = first[order]
        new = ordered[1:] != ordered[:-1]
        if new.all():
            return order
        rank = np.zeros(len(order), dtype=np.intp)
        rank[order[1:]] = np.cumsum(new)
        first = rank
    return _stable_order(np.asarray(first, dtype=np.intp), np.argsort(second))


def ranks(order: IndexArray) -> IndexArray:
    """Place of each element in an order: the inverse of the permutation."""
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank


def positions(labels: Iterable[Hashable], known: Iterable[Hashable]) -> IndexArray:
    """Position of each label among the known ones; −1 for others."""
    position = {label: k for k, label in enumerate(known)}
    return np.array([position.get(label, -1) for label in labels], dtype=np.intp)


def _stable_order(key: IndexArray, order: IndexArray) -> IndexArray:
    """Sort by whole numbers, rows of equal key staying in the given order.

    Sixteen bits at a time, since NumPy has a stable radix sort for those.
    """
    for shift in range(0, int(key.max()).bit_length(), 16):
        digits = ((key[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digits, kind="stable")]
    return order


def row_order(index: IndexArray, value: FloatArray) -> IndexArray | None:
    """Permutation to (subject, value) order, or None if the rows are in it already."""
    step = np.diff(index)
    if np.all((step > 0) | ((step == 0) & (np.diff(value) > 0))):
        return None
    return pair_order(index, value)


def label_array(labels: LabelArray | Iterable[object]) -> LabelArray:
    """Labels as an array: whole numbers and floats by value, everything else as objects."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iuf":
        return labels.astype(np.int64 if labels.dtype.kind in "iu" else np.float64, copy=False)
    values = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if values and all(type(value) is int for value in values):
        return np.asarray(values)
    return np.fromiter(values, dtype=object, count=len(values))


def label_order(labels: LabelArray) -> IndexArray:
    """Permutation that sorts labels; unlike types are ordered by type name, then by text."""
    if labels.dtype != object:
        return np.argsort(labels, kind="stable")
    values = labels.tolist()
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:
        order = sorted(range(len(values)), key=lambda k: _mixed_key(values[k]))
    return np.asarray(order, dtype=np.intp)


def _mixed_key(label: object) -> tuple[str, float, str]:
    """Sort numbers first, by value, then the other types by name and text."""
    if isinstance(label, int | float | np.number):
        return ("", float(label), str(label))
    return (type(label).__name__, 0.0, str(label))


def sequence_order(
    subject_index: IndexArray,
    n_subjects: int,
    row_keys: Sequence[NDArray[np.generic]],
    subject_keys: Sequence[NDArray[np.generic]] = (),
) -> IndexArray:
    """Order subjects by the number of their rows, then by their rows, then by other keys.

    Parameters
    ----------
    subject_index : (n_rows,) array, sorted
    n_subjects : int
    row_keys : sequence of (n_rows,) arrays
        What a row holds, the most important first.
    subject_keys : sequence of (n_subjects,) arrays
        Decide between subjects of equal rows.

    Returns
    -------
    order : (n_subjects,) array
        Subjects that are equal in everything stay in their order.
    """
    length = np.bincount(subject_index, minlength=n_subjects)
    first = np.cumsum(length) - length
    pieces = []
    for size in np.unique(length):
        members = np.flatnonzero(length == size)
        rows = first[members] + np.arange(size)[:, None]
        # np.lexsort sorts by the last key first: the first row's first key goes to the end
        cells = np.stack([key[rows] for key in row_keys], axis=1).reshape(-1, len(members))
        keys = np.concatenate([cells, *(key[members][None] for key in subject_keys)])[::-1]
        pieces.append(members[np.lexsort(keys)] if len(keys) else members)
    return np.concatenate(pieces)


def levels_in_order(column: Column) -> list[Hashable]:
    """Levels that occur: of an ordered category in its order, else in natural order."""
    present = column.dropna().unique().tolist()
    if str(column.dtype) == "category" and column.cat.ordered:
        return [level for level in column.cat.categories if level in present]
    return sorted(present, key=natural_key)


def natural_key(label: object) -> tuple[tuple[int, float, str], ...]:
    """Sorting key that reads numbers in texts: ``5 mg`` comes before ``10 mg``.

    Numbers come before texts; upper and lower case count only where nothing else differs.

    Examples
    --------
    >>> from gp4c.data.ordering import natural_key
    >>> sorted(["10 mg", "placebo", "5 mg"], key=natural_key)
    ['5 mg', '10 mg', 'placebo']
    """
    if isinstance(label, int | float | np.number):
        return ((0, float(label), ""),)
    text = str(label)
    pieces = re.split(r"(\d+(?:\.\d+)?)", text)
    parts = [(0, float(p), "") if k % 2 else (1, 0.0, p.casefold()) for k, p in enumerate(pieces)]
    return (*(part for part in parts if part != (1, 0.0, "")), (2, 0.0, text))
