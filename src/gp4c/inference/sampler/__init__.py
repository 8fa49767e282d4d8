"""Draws of the exact posterior: the judge of every approximation."""
