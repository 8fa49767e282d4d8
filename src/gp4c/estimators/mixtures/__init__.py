"""Intensities that are combinations of basis intensities, with weights of every subject."""
