"""``gp4c datasets``: the data that come with the package."""

from __future__ import annotations


def datasets() -> None:
    """List the data sets that come with gp4c.

    Each name can stand in place of a file: gp4c describe bladder

    Example: gp4c datasets
    """
    from gp4c.data.datasets.bundled import list_datasets, load_dataset

    rows: list[tuple[str, ...]] = [
        ("name", "subjects", "intervals", "events", "window", "covariates")
    ]
    for name in list_datasets():
        panel = load_dataset(name)
        start, stop = panel.window
        window = f"{start:g} to {stop:g} {panel.time_unit or ''}"
        size = (str(n) for n in (panel.n_subjects, panel.n_intervals, panel.n_events))
        covariates = ", ".join(str(column) for column in panel.covariates.columns)
        rows.append((name, *size, window, covariates))
    _print_table(rows)


def _print_table(rows: list[tuple[str, ...]]) -> None:
    """Print a table within the width of the terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(*rows[0], box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns[1:4]:
        column.justify = "right"
    table.columns[-1].overflow = "fold"
    for row in rows[1:]:
        table.add_row(*row)
    Console().print(table)
