"""``gp4c app``: the page on screen."""

from __future__ import annotations

from typing import Annotated

import typer


def app(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the address; open no browser.")
    ] = False,
) -> None:
    """Open a page in the browser to read a table, fit it, and download figures, tables and code.

    The page is served to this machine alone, and only at the address that it
    prints. Nothing leaves the machine. Ctrl-C ends it.

    Example: gp4c app
    """
    from gp4c.app.serving import serve

    def ready(address: str) -> None:
        typer.echo(address)
        typer.echo("Ctrl-C ends it.", err=True)
        if not no_browser:
            import webbrowser

            webbrowser.open(address)

    serve(port, ready)
