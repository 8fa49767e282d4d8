"""Kinds of values that a saved model may hold: an estimator lists its own in `saved`.

A check is a function of a value and the sizes seen so far; it returns None, or what is wrong. Sizes
are named ("K" subjects, "M" inducing inputs, ...) and must be the same wherever the name occurs
within one object, so that no answer of a loaded model runs into arrays that do not fit together.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gp4c.model.kernels import KERNELS
from gp4c.model.laws import EFFECTS, LAWS

Sizes: TypeAlias = dict[str, int]
Check: TypeAlias = Callable[[object, Sizes], str | None]
Numbers: TypeAlias = "np.float64 | NDArray[np.number]"

#: what may name a subject or a level
LABEL_TYPES = (str, int, float, bool, tuple, type(None))


@dataclass(frozen=True)
class Sometimes:
    """A check of an attribute that only some fits have."""

    check: Check

    def __call__(self, value: object, sizes: Sizes) -> str | None:
        """What is wrong with a value that is there."""
        return self.check(value, sizes)


def number(*, positive: bool = False, infinite: bool = False, nan: bool = False) -> Check:
    """A float; finite unless said otherwise."""

    def check(value: object, sizes: Sizes) -> str | None:
        if isinstance(value, bool) or not isinstance(value, float | int):
            return "is not a number"
        return _bad_values(np.float64(value), positive, infinite, nan)

    return check


def array(
    *shape: str, kind: str = "f", positive: bool = False, infinite: bool = False, nan: bool = False
) -> Check:
    """An array of numbers whose axes have named sizes; kind "f" for floats, "i" for integers."""

    def check(value: object, sizes: Sizes) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != kind:
            return "is not an array of numbers"
        wrong = _bad_shape(value, shape, sizes)
        return wrong or _bad_values(value, positive, infinite, nan)

    return check


def index(size: str, into: str) -> Check:
    """Positions in an axis of another array."""

    def check(value: object, sizes: Sizes) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind != "i":
            return "is not an array of positions"
        wrong = _bad_shape(value, (size,), sizes)
        if wrong is None and value.size and not 0 <= value.min() <= value.max() < sizes[into]:
            return "points outside its array"
        return wrong

    return check


def labels(size: str) -> Check:
    """An array of texts, numbers or whatever else names a subject or a level."""

    def check(value: object, sizes: Sizes) -> str | None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "OUifb":
            return "is not an array of labels"
        if value.dtype == object and not all(isinstance(v, LABEL_TYPES) for v in value.flat):
            return "has a label that is no text or number"
        return _bad_shape(value, (size,), sizes)

    return check


def one_of(*types: type) -> Check:
    """A value of one of some plain types."""

    def check(value: object, sizes: Sizes) -> str | None:
        return None if type(value) in types else f"is a {type(value).__name__}"

    return check


def choice(*values: object) -> Check:
    """One of some values."""

    def check(value: object, sizes: Sizes) -> str | None:
        known = value is None or isinstance(value, str)
        return None if known and value in values else "is none of the known choices"

    return check


def maybe(check: Check) -> Check:
    """None, or what another check wants."""
    return lambda value, sizes: None if value is None else check(value, sizes)


def result(*names: str) -> Check:
    """An object of one of the result classes, whose content is checked when it is made."""

    def check(value: object, sizes: Sizes) -> str | None:
        return None if type(value).__name__ in names else "is not what it should be"

    return check


def tuple_of(each: Check, size: str | None = None, at_least: int = 0) -> Check:
    """A tuple of values that all pass a check."""

    def check(value: object, sizes: Sizes) -> str | None:
        if not isinstance(value, tuple) or len(value) < at_least:
            return "is not a list of values"
        wrong = _bad_size(len(value), size, sizes) if size else None
        return wrong or next((w for v in value if (w := each(v, sizes)) is not None), None)

    return check


def dict_of(each: Check) -> Check:
    """A dictionary with texts as keys and values that all pass a check."""

    def check(value: object, sizes: Sizes) -> str | None:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            return "is not a list of named values"
        return next((w for v in value.values() if (w := each(v, sizes)) is not None), None)

    return check


def window(value: object, sizes: Sizes) -> str | None:
    """Two finite times, the first before the second."""
    if isinstance(value, tuple) and len(value) == 2:
        numbers = all(isinstance(v, float | int) for v in value)
        if numbers and -math.inf < value[0] < value[1] < math.inf:
            return None
    return "is not a window of time"


def date(value: object, sizes: Sizes) -> str | None:
    """A date as ISO text."""
    try:
        found = np.datetime64(value if isinstance(value, str) else "none", "us")
    except ValueError:
        return "is not a date"
    return "is not a date" if np.isnat(found) else None


def _bad_values(value: Numbers, positive: bool, infinite: bool, nan: bool) -> str | None:
    if not nan and np.any(np.isnan(value)):
        return "is not a number"
    if not infinite and np.any(np.isinf(value)):
        return "is not finite"
    return "is not positive" if positive and np.any(value <= 0) else None


def _bad_shape(value: NDArray[np.generic], shape: tuple[str, ...], sizes: Sizes) -> str | None:
    if value.ndim != len(shape):
        return f"has {value.ndim} axes instead of {len(shape)}"
    wrong = (_bad_size(n, name, sizes) for n, name in zip(value.shape, shape, strict=True))
    return next((text for text in wrong if text is not None), None)


def _bad_size(size: int, name: str, sizes: Sizes) -> str | None:
    expected = sizes.setdefault(name, size)
    return None if size == expected else f"has {size} values instead of {expected}"


# -- common kinds ----------------------------------------------------------------------------------

ANY_NUMBER = number(infinite=True, nan=True)
COUNT, FLAG, TEXT = one_of(int), one_of(bool), one_of(str)


def kernel(value: object, sizes: Sizes) -> str | None:
    """The name of a kernel that is known now."""
    return choice(*KERNELS)(value, sizes)


def law(value: object, sizes: Sizes) -> str | None:
    """The name of a law of counts that is known now."""
    return choice(*LAWS)(value, sizes)


def effect(value: object, sizes: Sizes) -> str | None:
    """The name of a law of effects that is known now."""
    return choice(*EFFECTS)(value, sizes)


def problem_with(values: Mapping[str, object], checks: Mapping[str, Check]) -> str | None:
    """What is wrong with named values: one missing, one unknown, one of another kind or size."""
    for name in values:
        if name not in checks:
            return f"{short(name)} is unknown"
    sizes: Sizes = {}
    for name, check in checks.items():  # in this order: sizes are known before they are used
        if name in values:
            wrong = check(values[name], sizes)
            if wrong is not None:
                return f"{name!r} {wrong}"
        elif not isinstance(check, Sometimes):
            return f"{name!r} is missing"
    return None


def short(value: object) -> str:
    """A value from a file in a message: hostile ones must not fill the screen."""
    return reprlib.repr(value)
