"""Figures of fleets: forecasts, units and back-tests."""
