"""Trials before they begin: their power, and how many subjects they need."""
