"""``gp4c cite``: what to cite."""

from __future__ import annotations

import typer


def cite() -> None:
    """Print BibTeX entries for the paper and for this version of the software.

    Example: gp4c cite
    """
    from gp4c.reporting.page.report_method import citation

    typer.echo(citation())
