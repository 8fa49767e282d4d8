"""Axes of time that show dates."""
