"""Relatives of GP4C: exact event times (GP3), a free weight for each subject (GP4CW)."""
