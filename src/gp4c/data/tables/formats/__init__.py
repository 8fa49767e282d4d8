"""Kinds of files that hold tables: one small class each, found by content or by extension."""
