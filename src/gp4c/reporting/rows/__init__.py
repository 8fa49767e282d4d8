"""Rows of summaries that some fits have."""
