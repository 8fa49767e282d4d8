"""Plots, text summaries and reports."""
