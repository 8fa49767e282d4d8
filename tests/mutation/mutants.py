"""Small wrong changes to the source: cosmic-ray's operators, sampled evenly over the modules.

Replacements that any call would notice at once (``*`` to ``<<`` on floats) are left out, since they
would only flatter the kill rate; so are annotations and ``if TYPE_CHECKING``, which never run.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
from pathlib import Path

BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Mul_Add", "Pow_Mul", "FloorDiv_Mul",
          "Mod_Mul", "BitAnd_BitOr", "BitOr_BitAnd")  # fmt: skip
COMPARISON = ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt",
              "Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")  # fmt: skip
OPERATORS = (
    *(f"core/ReplaceBinaryOperator_{change}" for change in BINARY),
    *(f"core/ReplaceComparisonOperator_{change}" for change in COMPARISON),
    *(f"core/ReplaceUnaryOperator_Delete_{sign}" for sign in ("USub", "Not", "Invert")),
    "core/AddNot",
    "core/ReplaceAndWithOr",
    "core/ReplaceOrWithAnd",
    "core/ReplaceTrueWithFalse",
    "core/ReplaceFalseWithTrue",
    "core/ReplaceBreakWithContinue",
    "core/ReplaceContinueWithBreak",
    "core/ZeroIterationForLoop",
    "core/ExceptionReplacer",
    "core/NumberReplacer",
)
#: no module gets fewer, if it has so many places to change
FEWEST = 5


@dataclass(frozen=True)
class Mutant:
    """One change at one place of one module."""

    module: str  #: path below src, such as gp4c/estimators/base.py
    operator: str
    occurrence: int  #: which of the places where the operator applies
    line: int
    statement: tuple[int, int]  #: first and last line of the statement that it is in

    @property
    def name(self) -> str:
        return ".".join(Path(self.module).with_suffix("").parts)


def mutants_of(src: Path, module: str) -> list[Mutant]:
    """Every mutant of a module."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    source = (src / module).read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(source)))
    tree = ast.parse(source)
    dead, statements = _spans_that_never_run(tree), _statements(tree)
    rows = source.splitlines()
    found = []
    for name in OPERATORS:
        operator = get_operator(name)()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for occurrence, (start, stop) in enumerate(places):
            if _is_argument_star(rows[start[0] - 1][: start[1]], name):
                continue
            if not any(first <= start and stop <= last for first, last in dead):
                line = start[0]
                found.append(
                    Mutant(module, name, occurrence, line, statements.get(line, (line, line)))
                )
    return found


def _is_argument_star(before: str, operator: str) -> bool:
    """Whether a star unpacks or separates arguments instead of multiplying."""
    star = "_Mul_" in operator or "_Pow_" in operator
    return star and (before.rstrip()[-1:] in ("", *"(,[{:=") or before.endswith("lambda "))


def _spans_that_never_run(tree: ast.Module) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Positions of annotations and of imports for type checkers alone."""
    nodes: list[ast.expr | ast.stmt] = []
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            if isinstance(getattr(node, part, None), ast.expr):
                nodes.append(getattr(node, part))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes.append(node)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in nodes]


def _statements(tree: ast.Module) -> dict[int, tuple[int, int]]:
    """Line -> first and last line of its statement; of a head, that is of ``if`` and the like, only
    the head; of ``def``, whose defaults run when it is called, the whole function.
    """
    found = {}
    for node in ast.walk(tree):  # outer statements first, so that inner ones overwrite them
        if isinstance(node, ast.stmt):
            first, last = node.lineno, node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            head = body[0].lineno - 1 if body else last
            span = (first, last if isinstance(node, ast.FunctionDef) else max(first, head))
            found.update(dict.fromkeys(range(first, max(first, head) + 1), span))
    return found


def mutated_source(src: Path, mutant: Mutant) -> str:
    """The module's text with the change made."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (src / mutant.module).read_text(encoding="utf-8")
    changed = mutate_code(source, get_operator(mutant.operator)(), mutant.occurrence)
    if changed is None or changed == source:
        raise ValueError(f"{mutant} changes nothing")
    return str(changed)


def modules_below(src: Path, folders: tuple[str, ...]) -> list[str]:
    """Modules of some folders that have anything to change."""
    files = [path for folder in folders for path in sorted((src / folder).rglob("*.py"))]
    return [str(p.relative_to(src)) for p in files if p.name != "__init__.py"]


def sample(src: Path, modules: list[str], number: int, seed: int) -> list[Mutant]:
    """About `number` mutants, from each module in proportion to the places it has to change.

    At most a quarter of a module's mutants change a number: there are many numbers, and many of
    them are tolerances.
    """
    everything = {module: mutants_of(src, module) for module in modules}
    total = sum(map(len, everything.values()))
    chosen = []
    for module, mutants in everything.items():
        quota = max(FEWEST, round(number * len(mutants) / total))
        # a generator for each module: a change elsewhere leaves its sample as it is
        shuffled = random.Random(f"{seed} {module}").sample(mutants, len(mutants))
        numbers = [m for m in shuffled if m.operator == "core/NumberReplacer"]
        others = [m for m in shuffled if m.operator != "core/NumberReplacer"]
        few = numbers[: max(quota // 4, quota - len(others))]
        chosen += [*few, *others[: quota - len(few)]]
    return chosen
