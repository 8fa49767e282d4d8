"""The text of a formula of covariates, such as ``"treatment + age"``: what it may say.

A formula is Wilkinson notation, parsed by formulaic. Its factors are names of columns or calls of
a short list of functions; everything else that formulaic would evaluate as Python is refused
before anything is evaluated, so that a formula from a command line or a file can run no code.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from gp4c.data.formulas.changing_terms import changing_terms
from gp4c.exceptions import PanelDataError

#: functions that a formula may call
FUNCTIONS = (
    "C", "I", "abs", "bs", "cc", "center", "cr", "cs", "exp", "log", "log10", "log2", "poly",
    "scale", "sqrt", "standardize",
)  # fmt: skip
#: codings of categories, as ``C(x, contr.treatment("placebo"))``
CODINGS = ("treatment", "sum", "helmert", "diff", "poly")
#: arguments of these functions that may be named
ARGUMENTS = (
    "base", "center", "constraints", "ddof", "degree", "df", "include_intercept", "knots",
    "levels", "lower_bound", "raw", "scale", "upper_bound",
)  # fmt: skip
#: longest formula, and largest exponent in one: beyond them lies a mistake or a denial of service
LONGEST, LARGEST_POWER = 500, 6
_NODES = (
    ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.UnaryOp, ast.USub,
    ast.UAdd, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.List, ast.Tuple,
)  # fmt: skip
_QUOTED = re.compile(r"`([^`]*)`")


@dataclass(frozen=True)
class Parsed:
    """A formula that is safe to evaluate, the columns that it names, and those inside ``C()``."""

    formula: Any
    columns: tuple[str, ...]
    categories: frozenset[str]


def parse_formula(text: str) -> Parsed:
    """Parse and check a formula; what is wrong with it is one clear sentence.

    Parameters
    ----------
    text : str
        ``"treatment + age"``, ``"treatment * log(size)"``, ``"C(arm, contr.treatment('b'))"``,
        ``"bs(age, df=4)"``; names that are no Python names in back quotes. A term inside
        ``over_time()`` is read as it is.
    """
    if not isinstance(text, str) or not text.strip():
        raise PanelDataError(f"a formula is a text such as 'treatment + age'; found {text!r}")
    if len(text) > LONGEST:
        raise PanelDataError(f"a formula has at most {LONGEST} characters; found {len(text)}")
    text, _ = changing_terms(text)
    if "~" in text or "|" in text:
        raise PanelDataError(
            f"a formula here has covariates only, no '~' and no '|'; found {text!r}"
        )
    _check_powers(text)
    from formulaic import Formula
    from formulaic.errors import FormulaParsingError

    try:
        formula = Formula(text)
    except (FormulaParsingError, SyntaxError, ValueError, TypeError) as error:
        raise PanelDataError(
            f"the formula {text!r} cannot be understood: {first_sentence(error).rstrip('.')}; "
            "names that are not one word go in back quotes, such as `body weight`"
        ) from None
    terms = list(formula)
    if not any(not term.factors or term == "1" for term in terms):
        raise PanelDataError(
            f"the curve is the intercept, which cannot be left out; found {text!r}"
        )
    names: dict[str, None] = {}
    categories: set[str] = set()
    for factor in (factor for term in terms for factor in term.factors):
        found = _columns_of(factor, text)
        names |= dict.fromkeys(found)
        if str(factor.expr).startswith("C("):
            categories |= set(found)
    if not names:
        raise PanelDataError(f"the formula {text!r} has no covariate")
    return Parsed(formula, tuple(names), frozenset(categories))


def drop_column(text: str, column: str) -> tuple[str | None, list[str]]:
    """A formula without the terms that read a column, None if nothing is left; and those terms."""
    kept: list[str] = []
    dropped: list[str] = []
    for term in parse_formula(text).formula:
        names = [name for factor in term.factors for name in _columns_of(factor, text)]
        if names:
            (dropped if column in names else kept).append(":".join(map(_written, term.factors)))
    return " + ".join(kept) or None, dropped


def _written(factor: Any) -> str:
    """A factor as it is written in a formula."""
    text = str(factor.expr)
    return f"`{text}`" if factor.eval_method.name == "LOOKUP" and not text.isidentifier() else text


def first_sentence(error: BaseException) -> str:
    """First sentence of another library's message, without its colours."""
    plain = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).strip()
    return re.split(r"\n|\. ", plain)[0] or type(error).__name__


def _check_powers(text: str) -> None:
    for power in re.findall(r"(?:\*\*|\^)\s*(\d+)", text):
        if int(power) > LARGEST_POWER:
            raise PanelDataError(
                f"powers in a formula are at most {LARGEST_POWER}; found {power} in {text!r}"
            )


def _columns_of(factor: Any, text: str) -> list[str]:
    """Columns that a factor reads; an error if it does anything but a listed function of them."""
    kind = factor.eval_method.name
    if kind == "LITERAL":
        return []
    if kind == "LOOKUP":
        return [str(factor.expr)]
    quoted: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        return quoted.setdefault(match.group(1), f"_quoted_{len(quoted)}")

    source = _QUOTED.sub(stand_in, str(factor.expr))
    originals = {place: name for name, place in quoted.items()}
    try:
        names = _names_in(ast.parse(source, mode="eval"))
    except (SyntaxError, ValueError):
        raise PanelDataError(
            f"{str(factor.expr)!r} in the formula {text!r} is not allowed: a factor is a column, "
            f"or one of the functions {', '.join(FUNCTIONS)} of columns"
        ) from None
    return [originals.get(name, name) for name in names]


def _names_in(tree: ast.AST) -> list[str]:
    """Names that an expression reads; a ValueError if it could do more than arithmetic."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) in called:
            if node.id not in FUNCTIONS:
                raise ValueError(node.id)
        elif isinstance(node, ast.Name):
            found.append(node.id)
        elif not _is_harmless(node):
            raise ValueError(type(node).__name__)
    return [name for name in found if name != "contr"]


def _is_harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in ARGUMENTS
    if isinstance(node, ast.Attribute):
        base = node.value
        return isinstance(base, ast.Name) and base.id == "contr" and node.attr in CODINGS
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        power = node.right
        number = isinstance(power, ast.Constant) and isinstance(power.value, int | float)
        return bool(number and abs(power.value) <= LARGEST_POWER)  # type: ignore[attr-defined]
    return isinstance(node, _NODES)
