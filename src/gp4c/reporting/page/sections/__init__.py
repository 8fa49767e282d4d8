"""Sections of the report, each a row of pieces of HTML."""
