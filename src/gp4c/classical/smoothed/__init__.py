"""Smoothed intensities: local EM."""
