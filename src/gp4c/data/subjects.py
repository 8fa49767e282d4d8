"""What panels and event histories share: labelled subjects with covariates, selected as a unit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

    from gp4c.data.tables.service import ServiceRecord

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.intp]
LabelArray = NDArray[np.generic]
Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only array with the same values (a view if the input may still change)."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


class SubjectData(ABC):
    """Immutable data of labelled subjects; every index and every subset is by subject."""

    subjects: LabelArray
    window: tuple[float, float]
    time_unit: str | None
    time_origin: pd.Timestamp | None
    notes: tuple[str, ...]
    service: ServiceRecord | None = None
    _covariates: pd.DataFrame | None

    #: how users build one
    _builders = ""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise TypeError(f"build {type(self).__name__} with {self._builders}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot delete {name!r}")

    def _fill(self, **fields: object) -> None:
        """Set fields once, arrays read-only."""
        for name, value in fields.items():
            stored = frozen(value) if isinstance(value, np.ndarray) else value
            object.__setattr__(self, name, stored)

    def _like(self, **changes: Any) -> Self:
        """Copy with some fields changed."""
        other = type(self).__new__(type(self))
        other._fill(**{**self.__getstate__(), **changes})
        return other

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_cached")}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._fill(**state)

    @abstractmethod
    def _take(self, positions: IndexArray) -> Self:
        """Subset at sorted subject positions (repeats allowed), window inherited."""

    @abstractmethod
    def content_order(self) -> IndexArray:
        """Permutation of the subjects by their content, whatever their labels.

        :meta private:
        """

    @abstractmethod
    def to_frame(self) -> pd.DataFrame:
        """All rows as a pandas frame."""

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same data, window and unit; notes do not count."""
        if type(self) is not type(other) or not isinstance(other, SubjectData):
            return NotImplemented
        frame = (self.window, self.time_unit, self.time_origin)
        if frame != (other.window, other.time_unit, other.time_origin) or len(self) != len(other):
            return False
        return same_frames(self.to_frame(), other.to_frame())

    __hash__ = None  # type: ignore[assignment]

    @property
    def n_subjects(self) -> int:
        """Number of subjects."""
        return len(self.subjects)

    @property
    def usage(self) -> str | None:
        """What usage is counted in; None if rates are per unit of time."""
        return None if self.service is None else self.service.usage

    @property
    def end(self) -> FloatArray:
        """When each subject went out of service; NaN while it is in service."""
        return np.full(self.n_subjects, np.nan) if self.service is None else self.service.end

    @property
    def shape(self) -> tuple[int]:
        """``(n_subjects,)``: a subject is one sample."""
        return (self.n_subjects,)

    def __len__(self) -> int:
        return self.n_subjects

    def __getitem__(self, key: Any) -> Self:
        """Select subjects by position, slice, positions or mask; repeats are allowed.

        Subjects stay in label order whatever the order of the positions, and the window is kept.
        A subject drawn twice, as by a bootstrap, is there twice under the same label.
        """
        return self._take(_positions(key, self.n_subjects))

    def __iter__(self) -> Iterator[Self]:
        return (self[k] for k in range(self.n_subjects))

    @property
    def covariates(self) -> pd.DataFrame:
        """One row per subject, indexed by subject: the other columns of the input (a copy)."""
        import pandas as pd

        index = pd.Index(self.subjects, name="subject", tupleize_cols=False)
        if self._covariates is None:
            return pd.DataFrame(index=index)
        return self._covariates.set_axis(index, axis=0)

    def where(self, **conditions: object) -> Self:
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

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> panel.where(treatment="placebo", initial_number=lambda n: n > 2).n_subjects
        12
        """
        keep = np.ones(self.n_subjects, dtype=bool)
        for name, wanted in conditions.items():
            keep &= self._matches(name, wanted)
        if not keep.any():
            said = ", ".join(f"{name}={wanted!r}" for name, wanted in conditions.items())
            raise PanelDataError(f"no subject meets all of {said}")
        return self._take(np.flatnonzero(keep))

    def _matches(self, name: str, wanted: Any) -> NDArray[np.bool_]:
        """Mask of the subjects for one condition of :meth:`where`."""
        import pandas as pd

        from gp4c.data.checks import shown_values, unknown_name

        table = self.covariates
        if name in table.columns:
            column = table[name]
        elif name == "subject":
            column = pd.Series(self.subjects)
        else:
            raise PanelDataError(self._no_covariate(name, unknown_name(name, list(table.columns))))
        if callable(wanted):
            mask = np.asarray(wanted(column), dtype=bool)
        else:
            many = isinstance(wanted, list | set | frozenset | np.ndarray)
            mask = column.isin(list(wanted) if many else [wanted]).to_numpy(dtype=bool)
        if not mask.any():
            raise PanelDataError(
                f"no subject has {name}={wanted!r}; {name} is {shown_values(column)}"
            )
        return mask

    def _no_covariate(self, name: str, hint: str) -> str:
        """Say that a column to select by is not there."""
        return f"there is no covariate {name!r}; {hint}"

    def split(
        self, test_size: float = 1 / 3, random_state: int | np.random.Generator | None = None
    ) -> tuple[Self, Self]:
        """Divide the subjects at random into a training and a test set.

        The draw is over the subjects in the order of their content, so neither labels nor order of
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

        Examples
        --------
        >>> import gp4c
        >>> panel = gp4c.load_dataset("bladder")
        >>> train, test = panel.split(test_size=0.2, random_state=1)
        >>> train.n_subjects, test.n_subjects
        (68, 17)
        """
        n = self.n_subjects
        if not 0 < test_size < n or n < 2:
            raise ValueError(
                f"test_size must leave at least one of {n} subjects on each side; "
                f"found {test_size!r}"
            )
        n_test = int(test_size) if test_size >= 1 else round(test_size * n)
        n_test = min(max(n_test, 1), n - 1)
        drawn = np.random.default_rng(random_state).permutation(n)
        order = self.content_order()[drawn]
        return self._take(np.sort(order[n_test:])), self._take(np.sort(order[:n_test]))

    def _covariate_ranks(self) -> list[NDArray[np.float64]]:
        """Ranks of the covariates' values, column by column in order of name."""
        import pandas as pd

        ranks = []
        for name in sorted(() if self._covariates is None else self._covariates.columns):
            column = self._covariates[name]  # type: ignore[index]
            try:
                code = pd.factorize(column, sort=True)[0]
            except TypeError:  # values that cannot be ordered
                code = pd.factorize(column.astype(str), sort=True)[0]
            ranks.append(code.astype(np.float64))
        return ranks


def _positions(key: Any, n: int) -> IndexArray:
    """Sorted subject positions selected by an index, slice, array, list, mask or ``(key, ...)``."""
    if isinstance(key, tuple):
        if len(key) == 2 and key[1] is Ellipsis:
            return _positions(key[0], n)
        raise IndexError("there is one axis, the subjects: use panel[index] or panel[index, ...]")
    if not isinstance(key, slice):
        key = np.asarray(key)
        key = key.astype(np.intp) if key.size == 0 else key
    try:
        chosen = np.sort(np.atleast_1d(np.arange(n)[key]))
    except IndexError as error:
        raise IndexError(f"cannot select from {n} subjects: {error}") from None
    if chosen.size == 0:
        raise PanelDataError("the selection holds no subject; it needs at least one")
    return chosen


def same_frames(one: pd.DataFrame, two: pd.DataFrame) -> bool:
    """Whether two frames hold equal cells; the order of columns and their types do not count."""
    if set(one.columns) != set(two.columns) or len(one) != len(two):
        return False
    return all(_same_cells(one[name], two[name]) for name in one.columns)


def _same_cells(one: pd.Series[Any], two: pd.Series[Any]) -> bool:
    if one.dtype.kind in "if" and two.dtype.kind in "if":
        return np.array_equal(one.to_numpy(), two.to_numpy(), equal_nan=True)
    pairs = zip(one.astype(object), two.astype(object), strict=True)
    missing = zip(one.isna(), two.isna(), strict=True)
    return all((a and b) or x == y for (x, y), (a, b) in zip(pairs, missing, strict=True))


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
