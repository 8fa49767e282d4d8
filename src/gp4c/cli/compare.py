"""``gp4c compare``: whether groups of subjects differ, by how much, and when."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gp4c.cli.options.estimator_options import (
    BurstsOption,
    Effect,
    EffectOption,
    Estimator,
    JsonOption,
    LevelOption,
    QuietOption,
    SeedOption,
    groups_of,
    make_estimator,
)
from gp4c.cli.options.table_options import FileArgument, TableOptions, read_source, takes_table
from gp4c.cli.outputs import OutOption, Writer, say_written, write_all
from gp4c.cli.progress import working

if TYPE_CHECKING:
    from gp4c.analysis.comparison import Comparison
    from gp4c.data.panel import PanelCounts


class Test(StrEnum):
    """What the permutation test looks for."""

    LEVEL = "level"
    CURVE = "curve"


@takes_table
def compare(
    file: FileArgument,
    table: TableOptions,
    by: Annotated[str, typer.Option(help="Column that says which group a subject is in.")],
    reference: Annotated[
        str | None, typer.Option(help="Group to compare with; the first if absent.")
    ] = None,
    test: Annotated[
        Test, typer.Option(help="Test for more or fewer events, or also for another course.")
    ] = Test.LEVEL,
    permutations: Annotated[int, typer.Option(min=1, help="Permutations of the test.")] = 9999,
    effect: EffectOption = Effect.AUTO,
    bursts: BurstsOption = "auto",
    level: LevelOption = 0.95,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    out: OutOption = None,
) -> None:
    """Compare the event rates of groups: ratio over time with bands, and a permutation test.

    Prints the comparison in words; with --out also writes tables and plots.

    Example: gp4c compare visits.csv --by arm
    """
    panel = read_source(file, table)
    with working(f"comparing groups of {by}", quiet=quiet or as_json) as say:
        found = compare_groups(
            panel, by, effect, bursts, seed, reference=reference, test=test.value,
            n_permutations=permutations,
        )  # fmt: skip
        if not quiet:
            typer.echo(_json(found) if as_json else _text(found))
        if out is None:
            return
        say("drawing")
        written = write_all(out, _writers(found, level))
    if not quiet:
        say_written(written)


def compare_groups(
    panel: PanelCounts, by: str, effect: Effect, bursts: str, seed: int, *,
    reference: str | None = None, formula: str | None = None, **options: Any,
) -> Comparison:  # fmt: skip
    """Compare groups of a covariate with GP4C."""
    from gp4c.analysis.compare_groups import compare as compare_panels

    groups_of(panel, by)  # says what is wrong with the column in the command line's words
    values = {str(value): value for value in panel.covariates[by].unique()}
    model = make_estimator(Estimator.GP4C, effect, bursts, seed, formula)
    return compare_panels(
        panel, by, model, reference=None if reference is None else values.get(reference, reference),
        random_state=seed, **options,
    )  # fmt: skip


def _text(found: Comparison) -> str:
    """The comparison in words, at most 80 columns."""
    import textwrap

    return "\n".join(
        "\n".join(textwrap.wrap(line, 80, subsequent_indent="  "))
        for line in str(found).split("\n")
    )


def _json(found: Comparison) -> str:
    import json
    import math

    from gp4c import __version__
    from gp4c.analysis.comparison_words import conclusions
    from gp4c.cli.fit import facts

    factor = found.log_bayes_factor
    document = {
        "gp4c": __version__,
        "by": found.by,
        "groups": [str(group) for group in found.groups],
        "test": found.test,
        "statistic": found.statistic,
        "p_value": found.p_value,
        "log_bayes_factor": factor if math.isfinite(factor) else None,
        "fits": {str(group): facts(found.models[group]) for group in found.groups},
        "pairs": json.loads(found.pairwise().to_json(orient="records", double_precision=15)),
        "explanation": conclusions(found),
        "notes": list(found.notes),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _writers(found: Comparison, level: float) -> dict[str, Writer]:
    """Tables and plots of a comparison."""
    from gp4c.reporting.csv_tables import write_csv
    from gp4c.reporting.figures.curves import curves_of
    from gp4c.reporting.figures.observed_numbers import size_with
    from gp4c.reporting.figures.plot_style import save_plot
    from gp4c.reporting.figures.plots import plot_groups, plot_ratio

    curves = {str(g): curves_of(found.models[g], levels=(level,)) for g in found.groups}
    parts = {str(g): found.panel[found.codes == k] for k, g in enumerate(found.groups)}

    def groups(what: str) -> Writer:
        return lambda path: save_plot(
            lambda ax: plot_groups(
                curves, ax, what=what, level=level, title=found.by, observed=parts
            ),
            path, size=size_with(len(parts)),
        )  # fmt: skip

    def ratio(curve: str) -> Writer:
        return lambda path: save_plot(
            lambda ax: plot_ratio(found, ax, level=level, curve=curve, pair=found.pairs[0]), path
        )

    files: dict[str, Writer] = {
        "comparison.txt": lambda path: path.write_text(_text(found) + "\n", encoding="utf-8"),
        "comparison.json": lambda path: path.write_text(_json(found) + "\n", encoding="utf-8"),
        "ratios.csv": lambda path: write_csv(found.to_frame(level=level), path),
        "pairs.csv": lambda path: write_csv(found.pairwise(), path),
        "cumulative.png": groups("cumulative"),
        "intensity.png": groups("intensity"),
    }
    if len(found.groups) == 2:
        files |= {
            "ratio-cumulative.png": ratio("cumulative"),
            "ratio-intensity.png": ratio("rate"),
        }
    return files
