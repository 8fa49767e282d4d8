"""Panels with several types of events in the same subjects."""
