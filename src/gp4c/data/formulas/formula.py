"""Formulas of covariates: from ``"treatment + age"`` to the columns of a regression.

:mod:`gp4c.data.formulas.formula_text` says what a formula may be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gp4c.data.checks import unknown_name
from gp4c.data.formulas.formula_text import first_sentence, parse_formula
from gp4c.exceptions import PanelDataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

Floats = NDArray[np.float64]

#: levels from which a category of numbers is taken for a mistake
MANY_LEVELS = 12
_NUMERAL = re.compile(r"[+-]?\d+([.,]\d+)?", re.ASCII)


@dataclass(frozen=True)
class FormulaDesign:
    """A formula with all that it learned from the data of a fit: levels, transforms, means.

    Every column of the regression is centred at its average over the subjects of the fit (each
    subject counts once; a column that varies within a subject enters with its average over the
    subject's observed time). So the curve of the model belongs to average covariates, an
    indicator of a category having its share as average.

    Attributes
    ----------
    formula : str
    columns : dict
        Name to values of the columns that the formula reads, one per row of the table.
    levels : dict
        Categorical column to its levels, the reference first.
    weights : (n,)
        Share of each row of the table in averages.
    names : tuple of str
        Names of the regression's columns, such as ``"treatment[thiotepa]"``.
    centre : (p,)
        Their averages.
    """

    formula: str
    columns: dict[str, NDArray[Any]]
    levels: dict[str, tuple[Any, ...]]
    weights: Floats
    names: tuple[str, ...]
    centre: Floats

    @classmethod
    def learn(cls, formula: str, table: pd.DataFrame, weights: Floats) -> FormulaDesign:
        """Learn a formula from a complete table, whose rows have the given shares."""
        named = parse_formula(formula).categories
        levels = {
            name: _levels(table[name])
            for name in table.columns
            if name in named or not _is_number(table[name])
        }
        for name in set(levels) - named:
            _check_category(name, levels[name])
        for name, found in levels.items():
            if len(found) == 1:
                raise PanelDataError(
                    f"{name!r} has one level only, {found[0]!r}: it has no effect to estimate; "
                    "leave it out of the formula"
                )
        columns = {name: _values(table[name], name in levels) for name in table.columns}
        draft = cls(formula, columns, levels, weights, (), np.zeros(0))
        raw = draft._raw(draft.table)
        names = tuple(readable_name(name) for name in raw.columns)
        values = raw.to_numpy(dtype=np.float64)
        _check_finite(values, names)
        return cls(formula, columns, levels, weights, names, weights @ values)

    def matrix(self, table: pd.DataFrame) -> Floats:
        """Centred columns of the regression for a complete table, (rows, p)."""
        columns = {}
        for name in self.columns:
            columns[name] = _values(table[name], name in self.levels)
            if name in self.levels:
                columns[name] = self._known_levels(name, columns[name])
        values = self._raw(self._table(columns)).to_numpy(dtype=np.float64)
        _check_finite(values, self.names)
        return np.asarray(values - self.centre)

    def profile(self, covariates: Mapping[str, object]) -> Floats:
        """Centred columns for chosen covariates, the others at their average, (p,).

        The average of the columns over the subjects of the fit, all of whom are given the chosen
        values.
        """
        if not covariates:
            return np.zeros(len(self.names))
        return np.asarray(self.weights @ self.population(covariates))

    def population(self, covariates: Mapping[str, object]) -> Floats:
        """Centred columns of the subjects of the fit, all given the chosen covariates, (n, p).

        Row i stands for the share ``weights[i]`` of them.
        """
        import pandas as pd

        chosen = dict(covariates)
        for name, value in chosen.items():
            if name not in self.columns:
                raise PanelDataError(
                    f"the formula has no covariate {name!r}; {unknown_name(name, [*self.columns])}"
                )
            cell = pd.Series([value], dtype=object)
            if np.ndim(cell.iloc[0]) != 0 or cell.isna().any():
                raise PanelDataError(f"{name!r} must be one value; found {value!r}")
        table = pd.DataFrame(self.columns)
        for name, value in chosen.items():
            table[name] = pd.Series([value] * len(table), dtype=None)
        return self.matrix(table)

    def _known_levels(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        """Values as the fit wrote them (2 for 2.0); one that the fit did not see is an error."""
        known = {level: level for level in self.levels[name]}
        new = [value for value in dict.fromkeys(values.tolist()) if value not in known]
        if new:
            listed = ", ".join(repr(level) for level in known)
            raise PanelDataError(
                f"{name!r} had no level {new[0]!r} in the fit; its levels were {listed}"
            )
        result = np.empty(len(values), dtype=object)
        result[:] = [known[value] for value in values.tolist()]
        return result

    @property
    def table(self) -> pd.DataFrame:
        """The columns that the formula read, its categories with their levels in order."""
        return self._table(self.columns)

    def _table(self, columns: dict[str, NDArray[Any]]) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(
            {
                name: pd.Categorical(values, categories=list(self.levels[name]))
                if name in self.levels
                else values
                for name, values in columns.items()
            }
        )

    def _raw(self, table: pd.DataFrame) -> pd.DataFrame:
        """Columns without the intercept, by the transforms that the fit's data fixed."""
        with np.errstate(all="ignore"):
            matrix = self._evaluate(lambda: self._spec.get_model_matrix(table, context=_context()))
        columns: pd.DataFrame = matrix.drop(columns="Intercept")
        return columns

    @cached_property
    def _spec(self) -> Any:
        parsed = parse_formula(self.formula)
        table = self.table
        with np.errstate(all="ignore"):
            found = self._evaluate(
                lambda: parsed.formula.get_model_matrix(
                    table, context=_context(), na_action="ignore"
                )
            )
        return found.model_spec

    def _evaluate(self, make: Any) -> Any:
        from formulaic.errors import FormulaicError

        try:
            return make()
        except PanelDataError:
            raise
        except (FormulaicError, ValueError, TypeError, KeyError, ArithmeticError) as error:
            raise PanelDataError(
                f"the formula {self.formula!r} cannot be evaluated: "
                f"{first_sentence(error.__cause__ or error)}"
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_spec"}


def _context() -> dict[str, Any]:
    return {"sqrt": np.sqrt, "abs": np.abs}


def _is_number(column: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(column) or is_bool_dtype(column))


def _levels(column: Any) -> tuple[Any, ...]:
    """Levels in use: sorted, or in the order that a categorical column declares."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        return tuple(column.cat.remove_unused_categories().cat.categories.tolist())
    values = column.unique().tolist()
    try:
        return tuple(sorted(values))
    except TypeError:
        return tuple(sorted(values, key=str))


def _check_category(name: str, levels: tuple[Any, ...]) -> None:
    """Refuse numbers that some other text made a category of."""
    texts = [level for level in levels if isinstance(level, str)]
    others = [text for text in texts if not _NUMERAL.fullmatch(text.strip())]
    if others and len(levels) > max(MANY_LEVELS, 4 * len(others)):
        raise PanelDataError(
            f"{name!r} has {others[0]!r} beside numbers, and would be a category with "
            f"{len(levels)} levels; leave cells empty where a number is missing, or write "
            f"C({name if name.isidentifier() else f'`{name}`'}) if a category is meant"
        )


def _values(column: Any, categorical: bool) -> NDArray[Any]:
    if categorical:
        return np.asarray(column.astype(object), dtype=object)
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        bad = next(value for value in column if not isinstance(value, int | float | np.number))
        raise PanelDataError(f"{column.name!r} was numeric in the fit; found {bad!r}") from None


def _check_finite(values: Floats, names: tuple[str, ...]) -> None:
    bad = ~np.isfinite(values).all(axis=0)
    if bad.any():
        raise PanelDataError(
            f"{names[int(np.argmax(bad))]!r} is not finite for all subjects: a logarithm of zero?"
        )


def readable_name(name: str) -> str:
    """Write ``treatment[T.thiotepa]`` as ``treatment[thiotepa]``, and ``C(x, ...)[b]`` as ``x[b]``.

    Only for reading: it does not tell codings of one column apart.
    """
    parts = []
    for part in re.split(r":(?![^(\[]*[)\]])", name):
        plain = re.sub(r"\[T\.", "[", part)
        plain = re.sub(r"^C\(\s*`?([^,`()]+?)`?\s*(?:,.*)?\)\[(.*)\]$", r"\1[\2]", plain)
        parts.append(plain)
    return ":".join(parts)
