"""``gp4c compare``: whether groups of subjects differ, by how much, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from gp4c.cli.options.estimator_options import (
    BurstsOption,
    EffectOption,
    FormulaOption,
    JsonOption,
    LevelOption,
    QuietOption,
    SeedOption,
    with_covariates,
)
from gp4c.cli.options.group_options import GroupOptions, takes_groups
from gp4c.cli.options.model_options import ModelOptions
from gp4c.cli.options.table_options import FileArgument, TableOptions, read_source, takes_table
from gp4c.cli.outputs import OutputOptions, say_written, takes_output, write_all
from gp4c.cli.progress import working
from gp4c.reporting.csv_tables import json_rows
from gp4c.reporting.fit_result import Writer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gp4c.analysis.comparison import Comparison
    from gp4c.analysis.type_comparison import TypeComparison


@takes_table
@takes_groups
@takes_output
def compare(
    file: FileArgument,
    table: TableOptions,
    *,
    by: Annotated[str, typer.Option(help="Column that says which group a subject is in.")],
    formula: FormulaOption = None,
    groups: GroupOptions,
    effect: EffectOption = "auto",
    bursts: BurstsOption = "auto",
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    output: OutputOptions,
) -> None:
    """Compare the event rates of groups: ratio over time with bands, and a permutation test.

    Prints the comparison in words; with --out also writes tables and
    plots. With --formula the comparison is adjusted for covariates.

    Example: gp4c compare visits.csv --by arm
    """
    panel = read_source(file, table, say=not quiet)
    panel = with_covariates(panel, formula, table.drop_missing, groups.columns(by))
    with working(f"comparing groups of {by}", quiet=quiet or as_json) as say:
        model = ModelOptions(effect=effect, bursts=bursts, formula=formula).build(seed)
        found = groups.compare(panel, by, model, seed=seed, progress=say)
        if not quiet:
            typer.echo(_json(found) if as_json else _text(found))
        if output.out is None:
            return
        say("drawing")
        written = write_all(output.out, _writers(found, level, output))
    if not quiet:
        say_written(written)


def _text(found: Comparison | TypeComparison) -> str:
    """The comparison in words, at most 80 columns."""
    import textwrap

    return "\n".join(
        "\n".join(textwrap.wrap(line, 80, subsequent_indent="  "))
        for line in str(found).split("\n")
    )


def _json(found: Comparison | TypeComparison) -> str:
    import json

    from gp4c.analysis.type_comparison import TypeComparison

    whole = _types_document if isinstance(found, TypeComparison) else _document
    return json.dumps(whole(found), indent=2, ensure_ascii=False)  # type: ignore[arg-type]


def _types_document(found: TypeComparison) -> dict[str, object]:
    """The tests of all types together and of each, and the comparison in each type."""
    from gp4c import __version__

    return {
        "gp4c": __version__,
        "by": found.by,
        "groups": [str(group) for group in found.groups],
        "test": found.test,
        "statistic": found.together.statistic,
        "p_value": found.p_value,
        "exact": found.together.exact,
        "tests": json_rows(found.tests()),
        "explanation": found.conclusions(),
        "types": {name: _document(one) for name, one in found.by_type.items()},
    }


def _document(found: Comparison) -> dict[str, object]:
    import math

    from gp4c import __version__
    from gp4c.analysis.groups.labellings import log_labellings
    from gp4c.analysis.words.comparison_words import conclusions
    from gp4c.reporting.fit_result import facts

    tested, result = found.tested, found.tested.overall
    return {
        "gp4c": __version__,
        "by": found.by,
        "groups": [str(group) for group in found.groups],
        "strata": None if tested.strata is None else tested.strata.name,
        "blocks": None if tested.blocks is None else tested.blocks.name,
        "centres": _centres(found),
        "test": found.test,
        "weights": tested.weights,
        "formula": None if tested.adjustment is None else tested.adjustment.formula,
        "adjusted": json_rows(found.adjusted()),
        "covariates": None if found.regression is None else json_rows(found.regression.effects_),
        "scores": None if tested.scores is None else tested.scores.tolist(),
        "trend": _trend(found),
        "statistic": found.statistic,
        "p_value": found.p_value,
        "parts": result.parts,
        "log10_labellings": log_labellings(result.table) / math.log(10.0),
        "exact": result.exact,
        "log_bayes_factor": None if found.hypotheses is None else found.log_bayes_factor,
        "hypotheses": _hypotheses(found),
        "fits": {str(group): facts(found.models[group]) for group in found.groups},
        "pairs": json_rows(found.pairwise()),
        "intervals": _intervals(found),
        "explanation": conclusions(found),
        "notes": list(found.notes),
    }


def _trend(found: Comparison) -> dict[str, float] | None:
    """The factor per unit of the score, where a trend of several groups was tested."""
    if found.tested.scores is None or len(found.groups) == 2:
        return None
    factor, low, high = found.tested.trend_interval(0.95)
    return {"factor": factor, "low": low, "high": high}


def _centres(found: Comparison) -> dict[str, object] | None:
    """How much centres differ."""
    if found.centres is None:
        return None
    return {
        "column": found.centres.column.name,
        "deviation": found.centres.deviation,
        "deviation_interval": found.centres.deviation_interval(),
        "share": found.centres.share,
        "share_interval": found.centres.share_interval(),
        "factors": json_rows(found.centres.to_frame()),
    }


def _hypotheses(found: Comparison) -> dict[str, object] | None:
    """Probabilities and evidence of the three accounts, and the factors of the second."""
    if found.hypotheses is None:
        return None
    base = found.groups[0]
    return {
        "probabilities": found.probabilities,
        "log_evidence": found.hypotheses.log_evidence,
        "law": found.hypotheses.law,
        "effect": found.hypotheses.effect,
        "factors": {
            str(group): found.factor_interval(0.95, pair=(base, group))
            for group in found.groups[1:]
        },
    }


def _intervals(found: Comparison) -> list[dict[str, object]] | None:
    """Ratios that the test keeps, by pair; many pairs take long and are left to Python."""
    from gp4c.analysis.words.comparison_words import MOST_PAIRS

    if len(found.pairs) > MOST_PAIRS:
        return None
    return json_rows(found.intervals())


def _writers(
    found: Comparison | TypeComparison, level: float, output: OutputOptions
) -> dict[str, Writer]:
    """Texts, tables and plots; of types of events those of each type, named after it."""
    from gp4c.analysis.type_comparison import TypeComparison
    from gp4c.reporting.csv_tables import write_csv
    from gp4c.reporting.fit_result import file_names

    files: dict[str, Writer] = {
        "comparison.txt": lambda path: path.write_text(_text(found) + "\n", encoding="utf-8"),
        "comparison.json": lambda path: path.write_text(_json(found) + "\n", encoding="utf-8"),
    }
    if not isinstance(found, TypeComparison):
        return files | _curve_writers(found, level, output)
    files["types.csv"] = lambda path: write_csv(found.tests(level), path)
    files |= output.table_files(types=lambda: found.table(level))
    names = file_names(list(found.by_type))
    for name, one in zip(names, found.by_type.values(), strict=True):
        end = name.removeprefix("fit").removesuffix(".json")
        for file, write in _curve_writers(one, level, output).items():
            stem, dot, suffix = file.partition(".")
            files[f"{stem}{end}{dot}{suffix}"] = write
    return files


def _curve_writers(found: Comparison, level: float, output: OutputOptions) -> dict[str, Writer]:
    """Tables and plots of a comparison."""
    from gp4c.reporting.csv_tables import write_csv
    from gp4c.reporting.figures.observed_numbers import size_with
    from gp4c.reporting.publication.fit_tables import estimates_table

    def drawn(what: str) -> Callable[[Axes], Axes]:
        return lambda ax: found.plot(ax, what=what, level=level)

    files: dict[str, Writer] = {
        "ratios.csv": lambda path: write_csv(found.to_frame(level=level), path),
        "pairs.csv": lambda path: write_csv(found.pairwise(), path),
    }
    if found.regression is not None:
        times, regression = found.times, found.regression
        files |= {
            "adjusted.csv": lambda path: write_csv(found.adjusted(level), path),
            "effects.csv": lambda path: write_csv(regression.effect_table(level), path),
            "standardised.csv": lambda path: write_csv(found.standardised(times, level), path),
            "at-average.csv": lambda path: write_csv(found.at_average(times, level), path),
            "regression.json": regression.save,
        }
        files |= output.style.files(
            "cumulative-average", lambda ax: found.plot(ax, level=level, at="average"),
            size=size_with(len(found.groups)),
        )  # fmt: skip
    models = {str(group): found.models[group] for group in found.groups}
    files |= output.table_files(
        comparison=lambda: found.table(level),
        estimates=lambda: estimates_table(models, level, found.by),
    )
    style, room = output.style, size_with(len(found.groups))
    for what in ("cumulative", "intensity"):
        files |= style.files(what, drawn(what), size=room)
    if len(found.groups) == 2:
        files |= style.files("ratio-cumulative", drawn("ratio"))
        files |= style.files("ratio-intensity", drawn("rate ratio"))
    return files
