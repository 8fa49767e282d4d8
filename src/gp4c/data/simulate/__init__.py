"""Panels drawn from a known intensity."""
