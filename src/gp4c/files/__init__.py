"""Saved models and exports."""
