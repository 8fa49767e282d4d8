"""Errors and warnings that users may catch, one family under :class:`GP4CError`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class GP4CError(Exception):
    """Base class of every error that gp4c raises on purpose."""


class RowProblem(NamedTuple):
    """A rule that rows of a table break: the sentence, the rows from 0, and their names."""

    sentence: str
    rows: tuple[int, ...] = ()
    where: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} ({self.where})" if self.where else self.sentence


class PanelDataError(GP4CError, ValueError):
    """The data break a rule; the message names the rule, the value and the row.

    Attributes
    ----------
    problems : tuple of RowProblem
        One by one, up to a hundred of each rule, where the message has only the first five.
    """

    def __init__(self, message: str = "", problems: Iterable[RowProblem] = ()) -> None:
        super().__init__(message)
        self.problems = tuple(problems)


class OutsideWindowError(GP4CError, ValueError):
    """A time outside the observation window was asked for without ``extrapolate=True``."""


class NotFittedError(GP4CError, ValueError, AttributeError):
    """A method that needs a fitted model was called before ``fit``."""


class NoIntensityError(GP4CError, TypeError):
    """A step estimator has jumps, not a rate: ask for ``cumulative`` instead."""


class ModelFileError(GP4CError, ValueError):
    """A saved model cannot be read: wrong kind of file, version or content."""


class MissingExtraError(GP4CError, ImportError):
    """A package of an optional extra is not installed; the message names the extra."""


class NotEnoughMemoryError(GP4CError, MemoryError):
    """A fit or a table would need more memory than there is; the message says how to need less."""


class GP4CWarning(UserWarning):
    """Base class of the warnings of gp4c."""


class ConvergenceWarning(GP4CWarning):
    """An iteration stopped before it converged; the message says what to change."""


class OverdispersionWarning(GP4CWarning):
    """Counts vary more between subjects than the fitted model allows."""


class FitWarning(OverdispersionWarning):
    """Counts vary more within subjects than the fitted law allows."""
