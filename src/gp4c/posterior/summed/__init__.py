"""Posteriors of sums of curves."""
