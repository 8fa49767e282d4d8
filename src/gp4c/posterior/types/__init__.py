"""Posteriors of several types of events."""
