"""Plots, and the curves that they show."""
