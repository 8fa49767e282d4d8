"""The command line: parse, call, print. One module per command; no statistics here."""

from __future__ import annotations

from gp4c.cli.program import app, main

__all__ = ["app", "main"]
