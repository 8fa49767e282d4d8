"""Rules for data at the door: each problem is one sentence with rule, value and row."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.exceptions import PanelDataError, RowProblem

if TYPE_CHECKING:
    from gp4c.data.panel import PanelCounts
    from gp4c.data.subjects import FloatArray, IntArray
    from gp4c.data.tables.columns import Column

#: a number of Python or NumPy
Number: TypeAlias = "int | float | np.integer | np.floating"

#: problems listed in one message, and kept for those who ask; the rest are counted
SHOWN, KEPT = 5, 100
#: integers up to here are exact in double precision
LARGEST_EXACT = 2**53
#: times, windows and exposures are refused beyond these: sums and products of a few of them must
#: stay finite, and so must rates
LARGEST_SIZE, SMALLEST_SIZE = 1e100, 1e-100
#: shortest interval as a share of the window: a thousand roundings of a time at its end
SHORTEST_SHARE = 1e-12
LARGEST_TOTAL = 2**62


class Problems:
    """Collects broken rules of one table, to report the first few together.

    Parameters
    ----------
    locate : callable
        Turns row positions into ``"row 3"`` or ``"lines 4 and 9"``.
    """

    def __init__(self, locate: Callable[[Sequence[int]], str]) -> None:
        self._locate = locate
        self._found: list[tuple[int, tuple[int, ...], str]] = []
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def flag(
        self, bad: NDArray[np.bool_], rule: str, value: Callable[[int], str] | None = None
    ) -> None:
        """Record the rows of a mask; ``value(row)`` says what was found there."""
        rows = np.flatnonzero(bad)
        self._total += len(rows)
        for row in rows[:KEPT].tolist():
            self._found.append((row, (row,), f"{rule}; {value(row)}" if value else rule))

    def relocated(self, rows: NDArray[np.intp]) -> Problems:
        """Return a view that records position ``k`` as row ``rows[k]``."""
        return _Relocated(self, rows)

    def hide(self, number: int) -> None:
        """Count problems that need no words of their own."""
        self._total += number

    def add(self, rows: Sequence[int], sentence: str) -> None:
        """Record one problem of one or more rows."""
        self._total += 1
        self._found.append((min(rows), tuple(rows), sentence))

    def raise_any(self) -> None:
        """Raise :class:`PanelDataError` if anything was recorded, first rows first."""
        if not self._total:
            return
        first = sorted(self._found, key=lambda item: item[0])[:KEPT]
        found = [RowProblem(sentence, rows, self._locate(rows)) for _, rows, sentence in first]
        lines = [str(problem) for problem in found[:SHOWN]]
        if self._total > len(lines):
            lines.append(f"and {self._total - len(lines)} more")
        raise PanelDataError("\n".join(lines), found)

    def fail(self, rows: Sequence[int], sentence: str) -> NoReturn:
        """Raise at once: nothing after this problem could be understood."""
        problem = RowProblem(sentence, tuple(rows), self._locate(rows))
        raise PanelDataError(str(problem), [problem])


class _Relocated(Problems):
    """Problems recorded under other row positions."""

    def __init__(self, target: Problems, rows: NDArray[np.intp]) -> None:
        self._target = target
        self._rows = rows

    def flag(
        self, bad: NDArray[np.bool_], rule: str, value: Callable[[int], str] | None = None
    ) -> None:
        positions = np.flatnonzero(bad)
        self._target.hide(max(len(positions) - KEPT, 0))
        for k in positions[:KEPT].tolist():
            self._target.add([int(self._rows[k])], f"{rule}; {value(k)}" if value else rule)


def unknown_name(name: object, known: Sequence[object]) -> str:
    """Say what names there are and which is nearest."""
    if not known:
        return "there are none"
    texts = [str(k) for k in known]
    lower = {text.lower(): text for text in texts}
    near = difflib.get_close_matches(str(name).lower(), list(lower), n=1, cutoff=0.5)
    hint = f"; did you mean {lower[near[0]]!r}?" if near else ""
    listed = ", ".join(repr(text) for text in texts[:20])
    more = f" and {len(texts) - 20} more" if len(texts) > 20 else ""
    return f"there are {listed}{more}{hint}"


def some_labels(labels: Sequence[object], most: int = 5) -> str:
    """The first few labels, and how many there are if there are more."""
    shown = ", ".join(repr(label) for label in labels[:most])
    return shown if len(labels) <= most else f"{shown}, … ({len(labels)} in all)"


def shown_values(column: Column) -> str:
    """Short list of the different values of a pandas column, for messages."""
    values = column.dropna().unique().tolist()
    with contextlib.suppress(TypeError):
        values = sorted(values)
    listed = ", ".join(repr(value) for value in values[:8])
    return f"{listed}, ..." if len(values) > 8 else listed or "missing everywhere"


def shown_number(value: Number) -> str:
    """Write a number as a person would: ``3`` rather than ``3.0`` or ``np.float64(3.0)``."""
    if isinstance(value, int | np.integer):
        text = str(value)
        return text if len(text) <= 40 else f"{text[:37]}..."
    number = float(value)
    if number.is_integer() and abs(number) < 1e16:
        return str(int(number))
    return repr(number)


def few_digits(value: object) -> str:
    """Write a time: four digits, and all before the point."""
    number = float(np.asarray(value, dtype=np.float64))
    return shown_number(float(f"{number:.4g}") if abs(number) < 1000 else round(number))


def check_window(window: Iterable[Number] | None, low: float, high: float) -> tuple[float, float]:
    """Validate a window ``(t0, t1)`` that must contain times from ``low`` to ``high``."""
    try:
        t0, t1 = (float(value) for value in window or ())
    except (TypeError, ValueError):
        raise PanelDataError(f"the window must be two numbers (t0, t1); found {window!r}") from None
    if not (np.isfinite(t0) and np.isfinite(t1) and t0 < t1):
        raise PanelDataError(f"the window must be finite with t0 < t1; found {window!r}")
    if max(abs(t0), abs(t1)) > LARGEST_SIZE or t1 - t0 < SMALLEST_SIZE:
        raise PanelDataError(
            f"the window must lie within ±{LARGEST_SIZE:g} and be at least {SMALLEST_SIZE:g} long; "
            f"found ({shown_number(t0)}, {shown_number(t1)})"
        )
    if low < t0 or high > t1:
        raise PanelDataError(
            f"the window must contain every interval; found ({shown_number(t0)}, "
            f"{shown_number(t1)}) while the data reach from {shown_number(low)} to "
            f"{shown_number(high)}"
        )
    return t0, t1


def alternatives(texts: Sequence[str]) -> str:
    """Join texts as in "a, b or c"."""
    return " or ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise unless an option is one of its choices."""
    if value not in choices:
        listed = alternatives([repr(choice) for choice in choices])
        raise PanelDataError(f"{name} must be {listed}; found {value!r}")


def shown_interval(start: Number, stop: Number) -> str:
    """Write an interval as ``(0, 5]``."""
    return f"({shown_number(start)}, {shown_number(stop)}]"


def plural(number: int, thing: str, things: str | None = None) -> str:
    """Write ``1 subject`` or ``3 subjects``."""
    return f"{number} {thing if number == 1 else things or thing + 's'}"


def resolving_window(
    window: tuple[float, float] | None,
    start: FloatArray,
    stop: FloatArray,
    locate: Callable[[Sequence[int]], str] | None = None,
) -> tuple[float, float]:
    """A valid window, long enough for every interval and not too long for the shortest.

    Parameters
    ----------
    window : (t0, t1), optional
        Default from the first start to the last stop.
    start, stop : (n_rows,)
    locate : callable, optional
        Names rows by their positions, for the message.
    """
    low, high = float(start.min()), float(stop.max())
    t0, t1 = check_window((low, high) if window is None else window, low, high)
    row = int(np.argmin(stop - start))
    if stop[row] - start[row] < SHORTEST_SHARE * (t1 - t0):
        where = f" ({locate([row])})" if locate is not None else ""
        raise PanelDataError(
            f"an interval must be at least {SHORTEST_SHARE:g} of the window "
            f"({shown_number(t0)}, {shown_number(t1)}) long; found "
            f"{shown_interval(start[row], stop[row])}{where}"
        )
    return t0, t1


def within_rounding(
    window: tuple[float, float] | None, start: FloatArray, stop: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Times that exceed a window by no more than rounding, set to its ends.

    The window (0, 60) has room for an interval that ends at 60.00000000000002: sums and units of
    time leave such digits.
    """
    if window is None:
        return start, stop
    low, high = window
    slack = SHORTEST_SHARE * max(abs(low), abs(high))
    if not np.isfinite(slack):
        return start, stop
    start = np.where((start < low) & (start >= low - slack), low, start)
    return start, np.where((stop > high) & (stop <= high + slack), high, stop)


def check_total(count: IntArray) -> None:
    """Raise if the sum of the counts would not fit its integer type."""
    total = float(count.sum(dtype=np.float64))
    if total > LARGEST_TOTAL:
        raise PanelDataError(f"all counts together must be at most 2^62; found {total:g}")


def refuse_missing(name: str, labels: Sequence[object]) -> None:
    """Name the subjects whose group is not known, if there are any."""
    if labels:
        raise PanelDataError(
            f"{name!r} is missing for {plural(len(labels), 'subject')}: {some_labels(labels)}; "
            "leave them out (--drop-missing on the command line), or give them a group of their own"
        )


def refuse_varying(panel: PanelCounts, name: str) -> None:
    """Say which subject changes a column that should be its own, and where."""
    between = panel.interval_covariates
    if name not in between.columns:
        return
    values = between[name].astype(object)
    same = np.diff(panel.subject_index) == 0
    before, after = values.to_numpy()[:-1], values.to_numpy()[1:]
    changed = np.array([a != b for a, b in zip(before, after, strict=True)], dtype=bool)
    row = int(np.flatnonzero(same & changed)[0])
    subject = panel.subjects[panel.subject_index[[row]]].tolist()[0]
    first, second = (
        f"{values.iloc[k]!r} in {shown_interval(panel.start[k], panel.stop[k])}"
        for k in (row, row + 1)
    )
    n_more = len(set(panel.subject_index[:-1][same & changed].tolist())) - 1
    more = f"; {plural(n_more, 'other subject')} too" if n_more else ""
    raise PanelDataError(
        f"{name!r} varies within a subject and cannot say which group it is in: subject "
        f"{subject!r} has {first} and {second} (rows {row + 1} and {row + 2} of the panel, sorted "
        f"by subject and time{more})"
    )
