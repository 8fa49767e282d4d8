"""What panels and event histories share: labelled subjects with covariates, selected as a unit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.intp]
LabelArray = NDArray[Any]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only array with the same values (a view if the input may still change)."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def label_order(labels: LabelArray) -> IndexArray:
    """Permutation that sorts labels; unlike types are ordered by type name, then by text."""
    if labels.dtype != object:
        return np.argsort(labels, kind="stable")
    values = labels.tolist()
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:
        order = sorted(range(len(values)), key=lambda i: _mixed_key(values[i]))
    return np.asarray(order, dtype=np.intp)


def _mixed_key(label: object) -> tuple[str, float, str]:
    number = isinstance(label, int | float | np.number)
    return ("" if number else type(label).__name__, float(label) if number else 0.0, str(label))  # type: ignore[arg-type]


class SubjectData(ABC):
    """Immutable data of labelled subjects; every index and every subset is by subject."""

    subjects: LabelArray
    window: tuple[float, float]
    time_unit: str | None
    time_origin: object
    notes: tuple[str, ...]
    _covariates: pd.DataFrame | None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot delete {name!r}")

    def _fill(self, **fields: object) -> None:
        """Set fields once, arrays read-only."""
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value = frozen(value)
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_cached")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._fill(**state)

    @abstractmethod
    def _take(self, positions: IndexArray) -> Self:
        """Subset at sorted subject positions (repeats allowed), window inherited."""

    @abstractmethod
    def content_order(self) -> IndexArray:
        """Permutation of the subjects by their content, whatever their labels."""

    @property
    def n_subjects(self) -> int:
        """Number of subjects."""
        return len(self.subjects)

    @property
    def shape(self) -> tuple[int]:
        """``(n_subjects,)``: a subject is one sample."""
        return (self.n_subjects,)

    def __len__(self) -> int:
        return self.n_subjects

    def __getitem__(self, key: Any) -> Self:
        return self._take(_positions(key, self.n_subjects))

    def __iter__(self) -> Iterator[Self]:
        return (self[k] for k in range(self.n_subjects))

    @property
    def covariates(self) -> pd.DataFrame:
        """One row per subject, indexed by subject: the other columns of the input (a copy)."""
        import pandas as pd

        if self._covariates is None:
            return pd.DataFrame(index=pd.Index(self.subjects, name="subject"))
        return self._covariates.copy()

    def where(self, **conditions: Any) -> Self:
        """Subjects whose covariates meet every condition.

        Parameters
        ----------
        **conditions
            ``column=value``, ``column=[values]`` or ``column=function of the column``;
            ``subject`` stands for the labels.

        Returns
        -------
        same type
            At least one subject, with the window of the whole.

        Raises
        ------
        PanelDataError
            No such covariate, or no subject meets the conditions.
        """
        keep = np.ones(self.n_subjects, dtype=bool)
        for name, wanted in conditions.items():
            keep &= self._matches(name, wanted)
        if not keep.any():
            said = ", ".join(f"{name}={wanted!r}" for name, wanted in conditions.items())
            raise PanelDataError(f"no subject has {said} (together)")
        return self._take(np.flatnonzero(keep))

    def _matches(self, name: str, wanted: Any) -> NDArray[np.bool_]:
        """Mask of the subjects for one condition of :meth:`where`."""
        import pandas as pd

        from gp4c.data.checks import shown_values, unknown_name

        table = self.covariates
        if name == "subject":
            column = pd.Series(self.subjects)
        elif name in table.columns:
            column = table[name]
        else:
            raise PanelDataError(self._no_covariate(name, unknown_name(name, list(table.columns))))
        if callable(wanted):
            mask = np.asarray(wanted(column), dtype=bool)
        elif isinstance(wanted, list | tuple | set | frozenset | np.ndarray):
            mask = np.asarray(column.isin(list(wanted)), dtype=bool)
        else:
            mask = np.asarray((column == wanted).fillna(False), dtype=bool)
        if not mask.any() and not callable(wanted):
            raise PanelDataError(
                f"no subject has {name}={wanted!r}; {name} is {shown_values(column)}"
            )
        return mask

    def _no_covariate(self, name: str, hint: str) -> str:
        return f"there is no covariate {name!r}; {hint}"

    def split(
        self, test_size: float = 1 / 3, random_state: int | np.random.Generator | None = None
    ) -> tuple[Self, Self]:
        """Divide the subjects at random into a training and a test set.

        The draw is over the subjects in :meth:`content_order`, so neither labels nor the order of
        rows change which subjects go where.

        Parameters
        ----------
        test_size : float or int, default=1/3
            Share of the subjects (between 0 and 1) or their number.
        random_state : int, Generator or None
            Seed.

        Returns
        -------
        train, test
            Both with at least one subject and with the window of the whole.
        """
        n = self.n_subjects
        n_test = int(test_size) if test_size >= 1 else round(test_size * n)
        if not 0 < test_size < n or n < 2:
            raise ValueError(
                f"test_size must leave at least one of the {n} subjects on each side; "
                f"found {test_size!r}"
            )
        n_test = min(max(n_test, 1), n - 1)
        drawn = np.random.default_rng(random_state).permutation(n)
        order = self.content_order()[drawn]
        return self._take(np.sort(order[n_test:])), self._take(np.sort(order[:n_test]))


def _positions(key: Any, n: int) -> IndexArray:
    """Sorted subject positions selected by an index, slice, array, list, mask or ``(key, ...)``."""
    if isinstance(key, tuple):
        if len(key) == 2 and key[1] is Ellipsis:
            return _positions(key[0], n)
        raise IndexError(
            "a panel has one axis, its subjects: use panel[index] or panel[index, ...]"
        )
    if isinstance(key, list | range) or hasattr(key, "__array__"):
        key = np.asarray(key)
        if key.size == 0:
            raise PanelDataError("the selection holds no subject; a panel needs at least one")
    try:
        chosen = np.arange(n)[key]
    except IndexError as error:
        raise IndexError(f"cannot select from {n} subjects: {error}") from None
    chosen = np.sort(np.atleast_1d(chosen))
    if chosen.size == 0:
        raise PanelDataError("the selection holds no subject; a panel needs at least one")
    return chosen


def take_rows(subject_index: IndexArray, positions: IndexArray) -> tuple[IndexArray, IndexArray]:
    """Rows of the chosen subjects, in order, and their new subject index.

    Parameters
    ----------
    subject_index : (n_rows,) array, sorted
    positions : (n_chosen,) array, sorted, repeats allowed

    Returns
    -------
    rows, new_index : arrays of the same length
    """
    first = np.searchsorted(subject_index, positions, side="left")
    size = np.searchsorted(subject_index, positions, side="right") - first
    new_index = np.repeat(np.arange(len(positions)), size)
    before = np.cumsum(size) - size
    rows = np.arange(int(size.sum())) + np.repeat(first - before, size)
    return rows, new_index


def sequence_order(
    subject_index: IndexArray,
    n_subjects: int,
    row_code: IndexArray,
    tie_breakers: Sequence[NDArray[Any]] = (),
) -> IndexArray:
    """Order subjects by the number of their rows, then by their sequences of row codes.

    Parameters
    ----------
    subject_index : (n_rows,) array, sorted
    n_subjects : int
    row_code : (n_rows,) array
        Rows of equal content have equal codes.
    tie_breakers : sequence of (n_subjects,) arrays
        Looked at in this order where sequences are equal.

    Returns
    -------
    order : (n_subjects,) array
    """
    length = np.bincount(subject_index, minlength=n_subjects)
    first = np.cumsum(length) - length
    pieces = []
    for size in np.unique(length):
        members = np.flatnonzero(length == size)
        codes = row_code[first[members][:, None] + np.arange(size)]
        keys = [tie[members] for tie in reversed(tie_breakers)] + list(codes.T[::-1])
        pieces.append(members[np.lexsort(keys)] if keys else members)
    return np.concatenate(pieces)
