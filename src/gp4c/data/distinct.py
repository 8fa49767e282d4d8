"""Distinct intervals of a panel, with the counts and exposures of all subjects summed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import LARGEST_EXACT
from gp4c.data.ordering import LARGE, pair_order, ranks
from gp4c.data.subjects import FloatArray, IndexArray, IntArray, frozen

#: rows looked at to guess how many different intervals there are
SAMPLE = 200_000
#: different intervals up to which fits keep them one by one; a fit to nodes takes as long as one
#: to about so many
MOST_DISTINCT = 5_000


@dataclass(frozen=True, eq=False)
class DistinctIntervals:
    """Each different interval once, sorted by (start, stop).

    Attributes
    ----------
    start, stop : (n_distinct,) float arrays
    count : (n_distinct,) int array
        Events of all subjects in the interval.
    exposure : (n_distinct,) float array
        Summed exposure: with the default of 1, the number of subjects seen on the interval.
    inverse : (n_intervals,) int array
        The distinct interval of each row of the panel.
    """

    start: FloatArray
    stop: FloatArray
    count: IntArray
    exposure: FloatArray
    inverse: IndexArray

    def __post_init__(self) -> None:
        for name in ("start", "stop", "count", "exposure", "inverse"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.start)

    def __repr__(self) -> str:
        return (
            f"<DistinctIntervals: {len(self)} of {len(self.inverse)} intervals, "
            f"{int(self.count.sum())} events>"
        )


def distinct_intervals(
    start: FloatArray, stop: FloatArray, count: IntArray, exposure: FloatArray
) -> DistinctIntervals:
    """Group rows by (start, stop) and sum counts and exposures.

    End points are compared exactly (-0.0 equals 0.0), and the sums are the same for every order
    of the rows.

    Parameters
    ----------
    start, stop, exposure : (n,) float arrays
        Finite.
    count : (n,) int array

    Returns
    -------
    DistinctIntervals
    """
    start, stop = start + 0.0, stop + 0.0  # -0.0 becomes 0.0
    groups = _groups_by_hash(start, stop) if len(start) > LARGE else None
    first, inverse = groups or _groups_by_sort(start, stop)
    size = len(first)
    return DistinctIntervals(
        start[first],
        stop[first],
        sum_counts(inverse, count, size),
        sum_floats(inverse, exposure, size),
        inverse,
    )


def _groups_by_sort(start: FloatArray, stop: FloatArray) -> tuple[IndexArray, IndexArray]:
    """One row of each group, in order of (start, stop), and each row's group."""
    order = pair_order(start, stop)
    start, stop = start[order], stop[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (start[1:] != start[:-1]) | (stop[1:] != stop[:-1])
    inverse = np.empty(len(order), dtype=np.intp)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse


def _groups_by_hash(start: FloatArray, stop: FloatArray) -> tuple[IndexArray, IndexArray] | None:
    """As :func:`_groups_by_sort`, faster if most rows repeat; None if not so, or if keys collide.

    The 64-bit keys only propose the groups: every row is compared with its group's interval.
    """
    import pyarrow as pa

    key = interval_keys(start, stop)
    if _mostly_different(key):
        return None
    code = pa.array(key).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    member = np.empty(int(code.max()) + 1, dtype=np.intp)
    member[code] = np.arange(len(code))
    if not (
        np.array_equal(start[member][code], start) and np.array_equal(stop[member][code], stop)
    ):
        return None
    order = pair_order(start[member], stop[member])
    return member[order], ranks(order)[code]


def interval_keys(start: FloatArray, stop: FloatArray) -> NDArray[np.uint64]:
    """Hash the bits of two floats to one 64-bit key (odd multipliers, golden-ratio style)."""
    one = start.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    one ^= one >> np.uint64(32)
    one += stop.view(np.uint64)
    one *= np.uint64(0xD6E8FEB86659FD93)
    one ^= one >> np.uint64(29)
    return one


def _mostly_different(key: NDArray[np.uint64]) -> bool:
    """Guess from the repeats in a scattered sample whether over a third of all keys differ.

    Of m keys drawn from D equally frequent ones, D (1 - exp(-m/D)) differ on average.
    """
    rows = np.unique(np.arange(SAMPLE, dtype=np.int64) * 2_654_435_761 % len(key))
    different = len(np.unique(key[rows]))
    third = len(key) / 3
    return bool(different > -third * np.expm1(-len(rows) / third))


def sum_counts(group: IndexArray, count: IntArray, n_groups: int) -> IntArray:
    """Exact integer sums by group."""
    if float(count.sum(dtype=np.float64)) < LARGEST_EXACT:
        return np.bincount(group, weights=count, minlength=n_groups).astype(np.int64)
    total = np.zeros(n_groups, dtype=np.int64)
    np.add.at(total, group, count)
    return total


def sum_floats(group: IndexArray, value: FloatArray, n_groups: int) -> FloatArray:
    """Sums by group, to the last bit or two, that do not depend on the order of the rows.

    The values of a group are cut into layers of multiples of powers of two, so coarse that the
    sum of each layer is exact; what is below the last layer is below the rounding of the result.

    Parameters
    ----------
    group : (n,) int array
    value : (n,) float array
        Not negative.
    n_groups : int

    Returns
    -------
    (n_groups,) float array
    """
    number = np.bincount(group, minlength=n_groups)
    if np.all(value == 1.0):
        return number.astype(np.float64)
    if number.max() == 1:
        alone = np.zeros(n_groups)
        alone[group] = value
        return alone
    largest = np.zeros(n_groups)
    np.maximum.at(largest, group, value)
    bits = np.frexp(number)[1]  # number of rows < 2^bits
    exponent = np.frexp(largest)[1] + bits - 52
    n_layers = 2 if bits.max() <= 12 else 3
    # adding and taking away 1.5 * 2^(52 + e) rounds to a multiple of 2^e
    steps = np.arange(n_layers)[:, None]
    shifts = np.ldexp(1.5, np.clip(exponent + steps * (bits - 52) + 52, -1000, 1000))
    layers = np.zeros((n_layers, n_groups))
    chunk = max(2**15, n_groups)  # small enough for the processor's cache
    for begin in range(0, len(value), chunk):
        member, rest = group[begin : begin + chunk], value[begin : begin + chunk]
        for shift, layer in zip(shifts, layers, strict=True):
            at = shift[member]
            part = (rest + at) - at
            layer += np.bincount(member, weights=part, minlength=n_groups)
            rest = rest - part
    return np.asarray(layers[::-1].sum(axis=0), dtype=np.float64)
